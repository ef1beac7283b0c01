"""Shows that a turn is under way: typing, a reaction, and a live preview of the answer (inventory V12, C18, S35).

All of it is best effort and ends with the turn, however that ends (TW17).
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from denizen.domain.attention import AccountPolicy
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.events import (
    ApprovalDecided,
    ApprovalRequested,
    Notice,
    TextAdded,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnFinished,
)
from denizen.domain.ids import CallId, TurnId
from denizen.domain.turn import TurnStatus
from denizen.engine.outbox.outbox import Outbox
from denizen.engine.outbox.preview import Preview
from denizen.engine.turn import Turns
from denizen.ports.channel import Channel

PREVIEW_AFTER_S = 3.0
"""Quick answers need no preview."""
PREVIEW_EVERY_S = 1.2
"""Platforms want at most about one edit a second."""
PREVIEW_CHARS = 1500

_log = logging.getLogger("denizen.resident")


@dataclass(slots=True)
class _PreviewState:
    """What the preview says now."""

    text: str = ""
    tools: list[str] = field(default_factory=list[str])
    notices: dict[CallId | None, str] = field(default_factory=dict[CallId | None, str])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    changed: anyio.Event = field(default_factory=anyio.Event)
    shown: str = ""
    status: TurnStatus = TurnStatus.OPEN

    def take(self, event: TurnEvent) -> None:
        match event:
            case TextAdded():
                self.text = event.text if event.retract else self.text + event.text
            case ToolStarted():
                self.tools.append(event.tool)
            case ToolFinished():
                self.notices.pop(event.call_id, None)
                self.notices.pop(None, None)
            case Notice():
                self.notices[event.call_id] = event.text
            case ApprovalRequested():
                self.waiting[event.approval.id] = event.approval.tool
            case ApprovalDecided():
                self.waiting.pop(event.approval.id, None)
            case TurnFinished():
                self.status = event.status
            case _:
                return
        self.changed.set()

    async def next_change(self) -> None:
        """Until it says, or waits for, something else."""
        self.changed = anyio.Event()
        await self.changed.wait()

    def words(self) -> str:
        """Tool activity in small print above the end of the growing text."""
        lines = [f"-# {notice}" for notice in self.notices.values()]
        if self.waiting:
            tools = ", ".join(f"`{tool}`" for tool in dict.fromkeys(self.waiting.values()))
            lines.append(f"-# waits for approval of {tools}")
        used = [tool for tool in dict.fromkeys(self.tools) if tool not in self.waiting.values()]
        if used:
            lines.append("-# used " + ", ".join(f"`{tool}`" for tool in used))
        text = self.text.strip()
        if len(text) > PREVIEW_CHARS:
            text = "…" + text[-PREVIEW_CHARS:]
        lines.append(f"{text} …" if text else "-# thinking …")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DisplayedTurn:
    """One turn to show. `asked` is the message that it answers, empty when there is none (a command)."""

    turn_id: TurnId
    place: Place
    asked: str
    account_policy: AccountPolicy


class TurnDisplay:
    """For one account."""

    def __init__(self, channel: Channel, turns: Turns, outbox: Outbox, clock: Clock) -> None:
        self._channel = channel
        self._turns = turns
        self._outbox = outbox
        self._clock = clock

    async def show(self, shown: DisplayedTurn) -> TurnStatus | None:
        """Until the turn has ended; its status, or None when its end will not be seen here."""
        seen = shown.account_policy.reactions.seen if shown.asked else ""
        if seen:
            await self._react(shown, seen, on=True)
        try:
            status = await self._follow(shown)
        except DenizenError as error:  # the process is closing, or the store is away: the turn goes on later
            _log.info("turn is not shown any more", extra={"turn": shown.turn_id, "code": error.code})
            return None
        await self._clear(shown)
        if seen:
            await self._react(shown, seen, on=False)
        if status is TurnStatus.DONE and shown.account_policy.reactions.done and shown.asked:
            await self._react(shown, shown.account_policy.reactions.done, on=True)
        return status

    async def _follow(self, shown: DisplayedTurn) -> TurnStatus:
        """Raises what ends the watching; not from within the group, which would wrap it."""
        picture, preview = _PreviewState(), None
        ended: DenizenError | None = None
        if shown.account_policy.preview and shown.asked:
            preview = self._outbox.open_preview(self._channel, shown.turn_id, shown.place, reply_to=shown.asked)
        async with anyio.create_task_group() as group:
            group.start_soon(self._type, shown.place, picture)
            if preview is not None:
                group.start_soon(self._draw, preview, picture)
            try:
                async with aclosing(self._turns.watch(shown.turn_id)) as events:
                    async for event in events:
                        picture.take(event)
            except DenizenError as error:
                ended = error
            if preview is not None:
                await preview.stop()
            group.cancel_scope.cancel()
        if ended is not None:
            raise ended
        return picture.status

    async def _type(self, place: Place, picture: _PreviewState) -> None:
        """Shows typing, but not while people are waited for, which may take days."""
        while True:
            if not picture.waiting:
                async with self._channel.typing(place):
                    while not picture.waiting:
                        await picture.next_change()
            await picture.next_change()

    async def _draw(self, preview: Preview, picture: _PreviewState) -> None:
        await anyio.sleep(PREVIEW_AFTER_S)
        while True:
            words = picture.words()
            if words != picture.shown:
                picture.shown = words
                await preview.show(words, now=self._clock.now())
            await anyio.sleep(PREVIEW_EVERY_S)

    async def _clear(self, shown: DisplayedTurn) -> None:
        if not (shown.account_policy.preview and shown.asked):
            return
        try:
            await self._outbox.clear_preview(self._channel, shown.turn_id)
        except DenizenError as error:  # the next start sweeps it up
            _log.info("preview left behind", extra={"turn": shown.turn_id, "code": error.code})

    async def _react(self, shown: DisplayedTurn, emoji: str, *, on: bool) -> None:
        try:
            await self._channel.react(shown.place, shown.asked, emoji, on=on)
        except DenizenError as error:
            _log.info("no reaction", extra={"turn": shown.turn_id, "code": error.code})
