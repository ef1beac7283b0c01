"""The closed blocks of transcripts, and their posts with earlier texts. The text itself is only in `posts`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText, JsonTuple, PlatformId, metadata, text_keys, texts, write_id
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.posts import POST_COLUMNS, parse_post, post_versions, posts
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, write_record
from denizen.domain.conversation import Place
from denizen.domain.transcript import PostHistory, TranscriptBlock, TranscriptEvent
from denizen.ports.archive import PostRange

blocks = sa.Table(
    "transcript_blocks",
    metadata,
    *text_keys("platform", "channel", "thread"),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("room"),
    sa.Column("first", PlatformId(), nullable=False),
    sa.Column("last", PlatformId(), nullable=False),
    sa.Column("tokens", sa.Integer(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
    sa.Column("posts", sa.Integer(), nullable=False),
    sa.Column("versions", JsonText(), nullable=False),
    sa.Column("left_out", JsonTuple(), nullable=False),
    sa.Column("events", JsonText(), nullable=False),
    sa.UniqueConstraint("platform", "channel", "thread", "first"),
)

CHANGED = sa.or_(posts.c.edited_at.is_not(None), posts.c.deleted_at.is_not(None))

sa.Index("ix_posts_changed", posts.c.platform, posts.c.room, posts.c.id, sqlite_where=CHANGED, postgresql_where=CHANGED)
"""Every turn looks for edited and deleted posts, which are rare."""


_AT = (
    blocks.c.platform == sa.bindparam("at_platform"),
    blocks.c.channel == sa.bindparam("at_channel"),
    blocks.c.thread == sa.bindparam("at_thread"),
)
_BLOCKS = sa.select(blocks).where(*_AT).order_by(blocks.c.number)
_REMOVE = sa.delete(blocks).where(*_AT, blocks.c.number == sa.bindparam("which"))
_RENEWABLE = ("room", "first", "last", "tokens", "digest", "posts", "versions", "left_out", "events")
_RENEW = (
    sa.update(blocks)
    .where(*_AT, blocks.c.number == sa.bindparam("which"), blocks.c.digest == sa.bindparam("known"))
    .values({name: sa.bindparam(f"new_{name}", type_=blocks.c[name].type) for name in _RENEWABLE})
)

_ON = posts.c.platform == sa.bindparam("where")
_WITHIN = (
    _ON,
    posts.c.room == sa.bindparam("within"),
    posts.c.id >= sa.bindparam("first"),
    posts.c.id <= sa.bindparam("last"),
)
_COUNT = sa.select(sa.func.count()).select_from(posts).where(*_WITHIN)
_POSTS = sa.select(*POST_COLUMNS).where(*_WITHIN).order_by(posts.c.id)
_VERSIONS = (
    sa.select(posts.c.id, post_versions.c.text)
    .join(posts, posts.c.position == post_versions.c.post)
    .order_by(posts.c.id, post_versions.c.number)
)
_VERSIONS_WITHIN = _VERSIONS.where(*_WITHIN, CHANGED)


@cache
def _chosen(dialect: SqlDialect) -> tuple[sa.Select[Any], sa.Select[str, str]]:
    which = (_ON, dialect.among(posts.c.id, "chosen"))
    return sa.select(*POST_COLUMNS).where(*which).order_by(posts.c.id), _VERSIONS.where(*which)


class SqlTranscripts(SqlRepository):
    """Implements `denizen.ports.archive.TranscriptRepository`."""

    async def list_blocks(self, place: Place) -> Sequence[TranscriptBlock]:
        return await self._list(_read_block, _BLOCKS, _bounds(place))

    async def add_blocks(self, place: Place, closed: Sequence[TranscriptBlock]) -> int:
        statement = insert_row(self._dialect.insert, blocks)
        rows = [write_record(place) | _write_block(block) for block in closed]

        def job(connection: sa.Connection) -> int:
            for added, row in enumerate(rows):
                if connection.execute(statement, row).first() is None:
                    return added
            return len(rows)

        return await self._transaction.write(job)

    async def renew_block(self, place: Place, block: TranscriptBlock, *, digest: str) -> bool:
        values = {f"new_{name}": value for name, value in _write_block(block).items() if name in _RENEWABLE}
        bounds = _bounds(place) | values | {"which": block.number, "known": digest}
        return await self._change(_RENEW, bounds) == 1

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None:
        rows = [_bounds(place) | {"which": number} for number in sorted(numbers)]
        await self._execute(_REMOVE, rows)

    async def list_range(self, stretch: PostRange, *, changed: bool = False) -> Sequence[PostHistory]:
        statement = _POSTS.where(CHANGED) if changed else _POSTS
        bounds = _within(stretch)
        return await self._transaction.read(
            lambda connection: _archived(connection, statement, _VERSIONS_WITHIN, bounds)
        )

    async def count_range(self, stretch: PostRange) -> int:
        bounds = _within(stretch)
        return await self._transaction.read(lambda connection: connection.execute(_COUNT, bounds).scalar_one())

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[PostHistory]:
        bounds = {
            "where": platform,
            "chosen": self._dialect.bind_list([write_id(key) for key in sorted(set(post_ids))]),
        }
        if not post_ids:
            return []
        return await self._transaction.read(lambda connection: _archived(connection, *_chosen(self._dialect), bounds))


def _archived(
    connection: sa.Connection, those: sa.Select[Any], versions: sa.Select[str, str], bounds: dict[str, Any]
) -> list[PostHistory]:
    found = [parse_post(row) for row in connection.execute(those, bounds)]
    earlier: dict[str, list[str]] = {}
    if any(post.changes.edited_at for post in found):
        for key, text in connection.execute(versions, bounds):
            earlier.setdefault(key, []).append(text)
    return [PostHistory(post, tuple(earlier.get(post.id, ()))) for post in found]


def _bounds(place: Place) -> dict[str, Any]:
    return {"at_platform": place.platform, "at_channel": place.channel, "at_thread": place.thread}


def _within(stretch: PostRange) -> dict[str, Any]:
    return {"where": stretch.platform, "within": stretch.room, "first": stretch.first, "last": stretch.last}


def _write_block(block: TranscriptBlock) -> dict[str, Any]:
    return write_record(block) | {"events": [[event.post, event.version, event.before] for event in block.events]}


def _read_block(row: Row) -> TranscriptBlock:
    return read_record(TranscriptBlock, row, events=tuple(TranscriptEvent(*event) for event in row.events))
