"""Webhooks that others send here: whether one is genuine, and which event it tells of. Pure.

Each scheme has headers of its own, and none of them is the one that API keys come in.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

REPLAY_WINDOW = timedelta(minutes=5)
"""A timestamped webhook may be so old, or so early, as the clocks of two machines differ."""
TOKEN_HEADER = "x-webhook-token"  # noqa: S105 - the name of a header
DELIVERY_HEADER = "x-webhook-id"
"""The header in which senders without a scheme of their own may say which delivery it is."""
MAX_DELIVERY_CHARS = 200


class WebhookScheme(StrEnum):
    """How senders prove who they are: as GitHub, GitLab, Stripe and Slack do it, or with the secret in a header."""

    GITHUB = "github"
    GITLAB = "gitlab"
    STRIPE = "stripe"
    SLACK = "slack"
    BEARER = "bearer"


@record(kw_only=True)
class WebhookRoute:
    """A route that takes webhooks. An empty secret fits none."""

    name: str
    scheme: WebhookScheme = WebhookScheme.BEARER
    secret: str = field(default="", repr=False)

    @property
    def source(self) -> str:
        return f"/webhooks/{self.name}"


def is_genuine(route: WebhookRoute, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
    """Tells whether a webhook comes from somebody who has the secret. `headers` are in lower case. It takes the same
    time for a wrong signature and for none.
    """
    made, given, is_fresh = _SCHEMES[route.scheme](route.secret.encode(), headers, body, now)
    is_right = hmac.compare_digest(_digest(made), _digest(given))
    return is_right and is_fresh and bool(route.secret) and bool(given)


def refuse_webhook() -> NotAllowed:
    return NotAllowed(
        "This webhook is not signed with the secret of its route.",
        code="signature_wrong",
        fix="Compare the secret of the route under webhooks with the one that the sender uses.",
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _hmac(secret: bytes, payload: bytes) -> str:
    return hmac.new(secret, payload, hashlib.sha256).hexdigest()


def _check_github(secret: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[str, str, bool]:
    del now
    return f"sha256={_hmac(secret, body)}", headers.get("x-hub-signature-256", ""), True


def _check_gitlab(secret: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[str, str, bool]:
    del now
    _hmac(secret, body)  # so that all schemes take as long
    return secret.decode(), headers.get("x-gitlab-token", ""), True


def _check_bearer(secret: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[str, str, bool]:
    del now
    _hmac(secret, body)
    scheme, _, token = headers.get(TOKEN_HEADER, "").partition(" ")
    return secret.decode(), token.strip() if scheme.lower() == "bearer" and token else f"{scheme}{token}", True


def _check_stripe(secret: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[str, str, bool]:
    """`t=1492774577,v1=5257a8...`; there may be several `v1` while a secret is changed."""
    fields = [entry.strip().partition("=") for entry in headers.get("stripe-signature", "").split(",")[:20]]
    sent = next((value for name, _, value in fields if name == "t"), "")
    made = _hmac(secret, sent.encode(errors="surrogatepass") + b"." + body)
    given = [value for name, _, value in fields if name == "v1"]
    return (
        made,
        next((each for each in given if hmac.compare_digest(_digest(each), _digest(made))), ""),
        _is_fresh(sent, now),
    )


def _check_slack(secret: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> tuple[str, str, bool]:
    sent = headers.get("x-slack-request-timestamp", "")
    made = f"v0={_hmac(secret, b'v0:' + sent.encode(errors='surrogatepass') + b':' + body)}"
    return made, headers.get("x-slack-signature", ""), _is_fresh(sent, now)


def _is_fresh(sent: str, now: datetime) -> bool:
    is_number = sent.isascii() and sent.isdecimal() and len(sent) <= 12
    return is_number and abs(now.timestamp() - int(sent)) <= REPLAY_WINDOW.total_seconds()


_SCHEMES = {
    WebhookScheme.GITHUB: _check_github,
    WebhookScheme.GITLAB: _check_gitlab,
    WebhookScheme.STRIPE: _check_stripe,
    WebhookScheme.SLACK: _check_slack,
    WebhookScheme.BEARER: _check_bearer,
}


def read_webhook(
    route: WebhookRoute, headers: Mapping[str, str], body: bytes, *, now: datetime, fresh_id: str
) -> CloudEvent:
    """Returns the event that a genuine webhook tells of. Its id is that of the delivery, where the sender gives one, so
    that the same delivery is one event. An empty body is an empty object. Raises InvalidInput for what is not JSON.
    """
    data = _read_body(body)
    kind, subject = _name_event(route, headers, data)
    given = next((headers[name] for name in _DELIVERY_HEADERS[route.scheme] if headers.get(name)), "")
    if not given:
        inner = data.get("event_id" if route.scheme is WebhookScheme.SLACK else "id")
        is_told = route.scheme in (WebhookScheme.SLACK, WebhookScheme.STRIPE) and isinstance(inner, str)
        given = str(inner) if is_told else ""
    return CloudEvent(
        id=given[:MAX_DELIVERY_CHARS] or fresh_id, source=route.source, type=kind, subject=subject, time=now, data=data
    )


_DELIVERY_HEADERS = {
    WebhookScheme.GITHUB: ("x-github-delivery",),
    WebhookScheme.GITLAB: ("idempotency-key",),
    WebhookScheme.STRIPE: (),
    WebhookScheme.SLACK: (),
    WebhookScheme.BEARER: (DELIVERY_HEADER,),
}


def _read_body(body: bytes) -> JsonObject:
    if not body.strip():
        return {}
    try:
        data: Json = json.loads(body.decode("utf-8-sig"))
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()  # half of a surrogate pair cannot be stored
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            "The body of this webhook is not valid JSON.", code="json_invalid", fix="Have it sent as application/json."
        ) from error
    if isinstance(data, dict):
        return data
    return {"items": data}


def _name_event(route: WebhookRoute, headers: Mapping[str, str], data: JsonObject) -> tuple[str, str]:
    """Returns type and subject."""
    match route.scheme:
        case WebhookScheme.GITHUB:
            return f"github.{_word(headers.get('x-github-event', ''))}", _inner(data, "repository", "full_name")
        case WebhookScheme.GITLAB:
            told = str(data.get("object_kind") or headers.get("x-gitlab-event", "").removesuffix(" Hook"))
            return f"gitlab.{_word(told)}", _inner(data, "project", "path_with_namespace")
        case WebhookScheme.STRIPE:
            return f"webhook.{route.name}", str(data.get("type") or "")[:MAX_DELIVERY_CHARS]
        case WebhookScheme.SLACK:
            return f"webhook.{route.name}", _inner(data, "event", "type")
        case WebhookScheme.BEARER:
            return f"webhook.{route.name}", ""


def _word(text: str) -> str:
    kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in text.strip().lower())
    return kept[:64] or "unknown"


def _inner(data: JsonObject, outer: str, name: str) -> str:
    part = data.get(outer)
    return str(part.get(name) or "")[:MAX_DELIVERY_CHARS] if isinstance(part, Mapping) else ""
