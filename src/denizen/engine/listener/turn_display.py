"""Shows that a turn waits or is under way: typing, reactions on the question, and a live preview of the answer.

All of it is best effort. It ends with the turn, however that ends.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio

from denizen.domain.attention import ReplyStyle
from denizen.domain.conversation import Place
from denizen.domain.data_uri import extract_data_uris
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
    TurnStarted,
)
from denizen.domain.ids import CallId, TurnId
from denizen.domain.record import record
from denizen.domain.speaker_choice import is_silence
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.intake.opening import HOOKED, find_reply_target
from denizen.engine.listener.background import BackgroundTasks
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.turn_start import StartedTurn
from denizen.engine.outbox.sending import LivePreview

PREVIEW_AFTER_S = 3.0
"""A quick answer needs no preview."""
PREVIEW_EVERY_S = 1.2
"""Platforms accept about one edit a second."""
PREVIEW_CHARS = 1500
REMOVAL_TIME_S = 5.0
"""How long taking a sign away may take when Denizen stops."""

_log = logging.getLogger("denizen.listener")


@dataclass(slots=True)
class _PreviewState:
    """The content of a turn's preview, built up from the events of the turn."""

    text: str = ""
    tools: list[str] = field(default_factory=list[str])
    notices: dict[CallId | None, str] = field(default_factory=dict[CallId | None, str])
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    changed: anyio.Event = field(default_factory=anyio.Event)
    shown: str = ""
    status: TurnStatus = TurnStatus.OPEN
    begun: anyio.Event = field(default_factory=anyio.Event)
    """Set when the turn will not be skipped by a hook any more, or waits for people."""
    is_marked: bool = False
    """Whether the question has the sign that it was seen."""

    def take(self, event: TurnEvent) -> None:
        match event:
            case TurnStarted():
                self.begun.set()
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
                self.begun.set()
                self.waiting[event.approval.id] = event.approval.request.tool
            case ApprovalDecided():
                self.waiting.pop(event.approval.id, None)
            case TurnFinished():
                self.status = event.status
            case _:
                return
        self.changed.set()

    async def next_change(self) -> None:
        """Waits until the preview shows, or waits for, something else."""
        self.changed = anyio.Event()
        await self.changed.wait()

    def text_to_show(self) -> str:
        """Returns the tool activity in small print above the end of the growing text."""
        lines = [f"-# {notice}" for notice in self.notices.values()]
        if self.waiting:
            tools = ", ".join(f"`{tool}`" for tool in dict.fromkeys(self.waiting.values()))
            lines.append(f"-# waits for approval of {tools}")
        used = [tool for tool in dict.fromkeys(self.tools) if tool not in self.waiting.values()]
        if used:
            lines.append("-# used " + ", ".join(f"`{tool}`" for tool in used))
        text = extract_data_uris(self.text).text.strip()
        if len(text) > PREVIEW_CHARS:
            text = "…" + text[-PREVIEW_CHARS:]
        lines.append(f"{text} …" if text else "-# thinking …")
        return "\n".join(lines)


@record(kw_only=True)
class _DisplayedTurn:
    """A turn with the style that held when it started. `asked` is the message that it answers; empty for none.
    `status` is that of the start. `is_resumed`: an earlier process may have shown it. `is_hooked`: a hook may skip it.
    """

    turn_id: TurnId
    status: TurnStatus
    place: Place
    asked: str
    style: ReplyStyle
    is_resumed: bool
    is_hooked: bool

    @property
    def has_preview(self) -> bool:
        return self.style.preview and bool(self.asked)


