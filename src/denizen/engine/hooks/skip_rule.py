"""Whether the output of a hook matches its `skip_if`, within a bounded time: an expression that backtracks without end
must not hold up the process. The standard library's expressions cannot be interrupted; those of `regex` can.
"""

from __future__ import annotations

import logging
import math
import re
from functools import partial

from anyio import to_thread

TIMEOUT_S = 1.0
MAX_CHARS = 100_000
"""How much of an output is searched."""

MAX_PATTERN_CHARS = 5000
MAX_REPETITIONS = 1_000_000
"""Repetitions within repetitions are written out when an expression is prepared, which nothing can interrupt."""
_COUNT = re.compile(r"\{(\d{1,9})[,}]")

_log = logging.getLogger("denizen.hooks")


def check_pattern(pattern: str) -> None:
    """Raises ValueError, with the reason, for what is no regular expression, or would take long to prepare."""
    import regex

    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"it has more than {MAX_PATTERN_CHARS} characters")
    if math.prod(int(count) for count in _COUNT.findall(pattern) if int(count)) > MAX_REPETITIONS:
        raise ValueError(f"its numbers of repetitions multiply to more than {MAX_REPETITIONS}")

    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error


async def find_match(pattern: str, output: str) -> bool:
    """Returns whether the pattern is found anywhere in the output. An expression that takes too long is not found: a
    turn that runs in doubt does less harm than one that never does.
    """
    import regex

    search = partial(regex.search, pattern, output[:MAX_CHARS], timeout=TIMEOUT_S, concurrent=True)
    try:
        return await to_thread.run_sync(search) is not None
    except TimeoutError:
        fix = "Write a pattern without a repetition inside a repetition, such as (a+)+."
        _log.warning("skip_if takes too long and counts as not found", extra={"pattern": pattern, "fix": fix})
        return False
