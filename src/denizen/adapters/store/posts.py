"""Posts of a platform: written many at a time, kept with their earlier texts, read in the order of their ids, searched
and counted.

A post's vectors live and die with the post's text: every change that removes a post or its text removes them in the
same transaction. `index_progress` stores how far posts were embedded, as `POSITION MODEL`. `archive` and
`post_embeddings` call this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EARLIEST,
    LATEST,
    EscapedText,
    JsonText,
    PlatformId,
    PositionType,
    UtcTime,
    escape,
    metadata,
    position_column,
    texts,
    times,
    write_id,
)
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.repository import upsert
from denizen.adapters.store.vectors import index_progress, vectors
from denizen.adapters.store.word_search import WordIndex, WordSearch
from denizen.domain.bm25 import TitledText
from denizen.domain.message import Author
from denizen.domain.mirror import loses_embedding, plan_renewal, says_something
from denizen.domain.room import Attachment, Post, PostChanges, PostVersion
from denizen.domain.terms import index_terms, query_terms
from denizen.domain.words import make_excerpt, split_words
from denizen.ports.archive import POST_VECTORS, CountBy, PostCount, PostHit, PostQuery, post_vector_key

posts = sa.Table(
    "posts",
    metadata,
    position_column(),
    *texts("platform"),
    sa.Column("id", PlatformId(), nullable=False),
    *texts("room", "guild", "parent", "reply_to", "author_id", "author_name"),
    sa.Column("author_is_bot", sa.Boolean(), nullable=False),
    *times("created_at"),
    sa.Column("edited_at", UtcTime()),
    sa.Column("deleted_at", UtcTime()),
    sa.Column("attachments", JsonText(), nullable=False),
    *texts("text"),
    sa.Column("words", sa.Text(), nullable=False),
    sa.UniqueConstraint("platform", "id"),
    sa.Index("ix_posts_platform_room_id", "platform", "room", "id"),
    sa.Index("ix_posts_platform_author_id_id", "platform", "author_id", "id"),
    sa.Index("ix_posts_platform_created_at", "platform", "created_at"),
)
"""Columns that may be long come last, so that the rest of a row is read without them. `words` feeds full-text search;
its index is created in the migrations.
"""

POST_COLUMNS = tuple(column for column in posts.c if column.name not in {"position", "words"})
"""The columns of a post, in the order in which `parse_post` reads them."""

NOT_DELETED = posts.c.deleted_at.is_(None)

sa.Index(
    "ix_posts_there",
    posts.c.platform,
    posts.c.room,
    posts.c.created_at,
    posts.c.author_id,
    posts.c.deleted_at,
    sqlite_where=NOT_DELETED,
    postgresql_where=NOT_DELETED,
)
"""Posts are counted with this index alone. That is why it includes `deleted_at`, which is NULL in all of it."""

IN_THREAD = posts.c.parent != ""

sa.Index("ix_posts_parent", posts.c.platform, posts.c.parent, sqlite_where=IN_THREAD, postgresql_where=IN_THREAD)

post_versions = sa.Table(
    "post_versions",
    metadata,
    sa.Column("post", PositionType, sa.ForeignKey(posts.c.position, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *times("written_at"),
    *texts("text"),
)
"""Earlier texts, which go with their post."""

stale_embeddings = sa.Table(
    "stale_embeddings",
    metadata,
    sa.Column("post", PositionType, sa.ForeignKey(posts.c.position, ondelete="CASCADE"), primary_key=True),
)
"""Posts that lost their vectors with their text and need new ones. Other posts are found in order of arrival."""


_ADD_STALE = sa.insert(stale_embeddings)
_PROGRESS = sa.select(index_progress.c.state).where(index_progress.c.collection == POST_VECTORS)
_LAST_POSITION = sa.select(sa.func.coalesce(sa.func.max(posts.c.position), 0))


@cache
def _drop_vectors(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(vectors).where(vectors.c.collection == POST_VECTORS, dialect.among(vectors.c.key, "keys"))


@cache
def _drop_stale(dialect: SqlDialect) -> sa.Delete:
    those = sa.select(posts.c.position).where(
        posts.c.platform == sa.bindparam("where"), dialect.among(posts.c.id, "chosen")
    )
    return sa.delete(stale_embeddings).where(stale_embeddings.c.post.in_(those))


def drop_embeddings(connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Iterable[str]) -> None:
    """Removes the posts' vectors of any model, and their marks as stale.

    Call it after writing the posts, so that two transactions wait for each other at the posts.
    """
    those = sorted(set(ids))
    keys = [escape(post_vector_key(platform, key)) for key in those]
    connection.execute(_drop_vectors(dialect), {"keys": dialect.bind_list(keys)})
    clear_stale(connection, dialect, platform, those)


def clear_stale(connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Sequence[str]) -> None:
    """Notes that the posts need no new vectors any more."""
    bounds = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in ids])}
    connection.execute(_drop_stale(dialect), bounds)


def mark_stale(connection: sa.Connection, positions: Sequence[int]) -> None:
    """Notes that the posts need new vectors, after `drop_embeddings`."""
    if positions:
        connection.execute(_ADD_STALE, [{"post": position} for position in positions])


def read_progress(connection: sa.Connection) -> tuple[int, str]:
    """Returns the last embedded position and the model, as stored; 0 and empty before the first."""
    reached, _, model = (connection.execute(_PROGRESS).scalar() or "0 ").partition(" ")
    return int(reached), model


def write_progress(connection: sa.Connection, dialect: SqlDialect, reached: int, model: str) -> None:
    row = {"collection": POST_VECTORS, "state": f"{reached} {model}"}
    connection.execute(upsert(dialect.insert, index_progress), row)


def lower_progress(connection: sa.Connection, dialect: SqlDialect) -> None:
    """Lowers the position after posts were removed, since SQLite reuses the positions of the last rows."""
    reached, model = read_progress(connection)
    last = connection.execute(_LAST_POSITION).scalar_one() if reached else 0
    if last < reached:
        write_progress(connection, dialect, last, model)


_ON = posts.c.platform == sa.bindparam("where")
_CHANGING = [column.name for column in posts.c if column.name not in {"position", "platform", "id"}]

_ONE = sa.select(*POST_COLUMNS).where(_ON, posts.c.id == sa.bindparam("which"))
_IN_ROOM = (
    sa.select(*POST_COLUMNS)
    .where(_ON, posts.c.room == sa.bindparam("within"), NOT_DELETED)
    .limit(sa.bindparam("limit"))
)
_VERSIONS = (
    sa.select(post_versions.c.number, post_versions.c.text, post_versions.c.written_at)
    .join(posts, posts.c.position == post_versions.c.post)
    .where(_ON, posts.c.id == sa.bindparam("which"))
    .order_by(post_versions.c.number)
)
_RENEW = (
    sa.update(posts)
    .where(posts.c.position == sa.bindparam("which"))
    .values({name: sa.bindparam(f"new_{name}", type_=posts.c[name].type) for name in _CHANGING})
)
_earlier = post_versions.alias()
_NUMBER = (
    sa.select(sa.func.coalesce(sa.func.max(_earlier.c.number), 0) + 1)
    .where(_earlier.c.post == sa.bindparam("post", type_=sa.BigInteger()))
    .scalar_subquery()
)
_KEEP = (
    sa.insert(post_versions)
    .values(
        {
            "post": sa.bindparam("post", type_=sa.BigInteger()),
            "number": _NUMBER,
            "text": sa.bindparam("text"),
            "written_at": sa.bindparam("written_at"),
        }
    )
    .inline()
)


@cache
def _known(dialect: SqlDialect) -> sa.Select[Any]:
    statement = sa.select(posts.c.position, *POST_COLUMNS).where(_ON, dialect.among(posts.c.id, "chosen"))
    # Sorted, so that two processes that renew the same posts cannot deadlock.
    return statement.order_by(posts.c.id).with_for_update() if dialect.locks_rows else statement


@cache
def _many(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(*POST_COLUMNS).where(_ON, dialect.among(posts.c.id, "chosen"), NOT_DELETED)


@cache
def _add(insert: InsertInto) -> sa.Executable:
    return insert(posts).on_conflict_do_nothing(index_elements=[posts.c.platform, posts.c.id]).returning(posts.c.id)


@cache
def _mark_deleted(dialect: SqlDialect) -> sa.Update:
    return (
        sa.update(posts)
        .where(_ON, dialect.among(posts.c.id, "chosen"), NOT_DELETED)
        .values(deleted_at=sa.bindparam("at"))
    )


@cache
def _page(*, has_after: bool, has_before: bool) -> sa.Select[Any]:
    statement = _IN_ROOM.order_by(posts.c.id if has_after else posts.c.id.desc())
    if has_after:
        statement = statement.where(posts.c.id > sa.bindparam("after"))
    if has_before:
        statement = statement.where(posts.c.id < sa.bindparam("before"))
    return statement


@cache
def _newest(dialect: SqlDialect) -> sa.Select[Any]:
    author = sa.bindparam("author", type_=EscapedText())
    return (
        sa.select(*POST_COLUMNS)
        .where(_ON, dialect.among(posts.c.room, "rooms"), NOT_DELETED)
        .where(sa.or_(author == sa.literal_column("''"), posts.c.author_id == author))
        .where(posts.c.created_at >= sa.bindparam("since"), posts.c.created_at < sa.bindparam("until"))
        .order_by(posts.c.created_at.desc(), posts.c.id.desc())
        .limit(sa.bindparam("limit"))
    )


@cache
def _authors(dialect: SqlDialect) -> sa.Executable:
    """Jumps in the index from one author to the next instead of reading every post."""
    authors = sa.select(sa.func.min(posts.c.author_id).label("id")).where(_ON).cte("authors", recursive=True)
    following = sa.select(sa.func.min(posts.c.author_id)).where(_ON, posts.c.author_id > authors.c.id)
    authors = authors.union_all(sa.select(following.scalar_subquery()).where(authors.c.id.is_not(None)))
    theirs = posts.alias()
    # An expression, so that SQLite goes through the author's posts from the newest and not through those of each room.
    room = sa.func.coalesce(theirs.c.room, sa.literal_column("''"), type_=EscapedText())
    newest = (
        sa.select(theirs.c.position)
        .where(theirs.c.platform == sa.bindparam("where"), theirs.c.author_id == authors.c.id)
        .where(dialect.among(room, "rooms"), theirs.c.deleted_at.is_(None))
        .order_by(theirs.c.id.desc())
        .limit(1)
    )
    found = sa.select(newest.scalar_subquery().label("position")).select_from(authors).subquery()
    return (
        sa.select(posts.c.author_id, posts.c.author_name, posts.c.author_is_bot)
        .join(found, posts.c.position == found.c.position)
        .order_by(posts.c.author_id)
    )


def put_posts(connection: sa.Connection, dialect: SqlDialect, given: Sequence[Post]) -> int:
    """Adds and updates posts in a few statements and returns how many were new."""
    added, left = 0, list(given)
    while left:
        # A batch holds each post once. Repeated posts, and posts that another writer added meanwhile, go into the next.
        platform, batch, later = left[0].platform, dict[str, Post](), list[Post]()
        for post in left:
            if post.platform == platform and post.id not in batch:
                batch[post.id] = post
            else:
                later.append(post)
        bounds = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in batch])}
        known = {row.id: (row.position, parse_post(row[1:])) for row in connection.execute(_known(dialect), bounds)}
        new = sorted((post for post in batch.values() if post.id not in known), key=lambda post: write_id(post.id))
        stored: set[str] = set()
        if new:
            stored = set(connection.execute(_add(dialect.insert), [_write_post(post) for post in new]).scalars())
        _renew(connection, dialect, [(*known[key], post) for key, post in batch.items() if key in known])
        added += len(stored)
        left = [post for post in new if post.id not in stored] + later
    return added


def mark_deleted(
    connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Sequence[str], at: datetime
) -> int:
    """Marks posts as deleted and returns how many were not deleted yet."""
    bounds = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in ids]), "at": at}
    marked = connection.execute(_mark_deleted(dialect), bounds).rowcount
    drop_embeddings(connection, dialect, platform, ids)
    return marked


def find_post(connection: sa.Connection, platform: str, post_id: str) -> Post | None:
    row = connection.execute(_ONE, {"where": platform, "which": post_id}).first()
    return None if row is None else parse_post(row)


def find_posts(connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Sequence[str]) -> list[Post]:
    """Returns the posts that are not deleted, in the order of the ids."""
    bounds = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in ids])}
    found = {post.id: post for post in map(parse_post, connection.execute(_many(dialect), bounds))}
    return [found[key] for key in dict.fromkeys(ids) if key in found]


def lock_posts(connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Sequence[str]) -> dict[str, Post]:
    """Returns posts by id, including deleted ones, and locks them until the transaction ends."""
    bounds = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in ids])}
    rows = connection.execute(_known(dialect), bounds).all()
    return {row.id: parse_post(row[1:]) for row in rows}


def list_posts(
    connection: sa.Connection, platform: str, room: str, *, before: str, after: str, limit: int
) -> list[Post]:
    """Returns posts, oldest first. The cost does not depend on the number of posts in the room."""
    bounds: dict[str, Any] = {"where": platform, "within": room, "limit": max(limit, 0)}
    bounds |= {name: value for name, value in (("before", before), ("after", after)) if value}
    rows = connection.execute(_page(has_after=bool(after), has_before=bool(before)), bounds).all()
    return [parse_post(row) for row in (rows if after else rows[::-1])]


def list_newest(connection: sa.Connection, dialect: SqlDialect, wanted: PostQuery) -> list[Post]:
    """Returns the newest posts that the query admits, whatever its words; the newest first."""
    bounds: dict[str, Any] = {"where": wanted.platform, "limit": max(wanted.limit, 0), **_bind_bounds(dialect, wanted)}
    return [parse_post(row) for row in connection.execute(_newest(dialect), bounds)]


def list_authors(connection: sa.Connection, dialect: SqlDialect, platform: str, rooms: Sequence[str]) -> list[Author]:
    """Returns who wrote in the rooms, by id, with their latest names there."""
    bounds = {"where": platform, "rooms": dialect.bind_list([escape(room) for room in rooms])}
    rows = connection.execute(_authors(dialect), bounds)
    return [Author(row.author_id, row.author_name, is_bot=row.author_is_bot) for row in rows]


def _bind_bounds(dialect: SqlDialect, wanted: PostQuery) -> dict[str, Any]:
    return {
        "rooms": dialect.bind_list([escape(room) for room in wanted.rooms]),
        "author": wanted.author,
        "since": wanted.since or EARLIEST,
        "until": wanted.until or LATEST,
    }


def list_versions(connection: sa.Connection, platform: str, post_id: str) -> list[PostVersion]:
    """Returns the earlier texts, oldest first."""
    rows = connection.execute(_VERSIONS, {"where": platform, "which": post_id})
    return [PostVersion(number, text, written_at) for number, text, written_at in rows]


def parse_post(row: Sequence[Any]) -> Post:
    """Returns the post of a row of POST_COLUMNS. By position, since looking up a name costs time in every row."""
    (
        platform,
        key,
        room,
        guild,
        parent,
        reply_to,
        author,
        name,
        is_bot,
        created_at,
        edited_at,
        deleted_at,
        attachments,
        text,
    ) = row
    return Post(
        platform=platform,
        id=key,
        room=room,
        author=Author(author, name, is_bot),
        text=text,
        created_at=created_at,
        guild=guild,
        parent=parent,
        reply_to=reply_to,
        changes=PostChanges(edited_at, deleted_at),
        attachments=tuple(Attachment(*each) for each in attachments),
    )


def _renew(connection: sa.Connection, dialect: SqlDialect, told: Sequence[tuple[int, Post, Post]]) -> None:
    """Updates known posts, given as position, stored post and post from the platform."""
    changed = [(position, known, plan_renewal(known, given)) for position, known, given in told]
    renewed = [(position, known, post) for position, known, post in changed if post is not None]
    earlier = [
        {"post": position, "text": known.text, "written_at": known.changes.edited_at or known.created_at}
        for position, known, post in renewed
        if post.text != known.text
    ]
    if earlier:
        connection.execute(_KEEP, earlier)
    if renewed:
        rows = [(position, _write_post(post)) for position, _, post in renewed]
        values = [{"which": position} | {f"new_{name}": row[name] for name in _CHANGING} for position, row in rows]
        connection.execute(_RENEW, values)
    lost = [(position, post) for position, known, post in renewed if loses_embedding(known, post)]
    if lost:
        drop_embeddings(connection, dialect, lost[0][1].platform, [post.id for _, post in lost])
        wanted = [(place, post) for place, post in lost if post.changes.deleted_at is None]
        mark_stale(connection, [place for place, post in wanted if says_something(split_words(post.text))])


def _write_post(post: Post) -> dict[str, Any]:
    return {
        "platform": post.platform,
        "id": post.id,
        "room": post.room,
        "guild": post.guild,
        "parent": post.parent,
        "reply_to": post.reply_to,
        "author_id": post.author.id,
        "author_name": post.author.name,
        "author_is_bot": post.author.is_bot,
        "created_at": post.created_at,
        "edited_at": post.changes.edited_at,
        "deleted_at": post.changes.deleted_at,
        "attachments": [
            [each.name, each.media_type, each.size_bytes, each.url, *([each.text] if each.text else [])]
            for each in post.attachments
        ],
        "text": post.text,
        "words": " ".join(index_terms(post.text)),
    }


@cache
def _by_places(dialect: SqlDialect) -> sa.Executable:
    chosen = sa.select(*POST_COLUMNS).where(dialect.among(posts.c.position, "chosen"))
    return chosen.order_by(posts.c.id.desc())


_TOTAL = sa.select(sa.func.count()).select_from(posts).where(_ON, NOT_DELETED)


@cache
def _count(dialect: SqlDialect, by: CountBy) -> sa.Executable:
    key = {
        CountBy.ROOM: posts.c.room,
        # An expression, so that SQLite does not group by the index of authors, which would read every post.
        CountBy.AUTHOR: sa.func.coalesce(posts.c.author_id, sa.literal_column("''"), type_=EscapedText()),
        CountBy.DAY: dialect.utc_day_text(posts.c.created_at),
    }[by].label("key")
    number = sa.func.count().label("posts")
    counted = (
        sa.select(key, number)
        .where(_ON, dialect.among(posts.c.room, "rooms"), NOT_DELETED, posts.c.created_at >= sa.bindparam("since"))
        .group_by(key)
        .order_by(*([key.desc()] if by is CountBy.DAY else [number.desc(), key]))
        .limit(sa.bindparam("limit"))
    )
    if by is not CountBy.AUTHOR:
        return counted
    found = counted.subquery()
    last_name = (
        sa.select(posts.c.author_name)
        .where(_ON, posts.c.author_id == found.c.key, NOT_DELETED)
        .order_by(posts.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.select(found.c.key, found.c.posts, last_name.label("name")).order_by(found.c.posts.desc(), found.c.key)


LENGTH_WEIGHT = 0.75
"""Posts differ in length more than passages do."""


def search_posts(connection: sa.Connection, dialect: SqlDialect, wanted: PostQuery) -> list[PostHit]:
    """Returns posts with some of the words, the best first; of equals, the newest."""
    bounds = {"platform": wanted.platform, **_bind_bounds(dialect, wanted)}
    search = WordSearch(connection, dialect, WordIndex("posts", dialect.find_posts, dialect.find_posts, bounds))
    places = search.select(wanted.words, wanted.also, limit=wanted.limit)
    rows = connection.execute(_by_places(dialect), {"chosen": dialect.bind_list(places)}).all()
    found = {post.id: post for post in map(parse_post, rows)}
    texts = {key: TitledText(index_terms(post.text)) for key, post in found.items()}
    # Of posts with the one word that was asked for, a short one is no better than a new one.
    is_one = len(query_terms(wanted.also or wanted.words)) == 1
    ranked = search.rank(texts, length_weight=0 if is_one else LENGTH_WEIGHT)
    words = query_terms(wanted.words)
    return [
        PostHit(found[match.key], make_excerpt(found[match.key].text, words), match) for match in ranked[: wanted.limit]
    ]


def count_posts(connection: sa.Connection, dialect: SqlDialect, by: CountBy, bounds: dict[str, Any]) -> list[PostCount]:
    """Returns counts of posts. `bounds` are `where`, `rooms`, `since` and `limit`."""
    rows = connection.execute(_count(dialect, by), bounds)
    return [PostCount(row.key, row.name if by is CountBy.AUTHOR else "", row.posts) for row in rows]


def total_posts(connection: sa.Connection, platform: str) -> int:
    """Returns the number of posts that are not deleted."""
    return connection.execute(_TOTAL, {"where": platform}).scalar_one()
