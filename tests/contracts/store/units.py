"""The contract of a unit of work: all or nothing, whoever fails or is cancelled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from denizen.domain.conversation import Session
from denizen.domain.errors import NotFound, Unavailable
from denizen.domain.ids import ConversationId, MessageId
from denizen.ports.store import Store
from tests.contracts.store.records import AGENT, NOON, PLACE, make_message, open_conversation
from tests.timing import HANG_LIMIT_S

CANCELLATIONS = 200
MOMENTS = (0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5)


@pytest.mark.anyio
class UnitContract:
    async def test_a_unit_of_work_that_fails_changes_nothing(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(session, "kept"))
            await work.user_settings.put("u", "kept", 1, now=NOON)
            await work.generations.add(digest="kept", source="", now=NOON)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - all of it is to be undone
            async with store.work() as work:
                await work.conversations.put(PLACE, title="lost", now=NOON)
                renewed = await work.sessions.renew(conversation.id, AGENT, now=NOON)
                await work.messages.add(make_message(session, "lost"))
                await work.messages.add(make_message(renewed, "lost too"))
                await work.user_settings.put("u", "kept", 2, now=NOON)
                await work.user_settings.put("u", "lost", 2, now=NOON)
                await work.user_settings.put("u", "kept", None, now=NOON)
                await work.generations.add(digest="lost", source="", now=NOON)
                raise ZeroDivisionError
        async with store.work() as work:
            assert (await work.conversations.get(conversation.id)).title == ""
            assert await work.sessions.current(conversation.id, AGENT, now=NOON) == session
            assert [row.id for row in await work.messages.list_tail(session.id, limit=9)] == ["kept"]
            assert await work.messages.search("lost", conversation_ids=[conversation.id]) == []
            assert await work.user_settings.get("u") == {"kept": 1}
            assert [row.digest for row in await work.generations.list_generations()] == ["kept"]
            assert (await work.messages.add(make_message(session, "next"))).sequence == 2

    async def test_a_refused_statement_leaves_nothing_of_the_unit_behind(self, store: Store) -> None:
        _, session = await open_conversation(store)
        with pytest.raises(NotFound):  # noqa: PT012 - the first statement is to be undone with the second
            async with store.work() as work:
                await work.messages.add(make_message(session, "lost"))
                await work.sessions.current(ConversationId("conv_none"), AGENT, now=NOON)
        async with store.work(write=False) as work:
            assert await work.messages.list_tail(session.id, limit=9) == []

    async def test_what_is_looked_for_and_not_found_does_not_spoil_the_unit(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            with pytest.raises(NotFound):
                await work.messages.get(MessageId("none"))
            await work.messages.add(make_message(session, "kept"))
        async with store.work(write=False) as work:
            assert len(await work.messages.list_tail(session.id, limit=9)) == 1

    async def test_a_unit_sees_its_own_writes_before_it_ends(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1"))
            assert len(await work.messages.list_tail(session.id, limit=9)) == 1

    async def test_an_empty_unit_is_fine(self, store: Store) -> None:
        async with store.work():
            pass
        async with store.work(write=False):
            pass

    async def test_a_unit_that_only_reads_refuses_to_write(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work(write=False) as work:
            with pytest.raises(RuntimeError):
                await work.messages.add(make_message(session, "m1"))
            with pytest.raises(RuntimeError):
                await work.user_settings.put("u", "k", 1, now=NOON)
        async with store.work(write=False) as work:
            assert await work.messages.list_tail(session.id, limit=9) == []

    async def test_a_unit_that_is_over_cannot_be_used(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            pass
        with pytest.raises(RuntimeError):
            await work.messages.add(make_message(session, "m1"))
        with pytest.raises(RuntimeError):
            await work.messages.list_tail(session.id, limit=1)

    async def test_readers_and_writers_side_by_side_all_come_to_an_end(self, store: Store) -> None:
        _, session = await open_conversation(store)

        async def write(number: int) -> None:
            async with store.work() as work:
                await work.messages.add(make_message(session, f"m{number}"))
                await work.messages.add(make_message(session, f"n{number}"))

        async def read() -> None:
            async with store.work(write=False) as work:
                rows = await work.messages.list_tail(session.id, limit=100)
                assert len(rows) % 2 == 0
                assert await work.messages.list_tail(session.id, limit=100) == rows

        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as tasks:
                for number in range(25):
                    tasks.start_soon(write, number)
                    tasks.start_soon(read)
        async with store.work(write=False) as work:
            assert len(await work.messages.list_tail(session.id, limit=100)) == 50

    async def test_a_cancelled_caller_leaves_whole_units_and_no_connection_behind(self, store: Store) -> None:
        _, session = await open_conversation(store)

        async def run_cancelled(unit: _CancelledUnit) -> None:
            with anyio.CancelScope() as scope:
                await unit.run(scope.cancel)

        for number in range(CANCELLATIONS // len(MOMENTS)):
            async with anyio.create_task_group() as tasks:
                for moment in MOMENTS:
                    tasks.start_soon(run_cancelled, _CancelledUnit(store, session, f"{moment}-{number}", moment))
                tasks.start_soon(_read, store, session)
        await _check_whole(store, session)

    async def test_a_task_cancelled_from_outside_leaves_whole_units_and_no_connection_behind(
        self, store: Store
    ) -> None:
        _, session = await open_conversation(store)

        async def run_cancelled(unit: _CancelledUnit) -> None:
            task = asyncio.current_task()
            assert task is not None
            await unit.run(task.cancel)

        for number in range(CANCELLATIONS // len(MOMENTS)):
            async with asyncio.TaskGroup() as tasks:
                started = [
                    tasks.create_task(run_cancelled(_CancelledUnit(store, session, f"{moment}-{number}", moment)))
                    for moment in MOMENTS
                ]
                tasks.create_task(_read(store, session))
            assert all(task.cancelled() for task in started)
        await _check_whole(store, session)

    async def test_a_time_limit_of_asyncio_still_works_around_a_unit(self, store: Store) -> None:
        _, session = await open_conversation(store)
        limit = asyncio.timeout(0)
        with pytest.raises(TimeoutError):
            async with limit, store.work() as work:
                await work.messages.add(make_message(session, "m1"))
        assert limit.expired()
        async with store.work(write=False) as work:
            assert len(await work.messages.list_tail(session.id, limit=9)) in {0, 1}

    async def test_a_cancellation_takes_effect_when_the_unit_is_over(self, store: Store) -> None:
        _, session = await open_conversation(store)
        reached: list[str] = []
        with anyio.CancelScope() as scope:
            async with store.work() as work:
                scope.cancel()
                await checkpoint()
                await work.messages.add(make_message(session, "m1"))
                reached.append("inside")
            await checkpoint()
            reached.append("after")
        assert scope.cancelled_caught
        assert reached == ["inside"]
        async with store.work(write=False) as work:
            assert len(await work.messages.list_tail(session.id, limit=9)) == 1

    async def test_a_closed_store_says_so_and_closing_twice_is_closing_once(self, store: Store) -> None:
        await open_conversation(store)
        await store.aclose()
        await store.aclose()
        with pytest.raises(Unavailable):
            async with store.work():
                pass


class _CancelledUnit:
    """A unit of two messages that is cancelled at a given moment: before it (0), within it before the first (1) or the
    second message (2) or before its end (3); at a half, while the next thing is under way.
    """

    def __init__(self, store: Store, session: Session, key: str, moment: float) -> None:
        self._store = store
        self._session = session
        self._key = key
        self._moment = moment

    async def run(self, cancel: Callable[[], object]) -> None:
        self._reach(0, cancel)
        async with self._store.work() as work:
            self._reach(1, cancel)
            await work.messages.add(make_message(self._session, f"{self._key}/1"))
            self._reach(2, cancel)
            await work.messages.add(make_message(self._session, f"{self._key}/2"))
            self._reach(3, cancel)
        await checkpoint()

    def _reach(self, moment: int, cancel: Callable[[], object]) -> None:
        if moment == self._moment:
            cancel()
        elif moment + 0.5 == self._moment:
            asyncio.get_running_loop().call_soon(cancel)


async def _say_twice(store: Store, session: Session, key: str) -> None:
    async with store.work() as work:
        await work.messages.add(make_message(session, f"{key}/1"))
        await work.messages.add(make_message(session, f"{key}/2"))


async def _read(store: Store, session: Session) -> None:
    async with store.work(write=False) as work:
        await work.messages.list_tail(session.id, limit=2)


async def _check_whole(store: Store, session: Session) -> None:
    """Units that had begun are there as a whole, the others not at all, and new ones find a connection."""
    async with store.work(write=False) as work:
        rows = await work.messages.list_tail(session.id, limit=10 * CANCELLATIONS)
    found = Counter(row.id.partition("/")[0] for row in rows)
    assert set(found.values()) == {2}
    assert {float(key.partition("-")[0]) for key in found} >= {1, 1.5, 2, 2.5, 3, 3.5}
    begun = [key for key in found if float(key.partition("-")[0]) >= 1]
    assert len(begun) == 6 * (CANCELLATIONS // len(MOMENTS))
    assert not [key for key in found if key.startswith("0-")]
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(_say_twice, store, session, f"later-{number}")
                tasks.start_soon(_read, store, session)
    async with store.work(write=False) as work:
        assert len(await work.messages.list_tail(session.id, limit=10 * CANCELLATIONS)) == len(rows) + 40
