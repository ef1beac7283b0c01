"""Rooms of a platform, and how far each is mirrored. Called by `archive`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText
from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables.archive import backfills, rooms
from denizen.domain.mirror import renew_room
from denizen.domain.room import Room, RoomKind
from denizen.ports.archive import Backfill

_GUILD = sa.bindparam("within", type_=EscapedText())

_ONE = sa.select(rooms).where(rooms.c.platform == sa.bindparam("where"), rooms.c.id == sa.bindparam("which"))
_ALL = (
    sa.select(rooms)
    .where(rooms.c.platform == sa.bindparam("where"), sa.or_(_GUILD == "", rooms.c.guild == _GUILD))
    .order_by(sa.func.length(rooms.c.id), rooms.c.id)
)
_BACKFILL = sa.select(backfills).where(
    backfills.c.platform == sa.bindparam("where"), backfills.c.room == sa.bindparam("which")
)
_BACKFILLS = (
    sa.select(backfills)
    .where(backfills.c.platform == sa.bindparam("where"))
    .order_by(sa.func.length(backfills.c.room), backfills.c.room)
)


@cache
def _put(insert: InsertInto, table: sa.Table) -> sa.Executable:
    statement = insert(table)
    key = list(table.primary_key)
    changed = {column.name: statement.excluded[column.name] for column in table.c if not column.primary_key}
    return statement.on_conflict_do_update(index_elements=key, set_=changed).inline()


def put_room(connection: sa.Connection, dialect: Dialect, room: Room) -> None:
    """Adds or renews it."""
    one = _ONE.with_for_update() if dialect.locks_rows else _ONE
    known = connection.execute(one, {"where": room.platform, "which": room.id}).first()
    if known is not None:
        room = renew_room(_room(known), room)
    connection.execute(_put(dialect.insert, rooms), {name: getattr(room, name) for name in rooms.c.keys()})  # noqa: SIM118


def find_room(connection: sa.Connection, platform: str, room_id: str) -> Room | None:
    row = connection.execute(_ONE, {"where": platform, "which": room_id}).first()
    return None if row is None else _room(row)


def list_rooms(connection: sa.Connection, platform: str, guild: str) -> list[Room]:
    """By id, the oldest first."""
    return [_room(row) for row in connection.execute(_ALL, {"where": platform, "within": guild})]


def put_backfill(connection: sa.Connection, insert: InsertInto, backfill: Backfill) -> None:
    """Adds or renews it."""
    row = {name: getattr(backfill, name) for name in backfills.c.keys()}  # noqa: SIM118
    connection.execute(_put(insert, backfills), row)


def find_backfill(connection: sa.Connection, platform: str, room: str) -> Backfill | None:
    row = connection.execute(_BACKFILL, {"where": platform, "which": room}).first()
    return None if row is None else _backfill(row)


def list_backfills(connection: sa.Connection, platform: str) -> list[Backfill]:
    """By room, the oldest first."""
    return [_backfill(row) for row in connection.execute(_BACKFILLS, {"where": platform})]


def _room(row: Sequence[Any]) -> Room:
    platform, key, name, kind, guild, guild_name, parent, parent_name, latest_post = row
    return Room(platform, key, name, RoomKind(kind), guild, guild_name, parent, parent_name, latest_post)


def _backfill(row: sa.Row[Any]) -> Backfill:
    return Backfill(row.platform, row.room, row.oldest, row.fetched, row.is_complete)
