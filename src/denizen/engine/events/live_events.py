"""Live events of running turns, for those who watch in this process, and by a relay in others.

Watchers subscribe before the turn is submitted, so they miss nothing. Of a turn that is kept, those who come later get
what has happened so far, too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from anyio.streams.memory import MemoryObjectReceiveStream

from denizen.domain.errors import DenizenError
from denizen.domain.events import Notice, ReasoningAdded, TextAdded, TurnEvent, TurnFinished
from denizen.domain.ids import TurnId
from denizen.engine.events.broadcast import Broadcast
from denizen.ports.fleet import TurnRelay

Sign = TurnEvent | DenizenError
"""Something that happens in a turn, or why nothing more of it will be seen here."""
KEPT_TURNS = 1000
KEPT_EVENTS = 500
"""So many events of a turn are kept. Of a longer one the first and the newest are."""
Watch = MemoryObjectReceiveStream[Sign]


class LiveEvents(Broadcast[TurnId, Sign]):
    """Who watches which turn. A watcher stops at `TurnFinished`, or an error. `relay` reaches other processes."""

    def __init__(self) -> None:
        super().__init__()
        self.relay: TurnRelay | None = None
        self._kept: dict[TurnId, list[TurnEvent]] = {}

    def keep(self, turn_id: TurnId) -> None:
        """Keeps what happens in the turn from now on until its end, or until `drop`."""
        self._kept.setdefault(turn_id, [])
        if len(self._kept) > KEPT_TURNS:
            del self._kept[next(iter(self._kept))]

    def drop(self, turn_id: TurnId) -> None:
        self._kept.pop(turn_id, None)

    def is_kept(self, turn_id: TurnId) -> bool:
        return turn_id in self._kept

    def is_watched(self, topic: TurnId) -> bool:
        return super().is_watched(topic) or (self.relay is not None and self.relay.is_watched(topic))

    @contextmanager
    def watch(self, topic: TurnId) -> Generator[Watch]:
        try:
            with super().watch(topic) as stream:
                if self.relay is not None:
                    self.relay.watch(topic, on=True)
                yield stream
        finally:
            if self.relay is not None and not super().is_watched(topic):
                self.relay.watch(topic, on=False)
                self.drop(topic)  # what happens elsewhere is not told any more, so the rest would be missing

    def publish(self, topic: TurnId, event: Sign) -> None:
        """Tells those who watch here and elsewhere."""
        self.tell(topic, event)
        if self.relay is not None:
            self.relay.publish(topic, event)

    def tell(self, topic: TurnId, event: Sign) -> None:
        """Tells those who watch here."""
        kept = self._kept.get(topic)
        if kept is not None:
            if isinstance(event, TurnFinished | DenizenError):
                self.drop(topic)
            else:
                _append(kept, event)
        super().publish(topic, event)

    def list_earlier(self, topic: TurnId) -> Sequence[Sign]:
        return self._kept.get(topic, ())


def _append(kept: list[TurnEvent], event: TurnEvent) -> None:
    """Adds an event in as few as say the same: pieces of text are joined, and what was taken back goes."""
    last = kept[-1] if kept else None
    match event:
        case Notice():
            return
        case TextAdded(retract=True):
            kept[:] = [each for each in kept if not isinstance(each, TextAdded)]
            if event.text:
                kept.append(TextAdded(event.text))
        case TextAdded() if isinstance(last, TextAdded):
            kept[-1] = replace(last, text=last.text + event.text)
        case ReasoningAdded() if isinstance(last, ReasoningAdded):
            kept[-1] = ReasoningAdded(last.text + event.text)
        case _:
            kept.append(event)
    if len(kept) > KEPT_EVENTS:
        del kept[1]
