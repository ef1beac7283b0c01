"""Webhooks that have a source read, and following a sync as a stream of events."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from denizen.domain.source import SourceKind
from tests.engine.knowledge.knowledge_fixture import give_way, write
from tests.timing import HANG_LIMIT_S
from tests.web.knowledge_web_fixture import SECRETS, KnowledgeWebFixture, SlowReader, open_knowledge_web
from tests.web_fixture import LOCAL

pytestmark = pytest.mark.anyio

PUSH = b'{"ref": "refs/heads/main"}'


def sign(payload: bytes, secret: str = SECRETS["notes"]) -> dict[str, str]:
    digest = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": "push", "Content-Type": "application/json"}


@asynccontextmanager
async def open_slow_web(root: Path) -> AsyncGenerator[tuple[KnowledgeWebFixture, SlowReader, httpx2.AsyncClient]]:
    """A server with the source `notes`, which is read slowly, and a client without any key."""
    slow = SlowReader()
    async with open_knowledge_web(root, {SourceKind.FOLDER: slow}) as server:
        await server.owner.ask("POST", "/api/sources", location=str(write(root / "notes", {"a.md": "A"})))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(server.web.app), base_url=LOCAL) as client:
            yield server, slow, client


async def call(
    client: httpx2.AsyncClient, source: str, headers: Mapping[str, str | bytes], payload: bytes = PUSH
) -> Any:
    raw = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]
    return await client.post(f"/api/sync/webhook/{source}", headers=raw, content=payload)


async def wait_for_end(server: KnowledgeWebFixture, count: int = 1) -> list[dict[str, Any]]:
    """All runs, once none runs any more."""
    with anyio.fail_after(HANG_LIMIT_S):
        while True:
            _, runs = await server.admin.ask("GET", "/api/sync")
            if len(runs) >= count and all(run["ended_at"] for run in runs):
                return runs
            await give_way()


async def test_a_push_that_github_signed_or_a_token_has_just_that_source_read(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (server, slow, client):
        slow.goes_on.set()
        await server.owner.ask("POST", "/api/sources", location=str(write(tmp_path / "more", {"a.md": "A"})))
        answer = await call(client, "notes", sign(PUSH))
        assert (answer.status_code, answer.json()["sources"]) == (202, ["notes"])
        await wait_for_end(server)
        answer = await call(client, "notes", {"Authorization": f"Bearer {SECRETS['notes']}"}, b"")
        assert answer.status_code == 202
        assert [run["sources"] for run in await wait_for_end(server, 2)] == [["notes"], ["notes"]]
        assert (await call(client, "notes", sign(PUSH) | {"X-GitHub-Event": "ping"})).json() == {"status": "pong"}
        assert len(await wait_for_end(server, 2)) == 2


@pytest.mark.proves("TW3")
@pytest.mark.parametrize(
    ("source", "headers"),
    [
        ("notes", {}),
        ("notes", sign(b"other")),
        ("notes", sign(PUSH, "another-secret-altogether")),
        ("notes", {"X-Hub-Signature-256": "sha256=", "Authorization": f"Bearer {SECRETS['notes']}"}),
        ("notes", {"X-Hub-Signature-256": "sha256=\xff"}),
        ("notes", {"Authorization": "Bearer key-of-olga"}),
        ("notes", {"x-api-key": SECRETS["notes"]}),
        ("notes", {"Authorization": f"Bearer {SECRETS['gone']}"}),
        ("empty", sign(PUSH, "")),
        ("empty", {"Authorization": "Bearer "}),
        ("unknown", sign(PUSH)),
        ("unknown", {}),
    ],
)
async def test_whoever_has_not_its_secret_gets_401_whatever_is_wrong(
    tmp_path: Path, source: str, headers: dict[str, str]
) -> None:
    async with open_slow_web(tmp_path) as (server, slow, client):
        answer = await call(client, source, {name: value.encode("latin-1") for name, value in headers.items()})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "credentials_wrong")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert (await server.admin.ask("GET", "/api/sync"))[1] == []
        assert slow.looked == 0


@pytest.mark.proves("TW3")
async def test_a_webhook_opens_nothing_else(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (_, _, client):
        for method, path in (("POST", "/api/sync/notes"), ("GET", "/api/sync"), ("POST", "/api/sync")):
            answer = await client.request(method, path, headers={"Authorization": f"Bearer {SECRETS['notes']}"})
            assert answer.status_code == 401, path
        answer = await client.get("/api/sync/webhook/notes", headers={"Authorization": f"Bearer {SECRETS['notes']}"})
        assert answer.status_code == 405
        assert (await call(client, "../../sources", sign(PUSH))).status_code in (401, 404)
        assert (await call(client, "gone", sign(PUSH, SECRETS["gone"]))).status_code == 404


async def test_several_triggers_while_one_runs_or_waits_are_one_more_run(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (server, slow, client):
        first = (await call(client, "notes", sign(PUSH))).json()["run"]
        with anyio.fail_after(HANG_LIMIT_S):
            await slow.reached.wait()
        more = {(await call(client, "notes", sign(PUSH))).json()["run"] for _ in range(5)}
        assert len(more) == 1 and first not in more
        slow.goes_on.set()
        runs = await wait_for_end(server, 2)
        assert {run["id"] for run in runs} == {first, *more}
        assert slow.looked == 2
        await call(client, "notes", sign(PUSH))
        assert len(await wait_for_end(server, 3)) == 3


async def test_triggers_at_the_same_moment_are_one_run_and_then_one_more(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (server, slow, client):
        found: set[str] = set()

        async def trigger() -> None:
            found.add((await call(client, "notes", sign(PUSH))).json()["run"])

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(trigger)
        assert len(found) <= 2
        slow.goes_on.set()
        assert {run["id"] for run in await wait_for_end(server, len(found))} == found


async def read_events(url: str, run: str, slow: SlowReader) -> list[tuple[str, Any]]:
    """Until the stream ends; after the first one the reading goes on."""
    found: list[tuple[str, Any]] = []
    event = ""
    async with (
        httpx2.AsyncClient(base_url=url, headers={"x-api-key": "key-of-ada"}, timeout=HANG_LIMIT_S) as client,
        client.stream("GET", f"/api/sync/{run}/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        async for line in answer.aiter_lines():
            name, _, text = line.partition(": ")
            if name == "event":
                event = text
            elif name == "data":
                found.append((event, json.loads(text)))
                slow.goes_on.set()
    return found


async def test_a_sync_is_followed_from_where_it_is_to_its_result(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (server, slow, client), server.web.serve() as url:
        run = (await call(client, "notes", sign(PUSH))).json()["run"]
        with anyio.fail_after(HANG_LIMIT_S):
            await slow.reached.wait()
            found = await read_events(url, run, slow)
            again = await read_events(url, run, slow)
        assert [event for event, _ in (found[0], found[-1])] == ["run", "end"]
        assert found[0][1]["progress"] == {"notes": {"stage": "looking", "done": 0, "total": 0}}
        assert (found[-1][1]["status"], found[-1][1]["changed"]) == ("done", ["notes"])
        assert {event for event, _ in found[1:-1]} <= {"progress"}
        assert again == [found[-1]]


async def test_a_sync_that_is_not_known_and_somebody_who_may_not_are_refused(tmp_path: Path) -> None:
    async with open_slow_web(tmp_path) as (server, _, client):
        assert (await server.admin.ask("GET", "/api/sync/sync_none/events"))[0] == 404
        assert (await server.member.ask("GET", "/api/sync/sync_none/events"))[0] == 403
        assert (await client.get("/api/sync/sync_none/events")).status_code == 401
