"""However the process dies, each message that deserved a reply has exactly one after a restart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from denizen.domain.attention import AccountPolicy
from denizen.domain.ids import AgentName
from denizen.domain.room import RoomKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.listener.crash_scenario import LONG, CrashScenario, crash_everywhere, do_nothing
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio


def _split_to_words(text: str) -> list[str]:
    from denizen.domain.split import split_text

    return ["".join(piece.split()) for piece in split_text(text, limit=2000)]


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_of_a_turn_with_a_tool_and_a_long_answer_leaves_one_answer() -> None:
    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool, then a long answer")

    await crash_everywhere(CrashScenario, act, _split_to_words(LONG))


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_while_catching_up_leaves_one_answer_for_each_missed_message() -> None:
    baseline = await _build_missed_scenario(CrashScenario())
    assert await baseline.run_process(do_nothing)
    assert baseline.answers() == ["Short."] * 3
    for at in range(1, baseline.injector.count + 1):
        scenario = await _build_missed_scenario(CrashScenario())
        await scenario.run_process(do_nothing, at=at)
        assert await scenario.run_process(do_nothing)
        assert scenario.answers() == ["Short."] * 3, f"crashed at operation {at}"


async def _build_missed_scenario(scenario: CrashScenario) -> CrashScenario:
    """It lived before, and three messages came while it was down: two in a room, one in a direct talk."""
    direct = scenario.world.direct("bob")

    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "bob", "nothing for you")
        fixture.world.platform.say(direct, "bob", "hi")

    assert await scenario.run_process(act)
    scenario.world.platform.delete(*[p.post.id for p in scenario.world.platform.posts.values() if p.post.author.is_bot])
    scenario.world.platform.write(scenario.world.general, "ana", "@ada one")
    scenario.world.platform.write(scenario.world.general, "bob", "not this")
    scenario.world.platform.write(scenario.world.general, "bob", "@ada two")
    scenario.world.platform.write(direct, "bob", "three")
    return scenario


@pytest.mark.proves("P1")
@pytest.mark.usefixtures("immediate_previews")
async def test_a_crash_at_any_step_with_a_live_preview_leaves_the_answer_and_nothing_else() -> None:
    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")

    await crash_everywhere(lambda: CrashScenario(account_policy=AccountPolicy()), act, ["Short."])


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_after_the_question_was_edited_leaves_the_answer_to_its_last_form() -> None:
    async def act(fixture: PlatformFixture) -> None:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada a long answer please")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada no, a brief one")

    # An edit that nobody was there to hear of is lost: then the first form keeps its answer.
    await crash_everywhere(CrashScenario, act, ["Short."], _split_to_words(LONG))


async def test_two_processes_with_one_account_give_one_reply() -> None:
    world = World()
    async with open_platform(world) as one:
        other = MemoryChannel(world.platform, AgentName("ada"))
        async with open_platform(world, accounts={ADA: other}) as two:
            world.platform.accounts.append(one.ada)
            world.platform.say(world.general, "ana", "@ada hello?")
            await one.settled()
            await two.settled()
    assert len([p for p in world.platform.posts.values() if p.post.author.is_bot]) == 1


@pytest.mark.proves("P1")
async def test_messages_older_than_the_limit_get_one_reply_together() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "nothing")
        await fixture.settled()
    for n in range(3):
        world.platform.write(world.general, "ana", f"@ada question {n}")
    world.clock.time = world.clock.time.replace(day=3)
    async with open_platform(world) as fixture:
        assert len(await fixture.said()) == 1
        asked = str(fixture.model.requests[-1].messages[-1].parts)
    assert all(f"question {n}" in asked for n in range(3))


@pytest.mark.parametrize("authors", [("ana", "ana"), ("bob", "ana")])
async def test_a_reply_to_several_people_does_nothing_on_the_platform_in_the_name_of_one(
    authors: Sequence[str],
) -> None:
    world, scopes = World(), list[CallScope]()

    async def run(made: ToolCall, scope: CallScope) -> ToolResult:
        scopes.append(scope)
        return ToolResult("found")

    tools = ToolsetFixture(run=run)
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "nothing")
        await fixture.settled()
    for author in authors:
        world.platform.write(world.general, author, "@ada look")
    world.clock.time = world.clock.time.replace(day=3)
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="x")]), ScriptedReply("Done."))
    async with open_platform(world, model, tools=tools) as fixture:
        assert await fixture.said() == ["Done."]
    assert [scope.account for scope in scopes] == [ADA if len(set(authors)) == 1 else None]


async def test_catching_up_pages_through_more_than_a_thousand_messages_in_order() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "begin")
        await fixture.settled()
    for n in range(1200):
        world.platform.write(world.general, "bob", f"chatter {n}")
    world.platform.write(world.general, "ana", "@ada last")
    async with open_platform(world) as fixture:
        assert await fixture.said() == ["Hello."]
        async with fixture.store.work(write=False) as work:
            posts = await work.archive.list_posts("discord", world.general.id, after="0", limit=2000)
        assert [p.text for p in posts if "chatter" in p.text] == [f"chatter {n}" for n in range(1200)]


async def test_a_room_never_read_before_is_read_from_now_on() -> None:
    world = World()
    world.platform.write(world.general, "ana", "@ada last year's question")
    async with open_platform(world) as fixture:
        assert await fixture.said() == []


@pytest.mark.proves("P1")
async def test_a_room_that_was_made_while_it_was_away_is_read_from_its_first_message() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "nothing")
        await fixture.settled()
    thread = world.platform.add_room("plans", RoomKind.THREAD, parent=world.general)
    world.platform.write(thread, "ana", "@ada are you here?")
    async with open_platform(world) as fixture:
        assert await fixture.said() == ["Hello."]
