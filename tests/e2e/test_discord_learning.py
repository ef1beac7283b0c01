"""A question that nobody could look up, a member's answer to it, and everybody after that: through whole programs."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from anyio import to_thread

from denizen.domain.cited_text import UNKNOWN
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

LOOK_UP = ModelAnswer(calls=[ModelCall("search_docs", {"query": "berth night"})])


async def do(harbour: Harbour, *args: str) -> str:
    """What a command of the operator says, beside the server."""
    done = await to_thread.run_sync(partial(harbour.home.do, *args))
    assert done.code == 0, done.err
    return done.out


async def look_up(harbour: Harbour) -> str:
    """What the agent reads when Ana asks."""
    answered = len(harbour.said())
    harbour.script(LOOK_UP, "I have looked.")
    harbour.ask(harbour.ana, "what is a berth for a night?")
    await harbour.until(lambda: len(harbour.said()) == answered + 1)
    results: list[Any] = [m["content"] for m in harbour.requests[-1].body["messages"] if m["role"] == "tool"]
    return str(results[-1])


async def test_an_answer_of_a_member_is_found_by_all_once_accepted_and_by_nobody_once_taken_back(
    harbour: Harbour,
) -> None:
    owners = [f"owners: ['{harbour.ana.id}']"]
    harbour.configure(conduct=owners, rest="knowledge: {learning: {enabled: true}}\n")
    async with harbour.run() as denizen:
        harbour.script(f"I do not know.{UNKNOWN}")
        question = harbour.ask(harbour.ben, "how much is a berth?")
        await harbour.until(lambda: harbour.rows("SELECT 1 FROM gaps"))
        reply = harbour.world.say(harbour.ben, harbour.general, "A berth is ten euros a night.", reply_to=question)
        harbour.world.react(harbour.ben, reply, "📚")
        harbour.world.react(harbour.ana, reply, "📚")
        await harbour.until(lambda: any("Proposed as an answer" in said for said in harbour.said()))
        await harbour.until(lambda: any(each.emoji.name == "✅" for each in reply.reactions))
        (shown,) = [json.loads(line) for line in (await do(harbour, "gaps", "proposals", "--json")).splitlines()]
        assert (shown["author"], shown["proposed_by"]) == ("Ben", f"platform_user:discord:{harbour.ana.id}")
        assert "how much is a berth?" in shown["question"]
        assert "Agents can look up" in await do(harbour, "gaps", "accept", shown["id"], "--yes")
        assert (harbour.home.folder / "learned" / shown["file"]).read_text() == shown["content"]
        assert "No question of the last 30 days" in await do(harbour, "gaps")
        await harbour.until(lambda: denizen.lines("configuration reloaded"))  # there are documents to look up now
        assert "ten euros a night" in await look_up(harbour)
        await do(harbour, "audit", "verify")
        await denizen.kill()
    async with harbour.run():
        assert "ten euros a night" in await look_up(harbour)
        harbour.world.react(harbour.ben, reply, "❌")
        await harbour.until(lambda: not list((harbour.home.folder / "learned").iterdir()))
        await harbour.until(lambda: not any(each.emoji.name == "✅" for each in reply.reactions))
        assert "ten euros" not in await look_up(harbour)
        assert harbour.rows("SELECT answer, question, author_name FROM proposals") == [("", "", "")]
