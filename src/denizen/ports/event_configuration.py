"""Listeners and sources of events in the configuration, for tools that change them.

Implemented by `app/event_configuration`: it writes `denizen.yaml`, whose comments stay, and loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from denizen.domain.json import Json
from denizen.domain.principal import Principal


class EventEntryKind(StrEnum):
    """The kind of an entry of the configuration. WEBHOOK: a route for webhooks of others."""

    LISTENER = "listener"
    WEBSOCKET = "websocket"
    POLL = "poll"
    WEBHOOK = "webhook"


class EventConfiguration(Protocol):
    """Methods that change something return the difference of the file, and raise InvalidInput (`config_invalid`) for
    what cannot be used, with the reason; nothing is written then.
    """

    async def list_entries(self) -> Mapping[EventEntryKind, Mapping[str, Json]]:
        """Returns the entries as they are written, by name, secrets masked."""
        ...

    async def put(self, by: Principal, kind: EventEntryKind, name: str, values: Mapping[str, Json]) -> str:
        """Adds an entry, or sets these keys of it; None takes one out, others stay. Texts are plain, also `${NAME}`. A
        new route for webhooks gets a secret of its own, in `secrets.env`.

        Raises NotAllowed for a source with headers or an address of the own network: who runs the server alone decides
        where these go.
        """
        ...

    async def switch(self, by: Principal, kind: EventEntryKind, name: str, *, is_on: bool) -> str:
        """Raises NotFound."""
        ...

    async def remove(self, by: Principal, kind: EventEntryKind, name: str) -> str:
        """Raises NotFound."""
        ...
