"""Gateways, workers and a web process on one Postgres: together they do what one process does, and whichever of them is
killed, every message has one answer.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from anyio import to_thread

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from denizen_sdk import DenizenClient
from denizen_sdk.chats import NewChat
from denizen_sdk.turns import TextAddedEvent
from tests.e2e.deployment import Denizen
from tests.e2e.discord import DiscordDeployment
from tests.e2e.home import get_completion_text

pytest_plugins = ["tests.postgres"]
pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.xdist_group("postgres"), pytest.mark.proves("P7")]

ACTS = """\
tools: {discord: {enabled: true}}
gate:
  tiers: {send_message: 1}
"""
ASKS = """\
gate:
  rules:
  - {tool: append_note, action: ask, reason: notes are kept for ever}
"""


@asynccontextmanager
async def member(deployment: DiscordDeployment, role: str, name: str) -> AsyncGenerator[Denizen]:
    """A process of the fleet; it is dead at the end of the block."""
    serve = partial(deployment.home.serve, run=("--role", role, "--name", name))
    denizen = Denizen(await to_thread.run_sync(serve))
    deployment.denizens.append(denizen)
    try:
        yield denizen
    finally:
        with anyio.CancelScope(shield=True):
            await denizen.kill()


def configure(deployment: DiscordDeployment, postgres_url: str, rest: str = "", **more: object) -> None:
    deployment.configure(rest=f'store: {{url: "{postgres_url}"}}\n{rest}', **more)  # pyright: ignore[reportArgumentType]


def read_notes(deployment: DiscordDeployment) -> str:
    return "".join(file.read_text() for file in deployment.home.folder.glob("agents/ada/notes/rooms/*/shopping.md"))


async def test_a_gateway_hears_a_worker_answers_and_the_web_serves(
    deployment: DiscordDeployment, postgres_url: str
) -> None:
    configure(deployment, postgres_url)
    async with (
        member(deployment, "gateway", "gate"),
        member(deployment, "worker", "work"),
        member(deployment, "web", "page") as web,
    ):
        deployment.script("Hello, Ana.")
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.said() == ["Hello, Ana."])
        deployment.script("Hello, browser.")
        answered = await to_thread.run_sync(partial(web.server.ask, "hi", key="k1", agent="ada"))
        assert get_completion_text(answered) == "Hello, browser."
        deployment.script("Piece by piece it comes.")
        async with DenizenClient(web.server.url, "") as client:
            await client.create_chat(NewChat(id="own"))
            await client.change_chat("own", title="Mine")
            events = [event async for event in client.send_to_chat("own", "Tell me")]
        pieces = [event.text for event in events if isinstance(event, TextAddedEvent)]
        assert "".join(pieces) == "Piece by piece it comes."
        assert len(pieces) > 1
        told = await to_thread.run_sync(partial(deployment.home.do, "fleet", "status"))
        assert told.code == 0, told.err
        for words in ("gate  gateway", "work  worker", "page  web", "discord account of ada"):
            assert words in told.out


async def test_a_worker_acts_on_the_platform_through_the_gateway(
    deployment: DiscordDeployment, postgres_url: str
) -> None:
    news = deployment.guild.add_channel("news")
    secret = deployment.guild.add_channel("secret", private_to=[deployment.ada.user])
    configure(deployment, postgres_url, ACTS)
    async with member(deployment, "gateway", "gate"), member(deployment, "worker", "work"):
        calls = [ModelCall("send_message", {"channel": where, "text": "It is late."}) for where in ("news", "secret")]
        deployment.script(ModelAnswer(calls=calls), "They know.")
        deployment.ask(deployment.ben, "tell them that the ferry is late")
        await deployment.until(lambda: "They know." in deployment.said())
    assert deployment.said(news) == ["It is late."]
    assert not deployment.said(secret)


async def test_a_call_asked_for_by_a_worker_is_approved_in_discord(
    deployment: DiscordDeployment, postgres_url: str
) -> None:
    configure(deployment, postgres_url, ASKS)
    note = ModelCall("append_note", {"name": "shopping", "text": "- milk"})
    async with member(deployment, "gateway", "gate"), member(deployment, "worker", "work"):
        deployment.script(ModelAnswer(calls=[note]), "Noted.")
        deployment.ask(deployment.ana, "put milk on the list")
        card = await deployment.find_card()
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: "Noted." in deployment.said())
        assert read_notes(deployment) == "- milk\n"


async def test_a_killed_worker_leaves_its_turn_to_another(deployment: DiscordDeployment, postgres_url: str) -> None:
    configure(deployment, postgres_url)
    async with member(deployment, "gateway", "gate"), member(deployment, "worker", "one") as one:
        deployment.script(HangingAnswer())
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: len(deployment.requests) == 1)
        async with member(deployment, "worker", "two"):
            deployment.script("Hello.")
            await one.kill()
            await deployment.until(deployment.said)
            assert await deployment.settle() == ["Hello."]


async def test_a_process_without_a_role_is_refused_beside_a_fleet(
    deployment: DiscordDeployment, postgres_url: str
) -> None:
    configure(deployment, postgres_url)
    async with member(deployment, "worker", "work"):
        told = await to_thread.run_sync(partial(deployment.home.do, "run", "--port", "0"))
        assert told.code
        assert "A fleet works on this database" in told.err
        assert "work" in told.err
        (deployment.home.folder / f"denizen-{os.uname().nodename}.sock").unlink()  # as on another machine
        told = await to_thread.run_sync(partial(deployment.home.do, "ask", "hello"))
        assert told.code
        assert "A fleet works on this database" in told.err
        assert "Ask on a machine where a process of the fleet runs" in told.err


async def test_a_killed_gateway_leaves_its_account_to_another(deployment: DiscordDeployment, postgres_url: str) -> None:
    configure(deployment, postgres_url)
    async with member(deployment, "gateway", "one") as one, member(deployment, "worker", "work"):
        await deployment.until(lambda: one.lines("account ready"))
        async with member(deployment, "gateway", "two") as two:
            assert not two.lines("account ready")
            await one.kill()
            deployment.script("Hello.")
            deployment.ask(deployment.ana, "is anybody there?")
            await deployment.until(deployment.said)
            assert two.lines("account ready")
            assert await deployment.settle() == ["Hello."]


async def test_two_processes_cannot_have_the_same_name(deployment: DiscordDeployment, postgres_url: str) -> None:
    configure(deployment, postgres_url)
    deployment.home.pauses["denizen.adapters.fleet.nodes.PATIENCE_S"] = 1
    async with member(deployment, "worker", "work"):
        again = await to_thread.run_sync(
            partial(deployment.home.do, "run", "--port", "0", "--role", "worker", "--name", "work")
        )
        assert again.code
        assert "Another process of this fleet is called work." in again.err


async def test_a_role_needs_postgres(deployment: DiscordDeployment) -> None:
    deployment.configure()
    told = await to_thread.run_sync(partial(deployment.home.do, "run", "--role", "worker"))
    assert told.code
    assert "The role worker needs Postgres." in told.err
    assert "fix: Set store.url to postgresql://" in told.err
