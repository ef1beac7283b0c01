"""`ports/hosting` over the accounts that run: which account a webhook is for, and the repositories of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.ports.hosting import HostedRepository, Receipt, webhook_unknown

if TYPE_CHECKING:
    from denizen.adapters.github.account import GitHubAccount

GITHUB = "github"


class AccountsHosting:
    """`denizen.ports.hosting.Hosting`. `accounts` gives those of GitHub that run, connected or not."""

    def __init__(self, accounts: Callable[[], Sequence[GitHubAccount]]) -> None:
        self._accounts = accounts

    async def take_webhook(self, platform: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        """Each account whose secret signed it is told. An App hears of its own webhooks only."""
        if platform != GITHUB:
            raise webhook_unknown(platform)
        signed = [each for each in self._signed_by(headers, body) if _is_target(each, headers)]
        event = headers.get("x-github-event", "")
        if event == "ping":
            return Receipt.PONG
        payload = _read(headers, body)
        taken = [await account.take(event, payload) for account in signed]
        return Receipt.TAKEN if any(taken) else Receipt.IGNORED

    async def list_repositories(self, platform: str) -> Sequence[HostedRepository]:
        accounts = [each for each in self._accounts() if each.is_connected] if platform == GITHUB else []
        found = {each.name: each for account in accounts for each in await account.list_repositories()}
        return [found[name] for name in sorted(found, key=str.lower)]

    def _signed_by(self, headers: Mapping[str, str], body: bytes) -> list[GitHubAccount]:
        """Raises NotFound when nobody could have signed anything, NotAllowed when nobody did."""
        from denizen.adapters.github.events import HEADER, is_signed

        accounts = [each for each in self._accounts() if each.settings.webhook_secret]
        if not accounts:
            raise NotFound(
                "Webhooks of GitHub are switched off.",
                code="webhook_off",
                why="no account has a webhook secret, and without one anybody could send them",
                fix="Set channels.github.accounts.NAME.webhook_secret, and the same secret on GitHub.",
            )
        signature = headers.get(HEADER, "")
        if not signature:
            raise NotAllowed(
                "This webhook is not signed.", code="signature_missing",
                fix="Enter the secret of channels.github.accounts.NAME.webhook_secret in the webhook's settings.",
            )  # fmt: skip
        signed = [each for each in accounts if is_signed(each.settings.webhook_secret, body, signature)]
        if not signed:
            raise NotAllowed(
                "The signature of this webhook does not match.", code="signature_wrong",
                fix="Enter the same secret on GitHub and in channels.github.accounts.NAME.webhook_secret.",
            )  # fmt: skip
        return signed


def _is_target(account: GitHubAccount, headers: Mapping[str, str]) -> bool:
    if headers.get("x-github-hook-installation-target-type") != "integration":
        return True
    return not account.settings.is_app or (
        headers.get("x-github-hook-installation-target-id", account.settings.app_id) == account.settings.app_id
    )


def _read(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        payload = json.loads(body) if media_type == "application/json" else None
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise InvalidInput(
            "This webhook is no JSON object.", code="json_invalid",
            fix="Choose the content type application/json in the webhook's settings on GitHub.",
        )  # fmt: skip
    return cast("Mapping[str, Any]", payload)
