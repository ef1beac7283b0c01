"""The schemes of webhooks: Standard Webhooks, how GitHub, Stripe and Slack sign theirs, and tokens in a header.

A signature proves that its sender has the secret, and covers the body. A token is the secret itself: whoever sees one
request can make others, so no route takes tokens unless its configuration names such a scheme.
Each has headers of its own, and none of them is the one that API keys come in. Implements `denizen.ports.webhooks`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.cloud_event import read_json
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.ports.webhooks import WebhookContent, WebhookScheme

REPLAY_WINDOW = timedelta(minutes=5)
"""A timestamped webhook may be so old, or so early, as the clocks of two machines differ."""
TOKEN_HEADER = "x-webhook-token"  # noqa: S105 - the name of a header
DELIVERY_HEADER = "x-webhook-id"
"""The header in which senders of tokens may say which delivery it is."""
_ENCODED_SECRET = "whsec_"  # noqa: S105 - how such a secret begins
MAX_TEXT_CHARS = 200


class SchemeName(StrEnum):
    """The name of a scheme, as the configuration has it."""

    STANDARD = "standard"
    GITHUB = "github"
    STRIPE = "stripe"
    SLACK = "slack"
    GITLAB = "gitlab"
    BEARER = "bearer"


TOKEN_SCHEMES = frozenset({SchemeName.GITLAB, SchemeName.BEARER})
"""The schemes in which the secret itself is sent, and nothing is signed."""


def find_scheme(name: SchemeName) -> WebhookScheme:
    return _SCHEMES[name]


class StandardScheme:
    """Standard Webhooks: a signature of the delivery's name, the time and the body, in base64 behind `v1,`. There may
    be several while a secret is changed. A secret that begins with `whsec_` is base64, any other is the key itself.
    """

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        delivery, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        payload = f"{delivery}.{sent}.".encode(errors="surrogatepass") + body
        made = base64.b64encode(hmac.digest(_decode_secret(secret), payload, "sha256")).decode()
        given = [each.removeprefix("v1,") for each in headers.get("webhook-signature", "").split()[:20]] or [""]
        is_right = [_is_same(secret, made, each) for each in given]
        return any(is_right) and bool(delivery) and _is_fresh(sent, now)

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        return WebhookContent(delivery=headers.get("webhook-id", "")[:MAX_TEXT_CHARS], data=read_body(body))


def sign_standard(secret: str, delivery: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """Returns the headers of a webhook that Denizen sends itself, by Standard Webhooks. The same `delivery` again is
    known as the same by its receiver.
    """
    sent = str(int(now.timestamp()))
    made = hmac.digest(_decode_secret(secret), f"{delivery}.{sent}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(made).decode()}"
    return {"webhook-id": delivery, "webhook-timestamp": sent, "webhook-signature": signature}


class BearerScheme:
    """The secret itself in the header `X-Webhook-Token`, with or without `Bearer` before it."""

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        del now
        first, _, rest = headers.get(TOKEN_HEADER, "").partition(" ")
        _sign(secret, body)  # so that all schemes take as long
        return _is_same(secret, secret, rest.strip() if first.lower() == "bearer" else f"{first}{rest}")

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        return WebhookContent(delivery=headers.get(DELIVERY_HEADER, "")[:MAX_TEXT_CHARS], data=read_body(body))


class GitHubScheme:
    """A signature of the body, and a header that tells the event. The headers are not signed, so the same body is the
    same delivery, whatever name or event a request gives it: else who saw one could have it count again.
    """

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        del now
        return _is_same(secret, f"sha256={_sign(secret, body)}", headers.get("x-hub-signature-256", ""))

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        data, event = read_body(body), _name_part(headers.get("x-github-event", ""))
        return WebhookContent(
            kind=f"github.{event}",
            subject=_read_inner(data, "repository", "full_name"),
            delivery=hashlib.sha256(body).hexdigest(),
            data=data,
            is_ping=event == "ping",
        )


class GitLabScheme:
    """The secret in a header of GitLab's own. The body tells the event, and a header the delivery."""

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        del now
        _sign(secret, body)
        return _is_same(secret, secret, headers.get("x-gitlab-token", ""))

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        data = read_body(body)
        told = data.get("object_kind") or headers.get("x-gitlab-event", "").removesuffix(" Hook")
        return WebhookContent(
            kind=f"gitlab.{_name_part(str(told))}",
            subject=_read_inner(data, "project", "path_with_namespace"),
            delivery=headers.get("idempotency-key", "")[:MAX_TEXT_CHARS],
            data=data,
        )


