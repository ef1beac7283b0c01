"""The delivery contract of the store: what an agent decided about messages (claims, read positions, allow lists),
deliveries with their files until they are final, and reminders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from denizen.domain.conversation import Place
from denizen.domain.delivery import (
    Delivery,
    DeliveryKind,
    DeliveryState,
    DeliveryTarget,
    EmbedCard,
    MessageButton,
    MessageContent,
    OutgoingFile,
)
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.reminder import Reminder
from denizen.ports.inbox import AllowedKind, MessageClaim
from denizen.ports.store import Store
from tests.contracts.store.records import AGENT, NOON, PLACE, PLATFORM, at, make_delivery
from tests.contracts.store.settings import ODD
from tests.timing import HANG_LIMIT_S

SCRIBE = AgentName("scribe")


def make_claim(post: str, turn: str | None = "t1", refusal: str = "", agent: AgentName = AGENT) -> MessageClaim:
    return MessageClaim(agent, PLATFORM, post, None if turn is None else TurnId(turn), refusal)


@pytest.mark.anyio
class InboxContract:
    async def test_a_message_is_claimed_once_for_an_agent(self, store: Store) -> None:
        refused = make_claim("2", None, "rate")
        async with store.work() as work:
            assert await work.inbox.claim([make_claim("1"), refused], now=NOON) == [make_claim("1"), refused]
        async with store.work() as work:
            late, others, fresh = make_claim("1", "t2"), make_claim("1", "t3", agent=SCRIBE), make_claim("3", "t2")
            assert await work.inbox.claim([late, others, fresh, fresh], now=at(1)) == [others, fresh]
            assert await work.inbox.claim([make_claim("2")], now=at(1)) == []
            assert await work.inbox.claim([], now=at(1)) == []
        async with store.work(write=False) as work:
            found = await work.inbox.find_claims(AGENT, PLATFORM, {"1", "2", "3", "4"})
            assert found == {"1": make_claim("1"), "2": refused, "3": fresh}
            assert await work.inbox.find_claims(SCRIBE, PLATFORM, ["1", "2"]) == {"1": others}
            assert await work.inbox.find_claims(AGENT, "other", ["1"]) == {}
            assert await work.inbox.find_claims(AGENT, PLATFORM, []) == {}

    async def test_of_several_units_that_claim_the_same_messages_at_once_one_gets_each(self, store: Store) -> None:
        posts = [str(number) for number in range(90, 120)]
        taken: list[MessageClaim] = []

        async def claim(turn: str, order: Sequence[str]) -> None:
            async with store.work() as work:
                mine = await work.inbox.claim([make_claim(post, turn) for post in order], now=NOON)
            taken.extend(mine)

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(claim, f"t{number}", posts if number % 2 else posts[::-1])
        assert sorted(each.post_id for each in taken) == sorted(posts)
        async with store.work(write=False) as work:
            found = await work.inbox.find_claims(AGENT, PLATFORM, posts)
        assert found == {each.post_id: each for each in taken}

    async def test_a_claim_of_a_unit_that_fails_is_free_again(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the claim is to be undone
            async with store.work() as work:
                await work.inbox.claim([make_claim("1")], now=NOON)
                raise ZeroDivisionError
        async with store.work() as work:
            assert await work.inbox.claim([make_claim("1", "t2")], now=NOON) == [make_claim("1", "t2")]

    async def test_ids_with_odd_characters_come_back(self, store: Store) -> None:
        odd = MessageClaim(AgentName(ODD), ODD, ODD, TurnId("t1"), "rate")
        async with store.work() as work:
            assert await work.inbox.claim([odd], now=NOON) == [odd]
            await work.inbox.put_cursors(odd.agent, ODD, {ODD: ODD})
            await work.inbox.follow(odd.agent, ODD, ODD, now=NOON)
        async with store.work(write=False) as work:
            assert await work.inbox.find_claims(odd.agent, ODD, [ODD, ""]) == {ODD: odd}
            assert await work.inbox.list_cursors(odd.agent, ODD) == {ODD: ODD}
            assert await work.inbox.list_followed(odd.agent, ODD) == {ODD}

    async def test_a_position_never_goes_back(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.inbox.list_cursors(AGENT, PLATFORM) == {}
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "99", "20": "5"})
            await work.inbox.put_cursors(AGENT, PLATFORM, {})
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "100", "30": "1"})
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "98", "20": "6", "30": ""})
            await work.inbox.put_cursors(SCRIBE, PLATFORM, {"10": "7"})
            await work.inbox.put_cursors(AGENT, "other", {"10": "8"})
        async with store.work(write=False) as work:
            assert await work.inbox.list_cursors(AGENT, PLATFORM) == {"10": "100", "20": "6", "30": "1"}
            assert await work.inbox.list_cursors(SCRIBE, PLATFORM) == {"10": "7"}

    async def test_a_thread_is_followed_until_it_is_not(self, store: Store) -> None:
        async with store.work() as work:
            for thread in ("1", "2", "1"):
                await work.inbox.follow(AGENT, PLATFORM, thread, now=NOON)
            await work.inbox.follow(SCRIBE, PLATFORM, "3", now=NOON)
            await work.inbox.follow(AGENT, "other", "4", now=NOON)
            await work.inbox.unfollow(AGENT, PLATFORM, "2")
            await work.inbox.unfollow(AGENT, PLATFORM, "3")
        async with store.work(write=False) as work:
            assert await work.inbox.list_followed(AGENT, PLATFORM) == {"1"}
            assert await work.inbox.list_followed(SCRIBE, PLATFORM) == {"3"}

    async def test_users_and_roles_are_allowed_for_one_agent(self, store: Store) -> None:
        async with store.work() as work:
            for kind, key in ((AllowedKind.USER, "1"), (AllowedKind.USER, "2"), (AllowedKind.ROLE, "1")):
                await work.inbox.allow(AGENT, PLATFORM, kind, key, by="9", now=NOON)
            await work.inbox.allow(AGENT, PLATFORM, AllowedKind.USER, "1", by="8", now=at(1))
            await work.inbox.allow(SCRIBE, PLATFORM, AllowedKind.USER, "5", by="9", now=NOON)
            assert await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "2")
            assert not await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "2")
            assert not await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "5")
        async with store.work(write=False) as work:
            assert await work.inbox.list_allowed(AGENT, PLATFORM, AllowedKind.USER) == {"1"}
            assert await work.inbox.list_allowed(AGENT, PLATFORM, AllowedKind.ROLE) == {"1"}
            assert await work.inbox.list_allowed(AGENT, "other", AllowedKind.USER) == frozenset()

    async def test_exchanges_are_counted_in_a_room_up_to_the_limit(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 0
            took = [await work.inbox.take_bot_reply(PLATFORM, "10", limit=2) for _ in range(4)]
            assert took == [True, True, False, False]
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 2
            assert await work.inbox.take_bot_reply(PLATFORM, "10")
            assert await work.inbox.take_bot_reply(PLATFORM, "20", limit=2)
            assert not await work.inbox.take_bot_reply(PLATFORM, "30", limit=0)
        async with store.work(write=False) as work:
            counts = [await work.inbox.count_bot_replies(PLATFORM, room) for room in ("10", "20", "30")]
            assert counts == [3, 1, 0]
            assert await work.inbox.count_bot_replies("other", "10") == 0

    async def test_an_exchange_is_given_back_and_reset_and_never_below_0(self, store: Store) -> None:
        async with store.work() as work:
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            for _ in range(3):
                await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 2
            assert await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            await work.inbox.reset_bot_replies(PLATFORM, "10")
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 0
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            await work.inbox.reset_bot_replies(PLATFORM, "20")
            assert await work.inbox.take_bot_reply(PLATFORM, "10", limit=1)
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 1

    async def test_units_that_take_exchanges_at_once_stay_within_the_limit(self, store: Store) -> None:
        took: list[bool] = []

        async def take() -> None:
            async with store.work() as work:
                mine = await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            took.append(mine)

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(take)
        assert took.count(True) == 3

    async def test_a_unit_that_only_reads_refuses_to_decide(self, store: Store) -> None:
        async with store.work(write=False) as work:
            with pytest.raises(RuntimeError):
                await work.inbox.claim([make_claim("1")], now=NOON)
            with pytest.raises(RuntimeError):
                await work.archive.put([])
            with pytest.raises(RuntimeError):
                await work.outbox.add([])
        async with store.work(write=False) as work:
            assert await work.inbox.find_claims(AGENT, PLATFORM, ["1"]) == {}


FILES = (OutgoingFile(ODD, "image/png", bytes(range(256)) * 3), OutgoingFile("empty", "text/plain", b""))
FULL = MessageContent(
    ODD,
    (
        EmbedCard(ODD, "text", "https://example.org", "attachment://a", (("a", ODD), ("b", ""))),
        EmbedCard(image="https://x", colour=0),
    ),
    FILES,
    (MessageButton("Docs", url="https://example.org"), MessageButton("Yes", value=ODD)),
    frozenset({"1", "2"}),
    frozenset({"3"}),
)

FINAL = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.WITHDRAWN)


async def add_deliveries(store: Store, *deliveries: Delivery) -> None:
    async with store.work() as work:
        await work.outbox.add(deliveries)


async def update_delivery(store: Store, delivery: Delivery) -> None:
    async with store.work() as work:
        await work.outbox.update(delivery)


async def get_delivery(store: Store, delivery: Delivery) -> Delivery:
    async with store.work(write=False) as work:
        return await work.outbox.get(delivery.id)


def without_files(delivery: Delivery) -> Delivery:
    return replace(delivery, content=replace(delivery.content, files=()))


@pytest.mark.anyio
class OutboxContract:
    async def test_a_delivery_comes_back_as_it_was(self, store: Store) -> None:
        full = replace(
            make_delivery("t1", 3, kind=DeliveryKind.NOTICE, content=FULL),
            target=DeliveryTarget(Place(PLATFORM, ODD, ODD), ODD, ODD),
            agent=AgentName(ODD),
            state=DeliveryState.SENDING,
            attempts=2,
            failure=ODD,
            created_at=at(1),
        )
        plain = make_delivery("t1")
        await add_deliveries(store, full, plain)
        assert await get_delivery(store, full) == full
        assert await get_delivery(store, plain) == plain
        with pytest.raises(NotFound):
            await get_delivery(store, make_delivery("none"))

    async def test_a_delivery_added_again_stays_as_it_is(self, store: Store) -> None:
        first = make_delivery("t1", content=FULL)
        sent = replace(make_delivery("t1", 1), state=DeliveryState.SENT, platform_id="77")
        await add_deliveries(store, first, sent)
        again = replace(
            first, content=MessageContent("other", files=(OutgoingFile("x", "y", b"z"),)), state=DeliveryState.FAILED
        )
        await add_deliveries(store, again, replace(sent, state=DeliveryState.PENDING), make_delivery("t1", 2), again)
        assert await get_delivery(store, first) == first
        assert await get_delivery(store, sent) == sent
        assert await get_delivery(store, make_delivery("t1", 2)) == make_delivery("t1", 2)

    async def test_what_may_change_is_written_and_the_rest_stays(self, store: Store) -> None:
        first = make_delivery("t1", content=FULL)
        await add_deliveries(store, first)
        sending = replace(first, state=DeliveryState.SENDING, attempts=1, failure="slow", platform_id="5")
        await update_delivery(
            store, replace(sending, target=DeliveryTarget(Place(PLATFORM, "elsewhere"), "no"), created_at=at(9))
        )
        assert await get_delivery(store, first) == sending
        other = replace(sending, content=MessageContent("other text", files=(OutgoingFile("n", "m", b"new"), FILES[0])))
        await update_delivery(store, other)
        assert await get_delivery(store, first) == other
        with pytest.raises(NotFound):
            await update_delivery(store, make_delivery("none"))

    async def test_the_files_of_a_delivery_are_dropped_when_it_is_final(self, store: Store) -> None:
        deliveries = [make_delivery("t1", number, content=FULL) for number in range(len(FINAL))]
        await add_deliveries(store, *deliveries)
        for delivery, state in zip(deliveries, FINAL, strict=True):
            await update_delivery(store, replace(delivery, state=state, platform_id=str(delivery.position)))
            found = await get_delivery(store, delivery)
            assert found == replace(without_files(delivery), state=state, platform_id=str(delivery.position))
            await update_delivery(store, replace(delivery, state=DeliveryState.PENDING, content=found.content))
            assert (await get_delivery(store, delivery)).content.files == ()

    async def test_messages_that_are_due_come_in_the_order_in_which_they_were_added_and_reactions_after_them(
        self, store: Store
    ) -> None:
        later = [make_delivery("t2", number, content=FULL if number else None) for number in (1, 0)]
        preview = make_delivery("t1", kind=DeliveryKind.PREVIEW)
        reaction = make_delivery("t1", kind=DeliveryKind.REACTION)
        notice = replace(make_delivery("t1", kind=DeliveryKind.NOTICE), created_at=at(-5))
        final = [replace(make_delivery("t3", number), state=state) for number, state in enumerate(FINAL)]
        await add_deliveries(store, *later, preview, reaction, *final, notice)
        await add_deliveries(store, replace(make_delivery("t4"), agent=AgentName("scribe")))
        await add_deliveries(store, replace(make_delivery("t5"), target=DeliveryTarget(Place("other", "general"))))
        tried = replace(later[0], state=DeliveryState.SENDING)
        await update_delivery(store, tried)
        async with store.work(write=False) as work:
            assert await work.outbox.list_due(AGENT, PLATFORM) == [tried, later[1], notice, reaction]
            assert await work.outbox.list_due(AGENT, PLATFORM, limit=1) == [tried]
            assert await work.outbox.list_due(AGENT, PLATFORM, limit=0) == []
            assert [row.turn_id for row in await work.outbox.list_due(AGENT, "other")] == ["t5"]

    async def test_the_deliveries_of_a_turn_come_by_kind_and_position(self, store: Store) -> None:
        kinds = (DeliveryKind.REACTION, DeliveryKind.PREVIEW, DeliveryKind.NOTICE, DeliveryKind.ANSWER)
        deliveries = [make_delivery("t1", number, kind=kind) for kind in kinds for number in (10, 9, 0)]
        await add_deliveries(store, *deliveries, make_delivery("t2"))
        async with store.work(write=False) as work:
            assert await work.outbox.list_for_turn(TurnId("t1")) == deliveries[::-1]
            assert await work.outbox.list_for_turn(TurnId("none")) == []

    async def test_previews_are_open_until_they_are_withdrawn_or_have_failed(self, store: Store) -> None:
        previews = [
            replace(make_delivery(f"t{number}", kind=DeliveryKind.PREVIEW), state=state)
            for number, state in enumerate(DeliveryState)
        ]
        await add_deliveries(store, *previews, replace(make_delivery("t9"), state=DeliveryState.SENT))
        async with store.work(write=False) as work:
            rows = await work.outbox.list_open_previews(AGENT, PLATFORM)
            assert [row.state for row in rows] == [DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.SENT]
            assert await work.outbox.list_open_previews(AgentName("scribe"), PLATFORM) == []

    async def test_the_delivery_that_became_a_message_is_found(self, store: Store) -> None:
        preview = replace(make_delivery("t1", kind=DeliveryKind.PREVIEW), platform_id="77")
        answer = replace(make_delivery("t1"), platform_id="77", state=DeliveryState.SENT)
        await add_deliveries(
            store,
            preview,
            answer,
            replace(make_delivery("t2"), target=DeliveryTarget(Place("other", "x")), platform_id="78"),
        )
        async with store.work(write=False) as work:
            assert await work.outbox.find_by_platform_id(PLATFORM, "77") == answer
            assert await work.outbox.find_by_platform_id(PLATFORM, "78") is None
            assert await work.outbox.find_by_platform_id(PLATFORM, "") is None

    async def test_of_many_messages_those_that_were_sent_are_found(self, store: Store) -> None:
        await add_deliveries(
            store,
            replace(make_delivery("t1"), platform_id="77", state=DeliveryState.SENT),
            replace(make_delivery("t2"), target=DeliveryTarget(Place("other", "x")), platform_id="79"),
        )
        async with store.work(write=False) as work:
            assert await work.outbox.find_sent(PLATFORM, [str(number) for number in range(70, 3000)]) == {"77"}
            assert await work.outbox.find_sent(PLATFORM, []) == frozenset()

    async def test_a_unit_that_fails_owes_nothing(self, store: Store) -> None:
        first = make_delivery("t1", content=FULL)
        await add_deliveries(store, first)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await work.outbox.update(replace(first, state=DeliveryState.SENT, platform_id="77"))
                await work.outbox.add([make_delivery("t2")])
                raise ZeroDivisionError
        async with store.work(write=False) as work:
            assert await work.outbox.list_due(AGENT, PLATFORM) == [first]


ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
OTHER_AGENT = AgentName("other")


def make_reminder(key: str, hours: float, *, asker: str = ANA) -> Reminder:
    """Asked for at noon, due so many hours later."""
    return Reminder(
        id=key, account=AGENT, asker=asker, place=PLACE, text=f"text of {key}", due_at=at(hours), created_at=at(0)
    )


async def add_reminders(store: Store, *rows: Reminder) -> None:
    async with store.work() as work:
        for row in rows:
            assert await work.reminders.add(row)


@pytest.mark.anyio
class ReminderContract:
    async def test_reminders_come_back_as_they_were_set_the_next_one_first(self, store: Store) -> None:
        late, soon = make_reminder("a", 5), replace(make_reminder("b", 1), text="tea \x00 \ud800")
        same = replace(make_reminder("c", 1), place=Place(PLATFORM, "12", "t"), account=OTHER_AGENT)
        await add_reminders(store, late, soon, same, make_reminder("d", 0, asker=BOB))
        async with store.work(write=False) as work:
            assert await work.reminders.list_for(ANA) == [soon, same, late]
            assert await work.reminders.list_for(ANA, limit=1) == [soon]
            assert await work.reminders.list_for("nobody") == []

    async def test_a_reminder_set_again_is_the_first_one(self, store: Store) -> None:
        await add_reminders(store, make_reminder("a", 1))
        async with store.work() as work:
            assert not await work.reminders.add(make_reminder("a", 2))
            assert await work.reminders.list_for(ANA) == [make_reminder("a", 1)]

    async def test_what_is_due_is_listed_for_its_account_and_platform(self, store: Store) -> None:
        mine = [make_reminder("a", 2), make_reminder("b", 1), make_reminder("c", 3)]
        elsewhere = replace(make_reminder("d", 1), place=Place("web", "general"))
        await add_reminders(store, *mine, elsewhere, replace(make_reminder("e", 1), account=OTHER_AGENT))
        async with store.work(write=False) as work:
            due = await work.reminders.list_due(AGENT, PLATFORM, now=at(2))
            assert [row.id for row in due] == ["b", "a"]
            assert [row.id for row in await work.reminders.list_due(AGENT, PLATFORM, now=at(2), limit=1)] == ["b"]
            assert await work.reminders.list_due(AGENT, PLATFORM, now=at(0)) == []

    async def test_the_next_time_is_that_of_the_first_that_is_not_due(self, store: Store) -> None:
        async with store.work(write=False) as work:
            assert await work.reminders.find_next_due(after=at(0)) is None
        await add_reminders(store, make_reminder("a", 2), make_reminder("b", 1))
        async with store.work(write=False) as work:
            assert await work.reminders.find_next_due(after=at(0)) == at(1)
            assert await work.reminders.find_next_due(after=at(1)) == at(2)
            assert await work.reminders.find_next_due(after=at(2)) is None

    async def test_a_reminder_is_removed_once_and_for_others_not_at_all(self, store: Store) -> None:
        await add_reminders(store, make_reminder("a", 1), make_reminder("b", 1))
        async with store.work() as work:
            assert not await work.reminders.remove("a", asker=BOB)
            assert await work.reminders.remove("a", asker=ANA)
            assert not await work.reminders.remove("a")
            assert await work.reminders.remove("b")
            assert not await work.reminders.remove("none")
            assert await work.reminders.list_for(ANA) == []

    async def test_who_is_forgotten_leaves_no_reminder_behind(self, store: Store) -> None:
        await add_reminders(store, make_reminder("a", 1), make_reminder("b", 1, asker=BOB), make_reminder("c", 2))
        async with store.work() as work:
            assert await work.reminders.forget_asker(ANA) == 2
            assert await work.reminders.forget_asker(ANA) == 0
            assert [row.id for row in await work.reminders.list_for(BOB)] == ["b"]
