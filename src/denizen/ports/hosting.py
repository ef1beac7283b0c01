"""Accounts on a platform that hosts repositories, for the web: taking its webhooks, and naming repositories.

`app/accounts` implements it over the accounts that are connected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from denizen.domain.errors import NotFound
from denizen.domain.record import record

SIGNATURE_HEADER = "x-hub-signature-256"
"""In lower case, as ASGI servers pass headers."""
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")


def is_signature(text: str) -> bool:
    """Tells whether this may be a signature in GitHub's form, so that it is worth while to read the body."""
    return bool(_SIGNATURE.fullmatch(text.strip()))


class WebhookReceipt(StrEnum):
    """The outcome of a webhook."""

    PONG = "pong"
    TAKEN = "taken"
    """Its event is in the store, or will be read again."""
    IGNORED = "ignored"
    """It concerns no agent."""


@record
class HostedRepository:
    """A repository. `name` is `owner/name`; `address` is what a source is read from; `updated_at` is in ISO form."""

    name: str
    address: str
    branch: str
    is_private: bool
    description: str = ""
    updated_at: str = ""


class RepositoryHosts(Protocol):
    """The accounts on platforms that host repositories."""

    def check_headers(self, platform: str, headers: Mapping[str, str]) -> None:
        """Checks what can be known of a webhook before its body is read; `headers` are in lower case.

        Raises NotFound for a platform that sends none or whose webhooks are off, and NotAllowed (`signature_missing`,
        `signature_wrong`).
        """
        ...

    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> WebhookReceipt:
        """Takes a webhook. Raises what `check_headers` does, NotAllowed (`signature_wrong`), InvalidInput, and
        Unavailable while the account is not connected.
        """
        ...

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        """Returns the repositories that the accounts can read, each once, by name."""
        ...


class NoRepositoryHosts:
    """Used where there are no such accounts."""

    def check_headers(self, platform: str, headers: Mapping[str, str]) -> None:
        raise webhook_unknown(platform)

    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> WebhookReceipt:
        raise webhook_unknown(platform)

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        return ()


def webhook_unknown(platform: str) -> NotFound:
    """Returns the error for a platform that sends no webhooks here."""
    fix = "Send webhooks of GitHub to /api/webhooks/github. Other platforms need none: Denizen connects to them."
    return NotFound(f"There are no webhooks of '{platform[:40]}' here.", code="webhook_unknown", fix=fix)
