"""Webhooks that others send here: whether one is genuine, and which event it tells of.

`adapters/webhooks` has the schemes of those who send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Protocol

from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record


@record(kw_only=True)
class WebhookContent:
    """The content of a genuine webhook. `kind` is the type of its event, empty for that of the route. `delivery` is the
    sender's name for the delivery, empty where it gives none. `is_ping`: the sender only tries whether it arrives;
    `challenge` is the text that it then wants back.
    """

    kind: str = ""
    subject: str = ""
    delivery: str = ""
    data: JsonObject = field(default_factory=dict[str, Json])
    is_ping: bool = False
    challenge: str = ""


class WebhookScheme(Protocol):
    """The way in which a sender proves who it is and tells of events. Headers are in lower case."""

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        """Tells whether a webhook comes from somebody who has the secret; an empty secret has nobody. It takes the same
        time for a wrong signature and for none.
        """
        ...

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        """Returns the content of a webhook; an empty body is an empty object. Raises InvalidInput for what is not
        JSON.
        """
        ...


@record(kw_only=True)
class WebhookRoute:
    """A route that takes webhooks."""

    name: str
    scheme: WebhookScheme
    secret: str = field(default="", repr=False)

    @property
    def source(self) -> str:
        """The source of its events."""
        return f"/webhooks/{self.name}"
