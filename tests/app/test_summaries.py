"""Summaries of a whole Denizen, on its own store and with its own durable runs."""

from __future__ import annotations

import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.model_choice import ModelChoice
from denizen.domain.conversation import Place
from denizen.domain.summary import Summary
from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import JsonBody, ModelAnswer, ModelServer, model_server
from tests.app.home_folder import Home, make_request

pytestmark = pytest.mark.anyio

PLACE = Place("terminal", "test")
CONFIG = """
models:
  providers: {{lab: {{kind: openai-compatible, base_url: "{url}"}}}}
  aliases: {{balanced: lab/one, cheap: lab/two}}
agents: {{ada: {{tools: [], limits: {{max_history_tokens: 1000}}}}}}
"""


async def ask(denizen: Denizen, number: int) -> None:
    text = f"q{number} " + "word " * 70
    assert (await denizen.turns.ask(make_request(denizen, text, f"m{number}"))).status is TurnStatus.DONE


async def load_summaries(denizen: Denizen) -> list[Summary]:
    messages = await denizen.queries.list_messages(PLACE, "ada")
    session = messages[-1].session_id
    assert session is not None
    async with denizen.services.store.work(write=False) as work:
        return list(await work.summaries.list_summaries(session))


def list_requests(server: ModelServer, model: str) -> list[JsonBody]:
    return [body for body in server.bodies if body["model"] == model]


@pytest.mark.proves("T12", "TW13", "V8", "V6")
async def test_a_summary_is_made_beside_the_talk_and_is_read_after_a_restart(home: Home) -> None:
    async with model_server() as server:
        home.write(CONFIG.format(url=server.openai_url))
        server.script(*[ModelAnswer(text="They spoke.")] * 40)
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            for number in range(1, 10):
                await ask(denizen, number)
            for run_id in await denizen.services.durable.pending():
                await denizen.services.durable.wait(run_id)
            made = await load_summaries(denizen)
            assert made
        async with open_denizen(home.path, OpenOptions(ModelChoice())) as denizen:
            assert await load_summaries(denizen) == made
            await ask(denizen, 10)
        assert "q1 word" in str(list_requests(server, "two")[0])
        first = list_requests(server, "one")[-1]["messages"]
        assert f"[Messages {made[0].reference} of this conversation, summed up: They spoke.]" in str(first)
        assert "q1 word" not in str(first)
