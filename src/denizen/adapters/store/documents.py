"""Documents of the current snapshot and their passages, found by words (`word_search`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, PositionType, escape, metadata, position_column, texts
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.repository import SqlRepository, upsert
from denizen.adapters.store.vectors import index_progress, vectors
from denizen.adapters.store.word_search import WordIndex, WordSearch
from denizen.domain.bm25 import TitledText
from denizen.domain.embedding_progress import EmbeddingPace
from denizen.domain.passage import Passage
from denizen.domain.ranking import Match
from denizen.domain.terms import index_terms
from denizen.ports.documents import PASSAGE_VECTORS, IndexedDocument, IndexedPassage, IndexSize

documents = sa.Table(
    "documents",
    metadata,
    position_column(),
    sa.Column("path", EscapedText(), nullable=False, unique=True),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)

passages = sa.Table(
    "passages",
    metadata,
    position_column(),
    sa.Column("document", PositionType, sa.ForeignKey(documents.c.position, ondelete="CASCADE"), nullable=False),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("key", sa.Text(), nullable=False),
    sa.Column("first_line", sa.Integer(), nullable=False),
    sa.Column("last_line", sa.Integer(), nullable=False),
    sa.Column("headings", JsonText(), nullable=False),
    *texts("text"),
    sa.Column("words", sa.Text(), nullable=False),
    sa.UniqueConstraint("document", "number"),
    sa.Index("ix_passages_key", "key"),
)
"""`words` feeds full-text search; its index is created in the migrations."""


PACE = f"pace of {PASSAGE_VECTORS}"
"""Stands among the collections for how quickly passages are embedded."""
PASSAGES_AT_ONCE = 100
"""The number of passages in one statement. The driver caches the statement of every different length."""

_INDEXED = sa.select(index_progress.c.state).where(index_progress.c.collection == PASSAGE_VECTORS)
_DIGESTS = sa.select(documents.c.path, documents.c.digest)
_SIZE = (sa.select(sa.func.count()).select_from(documents), sa.select(sa.func.count()).select_from(passages))
# RETURNING makes SQLAlchemy insert many rows with one statement. SQLite writes its word index to the disk after each
# statement: one statement for each passage took twice the time.
_ADD_DOCUMENTS = sa.insert(documents).returning(documents.c.path, documents.c.position)
_ADD_PASSAGES = (
    sa.insert(passages).returning(passages.c.position).execution_options(insertmanyvalues_page_size=PASSAGES_AT_ONCE)
)
_PASSAGE = (
    passages.c.key,
    documents.c.path,
    passages.c.source_id,
    passages.c.number,
    passages.c.headings,
    passages.c.first_line,
    passages.c.last_line,
    passages.c.text,
)
_ALL = sa.select(*_PASSAGE).join(documents, documents.c.position == passages.c.document)
_other = passages.alias()
_HAS_NO_VECTOR = ~sa.exists().where(
    vectors.c.collection == PASSAGE_VECTORS,
    vectors.c.key == passages.c.key,
    vectors.c.model == sa.bindparam("model", type_=EscapedText()),
)
_COUNT_KEYS = sa.select(sa.func.count(passages.c.key.distinct()))
_PACE = sa.select(index_progress.c.state).where(index_progress.c.collection == PACE)
_COUNT_WITHOUT_VECTOR = sa.select(sa.func.count(passages.c.key.distinct())).where(_HAS_NO_VECTOR)
_WITHOUT_VECTOR = (
    _ALL.where(_HAS_NO_VECTOR)
    .where(~sa.exists().where(_other.c.key == passages.c.key, _other.c.position < passages.c.position))
    .order_by(passages.c.position.desc())
    .limit(sa.bindparam("most"))
)
_SWEEP = sa.delete(vectors).where(
    vectors.c.collection == PASSAGE_VECTORS, ~sa.exists().where(passages.c.key == vectors.c.key)
)


@cache
def _take_turns(insert: InsertInto) -> sa.Executable:
    """Locks the row of the index until the unit of work ends, and changes nothing."""
    statement = insert(index_progress).values(collection=PASSAGE_VECTORS, state="")
    return statement.on_conflict_do_update(
        index_elements=[index_progress.c.collection], set_={"state": index_progress.c.state}
    ).inline()


@cache
def _remove_passages(dialect: SqlDialect) -> sa.Delete:
    places = sa.select(documents.c.position).where(dialect.among(documents.c.path, "paths"))
    return sa.delete(passages).where(passages.c.document.in_(places))


@cache
def _remove_documents(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(documents).where(dialect.among(documents.c.path, "paths"))


@cache
def _by_places(dialect: SqlDialect) -> sa.Executable:
    chosen = sa.select(passages.c.key, passages.c.headings, passages.c.words)
    return chosen.where(dialect.among(passages.c.position, "chosen")).order_by(passages.c.position)


@cache
def _by_keys(dialect: SqlDialect) -> sa.Executable:
    return _ALL.where(dialect.among(passages.c.key, "chosen")).order_by(passages.c.position)


class SqlDocuments(SqlRepository):
    """Implements `denizen.ports.documents.DocumentRepository`."""

    async def find_indexed(self) -> str:
        return await self._transaction.read(lambda connection: connection.execute(_INDEXED).scalar() or "")

    async def mark_indexed(self, snapshot: str) -> None:
        def job(connection: sa.Connection) -> None:
            mark = upsert(self._dialect.insert, index_progress)
            connection.execute(mark, {"collection": PASSAGE_VECTORS, "state": snapshot})
            self._dialect.refresh_word_counts(connection)

        await self._transaction.write(job)

    async def list_digests(self) -> Mapping[str, str]:
        return await self._transaction.read(
            lambda connection: {row.path: row.digest for row in connection.execute(_DIGESTS)}
        )

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        latest = {document.path: document for document in documents}

        def job(connection: sa.Connection) -> None:
            _remove(connection, self._dialect, latest)
            places = _add_documents(connection, list(latest.values()))
            rows = [row for document in latest.values() for row in _rows(places[document.path], document)]
            if rows:
                connection.execute(_ADD_PASSAGES, rows)

        await self._transaction.write(job)

    async def remove(self, paths: Collection[str]) -> int:
        return await self._transaction.write(lambda connection: _remove(connection, self._dialect, paths))

    async def find_by_words(
        self, words: str, *, also: str = "", sources: Collection[str] = (), limit: int
    ) -> Sequence[Match]:
        dialect, bounds = self._dialect, {"sources": self._dialect.bind_list(sorted(sources))} if sources else {}
        find = {ranked: dialect.find_passages(is_ranked=ranked, in_sources=bool(bounds)) for ranked in (False, True)}

        def job(connection: sa.Connection) -> list[Match]:
            search = WordSearch(connection, dialect, WordIndex("passages", find[False], find[True], bounds))
            places = search.select(words, also, limit=limit)
            rows = connection.execute(_by_places(dialect), {"chosen": dialect.bind_list(places)}).all()
            texts: dict[str, TitledText] = {
                key: TitledText(text.split(), index_terms(" ".join(headings))) for key, headings, text in rows
            }
            return search.rank(texts)[: max(limit, 0)]

        return await self._transaction.read(job)

    async def list_passages(self, keys: Sequence[str]) -> Sequence[IndexedPassage]:
        dialect, bounds = self._dialect, {"chosen": self._dialect.bind_list(sorted(set(keys)))}
        rows = await self._transaction.read(lambda connection: connection.execute(_by_keys(dialect), bounds).all())
        by_key: dict[str, list[IndexedPassage]] = {}
        for row in rows:
            by_key.setdefault(row[0], []).append(_read_passage(row))
        return list(chain.from_iterable(by_key.get(key, ()) for key in dict.fromkeys(keys)))

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[IndexedPassage]:
        bounds = {"model": model, "most": max(limit, 0)}
        return await self._list(_read_passage, _WITHOUT_VECTOR, bounds)

    async def count_without_vector(self, model: str) -> int:
        bounds = {"model": model}
        return await self._transaction.read(
            lambda connection: connection.execute(_COUNT_WITHOUT_VECTOR, bounds).scalar_one()
        )

    async def count_keys(self) -> int:
        return await self._transaction.read(lambda connection: connection.execute(_COUNT_KEYS).scalar_one())

    async def put_pace(self, pace: EmbeddingPace) -> None:
        told = json.dumps([pace.model, pace.seconds, pace.measured_at.isoformat()])
        await self._execute(upsert(self._dialect.insert, index_progress), {"collection": PACE, "state": told})

    async def find_pace(self) -> EmbeddingPace | None:
        told = await self._transaction.read(lambda connection: connection.execute(_PACE).scalar())
        if told is None:
            return None
        model, seconds, measured_at = json.loads(told)
        return EmbeddingPace(model, seconds, datetime.fromisoformat(measured_at))

    async def sweep_vectors(self) -> int:
        return await self._change(_SWEEP, {})

    async def size(self) -> IndexSize:
        return await self._transaction.read(
            lambda connection: IndexSize(*(connection.execute(each).scalar_one() for each in _SIZE))
        )


def _remove(connection: sa.Connection, dialect: SqlDialect, paths: Collection[str]) -> int:
    connection.execute(_take_turns(dialect.insert))  # two processes that index at once would add a document twice
    given = {"paths": dialect.bind_list([escape(path) for path in sorted(paths)])}
    # Deleted here, not by a cascade, so that the word index is updated the same way in every database.
    connection.execute(_remove_passages(dialect), given)
    return connection.execute(_remove_documents(dialect), given).rowcount


def _add_documents(connection: sa.Connection, added: Sequence[IndexedDocument]) -> Mapping[str, int]:
    """Adds the documents and returns the position of each, by path."""
    rows = [{name: getattr(document, name) for name in ("path", "source_id", "digest")} for document in added]
    return {row.path: row.position for row in connection.execute(_ADD_DOCUMENTS, rows)} if rows else {}


def _rows(place: int, document: IndexedDocument) -> Iterator[dict[str, Any]]:
    for passage, key, words in zip(document.passages, document.keys, document.words, strict=True):
        yield {
            "document": place,
            "source_id": document.source_id,
            "number": passage.number,
            "key": key,
            "first_line": passage.first_line,
            "last_line": passage.last_line,
            "headings": passage.headings,
            "text": passage.text,
            "words": words,
        }


def _read_passage(row: Sequence[Any]) -> IndexedPassage:
    key, path, source_id, number, headings, first, last, text = row
    return IndexedPassage(key, path, source_id, Passage(number, tuple(headings), first, last, text))
