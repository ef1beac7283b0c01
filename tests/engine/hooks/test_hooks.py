"""Which hooks a turn has, and what is stored for them."""

from dataclasses import replace

import pytest

from denizen.domain.agent import Agent
from denizen.domain.hook import Hook, Hooks
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import ANA, NAME, ToolsetFixture, generation, message, open_engine

pytestmark = pytest.mark.anyio

DIGEST = Principal(PrincipalKind.SCHEDULE, "digest", "digest")


async def test_the_variables_of_a_request_are_stored_with_its_turn() -> None:
    async with open_engine(ScriptedModel(ScriptedReply("yes"))) as engine:
        turn = await engine.turns.submit(message("hello", variables={"last_run": "noon"}))

        assert (await engine.turns.get(turn.id)).options["variables"] == {"last_run": "noon"}


async def test_the_hooks_of_the_agent_come_before_those_of_the_trigger() -> None:
    own, of_trigger = Hook("own"), Hook("of_trigger")
    made = generation(ScriptedModel(), ToolsetFixture(), agent=Agent(NAME, hooks=Hooks((own,), (own,))))
    made = replace(made, trigger_hooks={DIGEST.key: Hooks((of_trigger,), (of_trigger,))})
    async with open_engine(ScriptedModel(ScriptedReply("yes"))) as engine:
        turn = await engine.turns.submit(message("hello"))

    assert made.find_hooks(replace(turn, principal=DIGEST)) == Hooks((own, of_trigger), (own, of_trigger))
    assert made.find_hooks(replace(turn, principal=ANA)) == Hooks((own,), (own,))
