"""Deliveries: what agents owe to a platform, or have sent. Their files are stored apart, and only while they are
needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, PositionType, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.conversation import Place
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
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("reply_to", EscapedText(), nullable=False),
    sa.Column("ticket", EscapedText(), nullable=False),
    sa.Column("state", sa.Text(), nullable=False),
    sa.Column("platform_id", EscapedText(), nullable=False),
    sa.Column("attempts", sa.Integer(), nullable=False),
    sa.Column("failure", EscapedText(), nullable=False),
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
    sa.Column("name", EscapedText(), nullable=False),
    sa.Column("media_type", EscapedText(), nullable=False),
    sa.Column("data", sa.LargeBinary(), nullable=False),
)


PIECE = 500
"""The number of deliveries whose files one statement reads."""

_DUE = (DeliveryState.PENDING.value, DeliveryState.SENDING.value)
_OPEN = (*_DUE, DeliveryState.SENT.value)
_PREVIEW = DeliveryKind.PREVIEW.value

_OF_AGENT = (deliveries.c.agent == sa.bindparam("who"), deliveries.c.platform == sa.bindparam("where"))
_BY_ID = sa.select(deliveries).where(deliveries.c.id == sa.bindparam("which"))
_LIST_DUE = (
    sa.select(deliveries)
    .where(*_OF_AGENT, deliveries.c.state.in_(_DUE), deliveries.c.kind != _PREVIEW)
    .order_by(deliveries.c.position)
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
def _add(insert: InsertInto) -> sa.Executable:
    return insert(deliveries).on_conflict_do_nothing(index_elements=[deliveries.c.id]).returning(deliveries.c.position)


class SqlOutbox:
    """Implements `denizen.ports.inbox.OutboxRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, deliveries: Sequence[Delivery]) -> None:
        add = _add(self._transaction.dialect.insert)

        def job(connection: sa.Connection) -> None:
            for delivery in deliveries:
                position = connection.execute(add, _row(delivery)).scalar()
                if position is not None:
                    _put_files(connection, position, _needed(delivery))

        await self._transaction.write(job)

    async def update(self, delivery: Delivery) -> None:
        row = _row(delivery)
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
        found = await self._list(_BY_ID, {"which": delivery_id})
        if not found:
            raise _missing(delivery_id)
        return found[0]

    async def list_due(self, agent: AgentName, platform: str, *, limit: int = 100) -> Sequence[Delivery]:
        return await self._list(_LIST_DUE, {"who": agent, "where": platform, "limit": max(limit, 0)})

    async def list_for_turn(self, turn_id: TurnId) -> Sequence[Delivery]:
        return await self._list(_OF_TURN, {"turn": turn_id})

    async def list_open_previews(self, agent: AgentName, platform: str) -> Sequence[Delivery]:
        return await self._list(_LIST_OPEN_PREVIEWS, {"who": agent, "where": platform})

    async def find_by_platform_id(self, platform: str, platform_id: str) -> Delivery | None:
        found = await self._list(_BY_PLATFORM_ID, {"where": platform, "which": platform_id}) if platform_id else []
        return found[0] if found else None

    async def _list(self, statement: sa.Select[Any], bounds: Mapping[str, Any]) -> list[Delivery]:
        def job(connection: sa.Connection) -> list[Delivery]:
            rows = connection.execute(statement, bounds).all()
            files = _load_files(connection, [row.position for row in rows if row.state in _DUE])
            return [_delivery(row, files.get(row.position, ())) for row in rows]

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


def _row(delivery: Delivery) -> dict[str, Any]:
    place = delivery.place
    return {
        "id": delivery.id,
        "turn_id": delivery.turn_id,
        "number": delivery.position,
        "kind": delivery.kind.value,
        "agent": delivery.agent,
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "created_at": delivery.created_at,
        "reply_to": delivery.reply_to,
        "ticket": delivery.ticket,
        "state": delivery.state.value,
        "platform_id": delivery.platform_id,
        "attempts": delivery.attempts,
        "failure": delivery.failure,
        "content": _content_json(delivery.content),
    }


def _delivery(row: sa.Row[Any], files: tuple[OutgoingFile, ...]) -> Delivery:
    return Delivery(
        id=row.id,
        turn_id=row.turn_id,
        position=row.number,
        kind=DeliveryKind(row.kind),
        agent=row.agent,
        place=Place(row.platform, row.channel, row.thread),
        content=replace(_content(row.content), files=files),
        created_at=row.created_at,
        reply_to=row.reply_to,
        ticket=row.ticket,
        state=DeliveryState(row.state),
        platform_id=row.platform_id,
        attempts=row.attempts,
        failure=row.failure,
    )


def _content_json(content: MessageContent) -> dict[str, Any]:
    """Returns the content as JSON without the files; empty fields are left out."""
    row = {
        "text": content.text,
        "embeds": [
            {
                "title": embed.title,
                "text": embed.text,
                "url": embed.url,
                "image": embed.image,
                "fields": [list(each) for each in embed.fields],
                "colour": embed.colour,
            }
            for embed in content.embeds
        ],
        "buttons": [_button_json(each) for each in content.buttons],
        "ping_users": sorted(content.ping_users),
        "ping_roles": sorted(content.ping_roles),
    }
    return {name: value for name, value in row.items() if value}


def _button_json(button: MessageButton) -> dict[str, Any]:
    row: dict[str, Any] = {"label": button.label, "url": button.url, "value": button.value}
    return row | {"action": button.action, "asks_why": button.asks_why} if button.action else row


def _content(row: Mapping[str, Any]) -> MessageContent:
    return MessageContent(
        text=row.get("text", ""),
        embeds=tuple(_embed(each) for each in row.get("embeds", ())),
        buttons=tuple(MessageButton(**each) for each in row.get("buttons", ())),
        ping_users=frozenset(row.get("ping_users", ())),
        ping_roles=frozenset(row.get("ping_roles", ())),
    )


def _embed(row: Mapping[str, Any]) -> EmbedCard:
    fields = tuple((name, value) for name, value in row["fields"])
    return EmbedCard(
        title=row["title"],
        text=row["text"],
        url=row["url"],
        image=row["image"],
        fields=fields,
        colour=row.get("colour"),
    )
