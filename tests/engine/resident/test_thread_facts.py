"""What a channel tells of a thread reaches who sorts the question asked there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from denizen.domain.agent import Agent
from denizen.domain.attention import Manners
from denizen.domain.message import text_of
from denizen.domain.room import RoomKind
from denizen.domain.thread_facts import ThreadFacts
from denizen.testing.scripted_model import ScriptedModels
from tests.engine.test_routing import Models, sorts
from tests.engine.town import ADA, open_town

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S7")
async def test_the_router_reads_origin_number_title_beginning_and_labels_of_the_thread() -> None:
    models = Models.answering(sorts("complex", 25, "quality"), sorts("simple", 8, "fast"))
    async with open_town(model=models.balanced, manners=Manners()) as town:
        routed = {ADA: Agent(ADA, is_routed=True)}
        await town.runtime.swap(
            replace(town.runtime.current, number=2, agents=routed, models=ScriptedModels(models.by_alias))
        )
        platform = town.world.platform
        issue = platform.add_room("crash", RoomKind.THREAD, parent=town.world.general)
        platform.facts[issue.id] = ThreadFacts("github issue", "It crashes", 12, "On start. " * 100, ("bug", "p1"))
        platform.say(issue, "ana", "@ada why?")
        assert await town.said() == ["said by quality"]
        platform.say(town.world.general, "ana", "@ada who wrote Hamlet?")
        assert await town.said() == ["said by quality", "said by fast"]
    first, second = (text_of(request.messages[0].parts) for request in models.router.requests)
    told = json.loads(first.removeprefix("<question>\n").removesuffix("\n</question>"))
    assert told["thread"] == {
        "origin": "github issue", "title": "#12 It crashes", "body": ("On start. " * 100)[:500],
        "labels": ["bug", "p1"],
    }  # fmt: skip
    assert "thread" not in second
