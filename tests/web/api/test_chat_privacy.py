"""Whatever belongs to a chat is its owner's alone, and goes with it."""

import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import cycle

import anyio
import httpx2
import pytest

from denizen.domain.turn import TurnStatus
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.web.http.openapi import list_operations
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import ADA, ANN, BEN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

AS_ANN = {"x-api-key": "key-of-ann"}
SECRETS = ("sesame-question", "sesame-answer", "sesame-city", "sesame-reason", "sesame-title", "sesame-file")


@dataclass
class Filled:
    """The ids of everything that a chat may hold."""

    chat_id: str
    session_id: str
    message_id: str
    turn_id: str
    path: str
    token: str


async def fill_chat(client: httpx2.AsyncClient, chat: str = "c") -> Filled:
    """A chat with a question, a call, an answer, a vote, a title, an upload, a branch and a share."""
    await client.post("/api/chats", json={"id": chat})
    upload = await client.put(
        f"/api/upload/{chat}", params={"name": "sesame-file.csv"}, content=b"a,b\nsesame-file,1\n"
    )
    path = upload.json()["path"]
    await client.post(f"/api/chats/{chat}", json={"message": "sesame-question", "uploads": [path]})
    shown = (await client.get(f"/api/chats/{chat}")).json()
    answer = shown["messages"][-1]
    await client.patch(
        f"/api/messages/{answer['id']}/feedback", json={"feedback": "negative", "reason": "sesame-reason"}
    )
    await client.patch(f"/api/chats/{chat}", json={"title": "sesame-title"})
    token = (await client.patch(f"/api/chats/{chat}/share", json={"is_public": True})).json()["share_token"]
    await client.post(f"/api/chats/{chat}/branch", json={"before_message_id": answer["id"]})
    await client.post(f"/api/chats/{chat}", json={"message": "sesame-question again"})
    return Filled(chat, shown["session_id"], answer["id"], answer["turn_id"], path, token)


def make_telling_model() -> ScriptedModel:
    """A model that calls a tool before each answer."""
    replies = cycle([ScriptedReply(calls=[call("weather", city="sesame-city")]), ScriptedReply("The sesame-answer.")])
    return ScriptedModel(otherwise=lambda _: next(replies))