class TurnDisplay:
    """Shows the turns of one account."""

    def __init__(self, context: AccountContext, background: BackgroundTasks) -> None:
        self._context = context
        self._channel = context.channel
        self._outbox = context.outbox
        self._background = background

    def show(self, started: StartedTurn, *, is_resumed: bool = False) -> None:
        """Shows the turn in the background until it ends. Of one that has ended already, only what an earlier process
        showed is taken away.
        """
        if started.turn.status.is_final and not is_resumed:
            return
        # A turn that may end in silence shows nothing before it ends.
        asked = "" if _allows_silence(started.turn) else started.asked
        shown = _DisplayedTurn(
            turn_id=started.turn.id,
            status=started.turn.status,
            place=started.place,
            asked=asked,
            style=self._context.account_policy.style,
            is_resumed=is_resumed,
            is_hooked=HOOKED in started.turn.options,
        )
        self._background.start("showing a turn", self._follow_turn, shown, started.counted_in)

    def show_again(self, turn: Turn, place: Place) -> None:
        """Shows a turn that an earlier process started, if this account answers it."""
        owed = turn.options.get("owed")
        if isinstance(owed, dict) and owed.get("account") == self._context.account:
            counted_in = "" if owed.get("ticket") else place.thread or place.channel
            self.show(StartedTurn(turn, place, str(owed.get("reply_to", "")), counted_in), is_resumed=True)

    async def _follow_turn(self, shown: _DisplayedTurn, counted_in: str) -> None:
        """Shows the turn, and uncounts its reply when there was none."""
        status = await self._show(shown)
        is_void = status in (TurnStatus.FAILED, TurnStatus.CANCELLED, TurnStatus.SKIPPED) or (
            status is TurnStatus.DONE and await self._was_silent(shown.turn_id)
        )
        if counted_in and is_void:
            await self._context.bot_replies.take_back(shown.place.platform, counted_in)

    async def _was_silent(self, turn_id: TurnId) -> bool:
        turn = await self._context.turns.get(turn_id)
        return _allows_silence(turn) and is_silence(turn.result.reply)

    async def _show(self, shown: _DisplayedTurn) -> TurnStatus | None:
        """Returns the status with which the turn ended; None when its end will not be seen here."""
        reactions, state = shown.style.reactions, _PreviewState()
        status = shown.status
        try:
            if not status.is_final:
                if not shown.is_hooked:
                    await self._mark_seen(shown, state)
                status = await self._watch(shown, state)
        except DenizenError as error:  # the process is closing, or the store is away: the turn goes on later
            _log.info("turn is not shown any more", extra={"turn": shown.turn_id, **error.fields})
            return None
        await self._clear_preview(shown)
        # The turn may have ended before its sign of an earlier process was looked at.
        stale = (reactions.seen, reactions.waiting) if shown.is_resumed and shown.asked else ()
        for sign in filter(None, stale or ((reactions.seen,) if state.is_marked else ())):
            await self._react(shown, sign, on=False)
        if status is TurnStatus.DONE and reactions.done and shown.asked:
            await self._react(shown, reactions.done, on=True)
        return status

    async def _watch(self, shown: _DisplayedTurn, state: _PreviewState) -> TurnStatus:
        preview = None
        ended: DenizenError | None = None
        if shown.has_preview:
            preview = self._outbox.open_preview(self._channel, shown.turn_id, shown.place, reply_to=shown.asked)
        async with anyio.create_task_group() as group:
            if shown.asked:
                group.start_soon(self._mark_waiting, shown)
            group.start_soon(self._show_work, shown, preview, state)
            try:
                async with aclosing(self._context.turns.watch(shown.turn_id)) as events:
                    async for event in events:
                        state.take(event)
            except DenizenError as error:
                # Raised below: the task group would wrap it in an exception group.
                ended = error
            if preview is not None:
                await preview.stop()
            group.cancel_scope.cancel()
        if ended is not None:
            raise ended
        return state.status

    async def _show_work(self, shown: _DisplayedTurn, preview: LivePreview | None, state: _PreviewState) -> None:
        """Shows that the turn is at work; of one that a hook may skip nothing before it begins."""
        if shown.is_hooked:
            await state.begun.wait()
            await self._mark_seen(shown, state)
        async with anyio.create_task_group() as group:
            group.start_soon(self._type, shown.place, state)
            if preview is not None:
                group.start_soon(self._draw, shown, preview, state)

    async def _mark_seen(self, shown: _DisplayedTurn, state: _PreviewState) -> None:
        seen = shown.style.reactions.seen
        if seen and shown.asked:
            state.is_marked = True
            await self._react(shown, seen, on=True)

    async def _type(self, place: Place, state: _PreviewState) -> None:
        """Shows typing, but not while people are waited for, which may take days."""
        while True:
            if not state.waiting:
                async with self._channel.typing(place):
                    while not state.waiting:
                        await state.next_change()
            await state.next_change()

    async def _mark_waiting(self, shown: _DisplayedTurn) -> None:
        """Puts a sign on the question while others are answered before it."""
        sign, turns = shown.style.reactions.waiting, self._context.turns
        await anyio.sleep(PREVIEW_AFTER_S)
        if not sign or not (shown.is_resumed or turns.here.is_queued(shown.turn_id)):
            return
        try:
            if turns.here.is_queued(shown.turn_id):
                await self._react(shown, sign, on=True)
            await turns.here.wait_while_queued(shown.turn_id)
        finally:
            with anyio.move_on_after(REMOVAL_TIME_S, shield=True):
                await self._react(shown, sign, on=False)

    async def _draw(self, shown: _DisplayedTurn, preview: LivePreview, state: _PreviewState) -> None:
        await anyio.sleep(PREVIEW_AFTER_S)
        while True:
            text = state.text_to_show()
            if text != state.shown and not self._context.turns.here.is_queued(shown.turn_id):
                state.shown = text
                await preview.show(text, now=self._context.clock.now())
            await anyio.sleep(PREVIEW_EVERY_S)

    async def _clear_preview(self, shown: _DisplayedTurn) -> None:
        if not shown.has_preview:
            return
        try:
            await self._outbox.clear_preview(self._channel, shown.turn_id)
        except DenizenError as error:  # the next start removes it
            _log.info("preview left behind", extra={"turn": shown.turn_id, **error.fields})

    async def _react(self, shown: _DisplayedTurn, emoji: str, *, on: bool) -> None:
        try:
            await self._channel.react(shown.place, shown.asked, emoji, on=on)
        except DenizenError as error:
            _log.info("no reaction", extra={"turn": shown.turn_id, **error.fields})


def _allows_silence(turn: Turn) -> bool:
    owed = find_reply_target(turn)
    return owed is not None and owed.may_be_silent
