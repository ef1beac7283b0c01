"""Events for those who watch something in this process.

Best effort by design: what counts is in the store. A watcher that is slow makes its own queue long and blocks nobody.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

Topic = TypeVar("Topic", bound=Hashable)
Event = TypeVar("Event")


class Broadcast(Generic[Topic, Event]):
    """Who watches which topic."""

    def __init__(self) -> None:
        self._watchers: dict[Topic, list[MemoryObjectSendStream[Event]]] = {}

    def publish(self, topic: Topic, event: Event) -> None:
        """Hands the event to every watcher of the topic; nobody watching is the normal case."""
        for stream in self._watchers.get(topic, ()):
            stream.send_nowait(event)

    def is_watched(self, topic: Topic) -> bool:
        return topic in self._watchers

    def list_earlier(self, topic: Topic) -> Sequence[Event]:
        """Returns the events that are kept for those who come later: none, unless a subclass keeps some."""
        del topic
        return ()

    @contextmanager
    def watch(self, topic: Topic) -> Generator[MemoryObjectReceiveStream[Event]]:
        """Events of the topic, the earlier ones that are kept and those from now on. The stream does not end by
        itself.
        """
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        for event in self.list_earlier(topic):
            send.send_nowait(event)
        self._watchers.setdefault(topic, []).append(send)
        try:
            yield receive
        finally:
            watchers = self._watchers[topic]
            watchers.remove(send)
            if not watchers:
                del self._watchers[topic]
            send.close()
            receive.close()
