"""Several agents in one room: who speaks, in which order, who stays silent, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import anyio
import pytest

from denizen.domain.agent import Agent, AgentInstructions, ContextStrategy, HistorySettings, ToolAccess
from denizen.domain.attention import AccountPolicy, ConversationLimits, RefusalReason, ReplyStyle, TriggerPolicy
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.speaker_choice import SILENCE
from denizen.domain.usage import Usage
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform

pytestmark = pytest.mark.anyio

BEN, CID = AgentName("ben"), AgentName("cid")
QUIET = AccountPolicy(style=ReplyStyle(preview=False))


def make_agents(*names: AgentName) -> Mapping[AgentName, Agent]:
    return {
        name: Agent(
            name,
            instructions=AgentInstructions(persona=(("P", f"You are {name}."),)),
            history=HistorySettings(context=ContextStrategy.TRANSCRIPT),
            tool_access=ToolAccess(tools=()),
        )
        for name in names
    }


def find_speaker(request: ModelRequest) -> str:
    return next(s.text for s in request.segments if s.name == "persona").removeprefix("You are ").rstrip(".")


def make_model(**more: ScriptedReply) -> ScriptedModel:
    """Each agent says its own line."""
    return ScriptedModel(
        otherwise=lambda request: more.get(find_speaker(request), ScriptedReply(f"I am {find_speaker(request)}."))
    )


def list_bot_posts(world: World) -> list[tuple[str, str]]:
    posts = sorted(world.platform.posts.values(), key=lambda each: (len(each.post.id), each.post.id))
    return [(each.post.author.name, each.post.text) for each in posts if each.post.author.is_bot]


async def test_all_who_are_mentioned_speak_in_that_order_and_the_later_have_read_the_earlier() -> None:
    world, model = World(), make_model()
    async with open_platform(world, model, agents=make_agents(ADA, BEN, CID), account_policy=QUIET) as fixture:
        world.platform.say(world.general, "ana", "@cid @ada @ben who are you?")
        await fixture.settled()
    assert list_bot_posts(world) == [("cid", "I am cid."), ("ada", "I am ada."), ("ben", "I am ben.")]
    read = {
        find_speaker(request): "\n".join(join_text(m.parts) for m in request.messages) for request in model.requests
    }
    assert "cid: I am cid." in read["ada"]
    assert "cid: I am cid.\nada: I am ada." in read["ben"] or "ada: I am ada." in read["ben"]
    assert "I am" not in read["cid"]


async def test_a_later_one_waits_while_an_earlier_one_thinks_and_other_rooms_do_not() -> None:
    world, gate = World(), ReplyGate()
    other = world.platform.add_room("other")
    model = make_model(ben=ScriptedReply("Slowly.", before=gate))
    async with open_platform(world, model, agents=make_agents(ADA, BEN), account_policy=QUIET) as fixture:
        world.platform.say(world.general, "ana", "@ben @ada go")
        await gate.reached.wait()
        world.platform.say(other, "bob", "@ada here?")
        await fixture.until(lambda: len(fixture.ada.sent) == 1)
        assert list_bot_posts(world) == [("ada", "I am ada.")]
        gate.open.set()
        await fixture.settled()
    assert list_bot_posts(world) == [("ada", "I am ada."), ("ben", "Slowly."), ("ada", "I am ada.")]


async def test_a_question_that_is_deleted_while_an_agent_waits_is_not_answered_by_it() -> None:
    world, gate = World(), ReplyGate()
    model = make_model(ben=ScriptedReply("Slowly.", before=gate))
    async with open_platform(world, model, agents=make_agents(ADA, BEN), account_policy=QUIET) as fixture:
        asked = world.platform.say(world.general, "ana", "@ben @ada go")
        await gate.reached.wait()
        world.platform.delete(asked.id)
        await world.platform.settled()
        gate.open.set()
        await fixture.settled()
    assert list_bot_posts(world) == []


async def test_who_waited_when_the_process_died_speaks_after_the_restart_once() -> None:
    world, gate = World(), ReplyGate()
    async with open_platform(
        world, make_model(ben=ScriptedReply("Slowly.", before=gate)), agents=make_agents(ADA, BEN), account_policy=QUIET
    ):
        world.platform.say(world.general, "ana", "@ben @ada go")
        await gate.reached.wait()
    async with open_platform(world, make_model(), agents=make_agents(ADA, BEN), account_policy=QUIET) as fixture:
        await fixture.settled()
    assert list_bot_posts(world) == [("ben", "I am ben."), ("ada", "I am ada.")]


def make_policies(world: World, **eagerness: int) -> dict[AgentName, AccountPolicy]:
    base = replace(QUIET, triggers=TriggerPolicy(always_channels=frozenset({world.general.id})))
    return {AgentName(name): replace(base, eagerness=value) for name, value in eagerness.items()}


async def ask_all(fixture: PlatformFixture, *texts: str, author: str = "ana") -> list[str]:
    """Who answered each."""
    found: list[str] = []
    for text in texts:
        before = len(list_bot_posts(fixture.world))
        fixture.world.platform.say(fixture.world.general, author, text)
        await fixture.settled()
        found.append(",".join(name for name, _ in list_bot_posts(fixture.world)[before:]))
    return found


async def test_of_those_who_may_join_in_one_speaks_by_name_then_by_acquaintance_then_by_eagerness() -> None:
    world = World()
    async with open_platform(
        world, make_model(), agents=make_agents(ADA, BEN), account_policy=make_policies(world, ada=20, ben=70)
    ) as fixture:
        assert await ask_all(fixture, "hello all", "what does ada think?", "and why?") == ["ben", "ada", "ada"]
        assert await ask_all(fixture, "hello", author="bob") == ["ben"]
        assert await ask_all(fixture, "@ada you", "and now?") == ["ada", "ada"]


async def test_where_nobody_is_eager_nobody_speaks_unasked_but_one_alone_does() -> None:
    world = World()
    async with open_platform(
        world, make_model(), agents=make_agents(ADA, BEN), account_policy=make_policies(world, ada=0, ben=0)
    ) as fixture:
        assert await ask_all(fixture, "hello all", "ben?") == ["", "ben"]
    world = World()
    async with open_platform(
        world, make_model(), agents=make_agents(ADA), account_policy=make_policies(world, ada=0)
    ) as fixture:
        assert await ask_all(fixture, "hello all") == ["ada"]


async def count_exchanges(fixture: PlatformFixture) -> int:
    async with fixture.store.work(write=False) as work:
        return await work.inbox.count_bot_replies("discord", fixture.world.general.id)


@pytest.mark.proves("X-no-action")
@pytest.mark.parametrize(("answer", "heard"), [(SILENCE, False), (f"I prefer {SILENCE} here.", True)])
async def test_one_that_may_join_in_stays_silent_by_the_agreed_word_alone(answer: str, *, heard: bool) -> None:
    world, model = World(), make_model(ada=ScriptedReply(answer))
    async with open_platform(
        world, model, agents=make_agents(ADA, BEN), account_policy=make_policies(world, ada=90, ben=1)
    ) as fixture:
        world.platform.say(world.general, "ana", "nice weather")
        await fixture.settled()
        while await count_exchanges(fixture) != (1 if heard else 0):  # given back when the turn is not shown any more
            await anyio.lowlevel.checkpoint()
    assert list_bot_posts(world) == ([("ada", answer)] if heard else [])
    assert f"exactly {SILENCE}" in "\n".join(join_text(m.parts) for m in model.requests[0].messages)


async def test_who_was_asked_is_not_offered_silence_and_the_word_is_then_an_answer() -> None:
    world, model = World(), make_model(ada=ScriptedReply(SILENCE))
    async with open_platform(world, model, agents=make_agents(ADA, BEN), account_policy=QUIET) as fixture:
        assert await ask_all(fixture, "@ada well?") == ["ada"]
    assert SILENCE not in "\n".join(join_text(m.parts) for m in model.requests[0].messages)


async def test_agents_stop_answering_each_other_when_the_hours_money_is_spent() -> None:
    world = World()
    cost = Usage(input_tokens=1, output_tokens=1, cost_usd=Decimal("0.06"), requests=1)
    model = make_model(ada=ScriptedReply("@ben more", usage=cost), ben=ScriptedReply("@ada more", usage=cost))
    account_policy = replace(QUIET, limits=ConversationLimits(max_exchanges=50, max_exchange_usd=Decimal("0.10")))
    async with open_platform(world, model, agents=make_agents(ADA, BEN), account_policy=account_policy) as fixture:
        assert await ask_all(fixture, "@ada begin") == [
            "ada,ben,ada"
        ]  # the first answers a person, two answer each other
        assert await ask_all(fixture, "@ada again") == ["ada"]
        world.clock.advance(hours=2)
        assert await ask_all(fixture, "@ada and now?") == ["ada,ben,ada"]
        async with fixture.store.work(write=False) as work:
            claims = await work.inbox.find_claims(BEN, "discord", list(world.platform.posts))
    assert RefusalReason.MONEY in {claim.refusal for claim in claims.values()}


async def test_an_agent_with_a_session_of_its_own_is_told_what_the_others_answered_before_it() -> None:
    world, model = World(), make_model()
    agents = {
        name: replace(agent, history=replace(agent.history, context=ContextStrategy.SESSION))
        for name, agent in make_agents(ADA, BEN).items()
    }
    async with open_platform(world, model, agents=agents, account_policy=QUIET) as fixture:
        world.platform.say(world.general, "ana", "@ben @ada who are you?")
        await fixture.settled()
    read = {
        find_speaker(request): "\n".join(join_text(m.parts) for m in request.messages) for request in model.requests
    }
    assert "they are others, not you:\nben: I am ben." in read["ada"]
    assert "I am" not in read["ben"]
