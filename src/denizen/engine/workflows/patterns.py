"""Regular expressions of workflows, within a bounded time: one that backtracks without end must not hold up the
process. The standard library's expressions cannot be interrupted; those of `regex` can.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from denizen.domain.errors import LimitExceeded
from denizen.domain.json import Json, JsonObject

TIMEOUT_S = 1.0
MAX_CHARS = 100_000
"""How much of a text is searched."""
MAX_MATCHES = 1000


async def find_groups(pattern: str, text: str) -> Sequence[JsonObject]:
    """Returns the matches in a text, each with its groups by number and name. Raises LimitExceeded (`pattern_slow`)."""
    import regex

    def search() -> Sequence[JsonObject]:
        found: list[JsonObject] = []
        for match in regex.finditer(pattern, text[:MAX_CHARS], timeout=TIMEOUT_S, concurrent=True):
            groups: dict[str, Json] = {str(number): each for number, each in enumerate(match.groups(), 1)}
            found.append({"match": match[0], "groups": groups | match.groupdict()})
            if len(found) == MAX_MATCHES:
                break
        return found

    try:
        return await to_thread.run_sync(search)
    except TimeoutError:
        raise LimitExceeded(
            "The regular expression takes too long.",
            code="pattern_slow",
            fix="Write it without a repetition inside a repetition, such as (a+)+.",
        ) from None
