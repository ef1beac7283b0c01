"""Deliveries: what agents owe to a platform, or have sent. Files are stored apart, while they are needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, JsonText, PositionType, escape, id_columns, metadata, texts, times
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, write_record
from denizen.domain.delivery import (
    Delivery,
    DeliveryKind,
    DeliveryState,
    EmbedCard,
    MessageButton,
    MessageContent,
    OutgoingFile,
)
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, TurnId

deliveries = sa.Table(
    "deliveries",
    metadata,
    *id_columns(),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("kind", EnumValue(DeliveryKind), nullable=False),
    *texts("agent", "platform", "channel", "thread"),
    *times("created_at"),
    *texts("reply_to", "ticket"),
    sa.Column("state", EnumValue(DeliveryState), nullable=False),
    *texts("platform_id"),
    sa.Column("attempts", sa.Integer(), nullable=False),
    *texts("failure"),
    sa.Column("content", JsonText(), nullable=False),
    sa.Index("ix_deliveries_agent_platform_state_kind", "agent", "platform", "state", "kind"),
    sa.Index("ix_deliveries_turn_id", "turn_id"),
    sa.Index("ix_deliveries_platform_platform_id", "platform", "platform_id"),
)
"""`number` is a delivery's position within its turn; `content` is stored without the files."""

