"""A question of an agent, for the pages that show it."""

from __future__ import annotations

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.question import OwnerQuestion
from tests.clock import NOON

QUESTION = OwnerQuestion(
    id="qst_1",
    turn_id=TurnId("turn_1"),
    agent=AgentName("denizen"),
    asker="platform_user:discord:2",
    asker_name="Ben",
    place=Place("discord", "7"),
    text="Which colour? <b>now</b>",
    created_at=NOON,
)