class StripeScheme:
    """A signature of time and body: `t=1492774577,v1=5257a8...`. There may be several while a secret is changed."""

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        fields = [entry.strip().partition("=") for entry in headers.get("stripe-signature", "").split(",")[:20]]
        sent = next((value for name, _, value in fields if name == "t"), "")
        made = _sign(secret, sent.encode(errors="surrogatepass") + b"." + body)
        given = [value for name, _, value in fields if name == "v1"] or [""]
        is_right = [_is_same(secret, made, each) for each in given]
        return any(is_right) and _is_fresh(sent, now)

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        del headers
        data = read_body(body)
        return WebhookContent(subject=_read_text(data.get("type")), delivery=_read_text(data.get("id")), data=data)


class SlackScheme:
    """A signature of time and body, each in a header. Slack sends a challenge when a webhook is set up."""

    def is_genuine(self, secret: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> bool:
        sent = headers.get("x-slack-request-timestamp", "")
        made = f"v0={_sign(secret, b'v0:' + sent.encode(errors='surrogatepass') + b':' + body)}"
        return _is_same(secret, made, headers.get("x-slack-signature", "")) and _is_fresh(sent, now)

    def read(self, headers: Mapping[str, str], body: bytes) -> WebhookContent:
        del headers
        data = read_body(body)
        is_ping = data.get("type") == "url_verification"
        return WebhookContent(
            subject=_read_inner(data, "event", "type"),
            delivery=_read_text(data.get("event_id")),
            data=data,
            is_ping=is_ping,
            challenge=_read_text(data.get("challenge")) if is_ping else "",
        )


_SCHEMES: Mapping[SchemeName, WebhookScheme] = {
    SchemeName.STANDARD: StandardScheme(),
    SchemeName.GITHUB: GitHubScheme(),
    SchemeName.STRIPE: StripeScheme(),
    SchemeName.SLACK: SlackScheme(),
    SchemeName.GITLAB: GitLabScheme(),
    SchemeName.BEARER: BearerScheme(),
}


def _decode_secret(secret: str) -> bytes:
    """Returns the key; a secret that only looks like base64 is one as it stands."""
    try:
        decoded = base64.b64decode(secret.removeprefix(_ENCODED_SECRET), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    return decoded if decoded and secret.startswith(_ENCODED_SECRET) else secret.encode()


def _sign(secret: str, payload: bytes) -> str:
    return hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()


def _is_same(secret: str, made: str, given: str) -> bool:
    """Compares digests, so that neither length nor content of a text shows in the time that it takes."""
    return hmac.compare_digest(_digest(made), _digest(given)) and bool(secret) and bool(given)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _is_fresh(sent: str, now: datetime) -> bool:
    is_number = sent.isascii() and sent.isdecimal() and len(sent) <= 12
    return is_number and abs(now.timestamp() - int(sent)) <= REPLAY_WINDOW.total_seconds()


def read_body(body: bytes) -> JsonObject:
    """Returns the object in the body; a list or a value stands below `items`. Raises InvalidInput, also for one that is
    nested too deeply.
    """
    if not body.strip():
        return {}
    try:
        data = read_json(body.decode("utf-8-sig"))
    except ValueError as error:
        raise InvalidInput(
            "The body of this webhook is not valid JSON.", code="json_invalid", fix="Have it sent as application/json."
        ) from error
    return data if isinstance(data, dict) else {"items": data}


def _name_part(text: str) -> str:
    kept = "".join(char if char.isascii() and char.isalnum() else "_" for char in text.strip().lower())
    return kept[:64] or "unknown"


def _read_inner(data: JsonObject, outer: str, name: str) -> str:
    part = data.get(outer)
    return _read_text(part.get(name)) if isinstance(part, Mapping) else ""


def _read_text(value: Json) -> str:
    return value[:MAX_TEXT_CHARS] if isinstance(value, str) else ""
