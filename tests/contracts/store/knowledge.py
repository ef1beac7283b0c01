"""The knowledge contract of the store: sources and their syncs, documents and passages, citations and gaps, and
proposed answers.
"""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from denizen.domain.citation import Citation, CitationFault, DocumentRef
from denizen.domain.conversation import Place
from denizen.domain.embedding_progress import EmbeddingPace
from denizen.domain.errors import NotFound
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.proposal import Proposal, ProposalDecision, ProposalStatus, ProposedAnswer
from denizen.domain.source import Source, SourceKind, SourceReading, SourceState, SyncRun, SyncStatus
from denizen.domain.vector import pack_vector
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument, IndexSize
from denizen.ports.memory import MEMORY_VECTORS, StoredVector
from denizen.ports.store import Store
from tests.contracts.store.languages import SCRIPTS
from tests.contracts.store.records import AGENT, at, make_turn, open_conversation

DOCS = Source(
    id="docs",
    kind=SourceKind.GIT,
    location="https://git.example/docs.git",
    label="The docs \ufdd0",
    branch="main",
    content_path="docs/en",
    output_path="manual",
    readme_only=True,
    sync_every_minutes=30,
    guild="111122223333444455",
    created_at=at(0),
    updated_at=at(0),
)
NOTES = Source(id="a-notes", kind=SourceKind.FOLDER, location="/srv/notes", created_at=at(1), updated_at=at(1))
TALKS = Source(
    id="talks",
    kind=SourceKind.YOUTUBE,
    location="https://www.youtube.com/@talks",
    max_videos=7,
    created_at=at(0),
    updated_at=at(0),
)
TAKEN = SourceReading(
    manifest="ab" * 32, files=3, documents=2, size_bytes=4096, skipped=1, left_out=("a.md (no text)",)
)
READ_STATE = SourceState(
    source_id="docs", revision="c0ffee", fingerprint="read_1", taken=TAKEN, synced_at=at(2), tried_at=at(2)
)


@pytest.mark.anyio
class SourceContract:
    @pytest.mark.proves("S-data-sources")
    async def test_sources_are_kept_changed_and_listed_by_id(self, store: Store) -> None:
        async with store.work() as work:
            await work.sources.put(DOCS)
            await work.sources.put(NOTES)
            await work.sources.put(TALKS)
        changed = replace(DOCS, branch="v2", readme_only=False, created_at=at(9), updated_at=at(9))
        async with store.work() as work:
            assert await work.sources.find("docs") == DOCS
            await work.sources.put(changed)
        async with store.work(write=False) as work:
            assert await work.sources.list_sources() == [NOTES, replace(changed, created_at=at(0)), TALKS]
            assert await work.sources.find("other") is None

    async def test_a_state_is_replaced_and_goes_with_its_source(self, store: Store) -> None:
        failed = replace(READ_STATE, tried_at=at(3), error_code="unavailable", error="No answer.")
        never = SourceState(source_id="a-notes", tried_at=at(3), error_code="not_found", error="It is gone.")
        async with store.work() as work:
            await work.sources.put(DOCS)
            await work.sources.put(NOTES)
            await work.sources.put_state(READ_STATE)
            assert await work.sources.list_states() == [READ_STATE]
            await work.sources.put_state(failed)
            await work.sources.put_state(never)
        async with store.work() as work:
            assert await work.sources.list_states() == [never, failed]
            assert await work.sources.remove("docs")
            assert not await work.sources.remove("docs")
            await work.sources.put_state(READ_STATE)
            assert await work.sources.list_states() == [never]

    @pytest.mark.proves("S-kv-last-sync")
    async def test_syncs_are_kept_with_their_end_newest_first(self, store: Store) -> None:
        first = SyncRun(id="sync_1", sources=("docs", "a-notes"), started_at=at(1))
        ended = replace(
            first,
            ended_at=at(2),
            status=SyncStatus.PARTIAL,
            snapshot="snap_1",
            changed=("docs",),
            failed={"a-notes": "Gone."},
            skipped={"talks": "No key."},
            left_out={"docs": "1 left out: a.md (no text)"},
        )
        second = SyncRun(id="sync_2", sources=("docs",), started_at=at(3))
        async with store.work() as work:
            await work.sources.put_sync(first)
            await work.sources.put_sync(second)
            assert await work.sources.list_syncs() == [second, first]
            await work.sources.put_sync(replace(ended, started_at=at(8)))
        async with store.work(write=False) as work:
            assert await work.sources.list_syncs() == [second, ended]
            assert await work.sources.list_syncs(limit=1) == [second]
            assert [await work.sources.find_sync(each) for each in ("sync_1", "sync_2")] == [ended, second]
            assert await work.sources.find_sync("sync_3") is None


