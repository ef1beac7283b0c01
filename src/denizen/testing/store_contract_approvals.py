"""The store's promises about calls that wait for people: each is kept as it was asked, and decided by one at a time."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from denizen.domain.approval import Approval, ApprovalRule, ApprovalStatus, Deciders, Grant
from denizen.domain.conversation import Place
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.tool import Tier
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD
from denizen.testing.store_records import AGENT, PLACE, at

FULL_RULE = ApprovalRule(Deciders.QUORUM, ODD, 3, frozenset({"b", ODD}), 0.5, grant_on_timeout=True)


def make_approval(key: str, *, turn: str = "t1", hours: float = 0) -> Approval:
    return Approval(
        key, TurnId(turn), AGENT, "platform_user:discord:1", PLACE, PLACE.conversation_id, "erase", {"name": "list"},
        Tier.DANGEROUS, "it destroys", "erases the list", ApprovalRule(), at(hours), at(hours + 1),
    )  # fmt: skip


def make_grant(key: str, *, hours: float, tool: str = "erase", args: str = "") -> Grant:
    return Grant(key, AGENT, "platform_user:discord:1", PLACE.conversation_id, tool, args, ODD, at(hours))


async def add_approvals(store: Store, *approvals: Approval) -> None:
    async with store.work() as work:
        for approval in approvals:
            await work.approvals.add(approval)


async def find_approval(store: Store, key: str) -> Approval | None:
    async with store.work(write=False) as work:
        return await work.approvals.find(key)


@pytest.mark.anyio
class ApprovalContract:
    async def test_an_approval_comes_back_as_it_was(self, store: Store) -> None:
        plain = make_approval("a1")
        full = replace(
            make_approval("a2"), agent=AgentName(ODD), requester=ODD, place=Place(ODD, ODD, ODD), tool=ODD,
            args={ODD: [ODD, 1, None]}, tier=Tier.LIMITED, reason=ODD, preview=ODD, rule=FULL_RULE, expires_at=None,
            status=ApprovalStatus.DENIED, voices=(ODD, "x"), decided_by=ODD, decided_at=at(2), note=ODD,
            requester_name=ODD, decider_name=ODD, is_exact=True,
        )  # fmt: skip
        await add_approvals(store, plain, full)
        assert await find_approval(store, "a1") == plain
        assert await find_approval(store, "a2") == full
        assert await find_approval(store, "none") is None

    async def test_an_approval_that_is_asked_for_twice_is_one(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))
        await add_approvals(store, replace(make_approval("a1"), tool="other", status=ApprovalStatus.APPROVED))
        assert await find_approval(store, "a1") == make_approval("a1")

    async def test_what_a_decision_changes_is_written_and_the_rest_stays(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))
        decided = replace(
            make_approval("a1"), status=ApprovalStatus.APPROVED, voices=("x",), decided_by="x", decider_name="X",
            decided_at=at(0.5), note="fine",
        )  # fmt: skip
        async with store.work() as work:
            await work.approvals.update(replace(decided, tool="other", args={}, preview="other"))
        assert await find_approval(store, "a1") == decided
        async with store.work() as work:
            with pytest.raises(NotFound):
                await work.approvals.update(make_approval("none"))
        async with store.work() as work:
            with pytest.raises(NotFound):
                await work.approvals.take("none")

    async def test_of_two_who_decide_at_once_the_second_sees_the_first(self, store: Store) -> None:
        await add_approvals(store, make_approval("a1"))

        async def speak(voice: str) -> None:
            async with store.work() as work:
                taken = await work.approvals.take("a1")
                await work.approvals.update(replace(taken, voices=(*taken.voices, voice)))

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(speak, str(number))
        found = await find_approval(store, "a1")
        assert found is not None
        assert sorted(found.voices) == ["0", "1", "2", "3"]

    async def test_approvals_are_listed_by_state_and_turn_the_newest_first(self, store: Store) -> None:
        closed = replace(make_approval("a2"), status=ApprovalStatus.EXPIRED)
        await add_approvals(store, make_approval("a1"), closed, make_approval("a3", turn="t2"))
        async with store.work(write=False) as work:
            listed = work.approvals.list_approvals
            assert [each.id for each in await listed()] == ["a3", "a2", "a1"]
            assert [each.id for each in await listed(limit=1)] == ["a3"]
            assert [each.id for each in await listed(status=ApprovalStatus.PENDING)] == ["a3", "a1"]
            assert [each.id for each in await listed(turn_id=TurnId("t1"))] == ["a2", "a1"]
            both = await listed(status=ApprovalStatus.EXPIRED, turn_id=TurnId("t1"))
            assert [each.id for each in both] == ["a2"]

    async def test_a_grant_holds_until_its_end_for_its_tool_and_people(self, store: Store) -> None:
        exact, other = make_grant("g1", hours=1, args="args_1"), make_grant("g2", hours=1, tool="look")
        async with store.work() as work:
            for grant in (exact, other, replace(exact, args="changed")):
                await work.approvals.add_grant(grant, now=at(0))
        async with store.work(write=False) as work:
            held = work.approvals.list_grants
            assert await held(AGENT, exact.requester, PLACE.conversation_id, "erase", now=at(0.9)) == [exact]
            assert not await held(AGENT, exact.requester, PLACE.conversation_id, "erase", now=at(1))
            assert not await held(AGENT, "platform_user:discord:2", PLACE.conversation_id, "erase", now=at(0))
            assert not await held(AgentName("other"), exact.requester, PLACE.conversation_id, "erase", now=at(0))

    async def test_a_new_grant_leaves_those_that_hold_and_forgets_those_that_are_over(self, store: Store) -> None:
        over, holds, new = make_grant("g1", hours=1), make_grant("g2", hours=2), make_grant("g3", hours=3)
        async with store.work() as work:
            await work.approvals.add_grant(over, now=at(0))
            await work.approvals.add_grant(holds, now=at(0))
            await work.approvals.add_grant(new, now=at(1.5))
        async with store.work(write=False) as work:
            left = await work.approvals.list_grants(AGENT, over.requester, PLACE.conversation_id, "erase", now=at(0))
        assert sorted(grant.id for grant in left) == ["g2", "g3"]
