"""Chats in a whole Denizen with its own store and durable log, over the real wire."""

from __future__ import annotations

import sqlite3
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.app.serve import _leave_turns, _TurnGrace
from denizen.domain.chat import ChatId
from denizen.domain.conversation import own_place
from denizen.domain.events import TurnFinished
from denizen.engine.chats.live_chats import TitleChanged
from denizen.testing.model_server import DelayedAnswer, ModelAnswer, model_server
from tests.app.home_folder import Home, make_request
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

CONFIG = """
models: {{providers: {{lab: {{kind: openai-compatible, base_url: "{url}", model: small}}}}}}
agents: {{ada: {{model: lab}}}}
channels: {{web: {{model_titles: {titles}}}}}
"""
SECRET = "sesame"


async def say(denizen: Denizen, text: str) -> tuple[list[str], str]:
    """Sends a message to the chat `c`. Returns the titles that it gets, and the reply."""
    request = make_request(denizen, text, "m1")
    place = own_place("web", denizen.operator.key, "c")
    titles, reply = list[str](), ""
    async with aclosing(denizen.chats.stream(replace(request, place=place))) as events:
        async for event in events:
            if isinstance(event, TitleChanged):
                titles.append(event.title)
            if isinstance(event, TurnFinished):
                reply = event.reply
    return titles, reply


def find_secret(path: Path) -> list[str]:
    """The tables of a database that hold the secret."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if SECRET in repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())]


@pytest.mark.parametrize("titles", [True, False])
async def test_the_model_names_a_chat_in_a_request_of_its_own_unless_it_is_told_not_to(
    home: Home, *, titles: bool
) -> None:
    async with model_server() as server:
        home.write(CONFIG.format(url=server.openai_url, titles=str(titles).lower()))
        server.script(*[ModelAnswer(text="Rome in May.")] * 2)
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            told, reply = await say(denizen, "What should I see in Rome?")
            [chat] = await denizen.chats.list_chats(denizen.operator.key)
        first = "What should I see in Rome"
        assert (told, reply) == ([first, "Rome in May"] if titles else [first], "Rome in May.")
        assert (chat.title, len(server.bodies)) == (told[-1], 2 if titles else 1)
        assert not any("tools" in body for body in server.bodies if "Name the topic" in str(body))


async def test_a_stop_waits_for_the_title_that_is_being_made(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.app.serve.GRACE_S", HANG_LIMIT_S)
    async with model_server() as server:
        home.write(CONFIG.format(url=server.openai_url, titles="true"))
        held = [DelayedAnswer(ModelAnswer(text="Rome in May."), anyio.Event(), anyio.Event()) for _ in range(2)]
        server.script(*held)
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            with anyio.fail_after(HANG_LIMIT_S):
                async with anyio.create_task_group() as group:
                    group.start_soon(say, denizen, "What should I see in Rome?")
                    for each in held:
                        await each.reached.wait()
                    title, reply = held if "Name the topic" in str(server.bodies[0]) else reversed(held)
                    reply.until.set()
                    await denizen.turns.here.wait_for_working()
                    group.start_soon(_leave_turns, denizen, _TurnGrace())
                    await anyio.wait_all_tasks_blocked()
                    title.until.set()
            [chat] = await denizen.chats.list_chats(denizen.operator.key)
    assert chat.title == "Rome in May"


async def test_a_deleted_chat_leaves_nothing_in_the_store_nor_in_the_durable_log_nor_in_the_home_folder(
    home: Home,
) -> None:
    databases = home.path / "denizen.db", home.path / "durable.db"
    async with model_server() as server:
        home.write(CONFIG.format(url=server.openai_url, titles="true"))
        server.script(*[ModelAnswer(text=f"The {SECRET} opens.")] * 2)
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            owner = denizen.operator.key
            await say(denizen, f"What does {SECRET} do?")
            upload = await denizen.chats.uploads.put(owner, ChatId("c"), "x.csv", f"{SECRET},1\n".encode())
            file = home.path / "uploads" / upload.path.text
            held = [find_secret(each) for each in databases], file.exists()
            await denizen.chats.remove(owner, ChatId("c"))
            left = [find_secret(each) for each in databases], file.exists()
    assert all(held[0]) and held[1], held
    assert left == ([[], []], False), left