ODD_PATH = "docs/\ud800\x00.md"


def make_document(path: str, text: str, *, source: str = "guide", digest: str = "1") -> IndexedDocument:
    return IndexedDocument.cut(path, source, digest, text)


async def put_documents(store: Store, *documents: IndexedDocument) -> None:
    async with store.work() as work:
        await work.documents.put(documents)


async def find_passages(store: Store, words: str, *sources: str, also: str = "", limit: int = 9) -> list[str]:
    """`path:first-last` of what is found."""
    async with store.work(write=False) as work:
        matches = await work.documents.find_by_words(words, also=also, sources=sources, limit=limit)
        found = await work.documents.list_passages([match.key for match in matches])
    return [f"{each.path}:{each.passage.first_line}-{each.passage.last_line}" for each in found]


@pytest.mark.anyio
class DocumentContract:
    @pytest.mark.proves("V5-search")
    async def test_passages_are_found_by_any_of_their_words_and_headings(self, store: Store) -> None:
        text = "# Opening hours\n\nWe open at nine.\n\n# Prices\n\nA coffee is two euros.\n"
        await put_documents(
            store, make_document("docs/a.md", text), make_document("docs/b.md", "# Fish\n\nA coffee-free zone.\n")
        )
        assert await find_passages(store, "when do you open") == ["docs/a.md:1-3"]
        assert await find_passages(store, "prices zebra") == ["docs/a.md:5-7"]
        assert set(await find_passages(store, "COFFEE")) == {"docs/a.md:5-7", "docs/b.md:1-3"}
        assert await find_passages(store, "coffee", limit=0) == []
        assert (
            await find_passages(store, "zebra")
            == await find_passages(store, "")
            == await find_passages(store, "?!")
            == []
        )

    async def test_a_rare_word_says_more_than_a_common_one_however_often_that_occurs(self, store: Store) -> None:
        others = [make_document(f"{number}.md", f"the port {number}") for number in range(20)]
        await put_documents(store, make_document("often.md", "port " * 9), make_document("rare.md", "a relay"), *others)
        assert (await find_passages(store, "port relay"))[:2] == ["rare.md:1-1", "often.md:1-1"]

    async def test_a_word_of_the_title_counts_for_more_than_one_of_the_text(self, store: Store) -> None:
        await put_documents(
            store,
            make_document("a.md", "# Boats\n\nA mooring has a ring.\n"),
            make_document("b.md", "# Mooring\n\nA boat has one ring.\n"),
        )
        assert await find_passages(store, "mooring") == ["b.md:1-3", "a.md:1-3"]

    async def test_forms_of_one_word_count_together(self, store: Store) -> None:
        await put_documents(
            store, make_document("a.md", "one sailing boat here"), make_document("b.md", "sails sailed by")
        )
        assert await find_passages(store, "sail sailing") == ["b.md:1-1", "a.md:1-1"]

    @pytest.mark.parametrize("script", SCRIPTS)
    async def test_passages_are_found_by_words_of_any_script_parts_of_compounds_and_other_forms(
        self, store: Store, script: str
    ) -> None:
        text, asked, other = SCRIPTS[script]
        await put_documents(store, make_document("a.md", other), make_document("b.md", text))
        assert await find_passages(store, asked) == ["b.md:1-1"]

    async def test_words_may_count_for_the_order_that_find_nothing_by_themselves(self, store: Store) -> None:
        await put_documents(
            store, make_document("a.md", "tea, hot"), make_document("b.md", "tea for two"), make_document("c.md", "two")
        )
        assert (await find_passages(store, "tea", also="for two tea"))[0] == "b.md:1-1"
        assert set(await find_passages(store, "tea", also="for two tea")) == {"a.md:1-1", "b.md:1-1"}
        assert await find_passages(store, "", also="two") == []

    async def test_what_most_passages_have_is_found_where_nothing_else_is_asked_for(self, store: Store) -> None:
        given = [make_document(f"{number}.md", f"# H\n\nthe same {number}\n") for number in range(200)]
        await put_documents(store, *given, make_document("best.md", "# Same\n\nthe same\n"))
        assert (await find_passages(store, "same"))[0] == "best.md:1-3"
        assert len(await find_passages(store, "the same", limit=90)) == 90

    async def test_a_word_means_nothing_else_to_the_database(self, store: Store) -> None:
        await put_documents(store, make_document("a.md", "one AND two"))
        for words in ('"one', "one*", "one | two", "NEAR(one two)", "one'); --", "words:one", "!one & two", "-one"):
            assert await find_passages(store, words) == ["a.md:1-1"]

    async def test_only_the_sources_asked_for_are_searched(self, store: Store) -> None:
        await put_documents(store, make_document("a.md", "tea"), make_document("b.md", "tea", source="wiki"))
        assert await find_passages(store, "tea", "wiki") == ["b.md:1-1"]
        assert sorted(await find_passages(store, "tea", "wiki", "guide")) == ["a.md:1-1", "b.md:1-1"]
        assert await find_passages(store, "tea", "none") == []

    async def test_a_document_put_again_takes_the_place_of_the_old_one(self, store: Store) -> None:
        await put_documents(store, make_document("a.md", "tea"), make_document(ODD_PATH, "milk \x00"))
        await put_documents(store, make_document("a.md", "cake", digest="2"))
        assert await find_passages(store, "tea") == []
        assert await find_passages(store, "cake") == ["a.md:1-1"]
        async with store.work() as work:
            assert await work.documents.list_digests() == {"a.md": "2", ODD_PATH: "1"}
            assert await work.documents.size() == IndexSize(2, 2)
            assert await work.documents.remove(["none", ODD_PATH]) == 1
            assert await work.documents.remove([]) == 0
        assert await find_passages(store, "milk") == []

    async def test_two_that_put_the_same_documents_at_once_come_to_the_same(self, store: Store) -> None:
        given = [make_document(f"{n}.md", f"same w{n}\n") for n in range(60)]
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(put_documents, store, *given)
        async with store.work(write=False) as work:
            assert await work.documents.size() == IndexSize(60, 60)
            assert await work.documents.find_indexed() == ""
        assert await find_passages(store, "w33") == ["33.md:1-1"]

    async def test_many_documents_at_once_each_have_their_own_passages(self, store: Store) -> None:
        given = [make_document(f"{n}.md", f"# H{n}\n\nsame w{n}\n\n# I{n}\n\nsame v{n}\n") for n in range(150)]
        await put_documents(store, *given, make_document("empty.md", ""))
        async with store.work(write=False) as work:
            assert await work.documents.size() == IndexSize(151, 300)
            found = await work.documents.list_passages([key for each in given for key in each.keys])
        assert [(each.path, each.passage) for each in found] == [(d.path, p) for d in given for p in d.passages]
        assert await find_passages(store, "w77 v149") == ["77.md:1-3", "149.md:5-7"]
        await put_documents(store, *(make_document(each.path, "other", digest="2") for each in given))
        assert await find_passages(store, "w77") == []
        async with store.work() as work:
            assert await work.documents.size() == IndexSize(151, 150)
            assert await work.documents.remove([each.path for each in given]) == 150
            assert await work.documents.size() == IndexSize(1, 0)

    async def test_passages_come_back_as_they_are_in_the_order_asked_for(self, store: Store) -> None:
        document = make_document(ODD_PATH, "# A\n\none\n\n## B \x00\n\ntwo\n")
        await put_documents(store, document)
        async with store.work(write=False) as work:
            found = await work.documents.list_passages([document.keys[1], "none", document.keys[0]])
        assert [each.passage for each in found] == [document.passages[1], document.passages[0]]
        assert {(each.path, each.source_id) for each in found} == {(ODD_PATH, "guide")}

    async def test_the_same_words_in_two_places_are_found_in_both_and_read_once(self, store: Store) -> None:
        await put_documents(store, make_document("a.md", "tea"), make_document("b.md", "tea"))
        assert sorted(await find_passages(store, "tea")) == ["a.md:1-1", "b.md:1-1"]
        async with store.work(write=False) as work:
            assert [each.path for each in await work.documents.list_without_vector("m", limit=9)] == ["a.md"]

    async def test_vectors_of_passages_that_are_gone_are_swept(self, store: Store) -> None:
        document = make_document("a.md", "tea")
        await put_documents(store, document)
        async with store.work() as work:
            rows = [
                StoredVector(PASSAGE_VECTORS, "guide", key, "m", pack_vector([1, 0]))
                for key in (document.keys[0], "gone")
            ]
            await work.vectors.put([*rows, StoredVector(MEMORY_VECTORS, "s", "gone", "m", pack_vector([1, 0]))])
            assert await work.documents.sweep_vectors() == 1
        async with store.work(write=False) as work:
            assert await work.documents.list_without_vector("m", limit=9) == []
            assert await work.documents.count_without_vector("m") == 0
            assert await work.documents.count_without_vector("other") == 1
            assert len(await work.documents.list_without_vector("other", limit=9)) == 1
            assert (
                len(await work.vectors.find_nearest(PASSAGE_VECTORS, ["guide"], "m", pack_vector([1, 0]), limit=9)) == 1
            )
            assert len(await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack_vector([1, 0]), limit=9)) == 1

    async def test_passages_without_a_vector_are_those_that_were_put_last_first(self, store: Store) -> None:
        for name in "abc":
            await put_documents(store, make_document(f"{name}.md", f"tea {name}"))
        await put_documents(store, make_document("a.md", "tea anew"), make_document("d.md", "tea b"))
        async with store.work(write=False) as work:
            found = await work.documents.list_without_vector("m", limit=9)
            assert [each.path for each in found] == ["a.md", "c.md", "b.md"]
            assert await work.documents.list_without_vector("m", limit=1) == found[:1]
            assert await work.documents.count_keys() == 3

    async def test_vectors_are_read_by_their_keys(self, store: Store) -> None:
        one, other = pack_vector([1, 0]), pack_vector([0, 1])
        async with store.work() as work:
            await work.vectors.put(
                [
                    StoredVector(PASSAGE_VECTORS, "guide", ODD_PATH, "m", one),
                    StoredVector(PASSAGE_VECTORS, "guide", "b", "m", other),
                    StoredVector(PASSAGE_VECTORS, "guide", "c", "other", one),
                    StoredVector(MEMORY_VECTORS, "s", "d", "m", one),
                ]
            )
        async with store.work(write=False) as work:
            found = await work.vectors.list_vectors(PASSAGE_VECTORS, {ODD_PATH, "b", "c", "d", "gone"}, "m")
            assert found == {ODD_PATH: one, "b": other}
            assert await work.vectors.list_vectors(PASSAGE_VECTORS, [], "m") == {}

    async def test_the_pace_of_embedding_is_the_one_that_was_put_last(self, store: Store) -> None:
        paces = [EmbeddingPace("m", 0.5, at(1)), EmbeddingPace("other", 0.125, at(2))]
        async with store.work() as work:
            assert await work.documents.find_pace() is None
            for pace in paces:
                await work.documents.put_pace(pace)
        async with store.work(write=False) as work:
            assert await work.documents.find_pace() == paces[1]
            assert await work.documents.find_indexed() == ""

    async def test_what_the_index_is_of_is_remembered(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.documents.find_indexed() == ""
            await work.documents.mark_indexed("one")
            await work.documents.mark_indexed("two")
        async with store.work(write=False) as work:
            assert await work.documents.find_indexed() == "two"

    @pytest.mark.proves("V5-search")
    async def test_the_nearest_of_many_vectors_are_found_and_no_removed_ones(self, store: Store) -> None:
        """More than any store looks at in full."""
        rows = [StoredVector("many", f"s{n % 3}", str(n), "m", pack_vector(_direction(n))) for n in range(1500)]
        async with store.work() as work:
            await work.vectors.put(rows)
        query = pack_vector(_direction(700.2))
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest("many", ["s0", "s1", "s2"], "m", query, limit=3)
            nearest = await work.vectors.find_nearest("many", ["s0"], "m", query, limit=2)
        assert [each.key for each in near] == ["700", "701", "699"]
        assert [each.key for each in nearest] == ["699", "702"]
        async with store.work() as work:
            await work.vectors.put([StoredVector("many", "s0", "700", "m", pack_vector(_direction(20)))])
            await work.vectors.put([StoredVector("many", "s1", "new", "m", query)])
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest("many", ["s0", "s1", "s2"], "m", query, limit=3)
        assert [each.key for each in near] == ["new", "701", "699"]


def _direction(step: float) -> list[float]:
    """A walk around in 64 dimensions, in which neighbours are near each other."""
    from math import cos, sin

    return [sin(step / 40 * (n % 7 + 1) + n) + cos(step / 55 * (n % 5 + 1) - n) for n in range(64)]


ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"
PROVED = Citation(DocumentRef("docs/\x00 a.md", 3, 9), "guide", "c0ffee", "https://example.org/a\ud800")
DOUBTED = Citation(DocumentRef("docs/b.md"), doubt=CitationFault.NOT_READ)


def make_gap(key: str, *, hours: float = 0, asker: str = ANA) -> KnowledgeGap:
    return KnowledgeGap(
        id=key,
        agent=AGENT,
        question=f"what is {key}? \x00",
        asker=asker,
        place=Place("discord", "1", "2"),
        is_private=key == "private",
        kind=GapKind.UNKNOWN,
        turn_id=TurnId("t"),
        created_at=at(hours),
    )


@pytest.mark.anyio
class AnswerContract:
    async def test_what_a_turn_cites_comes_back_in_order_and_is_told_once(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            await work.citations.add(turn.id, [PROVED, DOUBTED])
            await work.citations.add(turn.id, [DOUBTED])
            await work.citations.add(TurnId("none"), [])
        async with store.work(write=False) as work:
            assert await work.citations.list_for(turn.id) == [PROVED, DOUBTED]
            assert await work.citations.list_for(TurnId("none")) == []

    async def test_citations_of_a_turn_that_is_not_there_are_refused(self, store: Store) -> None:
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.citations.add(TurnId("none"), [PROVED])

    async def test_gaps_come_back_newest_first_until_they_are_closed(self, store: Store) -> None:
        old, new, private = make_gap("old", hours=-9), make_gap("new"), make_gap("private", hours=-1)
        async with store.work() as work:
            assert [await work.gaps.add(each) for each in (new, old, private, replace(old, asker=BOB))] == [
                True,
                True,
                True,
                False,
            ]
        async with store.work() as work:
            assert await work.gaps.list_gaps() == [new, private, old]
            assert await work.gaps.list_gaps(since=at(-1)) == [new, private]
            assert await work.gaps.list_gaps(limit=1) == [new]
            assert await work.gaps.close(["new", "none"]) == 1
            assert await work.gaps.close(["new"]) == 0
            assert await work.gaps.close([]) == 0
            assert await work.gaps.list_gaps() == [private, old]
            assert await work.gaps.list_gaps(closed=True) == [replace(new, is_closed=True)]

    async def test_who_is_forgotten_leaves_no_question_behind(self, store: Store) -> None:
        async with store.work() as work:
            for each in (make_gap("a"), make_gap("b", asker=BOB), make_gap("c")):
                await work.gaps.add(each)
            assert await work.gaps.forget_asker(ANA) == 2
            assert await work.gaps.forget_asker(ANA) == 0
            assert [gap.id for gap in await work.gaps.list_gaps()] == ["b"]


OPEN, ACCEPTED = ProposalStatus.OPEN, ProposalStatus.ACCEPTED


def make_proposal(key: str, *, hours: float = 0, author: str = ANA, asker: str = BOB, thread: str = "2") -> Proposal:
    return Proposal(
        id=key,
        answer=ProposedAnswer(
            place=Place("discord", "1", thread),
            post=f"p{key}",
            text="Ten \x00 euros.",
            author=author,
            author_name="Ana\ud800",
            link="https://example.org/1",
            said_at=at(hours),
        ),
        proposer=BOB,
        created_at=at(hours),
        question="How much? \x00",
        asker=asker,
        gap_id="gap_1",
    )


def accept_proposal(proposal: Proposal) -> Proposal:
    decision = ProposalDecision(by="local:operator", at=at(3), text="Twelve.", file="a.md")
    return replace(proposal, status=ACCEPTED, decision=decision)


@pytest.mark.anyio
class ProposalContract:
    async def test_a_proposal_is_kept_once_and_listed_by_its_status_the_newest_first(self, store: Store) -> None:
        old, new = make_proposal("a", hours=-2), make_proposal("b")
        async with store.work() as work:
            assert [
                await work.proposals.add(each)
                for each in (new, old, replace(old, answer=replace(old.answer, text="Else.")))
            ] == [True, True, False]
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
        proposal = make_proposal("a")
        async with store.work() as work:
            await work.proposals.add(proposal)
            accepted, answer = accept_proposal(proposal), proposal.answer
            for seen in (
                replace(accepted, asker=""),
                replace(accepted, answer=replace(answer, text="Not this.")),
                replace(accepted, question=""),
                replace(accepted, answer=replace(answer, author=BOB)),
                replace(accepted, answer=replace(answer, author_name="")),
            ):
                assert not await work.proposals.decide(seen)
            assert await work.proposals.decide(accept_proposal(proposal))
            assert not await work.proposals.decide(replace(proposal, status=ProposalStatus.REJECTED))
            assert not await work.proposals.decide(make_proposal("none"))
            assert await work.proposals.find("a") == accept_proposal(proposal)
            await work.proposals.set_file("a", "b.md", is_filed=True)
            assert await work.proposals.list_proposals(ACCEPTED) == [
                replace(accepted, decision=replace(accepted.decision, file="b.md", is_filed=True))
            ]

    async def test_a_file_belongs_to_an_accepted_proposal_only(self, store: Store) -> None:
        async with store.work() as work:
            await work.proposals.add(make_proposal("a"))
            await work.proposals.set_file("a", "b.md", is_filed=True)
            assert await work.proposals.find("a") == make_proposal("a")

    async def test_of_a_withdrawn_proposal_nothing_is_left_that_anybody_wrote(self, store: Store) -> None:
        proposal = make_proposal("a")
        async with store.work() as work:
            await work.proposals.add(proposal)
            await work.proposals.decide(accept_proposal(proposal))
            assert await work.proposals.withdraw("a")
            assert not await work.proposals.withdraw("a")
            assert not await work.proposals.withdraw("none")
            assert await work.proposals.find("a") == accept_proposal(proposal).withdrawn()
            assert not await work.proposals.add(proposal)

    async def test_who_is_forgotten_leaves_neither_answers_nor_questions_behind(self, store: Store) -> None:
        async with store.work() as work:
            for each in (make_proposal("a"), make_proposal("b", author=BOB, asker=ANA), make_proposal("c", asker="")):
                await work.proposals.add(each)
            asked = make_proposal("b", author=BOB, asker=ANA)
            accepted = accept_proposal(asked)
            await work.proposals.decide(accepted)
            assert await work.proposals.forget_author(ANA) == 2
            assert await work.proposals.forget_asker(ANA) == 1
            assert await work.proposals.forget_asker("") == 0
            assert await work.proposals.find("b") == replace(
                accepted, question="", asker="", gap_id="", decision=replace(accepted.decision, file="")
            )
            assert await work.proposals.remove(["b", "none"]) == 1
            assert await work.proposals.remove([]) == 0

    async def test_a_room_that_is_forgotten_takes_what_was_said_in_its_threads_along(self, store: Store) -> None:
        async with store.work() as work:
            for each in (make_proposal("a"), make_proposal("b", thread=""), make_proposal("c", thread="3")):
                await work.proposals.add(each)
            assert await work.proposals.forget_room("discord", "3") == 1
            assert await work.proposals.forget_room("discord", "") == 0
            assert await work.proposals.forget_room("other", "1") == 0
            assert await work.proposals.forget_room("discord", "1") == 2
