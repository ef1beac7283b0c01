"""Translates the errors of discord.py into ours, which say who has to act.

Every call to Discord happens inside `translate_errors`. By then discord.py has retried what is worth it: five tries,
and rate limits of up to a minute. Its exceptions go no further, since they may contain URLs with tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import aiohttp
import discord

from denizen.adapters.discord.client.settings import PORTAL_URL
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.words import truncate

VENDOR_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)
"""Everything that a request may raise. Our own deadlines raise TimeoutError, too."""

RESPONSE_TIMEOUT_S = 180.0
"""The deadline of one request, with its retries and rate limits."""

TOKEN_REFUSED = "discord_token_refused"  # noqa: S105 - the code of an error
"""The code of an error that says that the token is wrong or was reset."""

UNKNOWN_CHANNEL = 10003
UNKNOWN_MESSAGE = 10008
ALREADY_ACKNOWLEDGED = 40060
THREAD_EXISTS = 160004
REPLY_NEEDS_HISTORY = 160002

_GONE = frozenset({10003, 10004, 10008, 10011, 10013, 10014, 10015, 10062, 50027, 10063})
"""Unknown channel, guild, message, role, user, emoji, webhook, interaction, command; an expired webhook token."""
# Missing access or permissions, refused direct messages, archived or locked threads, other people's messages.
_FORBIDDEN = frozenset({50001, 50007, 50013, 50083, REPLY_NEEDS_HISTORY, 160005, 40333, 20009, 50003, 50004, 50005})
_TOO_LARGE = 413
_SHOWN_CHARS = 300

ListMissing = Callable[[], Sequence[str]]
"""Returns the missing permissions. Called only after Discord refused."""


@contextmanager
def translate_errors(doing: str, *, missing: ListMissing | None = None) -> Generator[None]:
    """Raises errors inside the block as ours. `doing` completes "Discord would not let the account ..."."""
    try:
        yield
    except VENDOR_ERRORS as error:
        raise translate_error(error, doing, missing=missing) from None


def translate_error(error: Exception, doing: str, *, missing: ListMissing | None = None) -> DenizenError:
    """Returns our error for an exception of discord.py or aiohttp."""
    match error:
        case discord.HTTPException():
            return _http_fault(error, doing, missing)
        case discord.RateLimited():
            return _busy(doing, error.retry_after)
        case discord.GatewayNotFound():
            return _unreachable(doing, "It does not say where its gateway is.")
        case discord.ClientException():
            return Unavailable(f"discord.py could not {doing}.", code="discord_client", why=str(error))
        case TimeoutError():
            return _unreachable(doing, "There was no answer in time.")
        case _:
            return _unreachable(doing, type(error).__name__)


def explain_refused_token(setting: str) -> NeedsAttention:
    """Returns the error for a token that is wrong or was reset."""
    return NeedsAttention(
        "Discord refused the token.",
        code=TOKEN_REFUSED,
        why="It is misspelt, or was reset in the developer portal.",
        fix=f"Put a valid token into {setting}. It is shown once, after Reset Token: {PORTAL_URL} > the application > "
        "Bot > Token.",
    )


def _http_fault(error: discord.HTTPException, doing: str, missing: ListMissing | None) -> DenizenError:
    said = _words(error)
    if error.status == 429:
        return _busy(doing, _retry_after_s(error))
    if error.status >= 500:
        return Unavailable(
            f"Discord is not able to {doing} at the moment.",
            code="discord_server_error",
            why=f"HTTP {error.status}",
            fix="Try again later; see https://discordstatus.com.",
        )
    if error.status == 401 and error.code not in _GONE:
        return explain_refused_token("the account's settings")
    if error.code in _FORBIDDEN or (error.status == 403 and error.code not in _GONE):
        return _forbidden(doing, said, missing)
    if error.code in _GONE or error.status == 404:
        return NotFound(
            f"What the account wanted to {doing} is not on Discord any more.", code="discord_gone", why=said
        )
    code = "discord_too_large" if error.status == _TOO_LARGE or error.code == 40005 else "discord_rejected"
    return InvalidInput(f"Discord would not let the account {doing}.", code=code, why=said)


def _forbidden(doing: str, said: str, missing: ListMissing | None) -> NotAllowed:
    names = ", ".join(missing()) if missing is not None else ""
    return NotAllowed(
        f"The account may not {doing}.",
        code="discord_forbidden",
        why=f"{said} Missing: {names}." if names else said,
        fix=f"Give the account's role these permissions there: {names}."
        if names
        else "Look at the account's role and at the permissions of the channel.",
    )


def _busy(doing: str, retry_after_s: float | None) -> Unavailable:
    return Unavailable(
        f"Discord does not let the account {doing} so often.",
        code="discord_rate_limited",
        why="The rate limit lasts longer than we wait.",
        fix="Try again later.",
        retry_after_s=retry_after_s,
    )


def _unreachable(doing: str, why: str) -> Unavailable:
    return Unavailable(
        f"Discord could not be reached to {doing}.",
        code="discord_unreachable",
        why=why,
        fix="Check the network, and https://discordstatus.com.",
    )


def _retry_after_s(error: discord.HTTPException) -> float | None:
    given = error.response.headers.get("Retry-After", "")
    try:
        return float(given)
    except ValueError:
        return None


def _words(error: discord.HTTPException) -> str:
    """Returns Discord's own sentence and error number. A body that is not JSON comes from a proxy and is not shown."""
    if not error.code:
        return f"HTTP {error.status}"
    return f"{truncate(' '.join(error.text.split()), _SHOWN_CHARS)} ({error.code})"
