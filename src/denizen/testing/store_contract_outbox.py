"""The store's promises about deliveries: each is kept until it is final, with its files, in the order of adding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.delivery import Button, Content, Delivery, DeliveryKind, DeliveryState, Embed, File
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, TurnId
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD
from denizen.testing.store_records import AGENT, PLATFORM, at, delivery_of

FILES = (File(ODD, "image/png", bytes(range(256)) * 3), File("empty", "text/plain", b""))
FULL = Content(
    ODD,
    (
        Embed(ODD, "text", "https://example.org", "attachment://a", (("a", ODD), ("b", ""))),
        Embed(image="https://x", colour=0),
    ),
    FILES,
    (Button("Docs", url="https://example.org"), Button("Yes", value=ODD)),
    frozenset({"1", "2"}),
    frozenset({"3"}),
)

FINAL = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.WITHDRAWN)


async def add(store: Store, *deliveries: Delivery) -> None:
    async with store.work() as work:
        await work.outbox.add(deliveries)


async def update(store: Store, delivery: Delivery) -> None:
    async with store.work() as work:
        await work.outbox.update(delivery)


async def get(store: Store, delivery: Delivery) -> Delivery:
    async with store.work(write=False) as work:
        return await work.outbox.get(delivery.id)


def without_files(delivery: Delivery) -> Delivery:
    return replace(delivery, content=replace(delivery.content, files=()))


@pytest.mark.anyio
class OutboxContract:
    async def test_a_delivery_comes_back_as_it_was(self, store: Store) -> None:
        full = replace(
            delivery_of("t1", 3, kind=DeliveryKind.NOTICE, content=FULL),
            place=Place(PLATFORM, ODD, ODD),
            agent=AgentName(ODD),
            reply_to=ODD,
            ticket=ODD,
            state=DeliveryState.SENDING,
            attempts=2,
            failure=ODD,
            created_at=at(1),
        )
        plain = delivery_of("t1")
        await add(store, full, plain)
        assert await get(store, full) == full
        assert await get(store, plain) == plain
        with pytest.raises(NotFound):
            await get(store, delivery_of("none"))

    async def test_a_delivery_added_again_stays_as_it_is(self, store: Store) -> None:
        first = delivery_of("t1", content=FULL)
        sent = replace(delivery_of("t1", 1), state=DeliveryState.SENT, platform_id="77")
        await add(store, first, sent)
        again = replace(first, content=Content("other", files=(File("x", "y", b"z"),)), state=DeliveryState.FAILED)
        await add(store, again, replace(sent, state=DeliveryState.PENDING), delivery_of("t1", 2), again)
        assert await get(store, first) == first
        assert await get(store, sent) == sent
        assert await get(store, delivery_of("t1", 2)) == delivery_of("t1", 2)

    async def test_what_may_change_is_written_and_the_rest_stays(self, store: Store) -> None:
        first = delivery_of("t1", content=FULL)
        await add(store, first)
        sending = replace(first, state=DeliveryState.SENDING, attempts=1, failure="slow", platform_id="5")
        await update(store, replace(sending, place=Place(PLATFORM, "elsewhere"), reply_to="no", created_at=at(9)))
        assert await get(store, first) == sending
        other = replace(sending, content=Content("other text", files=(File("n", "m", b"new"), FILES[0])))
        await update(store, other)
        assert await get(store, first) == other
        with pytest.raises(NotFound):
            await update(store, delivery_of("none"))

    async def test_the_files_of_a_delivery_are_dropped_when_it_is_final(self, store: Store) -> None:
        deliveries = [delivery_of("t1", number, content=FULL) for number in range(len(FINAL))]
        await add(store, *deliveries)
        for delivery, state in zip(deliveries, FINAL, strict=True):
            await update(store, replace(delivery, state=state, platform_id=str(delivery.position)))
            found = await get(store, delivery)
            assert found == replace(without_files(delivery), state=state, platform_id=str(delivery.position))
            await update(store, replace(delivery, state=DeliveryState.PENDING, content=found.content))
            assert (await get(store, delivery)).content.files == ()

    async def test_what_is_due_comes_in_the_order_in_which_it_was_added(self, store: Store) -> None:
        later = [delivery_of("t2", number, content=FULL if number else None) for number in (1, 0)]
        preview = delivery_of("t1", kind=DeliveryKind.PREVIEW)
        reaction = delivery_of("t1", kind=DeliveryKind.REACTION)
        notice = replace(delivery_of("t1", kind=DeliveryKind.NOTICE), created_at=at(-5))
        final = [replace(delivery_of("t3", number), state=state) for number, state in enumerate(FINAL)]
        await add(store, *later, preview, reaction, *final, notice)
        await add(store, replace(delivery_of("t4"), agent=AgentName("scribe")))
        await add(store, replace(delivery_of("t5"), place=Place("other", "general")))
        tried = replace(later[0], state=DeliveryState.SENDING)
        await update(store, tried)
        async with store.work(write=False) as work:
            assert await work.outbox.list_due(AGENT, PLATFORM) == [tried, later[1], reaction, notice]
            assert await work.outbox.list_due(AGENT, PLATFORM, limit=1) == [tried]
            assert await work.outbox.list_due(AGENT, PLATFORM, limit=0) == []
            assert [row.turn_id for row in await work.outbox.list_due(AGENT, "other")] == ["t5"]

    async def test_the_deliveries_of_a_turn_come_by_kind_and_position(self, store: Store) -> None:
        kinds = (DeliveryKind.REACTION, DeliveryKind.PREVIEW, DeliveryKind.NOTICE, DeliveryKind.ANSWER)
        deliveries = [delivery_of("t1", number, kind=kind) for kind in kinds for number in (10, 9, 0)]
        await add(store, *deliveries, delivery_of("t2"))
        async with store.work(write=False) as work:
            assert await work.outbox.list_for_turn(TurnId("t1")) == deliveries[::-1]
            assert await work.outbox.list_for_turn(TurnId("none")) == []

    async def test_previews_are_open_until_they_are_withdrawn_or_have_failed(self, store: Store) -> None:
        previews = [
            replace(delivery_of(f"t{number}", kind=DeliveryKind.PREVIEW), state=state)
            for number, state in enumerate(DeliveryState)
        ]
        await add(store, *previews, replace(delivery_of("t9"), state=DeliveryState.SENT))
        async with store.work(write=False) as work:
            rows = await work.outbox.list_open_previews(AGENT, PLATFORM)
            assert [row.state for row in rows] == [DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.SENT]
            assert await work.outbox.list_open_previews(AgentName("scribe"), PLATFORM) == []

    async def test_the_delivery_that_became_a_message_is_found(self, store: Store) -> None:
        preview = replace(delivery_of("t1", kind=DeliveryKind.PREVIEW), platform_id="77")
        answer = replace(delivery_of("t1"), platform_id="77", state=DeliveryState.SENT)
        await add(store, preview, answer, replace(delivery_of("t2"), place=Place("other", "x"), platform_id="78"))
        async with store.work(write=False) as work:
            assert await work.outbox.find_by_platform_id(PLATFORM, "77") == answer
            assert await work.outbox.find_by_platform_id(PLATFORM, "78") is None
            assert await work.outbox.find_by_platform_id(PLATFORM, "") is None

    async def test_a_unit_that_fails_owes_nothing(self, store: Store) -> None:
        first = delivery_of("t1", content=FULL)
        await add(store, first)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await work.outbox.update(replace(first, state=DeliveryState.SENT, platform_id="77"))
                await work.outbox.add([delivery_of("t2")])
                raise ZeroDivisionError
        async with store.work(write=False) as work:
            assert await work.outbox.list_due(AGENT, PLATFORM) == [first]
