"""Approvals on a platform: a card in the talk that the right people press, whatever dies meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.approval import Approval, ApprovalChoice, ApprovalRule, ApprovalStatus, Deciders
from denizen.domain.attention import AccountPolicy, AccountStaff, ReplyStyle
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotAllowed
from denizen.domain.room import Room, RoomKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, ToolRule
from denizen.engine.gate.approval_card import card_action
from denizen.engine.gate.approvals import ASKED_OF_OTHERS
from denizen.ports.channel import ButtonPress
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.engine.crash_injector import CrashingChannel, CrashingModel, CrashingStore, CrashInjector
from tests.engine.engine_fixture import ToolsetFixture, wait_for_approvals
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.memory_channel import MemoryChannel
from tests.memory_platform import START
from tests.rate_rows import count_rate_keys

pytestmark = pytest.mark.anyio

ASKS = GatePolicy(rules=(ToolRule("write", Decision.ASK, reason="the owner wants to know"),))


def answer(request: ModelRequest) -> ScriptedReply:
    said = " ".join(str(part) for message in request.messages for part in message.parts)
    if "use a tool" in said and not any(word in said for word in ("Denied", "written", "found")):
        return ScriptedReply(calls=[call("write", q="this")])
    return ScriptedReply("Refused." if "Denied" in said else "Done.")


def press(
    fixture: PlatformFixture, approval: Approval, choice: ApprovalChoice, *, by: str = "ana", why: str = ""
) -> ButtonPress:
    room = fixture.world.general
    return ButtonPress(
        "9", "1", "", room, by, by.title(), frozenset(), START, action=card_action(approval, choice), why=why
    )


def list_posts(world: World) -> list[str]:
    return [w.post.text for w in world.platform.posts.values() if w.post.author.id == "bot-ada"]


@pytest.mark.proves("T-approval-discord")
async def test_a_card_tells_what_would_happen_and_tidies_itself_up() -> None:
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=ASKS) as fixture:
        question = fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        await fixture.until(lambda: bool(fixture.ada.sent))
        [card] = fixture.ada.sent
        assert card.reply_to == question.id
        assert "Writes something down." in card.content.text
        assert 'q: "this"' in card.content.text
        assert "Asked because the owner wants to know." in card.content.text
        labels = {"Approve": ApprovalChoice.ONCE, "For an hour here": ApprovalChoice.HOUR, "Deny": ApprovalChoice.DENY}
        assert [(button.label, button.action) for button in card.content.buttons] == [
            (label, card_action(approval, choice)) for label, choice in labels.items()
        ]
        assert await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE)) == ""
        assert len(await fixture.said()) == 2
        assert card.content.buttons == ()
        assert "approved by Ana" in card.content.text
        assert fixture.ada.sent[-1].content.text == "Done."


@pytest.mark.proves("T-approval-discord")
async def test_only_the_one_who_asked_may_press_and_twice_is_once() -> None:
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=ASKS) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        with pytest.raises(NotAllowed, match=r"not yours to decide. Only the one who asked"):
            await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE, by="bob"))
        assert not fixture.tools.calls
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        again = await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.DENY))
        assert again == "This was decided already: approved by Ana."
        await fixture.settled()
        assert len(fixture.tools.calls) == 1


@pytest.mark.proves("T-approval-discord")
async def test_those_whom_the_configuration_names_may_press() -> None:
    rule = ApprovalRule(Deciders.ROLE, people=frozenset({"platform_user:discord:bob"}))
    policy = GatePolicy(rules=(ToolRule("write", Decision.ASK, approval=rule),))
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=policy) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        with pytest.raises(NotAllowed, match="not yours to decide"):
            await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE, by="bob"))
        await fixture.settled()
        assert len(fixture.tools.calls) == 1


@pytest.mark.proves("TW8")
async def test_a_tool_for_admins_runs_for_those_whom_the_account_counts_among_them_only() -> None:
    use = ScriptedReply(calls=[call("write", q="this")])
    model = ScriptedModel(use, ScriptedReply("You may not."), use, ScriptedReply("Done."))
    policy = AccountPolicy(style=ReplyStyle(preview=False), staff=AccountStaff(admins=frozenset({"ana"})))
    gate = GatePolicy(roles=(("write", frozenset({"admin"})),))
    async with open_platform(model=model, gate=gate, account_policy=policy) as fixture:
        for who, runs in (("bob", 0), ("ana", 1)):
            fixture.world.platform.say(fixture.world.general, who, "@ada use a tool")
            await fixture.settled()
            assert len(fixture.tools.calls) == runs


async def test_a_no_with_its_reason_reaches_the_model_and_the_card() -> None:
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=ASKS) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.DENY, why="`@everyone` no\nway"))
        card, reply = await fixture.said()
        assert reply == "Refused."
        assert "denied by Ana: ˋ@everyoneˋ no way" in card
        assert not fixture.tools.calls


async def test_too_late_is_told() -> None:
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=ASKS) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        assert approval.expires_at is not None
        fixture.world.clock.time = approval.expires_at
        said = await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        assert said in (
            "This came too late: nobody approved it in time.",
            "This was decided already: nobody approved it in time.",
        )
        assert (await fixture.said())[-1] == "Refused."
        assert not fixture.tools.calls


async def test_a_bot_that_asks_cannot_press_so_it_is_denied_at_once() -> None:
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=ASKS) as fixture:
        fixture.world.platform.add_person("other", "Other", is_bot=True)
        fixture.world.platform.say(fixture.world.general, "other", "@ada use a tool")
        assert await fixture.said() == ["Refused."]


async def test_what_is_escalated_is_shown_to_the_owners_too() -> None:
    world = World()
    owners_room = world.platform.add_room("owners")
    owners = ApprovalRule(Deciders.ROLE, "owner")
    rule = ToolRule("write", Decision.ASK, approval=owners)
    policy = GatePolicy(rules=(rule,), observer=ObserverPolicy(alert_place=Place("discord", owners_room.id)))
    account_policy = AccountPolicy(style=ReplyStyle(preview=False), staff=AccountStaff(owners=frozenset({"bob"})))
    async with open_platform(
        world, ScriptedModel(otherwise=answer), gate=policy, account_policy=account_policy
    ) as fixture:
        escalate(fixture)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        await fixture.until(lambda: len(fixture.ada.sent) == 2)
        assert {sent.place for sent in fixture.ada.sent} == {world.general.place, owners_room.place}
        with pytest.raises(NotAllowed):
            await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE, by="bob"))
        await fixture.settled()
        assert [sent.content.buttons for sent in fixture.ada.sent] == [(), (), ()]


OWNERS = GatePolicy(rules=(ToolRule("write", Decision.ASK, approval=ApprovalRule(Deciders.ROLE, "owner")),))
BOB_OWNS = AccountPolicy(style=ReplyStyle(preview=False), staff=AccountStaff(owners=frozenset({"bob"})))


async def list_cards(world: World, asker: str, room: Room, gate: GatePolicy) -> dict[Place, frozenset[str]]:
    """Asks for a call about which owners decide, lets Bob approve it, and returns who was pinged by which card."""
    async with open_platform(world, ScriptedModel(otherwise=answer), gate=gate, account_policy=BOB_OWNS) as fixture:
        world.platform.say(room, asker, "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        async with fixture.store.work(write=False) as work:
            owed = await work.outbox.list_for_turn(approval.request.turn_id)
        await fixture.until(lambda: len(fixture.ada.sent) == len(owed))
        pinged = {sent.place: sent.content.ping_users for sent in fixture.ada.sent}
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE, by="bob"))
        await fixture.settled()
        assert len(fixture.tools.calls) == 1
        assert not any(sent.content.buttons for sent in fixture.ada.sent)
        return pinged


@pytest.mark.parametrize("kind", [RoomKind.DIRECT, RoomKind.PRIVATE_THREAD])
async def test_owners_are_written_to_about_a_call_that_was_wanted_where_they_do_not_read_along(kind: RoomKind) -> None:
    world = World()
    secret = world.platform.add_room("secret", kind, parent=world.general, readers=["ana", "bot-ada"])
    pinged = await list_cards(world, "ana", secret, OWNERS)
    direct = world.platform.open_direct("bob", "bot-ada")
    assert pinged == {secret.place: frozenset(), direct.place: frozenset()}


async def test_with_an_alert_channel_owners_are_pinged_there_about_what_was_wanted_in_private() -> None:
    world = World()
    owners_room, talk = world.platform.add_room("owners"), world.direct("ana")
    policy = replace(OWNERS, observer=ObserverPolicy(alert_place=owners_room.place))
    assert await list_cards(world, "ana", talk, policy) == {
        talk.place: frozenset(),
        owners_room.place: frozenset({"bob"}),
    }


async def test_owners_are_pinged_by_a_card_in_an_open_room_but_not_about_their_own_wishes() -> None:
    world = World()
    assert await list_cards(world, "ana", world.general, OWNERS) == {world.general.place: frozenset({"bob"})}
    world = World()
    assert await list_cards(world, "bob", world.general, OWNERS) == {world.general.place: frozenset()}


@pytest.mark.parametrize("staff", [AccountStaff(), AccountStaff(owners=frozenset({"bob"}))])
async def test_where_nobody_is_an_owner_the_card_says_who_decides_then(staff: AccountStaff) -> None:
    policy = AccountPolicy(style=ReplyStyle(preview=False), staff=staff)
    async with open_platform(model=ScriptedModel(otherwise=answer), gate=OWNERS, account_policy=policy) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        await fixture.until(lambda: bool(fixture.ada.sent))
        told = "Nobody here has that role: whoever runs me decides, with `denizen approvals`"
        assert (told in fixture.ada.sent[0].content.text) is not bool(staff.owners)


async def test_where_nobody_is_shown_a_call_its_asker_hears_who_may_decide_and_the_log_says_how_to_tell_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = AccountPolicy(style=ReplyStyle(preview=False, asks_here=False), staff=BOB_OWNS.staff)
    model = ScriptedModel(otherwise=answer)
    async with open_platform(model=model, gate=OWNERS, account_policy=policy) as fixture:
        fixture.turns.approvals.poll_s = 0.001
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        assert approval.expires_at is not None
        fixture.world.clock.time = approval.expires_at
        assert await fixture.said() == ["Refused."]
    told = "people with the role 'owner' may decide, with `denizen approvals`, on the page or over the API"
    assert f"Denied: nobody approved it in time; {told}" in str(model.requests[-1].messages[-1])
    [warned] = [record for record in caplog.records if "nobody is told" in record.message]
    assert "gate.observer.alert_channel" in vars(warned)["fix"]


async def test_a_call_waits_for_owners_who_cannot_be_written_to() -> None:
    world = World()
    talk = world.direct("ana")
    del world.platform.people["bob"]
    assert await list_cards(world, "ana", talk, OWNERS) == {talk.place: frozenset()}


@pytest.mark.proves("X-rate-limit")
async def test_one_person_cannot_flood_the_owners_from_one_private_talk_after_another() -> None:
    world = World()
    async with open_platform(world, ScriptedModel(otherwise=answer), gate=OWNERS, account_policy=BOB_OWNS) as fixture:
        for number in range(ASKED_OF_OTHERS.calls + 2):
            talk = world.platform.add_room(
                f"secret {number}", RoomKind.PRIVATE_THREAD, parent=world.general, readers=["ana", "bot-ada"]
            )
            world.platform.say(talk, "ana", "@ada use a tool")
        await fixture.until(lambda: list_posts(world).count("Refused.") == 2)
        asked = await wait_for_approvals(fixture.store, count=ASKED_OF_OTHERS.calls)
        assert len(asked) == ASKED_OF_OTHERS.calls
        assert count_rate_keys(fixture.store) == 1
        direct = world.platform.open_direct("bob", "bot-ada").place
        async with fixture.store.work(write=False) as work:
            owed = [each for one in asked for each in await work.outbox.list_for_turn(one.request.turn_id)]
        assert sum(each.target.place == direct for each in owed) == ASKED_OF_OTHERS.calls


def escalate(fixture: PlatformFixture) -> None:
    """What the gate asks about is an alert, as when the observer hands it on."""
    asks = fixture.turns.approvals.ask
    fixture.turns.approvals.ask = lambda asked: asks(replace(asked, verdict=replace(asked.verdict, alert=True)))


@pytest.mark.proves("C18")
@pytest.mark.usefixtures("immediate_previews")
async def test_while_people_are_waited_for_nothing_looks_like_typing_and_the_preview_says_why() -> None:
    async with open_platform(
        model=ScriptedModel(otherwise=answer), gate=ASKS, account_policy=AccountPolicy()
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada use a tool")
        [approval] = await wait_for_approvals(fixture.store)
        await fixture.until(lambda: any("waits for approval of `write`" in text for text in list_posts(fixture.world)))
        assert not any("used `write`" in text for text in list_posts(fixture.world))
        await fixture.until(lambda: not fixture.ada.typing_in)
        typed = len(fixture.ada.typed)
        gate = ReplyGate()
        fixture.model.script(ScriptedReply("Done.", before=gate))
        await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        await gate.reached.wait()
        await fixture.until(lambda: len(fixture.ada.typed) == typed + 1 and bool(fixture.ada.typing_in))
        gate.open.set()
        await fixture.settled()
        assert len(list_posts(fixture.world)) == 2
        assert "Done." in list_posts(fixture.world)


# --- dying ---------------------------------------------------------------------------------------------------------


@dataclass
class CrashingAccountFixture:
    """One account that may die at any operation, and what its tool did."""

    world: World = field(default_factory=lambda: World(store=CrashingStore()))
    done: list[str] = field(default_factory=list[str])
    injector: CrashInjector = field(default_factory=CrashInjector)

    async def run_process(self, *, at: int = 0, asks: bool = True) -> None:
        """Runs a process, which dies at operation number `at`: somebody asks once, and presses what there is."""
        self.injector = CrashInjector(at)
        model, store = CrashingModel(otherwise=answer), self.world.store
        assert isinstance(store, CrashingStore)
        channel = CrashingChannel(self.world.platform, ADA)
        store.injector = model.injector = channel.injector = self.injector
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as process:
                group.start_soon(self._die, process)
                try:
                    async with self._open(model, channel) as fixture:
                        if asks:
                            await self._act(fixture)
                        await fixture.settled()
                except (DenizenError, ExceptionGroup):
                    if not self.injector.crashed.is_set():
                        raise
            group.cancel_scope.cancel()

    def _open(self, model: CrashingModel, channel: MemoryChannel) -> AbstractAsyncContextManager[PlatformFixture]:
        return open_platform(
            self.world,
            model,
            accounts={ADA: channel},
            tools=ToolsetFixture(run=self._write),
            gate=ASKS,
            agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=0))},
        )

    async def _die(self, process: anyio.CancelScope) -> None:
        await self.injector.crashed.wait()
        process.cancel()

    async def _act(self, fixture: PlatformFixture) -> None:
        platform = self.world.platform
        if not any("use a tool" in written.post.text for written in platform.posts.values()):
            platform.say(self.world.general, "ana", "@ada use a tool")
        while not any("Done." in text for text in list_posts(self.world)):
            async with fixture.store.work(write=False) as work:
                found = await work.approvals.list_approvals(status=ApprovalStatus.PENDING)
            if found:
                async with anyio.create_task_group() as hearing:  # as an account does: it may die in there
                    hearing.start_soon(fixture.listener.on_press, press(fixture, found[0], ApprovalChoice.ONCE))
            await anyio.sleep(0.001)

    async def _write(self, asked: ToolCall, scope: CallScope) -> ToolResult:
        await self.injector.tick()
        self.done.append(scope.options.idempotency_key)
        await self.injector.tick()
        return ToolResult("written")


@pytest.mark.proves("P1", "P2", "VW2")
async def test_a_crash_at_any_step_of_an_approval_leaves_one_card_one_call_and_one_answer() -> None:
    baseline = CrashingAccountFixture()
    await baseline.run_process(asks=False)  # the rooms are read from the first start on
    await baseline.run_process()
    assert list_ends(baseline) == ["approved by Ana", "Done."]
    for at in range(1, baseline.injector.count + 1):
        scenario = CrashingAccountFixture()
        await scenario.run_process(asks=False)
        await scenario.run_process(at=at)
        await scenario.run_process()
        assert list_ends(scenario) == ["approved by Ana", "Done."], f"crashed at operation {at}"
        assert len(set(scenario.done)) == 1, f"crashed at operation {at}"


def list_ends(scenario: CrashingAccountFixture) -> Sequence[str]:
    return ["approved by Ana" if "approved by Ana" in text else text for text in list_posts(scenario.world)]
