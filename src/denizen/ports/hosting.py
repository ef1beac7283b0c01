"""What the web asks of accounts on a platform that hosts repositories: taking its webhooks, and naming repositories.

Implemented by `app/hosting`, over the accounts that are connected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from denizen.domain.errors import NotFound


class WebhookReceipt(StrEnum):
    """What became of a webhook."""

    PONG = "pong"
    TAKEN = "taken"
    """What it tells of is in the store, or will be read again."""
    IGNORED = "ignored"
    """It is about nothing that concerns an agent."""


@dataclass(frozen=True, slots=True)
class HostedRepository:
    """`name` is `owner/name`; `address` is what a source is read from; `updated_at` in ISO form."""

    name: str
    address: str
    branch: str
    is_private: bool
    description: str = ""
    updated_at: str = ""


class Hosting(Protocol):
    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> WebhookReceipt:
        """`headers` in lower case. Raises NotFound for a platform that sends none or whose webhooks are off, NotAllowed
        (`signature_missing`, `signature_wrong`), InvalidInput, and Unavailable while the account is not connected.
        """
        ...

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        """Those that the accounts can read, each once, by name."""
        ...


class NoHosting:
    """Where there are no such accounts."""

    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> WebhookReceipt:
        raise webhook_unknown(platform)

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        return ()


def webhook_unknown(platform: str) -> NotFound:
    """For a platform that sends no webhooks here."""
    why = "its events come over its gateway" if platform == "discord" else ""
    fix = "Send webhooks of GitHub to /api/webhooks/github."
    return NotFound(f"There are no webhooks of '{platform[:40]}' here.", code="webhook_unknown", why=why, fix=fix)
