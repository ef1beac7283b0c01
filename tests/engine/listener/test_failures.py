"""Whatever fails meanwhile, no message is lost and nobody else is drawn into it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import anyio
import pytest

from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.conversation import Place
from denizen.domain.delivery import DeliveryState, MessageContent
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, Unavailable
from denizen.domain.ids import TurnId
from denizen.domain.room import RoomKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.listener import background, connection
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.outbox import outbox
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.listener.crash_scenario import CrashScenario, crash_everywhere
from tests.engine.listener.failing_store import FailingStore
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel

pytestmark = pytest.mark.anyio

FULL = NeedsAttention("the disk is full")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STORE_PAUSE_S", 0.01)
    monkeypatch.setattr(connection, "RETRY_S", 0.01)
    monkeypatch.setattr(background, "PAUSE_S", 0.01)
    monkeypatch.setattr(outbox, "BACKOFF_S", 0.01)


@pytest.mark.proves("P1")
@pytest.mark.parametrize("error", [Unavailable("locked"), FULL], ids=["locked", "full"])
async def test_a_message_that_the_store_could_not_take_is_answered_when_it_can(error: DenizenError) -> None:
    store = FailingStore()
    async with open_platform(World(store=store)) as fixture:
        await fixture.settled()
        store.break_down(error)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        await fixture.until(lambda: store.failed > 3)
        store.recover()
        fixture.world.platform.say(fixture.world.general, "bob", "@ada and me?")
        assert await fixture.said() == ["Hello.", "Hello."]


@pytest.mark.proves("P1")
async def test_a_later_message_does_not_hide_one_that_was_not_heard() -> None:
    store = FailingStore()
    world = World(store=store)
    async with open_platform(world) as fixture:
        await fixture.settled()
        store.break_down()
        world.platform.say(world.general, "ana", "@ada hello?")
        await fixture.until(lambda: store.failed > 0)
        store.recover()
        world.platform.say(world.general, "bob", "something else")
        await world.platform.settled()
    async with open_platform(world) as fixture:
        assert [post.text for post in world.platform.list_posts(world.general.id)].count("Hello.") <= 1
        await fixture.settled()
    assert [post.text for post in world.platform.list_posts(world.general.id)].count("Hello.") == 1


@pytest.mark.proves("P1", "CW10")
async def test_a_store_that_cannot_be_written_while_catching_up_does_not_end_the_account() -> None:
    store = FailingStore()
    world = World(store=store)
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "begin")
        await fixture.settled()
    world.platform.write(world.general, "ana", "@ada hello?")
    async with open_platform(world, connect=False) as fixture:
        await fixture.listener.on_ready([])  # it is settled
        store.break_down(FULL)
        async with anyio.create_task_group() as group:
            await group.start(fixture.ada.run, fixture.listener)
            await fixture.until(lambda: store.failed > 5)
            store.recover()
            assert await fixture.said() == ["Hello."]
            group.cancel_scope.cancel()


async def test_a_store_that_goes_away_while_a_turn_is_shown_does_not_end_the_account() -> None:
    store = FailingStore()
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("Late.", before=gate), otherwise=ScriptedReply("Hello."))
    async with open_platform(World(store=store), model) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        await gate.reached.wait()
        for turn in await _open_turns(fixture):
            fixture.turns._services.live.publish(turn, Unavailable("closing"))
        gate.open.set()
        fixture.world.platform.say(fixture.world.general, "ana", "@ada again?")
        assert await fixture.said() == ["Late.", "Hello."]


async def _open_turns(fixture: PlatformFixture) -> list[TurnId]:
    async with fixture.store.work(write=False) as work:
        return [turn.id for turn in await work.turns.list_turns()]


@pytest.mark.parametrize("error", [NeedsAttention("token refused"), Unavailable("gone")])
async def test_an_answer_is_sent_again_after_whatever_kept_it_from_being_sent(error: DenizenError) -> None:
    async with open_platform() as fixture:
        fixture.ada.fail("post", error, times=3)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        assert await fixture.said() == ["Hello."]


class _FaultyChannel(MemoryChannel):
    bugs = 1

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
        is_preview: bool = False,
    ) -> str:
        if self.bugs:
            self.bugs -= 1
            raise ValueError("a bug")
        return await super().post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket, goes_on=goes_on)


async def test_a_fault_in_sending_one_piece_ends_neither_the_others_nor_the_account() -> None:
    world = World()
    async with open_platform(world, accounts={ADA: _FaultyChannel(world.platform, ADA)}) as fixture:
        world.platform.say(world.general, "ana", "@ada one")
        await fixture.settled()
        world.platform.say(world.general, "ana", "@ada two")
        assert await fixture.said() == ["Hello."]
        assert await fixture.deliveries(DeliveryState.FAILED) == 1


async def test_a_room_that_refuses_for_long_does_not_hold_up_the_others() -> None:
    world = World()
    stuck = world.platform.add_room("stuck")

    class HalfFailingChannel(MemoryChannel):
        tried = 0

        async def post(
            self,
            place: Place,
            content: MessageContent,
            *,
            nonce: str,
            reply_to: str = "",
            ticket: str = "",
            goes_on: bool = False,
            is_preview: bool = False,
        ) -> str:
            if place.channel == stuck.id:
                self.tried += 1
                raise Unavailable("this room does not answer")
            return await super().post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket, goes_on=goes_on)

    text = "\n\n".join(f"Paragraph {n}. " + "word " * 300 for n in range(130))
    model = ScriptedModel(ScriptedReply(text), otherwise=ScriptedReply("Hello."))
    half = HalfFailingChannel(world.platform, ADA)
    async with open_platform(world, model, accounts={ADA: half}) as fixture:
        world.platform.say(stuck, "ana", "@ada tell me all")
        await fixture.until(lambda: half.tried > 0)
        world.platform.say(world.general, "bob", "@ada hello?")
        await fixture.until(lambda: bool(fixture.ada.sent))
        assert fixture.ada.sent[0].content.text == "Hello."


@pytest.mark.parametrize("error", [InvalidInput("no such embed"), NotAllowed("may not attach files")])
async def test_an_answer_whose_card_is_refused_goes_out_as_words_that_say_so(error: DenizenError) -> None:
    class PlainTextChannel(MemoryChannel):
        async def post(
            self,
            place: Place,
            content: MessageContent,
            *,
            nonce: str,
            reply_to: str = "",
            ticket: str = "",
            goes_on: bool = False,
            is_preview: bool = False,
        ) -> str:
            if content != MessageContent(content.text):
                raise error
            return await super().post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket, goes_on=goes_on)

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult("drawn", data={"images": [{"url": "https://cdn.example/2.png"}]})

    world = World()
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="fox")]), ScriptedReply("Here is your fox."))
    async with open_platform(
        world, model, tools=ToolsetFixture(run=draw), accounts={ADA: PlainTextChannel(world.platform, ADA)}
    ) as fixture:
        world.platform.say(world.general, "ana", "@ada draw a fox")
        assert await fixture.said() == ["Here is your fox.\n-# I made something that cannot be shown here."]
        model.script(ScriptedReply("I am sorry."), ScriptedReply("Bye."))
        for _ in range(2):
            world.platform.say(world.general, "ana", "@ada well?")
            await fixture.settled()
    *_, apology, later = (str(request.messages) for request in model.requests)
    assert f"[Your last answer was not shown as you made it: {error.message}" in apology
    assert "not shown as you made it" not in later


@pytest.mark.proves("P1")
@pytest.mark.parametrize(
    ("text", "account_policy"),
    [
        ("@ada", AccountPolicy(style=ReplyStyle(preview=False))),
        ("@ada /help why", AccountPolicy(style=ReplyStyle(preview=False))),
        (
            "@ada hello?",
            replace(
                AccountPolicy(style=ReplyStyle(preview=False)),
                scope=replace(AccountPolicy().scope, users=frozenset({"bob"})),
            ),
        ),
    ],
    ids=["a greeting", "a command", "a refusal"],
)
async def test_a_crash_at_any_step_of_what_is_said_without_a_turn_leaves_it_said_once(
    text: str, account_policy: AccountPolicy
) -> None:
    async def act(fixture: PlatformFixture) -> None:
        fixture.world.platform.say(fixture.world.general, "ana", text)
        await fixture.world.platform.settled()
        await fixture.until(lambda: bool(fixture.ada.sent))

    await crash_everywhere(partial(CrashScenario, account_policy=account_policy), act)


async def test_the_past_of_a_direct_talk_that_was_never_read_is_not_answered() -> None:
    store = FailingStore()
    world = World(store=store)
    direct = world.direct("ana")
    for n in range(3):
        world.platform.write(direct, "ana", f"last year's question {n}")
    async with open_platform(world) as fixture:
        store.break_down(writes_only=True)
        world.platform.say(direct, "ana", "hello?")
        await fixture.until(lambda: store.failed > 0)
        store.recover()
        await fixture.settled()
    assert len(fixture.ada.sent) == 1
    assert direct.kind is RoomKind.DIRECT


@pytest.mark.proves("P1")
async def test_what_comes_while_a_room_is_read_twice_does_not_move_its_position_too_early() -> None:
    positions = ReadCursors(TemporaryStore(), ADA, "discord")
    positions.advance("1", "10")
    positions.hold("1")
    positions.hold("1")
    positions.release("1")
    positions.mark_decided("1", "20")
    assert positions.find("1") == "10" and positions.is_behind
    positions.release("1")
    assert positions.find("1") == "20" and not positions.is_behind


async def test_a_message_heard_both_live_and_while_catching_up_takes_one_of_the_hours_requests() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "begin")
        await fixture.settled()
    asked = world.platform.write(world.general, "ana", "@ada one")
    async with open_platform(world, per_hour=2) as fixture:
        for _ in range(4):
            world.platform.repeat(asked.id)
        await fixture.settled()
        world.platform.say(world.general, "ana", "@ada two")
        assert await fixture.said() == ["Hello.", "Hello."]


@pytest.mark.usefixtures("immediate_previews")
async def test_an_answer_without_anything_to_show_is_still_a_reply_and_leaves_no_preview() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply('🖼️SPRITE_RESULT🖼️{"spriteId": "s1"}', before=gate))
    async with open_platform(model=model, account_policy=AccountPolicy()) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw")
        await gate.reached.wait()
        await fixture.until(lambda: bool(fixture.ada.sent))
        gate.open.set()
        said = await fixture.said()
    assert len(said) == 1 and "thinking" not in said[0]


async def test_what_a_provider_says_about_the_operators_account_is_not_told_in_the_room() -> None:
    from denizen.domain.errors import LimitExceeded

    quota = LimitExceeded(
        "The quota at the provider 'acme' is used up.", code="model_quota", why="org-12345 has no credit"
    )
    async with open_platform(model=ScriptedModel(ScriptedReply(error=quota))) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        said = await fixture.said()
    assert len(said) == 1 and "org-12345" not in said[0] and "acme" not in said[0]
