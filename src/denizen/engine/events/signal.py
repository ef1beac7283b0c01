"""A signal between parts of this process: something happened, look again."""

from __future__ import annotations

import anyio


class Signal:
    """Wakes whoever waits for something to happen again. Made of others, it is sent whenever one of those is."""

    def __init__(self, *sources: Signal) -> None:
        self._event = anyio.Event()
        self.followers: list[Signal] = []
        for source in sources:
            source.followers.append(self)

    @property
    def next(self) -> anyio.Event:
        """The event that is set when the signal is sent next. Take it before you look, so that you miss nothing."""
        return self._event

    def send(self) -> None:
        """Neither waits nor fails."""
        sent, self._event = self._event, anyio.Event()
        sent.set()
        for follower in self.followers:
            follower.send()
