"""The line in the terminal that says how long a turn has shown nothing, as while a model loads or reads a long prompt.

`ask` and `chat` hand it every event of a turn before they show it. It is drawn by a thread: `ask` has no event loop
beside a server, and imports may be what is waited for.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from denizen_sdk.turns import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    ChatEvent,
    ReasoningAddedEvent,
    TextAddedEvent,
    TurnFailedEvent,
    TurnFinishedEvent,
)

T = TypeVar("T")

QUIET_S = 3.0
"""So long nothing is said of a silence."""
REDRAWN_EVERY_S = 1.0


class WaitingLine:
    """One line on standard error. Without escape sequences, which not every terminal knows. `shows_text` tells whether
    the text is shown as it grows.
    """

    def __init__(self, *, shows_text: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._shows_text = shows_text
        self._clock = clock
        self._lock = threading.Lock()
        self._quiet_since_s = clock()
        self._questions: set[str] = set()
        self._line_is_open = False
        self._watches = False
        self._drawn = ""

    @contextmanager
    def watch(self) -> Generator[None]:
        """Within the block, up to the end of a turn, silence is told of."""
        with self._lock:
            self._quiet_since_s, self._watches, self._line_is_open = self._clock(), True, False
            self._questions.clear()
        try:
            yield
        finally:
            with self._lock:
                self._erase()
                self._watches = False

    def give_way(self, show: Callable[[T], None]) -> Callable[[T], None]:
        """Returns `show` as something that breaks the silence: the line is taken away first."""

        def show_instead(shown: T) -> None:
            with self._lock:
                self._erase()
            show(shown)

        return show_instead

    def take(self, event: ChatEvent) -> None:
        """Every event before it is shown. No line comes while text grows, or while somebody is asked."""
        grows = isinstance(event, TextAddedEvent | ReasoningAddedEvent)
        if grows and not self._shows_text:
            return
        with self._lock:
            self._erase()
            self._line_is_open = grows
            match event:
                case ApprovalRequestedEvent():
                    self._questions.add(event.approval.id)
                case ApprovalDecidedEvent():
                    self._questions.discard(event.approval.id)
                case TurnFinishedEvent() | TurnFailedEvent():
                    self._watches = False
                case _:
                    pass

    def draw(self) -> None:
        """Draws the line when it is time."""
        with self._lock:
            quiet_s = self._clock() - self._quiet_since_s
            if quiet_s < QUIET_S or not self._watches or self._line_is_open or self._questions:
                return
            self._drawn = f"[waiting for the answer: {quiet_s:.0f} s]"
            sys.stderr.write(f"\r{self._drawn}")
            sys.stderr.flush()

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\r{' ' * len(self._drawn)}\r")
            sys.stderr.flush()
        self._drawn = ""
        self._quiet_since_s = self._clock()


@contextmanager
def open_waiting_line(*, shows_text: bool = True) -> Generator[WaitingLine]:
    """The line is drawn until the block ends, if standard error is a terminal."""
    line, ended = WaitingLine(shows_text=shows_text), threading.Event()

    def redraw() -> None:
        while not ended.wait(REDRAWN_EVERY_S):
            line.draw()

    if sys.stderr.isatty():
        threading.Thread(target=redraw, daemon=True).start()
    try:
        yield line
    finally:
        ended.set()
