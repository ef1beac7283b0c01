"""A question that nobody could look up, a member's answer to it, and everybody after that: through whole programs."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from anyio import to_thread

from denizen.domain.cited_text import UNKNOWN
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

LOOK_UP = ModelAnswer(calls=[ModelCall("search_docs", {"query": "berth night"})])


async def run_command(deployment: DiscordDeployment, *args: str) -> str:
    """What a command of the operator says, beside the server."""
    done = await to_thread.run_sync(partial(deployment.home.do, *args))
    assert done.code == 0, done.err
    return done.out


async def look_up(deployment: DiscordDeployment) -> str:
    """What the agent reads when Ana asks."""
    answered = len(deployment.said())
    deployment.script(LOOK_UP, "I have looked.")
    deployment.ask(deployment.ana, "what is a berth for a night?")
    await deployment.until(lambda: len(deployment.said()) == answered + 1)
    results: list[Any] = [m["content"] for m in deployment.requests[-1].body["messages"] if m["role"] == "tool"]
    return str(results[-1])


async def test_an_answer_of_a_member_is_found_by_all_once_accepted_and_by_nobody_once_taken_back(
    deployment: DiscordDeployment,
) -> None:
    owners = [f"owners: ['{deployment.ana.id}']"]
    deployment.configure(conduct=owners, rest="knowledge: {learning: {enabled: true}}\n")
    async with deployment.run() as denizen:
        deployment.script(f"I do not know.{UNKNOWN}")
        question = deployment.ask(deployment.ben, "how much is a berth?")
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM gaps"))
        reply = deployment.world.say(
            deployment.ben, deployment.general, "A berth is ten euros a night.", reply_to=question
        )
        deployment.world.react(deployment.ben, reply, "📚")
        deployment.world.react(deployment.ana, reply, "📚")
        await deployment.until(lambda: any("Proposed as an answer" in said for said in deployment.said()))
        await deployment.until(lambda: any(each.emoji.name == "✅" for each in reply.state.reactions))
        (shown,) = [
            json.loads(line) for line in (await run_command(deployment, "gaps", "proposals", "--json")).splitlines()
        ]
        assert (shown["message"]["author"], shown["proposed_by"]) == (
            "Ben",
            f"platform_user:discord:{deployment.ana.id}",
        )
        assert "how much is a berth?" in shown["question"]
        assert "Agents can look up" in await run_command(deployment, "gaps", "accept", shown["id"], "--yes")
        document = shown["document"]
        assert (deployment.home.folder / "learned" / document["file"]).read_text() == document["content"]
        assert "No question of the last 30 days" in await run_command(deployment, "gaps")
        await deployment.until(lambda: denizen.lines("configuration reloaded"))  # there are documents to look up now
        assert "ten euros a night" in await look_up(deployment)
        await run_command(deployment, "audit", "verify")
        await denizen.kill()
    async with deployment.run():
        assert "ten euros a night" in await look_up(deployment)
        deployment.world.react(deployment.ben, reply, "❌")
        await deployment.until(lambda: not list((deployment.home.folder / "learned").iterdir()))
        await deployment.until(lambda: not any(each.emoji.name == "✅" for each in reply.state.reactions))
        assert "ten euros" not in await look_up(deployment)
        assert deployment.rows("SELECT answer, question, author_name FROM proposals") == [("", "", "")]
