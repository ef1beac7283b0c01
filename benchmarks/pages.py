"""Pages in a browser: their first paint, opening a chat of 2,000 messages, and scrolling through it to its top.

    python -m benchmarks pages

A headless Chromium on a warm `denizen run`, each page in a fresh context, so that nothing is in its cache. On a shared
machine wall time says little: the figures of processor time are those of the page's main thread, as Chromium counts
them (`Performance.getMetrics`), and the first paint stands beside that of a bare page of the same server.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Page, StorageState, async_playwright

from benchmarks.figures import Figure, calibrate, middle, show, show_head
from benchmarks.processes import Process, make_home, run_model, run_server
from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.ids import AgentName, MessageId, TurnId, fresh
from denizen.domain.message import Author, Message, Role, TextPart
from denizen.domain.turn import TurnResult, TurnStatus
from denizen.ports.store import Store
from tests.contracts.store.records import NOON, make_turn
from tests.web.browser.browser import DESKTOP, find_chromium

TIMES = 7
MESSAGES = 2000
BATCH = 100
PAINT_AIM_MS = 100
OPEN_AIM_MS = 300
LONG_FRAME_MS = 50
FIRST_PAINT = """() => new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const paint = list.getEntries().find((each) => each.name === "first-contentful-paint");
    if (paint) resolve(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})"""
TITLE = "A long chat"

ANSWER = """The **gateway** listens on port {number}, as the [manual](https://example.org/{number}) says:

1. Stop the worker, and wait for it.
2. Set `port` in the file.
   - It must be free.

| Setting | Value |
|---------|------:|
| port | {number} |
| retries | 3 |

```python
def connect(port: int = {number}) -> Connection:
    # The worker may still hold it.
    return Connection("127.0.0.1", port, retries=3)
```

> Nothing else listens there. See [docs/gateway.md:{number}-{number}].
"""

# Milliseconds from the click on the chat to the frame that shows the last of its messages.
OPEN = """async (title) => {
  const link = [...document.querySelectorAll("#chats a")].find((each) => each.textContent === title);
  const log = document.getElementById("log");
  const began = performance.now();
  const shown = new Promise((resolve) => {
    new MutationObserver((_, watcher) => {
      if (!log.querySelector(".message.assistant .tools")) return;
      watcher.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
    }).observe(log, { childList: true });
  });
  link.click();
  return shown;
}"""

# Scrolls up by steps, a frame each, to the first message. Returns how long each frame took.
SCROLL = """async () => {
  const scroller = document.getElementById("scroll");
  const button = document.getElementById("earlier");
  const frames = [];
  let last = performance.now();
  for (let still = 0; still < 120; ) {
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    frames.push(now - last);
    last = now;
    if (scroller.scrollTop > 0) scroller.scrollTop -= 600;
    else if (!button.hidden && still % 30 === 29) button.click();
    still = scroller.scrollTop > 0 ? 0 : still + 1;
  }
  return { frames, messages: document.querySelectorAll("#log .message").length };
}"""


@dataclass
class Site:
    """A server with an account, and a browser for it."""

    url: str
    browser: Any
    signed_in: StorageState

    @asynccontextmanager
    async def page(self, *, known: bool = True) -> AsyncGenerator[Page]:
        """A page of a fresh context; signed in if `known`."""
        context: BrowserContext = await self.browser.new_context(
            viewport=DESKTOP, storage_state=self.signed_in if known else None
        )
        try:
            yield await context.new_page()
        finally:
            await context.close()


def main(*_: str) -> None:
    asyncio.run(run())


async def run() -> None:
    loop_ms = calibrate()
    show_head(loop_ms)
    with tempfile.TemporaryDirectory() as folder, run_model() as model:
        home = make_home(Path(folder) / "pages", model.port)
        with run_server(home) as server:
            async with open_site(f"http://127.0.0.1:{server.port}") as site:
                await make_long_chat(site, home)
                show(await measure_paints(site, server), loop_ms)
                show(await measure_chat(site), loop_ms)


@asynccontextmanager
async def open_site(url: str) -> AsyncGenerator[Site]:
    """Makes the first account of a server that nobody has used."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(f"{url}/sign-up")
        await page.get_by_label("E-mail").fill("ann@example.org")
        await page.get_by_label("Name").fill("Ann")
        await page.get_by_label("Password").fill("correct horse battery")
        await page.get_by_role("button", name="Make the account").click()
        await page.wait_for_url(f"{url}/admin/setup")
        yield Site(url, browser, await context.storage_state())
        await browser.close()


async def make_long_chat(site: Site, home: Path) -> None:
    """A chat whose answers have what answers have: lists, tables, code, links, citations."""
    async with site.page() as page:
        await page.goto(site.url)
        make = "async () => (await import('/static/api.js')).send('POST', '/api/chats', {})"
        chat_id: str = (await page.evaluate(make))["chat"]["id"]
        rename = (
            "([id, title]) => import('/static/api.js').then((api) => api.send('PATCH', `/api/chats/${id}`, {title}))"
        )
        await page.evaluate(rename, [chat_id, TITLE])
    store = await open_store(f"sqlite:///{home / 'denizen.db'}", clock=SystemClock())
    try:
        await fill(store)
    finally:
        await store.aclose()


async def fill(store: Store) -> None:
    agent = AgentName("denizen")
    async with store.work() as work:
        (conversation,) = await work.conversations.list_recent(platform="web")
        session = await work.sessions.current(conversation.id, agent, now=NOON)
    for start in range(0, MESSAGES // 2, BATCH):
        async with store.work() as work:
            for number in range(start, start + BATCH):
                turn, _ = await work.turns.open(make_turn(session, fresh("turn")))
                for role, text in ((Role.USER, f"Which port has gateway {number}?"), (Role.ASSISTANT, ANSWER)):
                    await work.messages.add(
                        Message(
                            id=MessageId(fresh("msg")),
                            conversation_id=conversation.id,
                            role=role,
                            author=Author("", agent if role is Role.ASSISTANT else "Ann"),
                            parts=(TextPart(text.format(number=number)),),
                            created_at=NOON,
                            session_id=session.id,
                            turn_id=TurnId(turn.id),
                        )
                    )
                await work.turns.close(
                    replace(turn, status=TurnStatus.DONE, closed_at=NOON, result=TurnResult(model="instant"))
                )


async def measure_paints(site: Site, server: Process) -> Iterable[Figure]:
    bare_ms = middle([await paint_ms(site, "/health") for _ in range(TIMES)])
    figures: list[Figure] = []
    for name, path, known in (
        ("sign-in", "/login", False),
        ("chat", "/", True),
        ("overview", "/admin", True),
        ("agent form", "/admin/agents/denizen", True),
    ):
        await paint_ms(site, path, known=known)  # the first of a server makes its templates
        before_ms = server.cpu_ms()
        measured = [await paint_ms(site, path, known=known) for _ in range(TIMES)]
        note = f"least {min(measured):.0f}, server {(server.cpu_ms() - before_ms) / TIMES:.0f} ms CPU; base: bare page"
        figures.append(
            Figure(f"first paint, {name}", middle(measured), "ms", aim=PAINT_AIM_MS, baseline=bare_ms, note=note)
        )
    return figures


async def paint_ms(site: Site, path: str, *, known: bool = False) -> float:
    async with site.page(known=known) as page:
        await page.goto(site.url + path)
        return float(await page.evaluate(FIRST_PAINT))


async def measure_chat(site: Site) -> Iterable[Figure]:
    opened: list[float] = []
    costs: list[dict[str, float]] = []
    for _ in range(TIMES):
        async with site.page() as page:
            metrics = await watch_metrics(page)
            before = await read_metrics(metrics)
            opened.append(await open_chat(site, page))
            after = await read_metrics(metrics)
            costs.append({name: after[name] - before[name] for name in after})
    async with site.page() as page:
        metrics = await watch_metrics(page)
        await open_chat(site, page)
        before = await read_metrics(metrics)
        scrolled = await page.evaluate(SCROLL)
        after = await read_metrics(metrics)
    frames: Sequence[float] = scrolled["frames"]
    assert scrolled["messages"] == MESSAGES, scrolled["messages"]
    scripts, layout = (middle(each[name] for each in costs) for name in ("ScriptDuration", "LayoutDuration"))
    return [
        Figure(
            f"open a chat of {MESSAGES:,} messages",
            middle(opened),
            "ms",
            aim=OPEN_AIM_MS,
            note=f"least {min(opened):.0f}; scripts {scripts * 1e3:.0f}, layout {layout * 1e3:.0f} ms CPU",
        ),
        Figure(
            "scroll through it: frames over 50 ms",
            sum(each > LONG_FRAME_MS for each in frames),
            "frames",
            aim=0,
            note=f"of {len(frames)}, longest {max(frames):.0f} ms",
        ),
        Figure("  processor time of it", (after["TaskDuration"] - before["TaskDuration"]) * 1e3, "ms CPU"),
        *(
            Figure(f"  {name}", (after[name] - before[name]) * 1e3, "ms CPU")
            for name in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        ),
    ]


async def open_chat(site: Site, page: Page) -> float:
    await page.goto(site.url)
    await page.get_by_role("link", name=TITLE, exact=True).wait_for()
    return float(await page.evaluate(OPEN, TITLE))


async def watch_metrics(page: Page) -> CDPSession:
    metrics = await page.context.new_cdp_session(page)
    await metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    return metrics


async def read_metrics(metrics: CDPSession) -> dict[str, float]:
    found = await metrics.send("Performance.getMetrics")
    return {each["name"]: each["value"] for each in found["metrics"] if each["name"].endswith("Duration")}
