"""Regular expressions of workflows, within a bounded time: one that backtracks without end must not hold up the
process. The standard library's expressions cannot be interrupted; those of `regex` can.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from denizen.domain.errors import LimitExceeded
from denizen.domain.json import Json, JsonObject
from denizen.domain.workflow_sizes import OutputRoom

TIMEOUT_S = 1.0
MAX_CHARS = 200_000
"""The limit of a text that is searched."""
MAX_MATCHES = 1000


async def find_groups(pattern: str, text: str) -> Sequence[JsonObject]:
    """Returns the matches in a text, each with its groups by number and name. Raises LimitExceeded for a text that is
    too long (`pattern_text`), an expression that takes too long (`pattern_slow`) and matches that are too large.
    """
    import regex

    if len(text) > MAX_CHARS:
        raise LimitExceeded(
            f"A text of more than {MAX_CHARS} characters is not searched.",
            code="pattern_text",
            fix="Take a part of it.",
        )

    def search() -> Sequence[JsonObject]:
        found, room = list[JsonObject](), OutputRoom()
        for match in regex.finditer(pattern, text, timeout=TIMEOUT_S, concurrent=True):
            groups: dict[str, Json] = {str(number): each for number, each in enumerate(match.groups(), 1)}
            found.append({"match": match[0], "groups": groups | match.groupdict()})
            room.take(found[-1])
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
