"""Takes the webhooks of others: whoever has the secret of a route gets an event into the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum

from denizen.domain.clock import Clock
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import NotAllowed, NotFound, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.record import record
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.ports.webhooks import WebhookRoute

_log = logging.getLogger("denizen.events")


class WebhookOutcome(StrEnum):
    """The outcome of a genuine webhook. KNOWN: that delivery has come before; PONG: it was only a try."""

    TAKEN = "taken"
    KNOWN = "known"
    PONG = "pong"


@record
class WebhookAnswer:
    """The answer to a webhook: its event's key, and the text that the sender wants back."""

    outcome: WebhookOutcome
    event: str = ""
    challenge: str = ""


class WebhookIntake:
    """One for a process. Routes are those in force at the moment."""

    def __init__(self, runtime: Runtime, clock: Clock, bus: EventBus) -> None:
        self._runtime = runtime
        self._clock = clock
        self._bus = bus

    def find_route(self, name: str) -> WebhookRoute:
        """Raises Unavailable (`webhooks_off`) while webhooks are off, and NotFound."""
        routes = self._runtime.current.events.routes
        if routes is None:
            raise Unavailable("Webhooks are off.", code="webhooks_off", fix="Write webhooks.enabled: true.")
        route = routes.get(name)
        if route is None:
            raise NotFound(
                f"There is no webhook route '{name[:64]}'.",
                code="webhook_unknown",
                fix="Look at webhooks.routes in the configuration.",
            )
        return route

    async def take(self, route: WebhookRoute, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """Keeps the event; `headers` are in lower case. Of several with one delivery's name the first counts, whatever
        their bodies: some senders count their tries in these. Raises NotAllowed (`signature_wrong`), InvalidInput for a
        body that is not JSON.
        """
        now = self._clock.now()
        if not route.scheme.is_genuine(route.secret, headers, body, now=now):
            raise NotAllowed(
                "This webhook is not signed with the secret of its route.",
                code="signature_wrong",
                why="the signature or token of its scheme is missing, or does not fit",
                fix="Compare the secret of the route under webhooks with the one that the sender uses.",
            )
        content = route.scheme.read(headers, body)
        if content.is_ping:
            return WebhookAnswer(WebhookOutcome.PONG, challenge=content.challenge)
        event = CloudEvent(
            id=content.delivery or fresh("hook"),
            source=route.source,
            type=content.kind or f"webhook.{route.name}",
            subject=content.subject,
            time=now,
            data=content.data,
        )
        is_new = await self._bus.publish(event)
        if not is_new and (kept := await self._bus.find(event.key)) is not None and kept.data != event.data:
            about = {"event": event.key, "route": route.name}
            _log.warning("a webhook came again with another body, which is not kept", extra=about)
        return WebhookAnswer(WebhookOutcome.TAKEN if is_new else WebhookOutcome.KNOWN, event.key)
