"""The store's promises about documents and their passages."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.vector import pack
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument, IndexSize
from denizen.ports.memory import MEMORY_VECTORS, StoredVector
from denizen.ports.store import Store

ODD = "docs/\ud800\x00.md"


def document_of(path: str, text: str, *, source: str = "guide", digest: str = "1") -> IndexedDocument:
    return IndexedDocument.cut(path, source, digest, text)


async def fill(store: Store, *documents: IndexedDocument) -> None:
    async with store.work() as work:
        await work.documents.put(documents)


async def find(store: Store, words: str, *sources: str, limit: int = 9) -> list[str]:
    """`path:first-last` of what is found."""
    async with store.work(write=False) as work:
        keys = await work.documents.find_by_words(words, sources=sources, limit=limit)
        found = await work.documents.list_passages(keys)
    return [f"{each.path}:{each.passage.first_line}-{each.passage.last_line}" for each in found]


@pytest.mark.anyio
class DocumentContract:
    @pytest.mark.proves("V5-search")
    async def test_passages_are_found_by_any_of_their_words_and_headings(self, store: Store) -> None:
        text = "# Opening hours\n\nWe open at nine.\n\n# Prices\n\nA coffee is two euros.\n"
        await fill(store, document_of("docs/a.md", text), document_of("docs/b.md", "# Fish\n\nA coffee-free zone.\n"))
        assert await find(store, "when do you open") == ["docs/a.md:1-3"]
        assert await find(store, "prices zebra") == ["docs/a.md:5-7"]
        assert set(await find(store, "COFFEE")) == {"docs/a.md:5-7", "docs/b.md:1-3"}
        assert await find(store, "coffee", limit=0) == []
        assert await find(store, "zebra") == await find(store, "") == await find(store, "?!") == []

    async def test_a_word_means_nothing_else_to_the_database(self, store: Store) -> None:
        await fill(store, document_of("a.md", "one AND two"))
        for words in ('"one', "one*", "one | two", "NEAR(one two)", "one'); --", "words:one", "!one & two", "-one"):
            assert await find(store, words) == ["a.md:1-1"]

    async def test_only_the_sources_asked_for_are_searched(self, store: Store) -> None:
        await fill(store, document_of("a.md", "tea"), document_of("b.md", "tea", source="wiki"))
        assert await find(store, "tea", "wiki") == ["b.md:1-1"]
        assert sorted(await find(store, "tea", "wiki", "guide")) == ["a.md:1-1", "b.md:1-1"]
        assert await find(store, "tea", "none") == []

    async def test_a_document_put_again_takes_the_place_of_the_old_one(self, store: Store) -> None:
        await fill(store, document_of("a.md", "tea"), document_of(ODD, "milk \x00"))
        await fill(store, document_of("a.md", "cake", digest="2"))
        assert await find(store, "tea") == []
        assert await find(store, "cake") == ["a.md:1-1"]
        async with store.work() as work:
            assert await work.documents.list_digests() == {"a.md": "2", ODD: "1"}
            assert await work.documents.size() == IndexSize(2, 2)
            assert await work.documents.remove(["none", ODD]) == 1
            assert await work.documents.remove([]) == 0
        assert await find(store, "milk") == []

    async def test_two_that_put_the_same_documents_at_once_come_to_the_same(self, store: Store) -> None:
        given = [document_of(f"{n}.md", f"same w{n}\n") for n in range(60)]
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(fill, store, *given)
        async with store.work(write=False) as work:
            assert await work.documents.size() == IndexSize(60, 60)
            assert await work.documents.find_indexed() == ""
        assert await find(store, "w33") == ["33.md:1-1"]

    async def test_many_documents_at_once_each_have_their_own_passages(self, store: Store) -> None:
        given = [document_of(f"{n}.md", f"# H{n}\n\nsame w{n}\n\n# I{n}\n\nsame v{n}\n") for n in range(150)]
        await fill(store, *given, document_of("empty.md", ""))
        async with store.work(write=False) as work:
            assert await work.documents.size() == IndexSize(151, 300)
            found = await work.documents.list_passages([key for each in given for key in each.keys])
        assert [(each.path, each.passage) for each in found] == [(d.path, p) for d in given for p in d.passages]
        assert await find(store, "w77 v149") == ["77.md:1-3", "149.md:5-7"]
        await fill(store, *(document_of(each.path, "other", digest="2") for each in given))
        assert await find(store, "w77") == []
        async with store.work() as work:
            assert await work.documents.size() == IndexSize(151, 150)
            assert await work.documents.remove([each.path for each in given]) == 150
            assert await work.documents.size() == IndexSize(1, 0)

    async def test_passages_come_back_as_they_are_in_the_order_asked_for(self, store: Store) -> None:
        document = document_of(ODD, "# A\n\none\n\n## B \x00\n\ntwo\n")
        await fill(store, document)
        async with store.work(write=False) as work:
            found = await work.documents.list_passages([document.keys[1], "none", document.keys[0]])
        assert [each.passage for each in found] == [document.passages[1], document.passages[0]]
        assert {(each.path, each.source_id) for each in found} == {(ODD, "guide")}

    async def test_the_same_words_in_two_places_are_found_in_both_and_read_once(self, store: Store) -> None:
        await fill(store, document_of("a.md", "tea"), document_of("b.md", "tea"))
        assert sorted(await find(store, "tea")) == ["a.md:1-1", "b.md:1-1"]
        async with store.work(write=False) as work:
            assert [each.path for each in await work.documents.list_without_vector("m", limit=9)] == ["a.md"]

    async def test_vectors_of_passages_that_are_gone_are_swept(self, store: Store) -> None:
        document = document_of("a.md", "tea")
        await fill(store, document)
        async with store.work() as work:
            rows = [
                StoredVector(PASSAGE_VECTORS, "guide", key, "m", pack([1, 0])) for key in (document.keys[0], "gone")
            ]
            await work.vectors.put([*rows, StoredVector(MEMORY_VECTORS, "s", "gone", "m", pack([1, 0]))])
            assert await work.documents.sweep_vectors() == 1
        async with store.work(write=False) as work:
            assert await work.documents.list_without_vector("m", limit=9) == []
            assert await work.documents.count_without_vector("m") == 0
            assert await work.documents.count_without_vector("other") == 1
            assert len(await work.documents.list_without_vector("other", limit=9)) == 1
            assert len(await work.vectors.find_nearest(PASSAGE_VECTORS, ["guide"], "m", pack([1, 0]), limit=9)) == 1
            assert len(await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack([1, 0]), limit=9)) == 1

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
        rows = [StoredVector("many", f"s{n % 3}", str(n), "m", pack(_direction(n))) for n in range(1500)]
        async with store.work() as work:
            await work.vectors.put(rows)
        query = pack(_direction(700.2))
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest("many", ["s0", "s1", "s2"], "m", query, limit=3)
            shelf = await work.vectors.find_nearest("many", ["s0"], "m", query, limit=2)
        assert [each.key for each in near] == ["700", "701", "699"]
        assert [each.key for each in shelf] == ["699", "702"]
        async with store.work() as work:
            await work.vectors.put([StoredVector("many", "s0", "700", "m", pack(_direction(20)))])
            await work.vectors.put([StoredVector("many", "s1", "new", "m", query)])
        async with store.work(write=False) as work:
            near = await work.vectors.find_nearest("many", ["s0", "s1", "s2"], "m", query, limit=3)
        assert [each.key for each in near] == ["new", "701", "699"]


def _direction(step: float) -> list[float]:
    """A walk around in 64 dimensions, in which neighbours are near each other."""
    from math import cos, sin

    return [sin(step / 40 * (n % 7 + 1) + n) + cos(step / 55 * (n % 5 + 1) - n) for n in range(64)]
