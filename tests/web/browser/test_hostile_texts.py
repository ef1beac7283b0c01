"""Texts of people and models never become script: in the chat, its list, shared chats and the pages of admins."""

import itertools

import pytest
from playwright.async_api import expect

from denizen.testing.scripted_model import ScriptedReply, call
from tests.timing import HANG_LIMIT_S
from tests.web.browser.browser import open_browser
from tests.web.browser.test_chat import answering, ask
from tests.web_fixture import open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

MARK = "window.hit=1"
HTML = (
    f"<script>{MARK}</script>",
    f"<img src=x onerror={MARK}>",
    f"<svg onload={MARK}>",
    f"<svg><script>{MARK}</script></svg>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<iframe src='javascript:parent.{MARK}'></iframe>",
    f"<a href='javascript:{MARK}'>x</a>",
    f"<body onload={MARK}>",
    f"<details open ontoggle={MARK}>x</details>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--><img src=x onerror={MARK}>'>",
    f"<noscript><p title='</noscript><img src=x onerror={MARK}>'>",
    f"<form action='javascript:{MARK}'><button>x</button></form>",
    f"<object data='data:text/html,<script>{MARK}</script>'></object>",
    f"<template><img src=x onerror={MARK}></template>",
    f"<style>@import 'javascript:{MARK}';</style>",
    f"<input autofocus onfocus={MARK}>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href='https://evil.example/'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<p id=main name=composer style='position:fixed;inset:0'>x</p>",
)
MARKDOWN = (
    f"[x](javascript:{MARK})",
    f"[x](JaVaScRiPt:{MARK})",
    f"[x](java\nscript:{MARK})",
    f"[x](data:text/html;base64,PHNjcmlwdD4=) {MARK}",
    f"[x](vbscript:{MARK})",
    f"![x](x' onerror='{MARK})",
    f"![x](javascript:{MARK})",
    f'[x](https://a.example "x\\" onmouseover=\\"{MARK}")',
    f"<javascript:{MARK}>",
    f"[x]: javascript:{MARK}\n\n[x]",
    f"```js\n</code></pre><script>{MARK}</script>\n```",
    f'```" onload="{MARK}\ncode\n```',
    f"`</code><script>{MARK}</script>`",
    f"| a |\n|---|\n| <img src=x onerror={MARK}> |",
    f"# <img src=x onerror={MARK}>",
    f"> <svg onload={MARK}>",
    f"- <img src=x onerror={MARK}>",
    f"[docs/a.md:1-2<img src=x onerror={MARK}>]",
    f"[docs/a.md:1](javascript:{MARK})",
    f'https://a.example/"onmouseover="{MARK}',
)
WRAPS = ("{}", "text {} text", "**{}**", "> {}", "- {}", "&lt;{}&gt;")
PAYLOADS = [wrap.format(each) for each, wrap in itertools.product((*HTML, *MARKDOWN), WRAPS)]
FIND_SCRIPT = """async (payloads) => {
  const { renderMarkdown } = await import("/static/markdown.js");
  const bad = [];
  for (const text of payloads) {
    const box = document.createElement("div");
    box.append(renderMarkdown(text));
    document.body.append(box);
    const found = [...box.querySelectorAll("*")].some((each) =>
      /^(script|iframe|object|embed|form|input|style|link|meta|base|svg|math|img|template|body)$/i.test(each.tagName) ||
      [...each.attributes].some((attr) => /^on|^style$|^id$|^name$/i.test(attr.name)) ||
      (each.hasAttribute("href") && !/^(https?:|mailto:|\\/(?!\\/)|#)/i.test(each.getAttribute("href"))));
    if (found || window.hit) bad.push(text);
    box.remove();
  }
  return bad;
}"""


async def test_no_text_of_240_becomes_script_as_markdown() -> None:
    assert len(PAYLOADS) == 240
    async with open_web() as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await page.goto(url)
        assert await page.evaluate(FIND_SCRIPT, PAYLOADS) == []


async def test_hostile_texts_stay_texts_wherever_they_are_shown() -> None:
    everything = "\n\n".join((*HTML, *MARKDOWN))
    model = answering(
        ScriptedReply(calls=[call("weather", city=HTML[1])]), ScriptedReply(everything), title=f"{HTML[1]}{HTML[0]}"
    )
    async with open_web(model, titles=True) as web, web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        await page.goto(url)
        await ask(page, everything)
        await expect(page.get_by_role("button", name="Why?")).to_be_visible()
        await page.reload()
        await page.get_by_role("button", name="Why?").click()
        await expect(page.get_by_role("heading", name="Requests")).to_be_visible()
        for path in ("/admin", "/admin/turns", "/admin/audit", "/admin/usage"):
            await page.goto(url + path)
            assert await page.evaluate("window.hit === undefined")
        [turn] = await web.turns()
        await page.goto(f"{url}/admin/turns/{turn.id}")
        await expect(page.get_by_text("onerror").first).to_be_attached()
        assert await page.evaluate("window.hit === undefined && !document.querySelector('main img[src=x]')")
