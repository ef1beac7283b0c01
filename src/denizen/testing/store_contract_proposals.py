"""The store's promises about proposed answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.conversation import Place
from denizen.domain.proposal import Proposal, ProposalStatus
from denizen.ports.store import Store
from denizen.testing.store_records import at

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
OPEN, ACCEPTED = ProposalStatus.OPEN, ProposalStatus.ACCEPTED


def proposal_of(key: str, *, hours: float = 0, author: str = ANA, asker: str = BOB, thread: str = "2") -> Proposal:
    return Proposal(
        id=key, place=Place("discord", "1", thread), post=f"p{key}", answer="Ten \x00 euros.", author=author,
        author_name="Ana\ud800", proposer=BOB, link="https://example.org/1", said_at=at(hours), created_at=at(hours),
        question="How much? \x00", asker=asker, gap_id="gap_1",
    )  # fmt: skip


def accepted(proposal: Proposal) -> Proposal:
    return replace(
        proposal, status=ACCEPTED, decided_by="local:operator", decided_at=at(3), text="Twelve.", file="a.md"
    )  # fmt: skip


@pytest.mark.anyio
class ProposalContract:
    async def test_a_proposal_is_kept_once_and_listed_by_its_status_the_newest_first(self, store: Store) -> None:
        old, new = proposal_of("a", hours=-2), proposal_of("b")
        async with store.work() as work:
            assert [await work.proposals.add(each) for each in (new, old, replace(old, answer="Else."))] == [
                True, True, False,
            ]  # fmt: skip
        async with store.work(write=False) as work:
            assert await work.proposals.find("a") == old
            assert await work.proposals.find("none") is None
            assert await work.proposals.find_for_posts("discord", ["pa", "pb", "none"]) == [new, old]
            assert await work.proposals.find_for_posts("discord", ["pa"]) == [old]
            assert (
                await work.proposals.find_for_posts("other", ["pa"])
                == await work.proposals.find_for_posts("discord", [])
                == []
            )
            assert await work.proposals.list_proposals(OPEN) == [new, old]
            assert await work.proposals.list_proposals(OPEN, limit=1) == [new]
            assert await work.proposals.list_proposals(ACCEPTED) == []

    async def test_a_proposal_is_decided_about_once_and_only_as_it_is_kept(self, store: Store) -> None:
        proposal = proposal_of("a")
        async with store.work() as work:
            await work.proposals.add(proposal)
            for seen in (
                {"asker": ""},
                {"answer": "Not this."},
                {"question": ""},
                {"author": BOB},
                {"author_name": ""},
            ):
                assert not await work.proposals.decide(replace(accepted(proposal), **seen))
            assert await work.proposals.decide(accepted(proposal))
            assert not await work.proposals.decide(replace(proposal, status=ProposalStatus.REJECTED))
            assert not await work.proposals.decide(proposal_of("none"))
            assert await work.proposals.find("a") == accepted(proposal)
            await work.proposals.set_file("a", "b.md", is_filed=True)
            assert await work.proposals.list_proposals(ACCEPTED) == [
                replace(accepted(proposal), file="b.md", is_filed=True)
            ]

    async def test_a_file_belongs_to_an_accepted_proposal_only(self, store: Store) -> None:
        async with store.work() as work:
            await work.proposals.add(proposal_of("a"))
            await work.proposals.set_file("a", "b.md", is_filed=True)
            assert await work.proposals.find("a") == proposal_of("a")

    async def test_of_a_withdrawn_proposal_nothing_is_left_that_anybody_wrote(self, store: Store) -> None:
        proposal = proposal_of("a")
        async with store.work() as work:
            await work.proposals.add(proposal)
            await work.proposals.decide(accepted(proposal))
            assert await work.proposals.withdraw("a")
            assert not await work.proposals.withdraw("a")
            assert not await work.proposals.withdraw("none")
            assert await work.proposals.find("a") == accepted(proposal).withdrawn()
            assert not await work.proposals.add(proposal)

    async def test_who_is_forgotten_leaves_neither_answers_nor_questions_behind(self, store: Store) -> None:
        async with store.work() as work:
            for each in (proposal_of("a"), proposal_of("b", author=BOB, asker=ANA), proposal_of("c", asker="")):
                await work.proposals.add(each)
            asked = proposal_of("b", author=BOB, asker=ANA)
            await work.proposals.decide(accepted(asked))
            assert await work.proposals.forget_author(ANA) == 2
            assert await work.proposals.forget_asker(ANA) == 1
            assert await work.proposals.forget_asker("") == 0
            assert await work.proposals.find("b") == replace(
                accepted(asked), question="", asker="", gap_id="", file="", is_filed=False
            )
            assert await work.proposals.remove(["b", "none"]) == 1
            assert await work.proposals.remove([]) == 0

    async def test_a_room_that_is_forgotten_takes_what_was_said_in_its_threads_along(self, store: Store) -> None:
        async with store.work() as work:
            for each in (proposal_of("a"), proposal_of("b", thread=""), proposal_of("c", thread="3")):
                await work.proposals.add(each)
            assert await work.proposals.forget_room("discord", "3") == 1
            assert await work.proposals.forget_room("discord", "") == 0
            assert await work.proposals.forget_room("other", "1") == 0
            assert await work.proposals.forget_room("discord", "1") == 2