def dump(web: WebFixture) -> dict[str, str]:
    """The rows of every table that has some, the indexes for search among them, as text."""
    with closing(sqlite3.connect(web.store.path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    return {name: repr(found) for name, found in rows.items() if found}


def holders(web: WebFixture) -> dict[str, list[str]]:
    """The tables that hold each secret."""
    tables = dump(web)
    return {secret: [name for name, rows in tables.items() if secret in rows] for secret in SECRETS}


BODIES = {
    ("PATCH", "/api/chats/{chat_id}"): {"title": "Ben was here"},
    ("POST", "/api/chats/{chat_id}"): {"message": "hi"},
    ("PATCH", "/api/chats/{chat_id}/share"): {"is_public": True},
    ("POST", "/api/chats/{chat_id}/branch"): {"before_message_id": "{message_id}"},
    ("PATCH", "/api/messages/{message_id}/feedback"): {"feedback": "positive"},
}
OWN_NAMES = {("POST", "/api/chats/{chat_id}")}
"""Routes that make something of that name for the caller: each person has names of their own."""


@pytest.mark.proves("S-http-chats-id-post", "S-http-chats-id-delete", "S-http-messages-id-feedback-patch")
async def test_every_id_of_one_person_is_not_found_by_another_on_every_route_that_takes_one() -> None:
    async with (
        open_web(make_telling_model(), keys=[ANN, BEN]) as web,
        web.client(**AS_ANN) as ann,
        web.client(**{"x-api-key": "key-of-ben"}) as ben,
    ):
        ids = asdict(await fill_chat(ann))
        before, tried = dump(web), dict[str, int]()
        operations = [(path, method) for path, method, _ in list_operations(web.app.routes)]
        named = [each for each in operations if any(f"{{{name}}}" in each[0] for name in ids)]
        for path, method in named:
            key = (method, path)
            if path == "/api/shared/{token}" or key in OWN_NAMES:
                continue
            body = BODIES.get(key)
            if body is not None:
                body = {name: str(value).format(**ids) if value is not True else True for name, value in body.items()}
            response = await ben.request(method, path.format(**ids), json=body)
            tried[f"{method} {path}"] = response.status_code
            assert not any(secret in response.text for secret in SECRETS)
        assert dump(web) == before
        own = await ben.post(f"/api/chats/{ids['chat_id']}", json={"message": "hi"})
        [mine] = (await ben.get("/api/chats")).json()
        theirs = (await ann.get(f"/api/chats/{ids['chat_id']}")).json()
    assert len(tried) >= 12 and set(tried.values()) == {404}, tried
    assert (own.status_code, mine["title"], theirs["chat"]["title"]) == (200, "hi", "sesame-title")


@pytest.mark.proves("S-http-chats-id-delete", "S-data-messages")
async def test_deleting_a_chat_leaves_nothing_of_it_in_any_table_or_file() -> None:
    async with open_web(make_telling_model()) as web, web.client() as client:
        filled = await fill_chat(client)
        held = holders(web)
        other = await fill_chat(client, "other")
        both = dump(web)
        await client.delete("/api/chats/other")
        once = holders(web)
        deleted = await client.delete("/api/chats/c")
        left, tables = holders(web), dump(web)
        runs = dict(web.durable.log.runs)
        gone = [
            (await client.get(path)).status_code
            for path in (
                "/api/chats/c",
                f"/api/shared/{filled.token}",
                f"/api/upload/{filled.path}",
                f"/api/messages/{filled.message_id}/feedback",
            )
        ]
        listed = (await client.get("/api/chats")).json()
        again = await client.delete("/api/chats/c")
        files = [path for path in web.uploads.rglob("*") if path.is_file()]
        await client.post("/api/chats/c", json={"message": "fresh"})
        [question, *_] = (await client.get("/api/chats/c")).json()["messages"]
        mine = (await client.get("/api/stats/me")).json()
    assert all(held.values()), held
    assert all(once.values()), "the other chat took something of this one with it"
    assert (deleted.status_code, again.status_code) == (204, 404)
    assert not any(left.values()), left
    assert runs == {}, "the durable log has what models and tools said"
    assert filled.token not in repr(tables) and other.token in repr(both)
    assert (gone, listed, files) == ([404, 404, 404, 405], [], []) and question["text"] == "fresh"
    assert mine["totals"]["messages"] == 5, "the sums of usage stay"


async def test_a_turn_that_runs_is_stopped_when_its_chat_is_deleted_and_leaves_nothing() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("The sesame-answer is long enough.", halfway=gate))
    async with open_web(model) as web, web.client() as client:
        await client.post("/api/chats", json={"id": "c", "message": "sesame-question"})
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            assert (await client.delete("/api/chats/c")).status_code == 204
            gate.open.set()
            turn = await web.ended(TurnStatus.CANCELLED)
        left = holders(web)
    assert turn.result.reply == "" and not any(left.values()), left


async def test_keys_and_the_open_server_have_chats_of_their_own() -> None:
    async with open_web(make_hello_model()) as web:
        async with web.client() as local:
            await local.post("/api/chats/c", json={"message": "as local"})
            assert len((await local.get("/api/chats")).json()) == 1
        web.keys.append(ADA)
        async with web.client(**{"x-api-key": "key-of-ada"}) as ada:
            assert (await ada.get("/api/chats")).json() == []
            assert (await ada.get("/api/chats/c")).status_code == 404


async def test_all_chats_of_a_person_can_be_forgotten_and_nobody_elses() -> None:
    async with (
        open_web(make_telling_model(), keys=[ANN, BEN]) as web,
        web.client(**AS_ANN) as ann,
        web.client(**{"x-api-key": "key-of-ben"}) as ben,
    ):
        await ben.post("/api/chats/c", json={"message": "open barley"})
        for number in range(55):
            await ann.post("/api/chats", json={"id": f"c{number}"})
        await fill_chat(ann, "c")
        await web.chats.forget_owner(ANN.principal.key)
        left, listed = holders(web), (await ann.get("/api/chats")).json()
        theirs = (await ben.get("/api/chats/c")).json()
        files = [path for path in web.uploads.rglob("*") if path.is_file()]
    assert (listed, files) == ([], [])
    assert left.pop("sesame-city") and left.pop("sesame-answer"), "of the other chat, whose model says the same"
    assert not any(left.values()), left
    assert theirs["messages"][0]["text"] == "open barley"
