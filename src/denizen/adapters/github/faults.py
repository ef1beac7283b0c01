"""What GitHub refuses, as our errors: who has to do what. Pure.

GitHub's sentences name permissions and limits and no secrets, so they are told as the reason; they never reach a thread
(`engine/outbox/words` has the sentences for people).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable

SECONDARY_PAUSE_S = 60.0
"""GitHub asks for a minute where it does not say how long a secondary limit lasts."""
MAX_PAUSE_S = 3600.0
_SHOWN_CHARS = 300


def fault_of(status: int, headers: Mapping[str, str], body: object, doing: str, *, now: datetime) -> DenizenError:
    """The error of an answer that is none. `headers` in lower case; `doing` completes "GitHub would not let the account
    ...".
    """
    said = words_of(body) or f"HTTP {status}"
    pause_s = pause_of(status, headers, said, now=now)
    if pause_s is not None:
        return Unavailable(
            f"GitHub does not let the account {doing} so often.",
            code="github_rate_limited",
            why=said,
            fix="Wait; where it lasts, use a GitHub App, whose limits are wider.",
            retry_after_s=pause_s,
        )
    if status >= 500:
        return Unavailable(
            f"GitHub is not able to {doing} at the moment.",
            code="github_server_error",
            why=f"HTTP {status}",
            fix="Try again later; see https://www.githubstatus.com.",
        )
    if status == 401:
        return NeedsAttention(
            "GitHub refused the credentials.",
            code="github_credentials_refused",
            why=said,
            fix="Check the App's id and private key, or the token, and whether it has expired.",
        )
    if status == 403:
        return NotAllowed(
            f"The account may not {doing}.",
            code="github_forbidden",
            why=said,
            fix="Give the App or token read and write access to issues, pull requests and discussions there, and "
            "accept the new permissions for the installation.",
        )
    if status in (404, 410):
        return NotFound(
            f"What the account wanted to {doing} is not on GitHub, or it may not see it.", code="github_gone", why=said
        )
    return InvalidInput(f"GitHub would not let the account {doing}.", code="github_rejected", why=said)


def pause_of(status: int, headers: Mapping[str, str], said: str, *, now: datetime) -> float | None:
    """For how many seconds nothing should be asked; None for an answer that is no matter of limits."""
    if status not in (403, 429):
        return None
    after = headers.get("retry-after", "")
    if after.isdecimal():
        return min(float(after), MAX_PAUSE_S)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(float(reset) - now.timestamp(), 1.0), MAX_PAUSE_S)
    if status == 429 or "rate limit" in said.lower():
        return SECONDARY_PAUSE_S
    return None


def unreachable(doing: str, why: str) -> Unavailable:
    return Unavailable(
        f"GitHub could not be reached to {doing}.",
        code="github_unreachable",
        why=why,
        fix="Check the network, and https://www.githubstatus.com.",
    )


def words_of(body: object) -> str:
    """GitHub's own sentence, with what it says of single fields."""
    if not isinstance(body, dict):
        return ""
    told = cast("dict[str, Any]", body)
    errors: Any = told.get("errors")
    parts = [str(told.get("message", ""))]
    if isinstance(errors, list):
        parts += [
            str(cast("dict[str, Any]", e).get("message", "")) if isinstance(e, dict) else str(e)
            for e in cast("list[Any]", errors)
        ]
    text = " ".join(" ".join(part for part in parts if part).split())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
