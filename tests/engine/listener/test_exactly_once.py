"""However the process dies, each message that deserved a reply has exactly one after a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
import pytest

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.errors import DenizenError
from denizen.domain.ids import AgentName
from denizen.domain.room import RoomKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.listener import turn_display
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.crash_injector import CrashingChannel, CrashingModel, CrashingStore, CrashInjector
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio

LONG = "\n\n".join(f"Paragraph {n}. " + "word " * 120 for n in range(6))


@dataclass
class CrashScenario:
    """A world with one account that may die at any operation, and what its tools did."""

    world: World = field(default_factory=lambda: World(store=CrashingStore()))
    done: set[str] = field(default_factory=set[str])
    injector: CrashInjector = field(default_factory=CrashInjector)
    account_policy: AccountPolicy = field(default_factory=lambda: AccountPolicy(style=ReplyStyle(preview=False)))

    async def run_process(self, act: Callable[[PlatformFixture], Awaitable[None]], *, at: int = 0) -> bool:
        """Runs a process; False when it died at operation number `at`."""
        self.injector = CrashInjector(at)
        model = CrashingModel(otherwise=_answer)
        model.injector = self.injector
        store = self.world.store
        assert isinstance(store, CrashingStore)
        store.injector = self.injector
        channel = CrashingChannel(self.world.platform, ADA)
        channel.injector = self.injector
        survived = False
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as process:

                async def watch() -> None:
                    await self.injector.crashed.wait()
                    process.cancel()

                group.start_soon(watch)
                try:
                    async with open_platform(
                        self.world,
                        model,
                        accounts={ADA: channel},
                        tools=ToolsetFixture(run=self._write),
                        account_policy=self.account_policy,
                        agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=0))},
                    ) as fixture:
                        await act(fixture)
                        await fixture.settled()
                        survived = True
                except (DenizenError, ExceptionGroup):
                    if not self.injector.crashed.is_set():
                        raise
            group.cancel_scope.cancel()
        return survived

    async def _write(self, asked: ToolCall, scope: CallScope) -> ToolResult:
        await self.injector.tick()
        self.done.add(scope.options.idempotency_key)
        await self.injector.tick()
        return ToolResult("written")

    def answers(self) -> list[str]:
        """The account's posts that are there now, without spaces."""
        posts = [written.post for written in self.world.platform.posts.values()]
        return ["".join(post.text.split()) for post in posts if post.author.id == "bot-ada"]


def _answer(request: ModelRequest) -> ScriptedReply:
    said = " ".join(str(part) for message in request.messages for part in message.parts)
    if "use a tool" in said and "written" not in said:
        return ScriptedReply(calls=[call("write", q="this")])
    return ScriptedReply(LONG if "a long answer" in said else "Short.")


@dataclass
class SomethingSaid:
    """Whether the process lived long enough for anybody to say something."""

    act: Callable[[PlatformFixture], Awaitable[None]]
    done: bool = False

    async def __call__(self, fixture: PlatformFixture) -> None:
        self.done = True
        await self.act(fixture)


async def _crash_everywhere(
    make: Callable[[], CrashScenario], act: Callable[[PlatformFixture], Awaitable[None]], *expected: list[str]
) -> None:
    """Runs the scenario once to count its operations, then crashes at each of them and runs again."""
    baseline = make()
    assert await baseline.run_process(_do_nothing)  # the rooms are read from the first start on
    assert await baseline.run_process(act)
    assert baseline.answers() == expected[0]
    for at in range(1, baseline.injector.count + 1):
        scenario = make()
        assert await scenario.run_process(_do_nothing)
        acted = SomethingSaid(act)
        await scenario.run_process(acted, at=at)
        assert await scenario.run_process(_do_nothing if acted.done else act)
        assert scenario.answers() in expected, f"crashed at operation {at} of {baseline.injector.count}"
        assert len(scenario.done) == len(baseline.done), f"crashed at operation {at}"


async def _do_nothing(fixture: PlatformFixture) -> None:
    pass


def _split_to_words(text: str) -> list[str]:
    from denizen.domain.split import split_text

    return ["".join(piece.split()) for piece in split_text(text, limit=2000)]


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_of_a_turn_with_a_tool_and_a_long_answer_leaves_one_answer() -> None:
    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool, then a long answer")

    await _crash_everywhere(CrashScenario, act, _split_to_words(LONG))


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_while_catching_up_leaves_one_answer_for_each_missed_message() -> None:
    baseline = await _build_missed_scenario(CrashScenario())
    assert await baseline.run_process(_do_nothing)
    assert baseline.answers() == ["Short."] * 3
    for at in range(1, baseline.injector.count + 1):
        scenario = await _build_missed_scenario(CrashScenario())
        await scenario.run_process(_do_nothing, at=at)
        assert await scenario.run_process(_do_nothing)
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
async def test_a_crash_at_any_step_with_a_live_preview_leaves_the_answer_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_display, "PREVIEW_AFTER_S", 0.0)
    monkeypatch.setattr(turn_display, "PREVIEW_EVERY_S", 0.0)

    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")

    await _crash_everywhere(lambda: CrashScenario(account_policy=AccountPolicy()), act, ["Short."])


@pytest.mark.proves("P1")
async def test_a_crash_at_any_step_after_the_question_was_edited_leaves_the_answer_to_its_last_form() -> None:
    async def act(fixture: PlatformFixture) -> None:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada a long answer please")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada no, a brief one")

    # An edit that nobody was there to hear of is lost: then the first form keeps its answer.
    await _crash_everywhere(CrashScenario, act, ["Short."], _split_to_words(LONG))


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
