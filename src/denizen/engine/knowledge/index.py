"""The search index of the current snapshot: brought up to date file by file, and its passages embedded.

Only what has changed is read. A sync does it as its last step, and the server whenever another process has published;
embeddings follow in the background, what was indexed last first, since a small model takes up to 50 ms for a passage.
Search by words does not wait for them. Until a file is indexed again, search finds it as it was, but for talk
(`DocumentSearch`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import anyio
from anyio import to_thread

from denizen.domain.citation import DocumentRef, citation_link
from denizen.domain.clock import Clock
from denizen.domain.embedding_progress import EmbeddingPace, EmbeddingProgress, estimate_progress
from denizen.domain.errors import NotFound
from denizen.domain.ids import derive
from denizen.domain.passage import CUT_AS, Passage, passage_key
from denizen.domain.ranking import RANKED, Match, fuse_matches, telling_words
from denizen.domain.record import record
from denizen.domain.snapshot import Snapshot
from denizen.domain.source import Source, SourceKind, is_open_to
from denizen.engine.embedding.embedder import BudgetedEmbedder, default_similarity
from denizen.engine.knowledge.reading import Sleep
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument, IndexedPassage, IndexSize
from denizen.ports.memory import StoredVector
from denizen.ports.source import Library, ReadingProgress, ReportProgress
from denizen.ports.store import Store, UnitOfWork

INDEX = "search index"
"""Stands for it among sources whose progress is told."""
FILES_AT_ONCE = 400
BYTES_AT_ONCE = 800_000
"""In one unit of work, which takes about 0.1 s, so that others get to write in between."""
REMOVED_AT_ONCE = 40
EMBEDDED_AT_ONCE = 16
LOOK_EVERY_S = 5.0
EMBED_PAUSE_S = 30.0
TELL_EVERY_S = 60.0
"""How often the log says how far embedding is."""
REST_S = 0.05
"""Between two batches: a question that is asked meanwhile waits for one at most."""
EMBEDDED_CHARS = 1500

_log = logging.getLogger("denizen.knowledge")


@record
class _SnapshotFile:
    """A file of the snapshot. `content` is its digest in the library, `digest` that of what is indexed of it."""

    path: str
    source_id: str
    content: str
    digest: str
    size_bytes: int

    def cut(self, text: str) -> IndexedDocument:
        return IndexedDocument.cut(self.path, self.source_id, self.digest, text)


def report_nothing(_progress: ReadingProgress) -> None:
    """For nobody who watches."""


class DocumentIndexer:
    """One for a process. Two processes that index at once do the same work twice, and come to the same."""

    def __init__(
        self, store: Store, library: Library, embedder: BudgetedEmbedder, clock: Clock, *, sleep: Sleep = anyio.sleep
    ) -> None:
        self._store = store
        self._library = library
        self._embedder = embedder
        self._clock = clock
        self._sleep = sleep
        self._lock = anyio.Lock()
        self._published = anyio.Event()
        self._is_kept = False
        self._pace: EmbeddingPace | None = None
        self.progress: ReadingProgress | None = None
        """The progress of the index run of this process; None when none runs."""

    def hurry(self) -> None:
        """Something was published: `keep_indexed`, if it runs here, begins at once."""
        if self._is_kept:
            self.progress = self.progress or ReadingProgress("indexing")
            self._published.set()

    async def catch_up(self, report: ReportProgress = report_nothing) -> str:
        """Indexes the current snapshot, unless it is; also one that is published meanwhile. The id of the snapshot that
        is indexed then, empty when there is none.
        """
        return await self._catch_up(report, spares_withheld=False)

    async def _catch_up(self, report: ReportProgress, *, spares_withheld: bool) -> str:
        async with self._lock:
            while True:
                withheld = await self._list_withheld()
                current = await self._library.current()
                wanted = current.id if current is not None else ""
                spared = withheld if spares_withheld else ()
                state = derive("part", wanted, *(each.id for each in spared)) if spared else wanted
                async with self._store.work(write=False) as work:
                    if await work.documents.find_indexed() in (wanted, state):
                        return wanted
                try:
                    await self._index(current, spared, partial(self._tell, report))
                    async with self._store.work() as work:
                        # The embeddings of what is gone go, too, but not while some of it may come back.
                        if not withheld:
                            await work.documents.sweep_vectors()
                        await work.documents.mark_indexed(state)
                except NotFound:  # it expired meanwhile, and is not the current one any more
                    if (await self._library.current()) == current:
                        raise
                finally:
                    self._rest()

    async def keep_indexed(self) -> None:
        """Until it is cancelled: indexes what is published, by whichever process. What is indexed of a channel stays
        while it is withheld: most of it comes back within seconds, and would need its embeddings again. It is not found
        meanwhile (`search`).
        """
        self._is_kept = True
        try:
            while True:
                self._published = anyio.Event()
                await self._catch_up(report_nothing, spares_withheld=True)
                self._rest()
                with anyio.move_on_after(LOOK_EVERY_S):
                    await self._published.wait()
        finally:
            self._is_kept, self._published = False, anyio.Event()
            self._rest()

    async def _list_withheld(self) -> Sequence[Source]:
        """Channels, by id."""
        async with self._store.work(write=False) as work:
            withheld = {state.source_id for state in await work.sources.list_states() if state.is_withheld}
            sources = await work.sources.list_sources()
        return [each for each in sources if each.kind is SourceKind.ARCHIVE and each.id in withheld]

    async def keep_embedded(self) -> None:
        """Until it is cancelled: makes the vectors that are missing, and logs how far that is. One that fails is left
        alone for a while.
        """
        told_s: float | None = None
        while True:
            made = await self.embed_some()
            now_s = self._clock.monotonic_s()
            if (made and (told_s is None or now_s - told_s >= TELL_EVERY_S)) or (not made and told_s is not None):
                told_s = now_s if made else None
                if (progress := await self.find_embedding_progress()) is not None:
                    _log.info("%s", progress.describe(), extra={"done": progress.done, "total": progress.total})
            if not made:
                await self._sleep(EMBED_PAUSE_S)

    async def embed_all(self, report: ReportProgress = report_nothing) -> int:
        """Embeds all passages that lack a vector; returns how many. Ends early when the embedder does not answer."""
        begun, done = await self.find_embedding_progress(), 0
        while begun is not None and (made := await self.embed_some()):
            done += made
            missing = max(begun.total - begun.done - done, 0)
            now = estimate_progress(missing, begun.total, self._pace, self._clock.now())
            report(ReadingProgress("embedding passages", now.done, now.total, now.left_s))
        return done

    async def embed_some(self) -> int:
        """Embeds one batch, and returns how many: 0 when none is missing or there is no embedder now."""
        model = self._embedder.model
        if not model:
            return 0
        begun_s = self._clock.monotonic_s()
        async with self._store.work(write=False) as work:
            missing = await work.documents.list_without_vector(model, limit=EMBEDDED_AT_ONCE)
            known = await _find_known(work, missing, model)
        texts = list(dict.fromkeys(_embedded_text(each.passage) for each in missing))
        new = [text for text in texts if text not in known]
        embedded = await self._embedder.embed_texts(new)
        if not missing or embedded is None or embedded.model != model:
            return 0
        vectors = known | dict(zip(new, embedded.vectors, strict=True))
        took_s = self._clock.monotonic_s() - begun_s + REST_S
        self._pace = EmbeddingPace(model, took_s / len(missing), self._clock.now()).follow(self._pace)
        async with self._store.work() as work:
            await work.vectors.put(
                [
                    StoredVector(
                        PASSAGE_VECTORS, each.source_id, each.key, model, vectors[_embedded_text(each.passage)]
                    )
                    for each in missing
                ]
            )
            await work.documents.put_pace(self._pace)
            if len(missing) < EMBEDDED_AT_ONCE:
                await work.vectors.remove_other_models(PASSAGE_VECTORS, model)
        await self._sleep(REST_S)
        return len(missing)

    async def find_embedding_progress(self) -> EmbeddingProgress | None:
        """Returns how far passages are embedded, by whichever process; None without an embedder."""
        model = self._embedder.model
        if not model:
            return None
        async with self._store.work(write=False) as work:
            missing, total = await work.documents.count_without_vector(model), await work.documents.count_keys()
            pace = await work.documents.find_pace()
        is_of_model = pace is not None and pace.model == model
        return estimate_progress(missing, total, pace if is_of_model else None, self._clock.now())

    async def count_without_embedding(self) -> int:
        """Passages for which the model that is configured now has not made a vector yet; 0 without one."""
        model = self._embedder.model
        async with self._store.work(write=False) as work:
            return await work.documents.count_without_vector(model) if model else 0

    async def size(self) -> IndexSize:
        async with self._store.work(write=False) as work:
            return await work.documents.size()

    def _rest(self) -> None:
        self.progress = ReadingProgress("indexing") if self._published.is_set() else None

    def _tell(self, report: ReportProgress, progress: ReadingProgress) -> None:
        self.progress = progress
        report(progress)

    async def _index(self, snapshot: Snapshot | None, spared: Sequence[Source], report: ReportProgress) -> None:
        """Indexes the snapshot; the index of spared sources stays as it is."""
        ids, folders = {each.id for each in spared}, tuple(f"{each.folder}/" for each in spared)
        wanted = {path: file for path, file in (await self._list_wanted(snapshot)).items() if file.source_id not in ids}
        async with self._store.work(write=False) as work:
            known = await work.documents.list_digests()
        gone = [path for path in known if path not in wanted and not path.startswith(folders)]
        new = [document for path, document in wanted.items() if known.get(path) != document.digest]
        for start in range(0, len(gone), REMOVED_AT_ONCE):
            async with self._store.work() as work:
                await work.documents.remove(gone[start : start + REMOVED_AT_ONCE])
        done = 0
        for batch in _batches(new):
            report(ReadingProgress("indexing", done, len(new)))
            documents = await self._cut(batch)
            async with self._store.work() as work:
                await work.documents.put(documents)
            done += len(batch)
        report(ReadingProgress("indexed", len(new), len(new)))
        _log.info("the snapshot is indexed", extra={"new": len(new), "gone": len(gone), "files": len(wanted)})

    async def _list_wanted(self, snapshot: Snapshot | None) -> Mapping[str, _SnapshotFile]:
        found: dict[str, _SnapshotFile] = {}
        for part in snapshot.parts if snapshot else ():
            for file in await self._library.list_files(part.manifest):
                path = f"{part.folder}/{file.path}"
                # With everything that decides what its passages are.
                digest = derive("doc", CUT_AS, part.source_id, file.digest)
                found[path] = _SnapshotFile(path, part.source_id, file.digest, digest, file.size_bytes)
        return found

    async def _cut(self, wanted: Sequence[_SnapshotFile]) -> list[IndexedDocument]:
        """Without those that are gone: they would count as indexed if they came back."""
        texts = await self._library.read_texts([each.content for each in wanted])
        there = [(each, text) for each, text in zip(wanted, texts, strict=True) if text is not None]
        return await to_thread.run_sync(lambda: [each.cut(text) for each, text in there])


async def _find_known(work: UnitOfWork, passages: Sequence[IndexedPassage], model: str) -> dict[str, bytes]:
    """Returns the vectors, by text, that these passages have in other sources: two versions of a handbook share most
    of them.
    """
    sources = [source.id for source in await work.sources.list_sources()]
    texts = {
        passage_key(source, each.passage): _embedded_text(each.passage)
        for each in passages
        for source in sources
        if source != each.source_id
    }
    found = await work.vectors.list_vectors(PASSAGE_VECTORS, texts, model)
    return {texts[key]: data for key, data in found.items()}


def _embedded_text(passage: Passage) -> str:
    return passage.described[:EMBEDDED_CHARS]


def _batches(files: Sequence[_SnapshotFile]) -> Iterator[Sequence[_SnapshotFile]]:
    """Many small files, or a few large ones."""
    batch: list[_SnapshotFile] = []
    size_bytes = 0
    for file in files:
        if batch and (len(batch) >= FILES_AT_ONCE or size_bytes + file.size_bytes > BYTES_AT_ONCE):
            yield batch
            batch, size_bytes = [], 0
        batch.append(file)
        size_bytes += file.size_bytes
    if batch:
        yield batch


PER_DOCUMENT = 3
"""A long document must not fill the answer: it has at most half of it, but so many passages in any case."""


@record(kw_only=True)
class ExplainedPassage:
    """A passage that a search found, and why. Places count from 1, and 0 means that the passage is not in that ranking.
    `coverage` is the share of the question's words that it has, `similarity` how near its meaning is. `link` leads to
    it where its source can be linked to.
    """

    found: IndexedPassage
    word_place: int
    coverage: float
    meaning_place: int
    similarity: float
    link: str


@record
class _Ranking:
    """The two rankings and the passages of both, the best first. `known` tells of each source whether it is talk."""

    by_words: Sequence[Match]
    by_embedding: Sequence[Match]
    found: Sequence[IndexedPassage]
    known: Mapping[str, bool]


class DocumentSearch:
    """One for a process. `similarity` is asked each time. Found is what talk in the community `guild` may see; without
    one, what is for everybody.
    """

    def __init__(
        self,
        store: Store,
        library: Library,
        embedder: BudgetedEmbedder,
        similarity: Callable[[], float] = default_similarity,
    ) -> None:
        self._store = store
        self._library = library
        self._embedder = embedder
        self._similarity = similarity

    async def __call__(
        self, question: str, *, guild: str = "", sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """The best first, PER_DOCUMENT or half of them of one document. Raises NotFound for a source that is unknown
        there.
        """
        ranking = await self._rank(question, sources, guild)
        return await self._spread(ranking, limit, guild)

    async def explain(
        self, question: str, *, guild: str = "", sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[ExplainedPassage]:
        """Returns what a call does, each passage with its places in both rankings and a link. Raises as a call."""
        ranking = await self._rank(question, sources, guild)
        words, meanings = (
            {match.key: (place, match) for place, match in enumerate(matches, start=1)}
            for matches in (ranking.by_words, ranking.by_embedding)
        )
        nothing = (0, Match("", 0.0))
        explained: list[ExplainedPassage] = []
        for each in await self._spread(ranking, limit, guild):
            document, passage = await self._library.find_document(each.path, guild=guild), each.passage
            ref = DocumentRef(each.path, passage.first_line, passage.last_line)
            word_place, word_match = words.get(each.key, nothing)
            meaning_place, meaning_match = meanings.get(each.key, nothing)
            explained.append(
                ExplainedPassage(
                    found=each,
                    word_place=word_place,
                    coverage=word_match.coverage,
                    meaning_place=meaning_place,
                    similarity=meaning_match.score,
                    link=citation_link(document.part, ref) if document and document.part else "",
                )
            )
        return explained

    async def _rank(self, question: str, sources: Collection[str], guild: str) -> _Ranking:
        words, least = " ".join(telling_words(question)), self._similarity()
        asked = await self._embedder.embed_question(question) if question.strip() else None
        async with self._store.work(write=False) as work:
            listed = await work.sources.list_sources()
            known = {source.id: source.is_talk for source in listed if is_open_to(source.folder, guild)}
            if unknown := [each for each in sources if each not in known]:
                raise NotFound(
                    f"There is no source '{unknown[0]}'.",
                    code="source_not_found",
                    fix=f"Known sources: {', '.join(known) or 'none'}.",
                )
            if not known:  # to look into no source means into all of them
                return _Ranking((), (), (), {})
            # All are not named where all may be seen: the word index answers that faster.
            within = sources or (() if len(known) == len(listed) else list(known))
            by_words = await work.documents.find_by_words(words, also=question, sources=within, limit=RANKED)
            by_embedding: list[Match] = []
            if asked is not None:
                near = await work.vectors.find_nearest(
                    PASSAGE_VECTORS, sources or list(known), asked.model, asked.vector, limit=RANKED
                )
                by_embedding = [Match(each.key, each.similarity) for each in near if each.similarity >= least]
            found = await work.documents.list_passages(fuse_matches(by_words, by_embedding, least=least))
        # By its path too: old documents may still be indexed of a source that was removed and added anew for others.
        seen = [each for each in found if each.source_id in known and is_open_to(each.path, guild)]
        return _Ranking(by_words, by_embedding, seen, known)

    async def _spread(self, ranking: _Ranking, limit: int, guild: str) -> list[IndexedPassage]:
        of_documents: Counter[str] = Counter()
        texts: dict[str, str] = {}
        chosen: list[IndexedPassage] = []
        for each in ranking.found:
            if of_documents[each.path] >= max(PER_DOCUMENT, limit // 2) or len(chosen) >= limit:
                continue
            if ranking.known[each.source_id]:
                if each.path not in texts:
                    document = await self._library.find_document(each.path, guild=guild)
                    texts[each.path] = _plain(document.text) if document else ""
                if _plain(each.passage.text) not in texts[each.path]:
                    continue
            of_documents[each.path] += 1
            chosen.append(each)
        return chosen


def _plain(text: str) -> str:
    """Line ends are not the same wherever a text was read."""
    return "\n".join(text.splitlines())
