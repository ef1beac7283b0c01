"""The store's promises about the audit log: one chain, in order, whoever adds."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.audit import AuditEvent, AuditHead, AuditKind, find_chain_fault
from denizen.ports.store import Store
from denizen.testing.store_records import at


def called(tool: str, hours: float = 0) -> AuditEvent:
    return AuditEvent(
        AuditKind.CALL, at(hours), "platform_user:1", tool, {"tier": 3, "args": "ab", "chain": ["x", None]}
    )


@pytest.mark.anyio
class AuditContract:
    async def test_entries_are_chained_and_read_back_as_they_were_written(self, store: Store) -> None:
        odd = AuditEvent(AuditKind.SWITCH, at(2), "local:operator", "obs\x00erver \ud800", {"to": "\ufdd0", "n": 1.5})
        async with store.work() as work:
            assert await work.audit.head() == AuditHead()
            first = await work.audit.add([called("ban"), called("kick", 1)])
        async with store.work() as work:
            last = await work.audit.add([odd])
        async with store.work(write=False) as work:
            entries = await work.audit.list_entries()
            assert await work.audit.head() == last
        assert [entry.number for entry in entries] == [1, 2, 3]
        assert [entry.event for entry in entries] == [called("ban"), called("kick", 1), odd]
        assert (first.number, first.digest) == (2, entries[1].digest)
        assert find_chain_fault(entries) == ""

    async def test_entries_are_read_in_pages(self, store: Store) -> None:
        async with store.work() as work:
            await work.audit.add([called(f"tool{n}") for n in range(5)])
            assert [entry.number for entry in await work.audit.list_entries(after=1, limit=2)] == [2, 3]
            assert await work.audit.list_entries(after=5) == []

    async def test_what_is_rolled_back_leaves_no_gap(self, store: Store) -> None:
        async def fail() -> None:
            async with store.work() as work:
                await work.audit.add([called("ban")])
                raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            await fail()
        async with store.work() as work:
            assert (await work.audit.add([called("kick")])).number == 1
            assert find_chain_fault(await work.audit.list_entries()) == ""

    async def test_nothing_added_moves_nothing(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.audit.add([]) == AuditHead()

    async def test_those_who_add_at_once_make_one_chain(self, store: Store) -> None:
        async def add(name: str) -> None:
            for n in range(5):
                async with store.work() as work:
                    await work.audit.add([called(f"{name}{n}")])

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(add, name)
        async with store.work(write=False) as work:
            entries = await work.audit.list_entries()
        assert len(entries) == 15
        assert find_chain_fault(entries) == ""