delivery_files = sa.Table(
    "delivery_files",
    metadata,
    sa.Column("delivery", PositionType, sa.ForeignKey(deliveries.c.position, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("name", "media_type"),
    sa.Column("data", sa.LargeBinary(), nullable=False),
)


PIECE = 500
"""The number of deliveries whose files one statement reads."""

_DUE = (DeliveryState.PENDING, DeliveryState.SENDING)
_OPEN = (*_DUE, DeliveryState.SENT)
_PREVIEW, _REACTION = DeliveryKind.PREVIEW, DeliveryKind.REACTION

_OF_AGENT = (deliveries.c.agent == sa.bindparam("who"), deliveries.c.platform == sa.bindparam("where"))
_BY_ID = sa.select(deliveries).where(deliveries.c.id == sa.bindparam("which"))
_LIST_DUE = (
    sa.select(deliveries)
    .where(*_OF_AGENT, deliveries.c.state.in_(_DUE), deliveries.c.kind != _PREVIEW)
    .order_by(deliveries.c.kind == _REACTION, deliveries.c.position)
    .limit(sa.bindparam("limit"))
)
_LIST_OPEN_PREVIEWS = (
    sa.select(deliveries)
    .where(*_OF_AGENT, deliveries.c.state.in_(_OPEN), deliveries.c.kind == _PREVIEW)
    .order_by(deliveries.c.position)
)
_OF_TURN = (
    sa.select(deliveries)
    .where(deliveries.c.turn_id == sa.bindparam("turn"))
    .order_by(deliveries.c.kind, deliveries.c.number)
)
_BY_PLATFORM_ID = (
    sa.select(deliveries)
    .where(deliveries.c.platform == sa.bindparam("where"), deliveries.c.platform_id == sa.bindparam("which"))
    .order_by(deliveries.c.position.desc())
    .limit(1)
)
_CHANGING = ("state", "platform_id", "attempts", "failure", "content")
_UPDATE = (
    sa.update(deliveries)
    .where(deliveries.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(f"new_{name}", type_=deliveries.c[name].type) for name in _CHANGING})
    .returning(deliveries.c.position)
)
_FILES = (
    sa.select(delivery_files)
    .where(delivery_files.c.delivery.in_(sa.bindparam("those", expanding=True)))
    .order_by(delivery_files.c.delivery, delivery_files.c.number)
)
_DROP_FILES = sa.delete(delivery_files).where(delivery_files.c.delivery == sa.bindparam("whose"))


@cache
def _find_sent(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(deliveries.c.platform_id).where(
        deliveries.c.platform == sa.bindparam("where"), dialect.among(deliveries.c.platform_id, "chosen")
    )


_add_delivery = partial(insert_row, table=deliveries)


class SqlOutbox(SqlRepository):
    """Implements `denizen.ports.inbox.OutboxRepository`."""

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        add = _add_delivery(self._dialect.insert)

        def job(connection: sa.Connection) -> None:
            for delivery in deliveries:
                position = connection.execute(add, _write_delivery(delivery)).scalar()
                if position is not None:
                    _put_files(connection, position, _needed(delivery))

        await self._transaction.write(job)

    async def update(self, delivery: Delivery) -> None:
        row = _write_delivery(delivery)
        values = {f"new_{name}": row[name] for name in _CHANGING} | {"which": delivery.id}

        def job(connection: sa.Connection) -> None:
            position = connection.execute(_UPDATE, values).scalar()
            if position is None:
                raise _missing(delivery.id)
            files = _needed(delivery)
            if _load_files(connection, [position]).get(position, ()) != files:
                connection.execute(_DROP_FILES, {"whose": position})
                _put_files(connection, position, files)

        await self._transaction.write(job)

    async def get(self, delivery_id: str) -> Delivery:
        found = await self._list_deliveries(_BY_ID, {"which": delivery_id})
        if not found:
            raise _missing(delivery_id)
        return found[0]

    async def list_due(self, agent: AgentName, platform: str, *, limit: int = 100) -> Sequence[Delivery]:
        return await self._list_deliveries(_LIST_DUE, {"who": agent, "where": platform, "limit": max(limit, 0)})

    async def list_for_turn(self, turn_id: TurnId) -> Sequence[Delivery]:
        return await self._list_deliveries(_OF_TURN, {"turn": turn_id})

    async def list_open_previews(self, agent: AgentName, platform: str) -> Sequence[Delivery]:
        return await self._list_deliveries(_LIST_OPEN_PREVIEWS, {"who": agent, "where": platform})

    async def find_by_platform_id(self, platform: str, platform_id: str) -> Delivery | None:
        found = (
            await self._list_deliveries(_BY_PLATFORM_ID, {"where": platform, "which": platform_id})
            if platform_id
            else []
        )
        return found[0] if found else None

    async def find_sent(self, platform: str, post_ids: Collection[str]) -> frozenset[str]:
        which = {"where": platform, "chosen": self._dialect.bind_list([escape(key) for key in post_ids])}
        return await self._transaction.read(
            lambda connection: frozenset(connection.execute(_find_sent(self._dialect), which).scalars())
        )

    async def _list_deliveries(self, statement: sa.Select[Any], bounds: Mapping[str, Any]) -> list[Delivery]:
        def job(connection: sa.Connection) -> list[Delivery]:
            rows = connection.execute(statement, bounds).all()
            files = _load_files(connection, [row.position for row in rows if row.state in _DUE])
            return [_read_delivery(row, files.get(row.position, ())) for row in rows]

        return await self._transaction.read(job)


def _missing(delivery_id: str) -> NotFound:
    return NotFound(f"There is no delivery {delivery_id}.", code="delivery_not_found")


def _needed(delivery: Delivery) -> tuple[OutgoingFile, ...]:
    """Returns the files that are still to be sent."""
    return delivery.content.files if delivery.state in _DUE else ()


def _put_files(connection: sa.Connection, position: int, files: Sequence[OutgoingFile]) -> None:
    rows = [
        {"delivery": position, "number": number, "name": file.name, "media_type": file.media_type, "data": file.data}
        for number, file in enumerate(files)
    ]
    if rows:
        connection.execute(sa.insert(delivery_files), rows)


def _load_files(connection: sa.Connection, positions: Sequence[int]) -> dict[int, tuple[OutgoingFile, ...]]:
    """Returns the files by the position of their delivery."""
    found: dict[int, tuple[OutgoingFile, ...]] = {}
    for start in range(0, len(positions), PIECE):
        for row in connection.execute(_FILES, {"those": positions[start : start + PIECE]}):
            file = OutgoingFile(row.name, row.media_type, bytes(row.data))
            found[row.delivery] = (*found.get(row.delivery, ()), file)
    return found


def _write_delivery(delivery: Delivery) -> dict[str, Any]:
    """Returns the columns. The content is without the files, and empty fields are left out of it."""
    content = asdict(replace(delivery.content, files=()))
    content["buttons"] = [_write_button(each) for each in delivery.content.buttons]
    return write_record(delivery, "position", "content") | {
        "number": delivery.position,
        "content": {name: value for name, value in content.items() if value},
    }


def _write_button(button: MessageButton) -> dict[str, Any]:
    row: dict[str, Any] = {"label": button.label, "url": button.url, "value": button.value}
    if not button.action:
        return row
    return row | {"action": button.action, "asks_why": button.asks_why, "asks_answer": button.asks_answer}


def _read_delivery(row: Row, files: tuple[OutgoingFile, ...]) -> Delivery:
    told = row.content
    content = MessageContent(
        text=told.get("text", ""),
        embeds=tuple(_read_embed(each) for each in told.get("embeds", ())),
        files=files,
        buttons=tuple(MessageButton(**each) for each in told.get("buttons", ())),
        ping_users=frozenset(told.get("ping_users", ())),
        ping_roles=frozenset(told.get("ping_roles", ())),
    )
    return read_record(Delivery, row, position=row.number, content=content)


def _read_embed(row: dict[str, Any]) -> EmbedCard:
    told: dict[str, Any] = row | {"fields": tuple((name, value) for name, value in row["fields"])}
    return EmbedCard(**told)
