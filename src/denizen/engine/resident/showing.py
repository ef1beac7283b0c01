"""Shows that a turn is under way: typing, a reaction, and a live preview of the answer (inventory V12, C18, S35).

All of it is best effort and ends with the turn, however that ends (TW17).
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from denizen.domain.attention import Manners
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import DeliveryKind
from denizen.domain.errors import DenizenError
from denizen.domain.events import Notice, TextAdded, ToolFinished, ToolStarted, TurnEvent
from denizen.domain.ids import TurnId
from denizen.domain.turn import TurnStatus
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.outbox.preview import Preview
from denizen.engine.turn import Turns
from denizen.ports.channel import Channel
from denizen.ports.store import Store

PREVIEW_AFTER_S = 3.0
"""Quick answers need no preview."""
PREVIEW_EVERY_S = 1.2
"""Platforms want at most about one edit a second."""
PREVIEW_CHARS = 1500

_log = logging.getLogger("denizen.resident")


@dataclass(slots=True)
class _Picture:
    """What the preview says now."""

    text: str = ""
    tools: list[str] = field(default_factory=list[str])
    notice: str = ""
    shown: str = ""

    def take(self, event: TurnEvent) -> None:
        match event:
            case TextAdded():
                self.text = event.text if event.retract else self.text + event.text
            case ToolStarted():
                self.tools.append(event.tool)
            case ToolFinished():
                self.notice = ""
            case Notice():
                self.notice = event.text
            case _:
                pass

    def words(self) -> str:
        """Tool activity in small print above the end of the growing text."""
        lines: list[str] = []
        if self.notice:
            lines.append(f"-# {self.notice}")
        if self.tools:
            lines.append("-# used " + ", ".join(f"`{tool}`" for tool in dict.fromkeys(self.tools)))
        text = self.text.strip()
        if len(text) > PREVIEW_CHARS:
            text = "…" + text[-PREVIEW_CHARS:]
        lines.append(f"{text} …" if text else "-# thinking …")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Shown:
    """One turn to show. `asked` is the message that it answers, empty when there is none (a command)."""

    turn_id: TurnId
    place: Place
    asked: str
    manners: Manners


class Showing:
    """For one account."""

    def __init__(self, channel: Channel, turns: Turns, outbox: Outbox, store: Store, clock: Clock) -> None:
        self._channel = channel
        self._turns = turns
        self._outbox = outbox
        self._store = store
        self._clock = clock

    async def show(self, shown: Shown) -> TurnStatus | None:
        """Until the turn has ended; its status, or None when its end will not be seen here."""
        seen = shown.manners.reactions.seen if shown.asked else ""
        if seen:
            await self._react(shown, seen, on=True)
        try:
            async with self._channel.typing(shown.place):
                status = await self._follow(shown)
        except DenizenError as error:  # the process is closing, or the store is away: the turn goes on later
            _log.info("turn is not shown any more", extra={"turn": shown.turn_id, "code": error.code})
            return None
        if status is not TurnStatus.DONE:
            await self._drop_preview(shown.turn_id, answered=status is TurnStatus.FAILED)
        if seen:
            await self._react(shown, seen, on=False)
        if status is TurnStatus.DONE and shown.manners.reactions.done and shown.asked:
            await self._react(shown, shown.manners.reactions.done, on=True)
        return status

    async def _follow(self, shown: Shown) -> TurnStatus:
        picture, preview = _Picture(), None
        if shown.manners.preview and shown.asked:
            preview = self._outbox.open_preview(self._channel, shown.turn_id, shown.place, reply_to=shown.asked)
        async with anyio.create_task_group() as group:
            if preview is not None:
                group.start_soon(self._draw, preview, picture)
            async with aclosing(self._turns.watch(shown.turn_id)) as events:
                async for event in events:
                    picture.take(event)
            if preview is not None:
                await preview.stop()
            group.cancel_scope.cancel()
        return (await self._turns.get(shown.turn_id)).status

    async def _draw(self, preview: Preview, picture: _Picture) -> None:
        await anyio.sleep(PREVIEW_AFTER_S)
        while True:
            words = picture.words()
            if words != picture.shown:
                picture.shown = words
                await preview.show(words, now=self._clock.now())
            await anyio.sleep(PREVIEW_EVERY_S)

    async def _drop_preview(self, turn_id: TurnId, *, answered: bool) -> None:
        """A failed turn's notice takes the preview over, if there is a notice."""
        async with self._store.work(write=False) as work:
            deliveries = await work.outbox.list_of_turn(turn_id)
        if answered and any(delivery.kind is DeliveryKind.NOTICE for delivery in deliveries):
            return
        for delivery in deliveries:
            if delivery.kind is DeliveryKind.PREVIEW:
                await self._outbox.drop_preview(self._channel, delivery)

    async def _react(self, shown: Shown, emoji: str, *, on: bool) -> None:
        try:
            await self._channel.react(shown.place, shown.asked, emoji, on=on)
        except DenizenError as error:
            _log.info("no reaction", extra={"turn": shown.turn_id, "code": error.code})
