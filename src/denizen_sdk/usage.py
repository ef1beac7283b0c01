"""What a finished run used, read from what agent frameworks and vendors give, for `DenizenClient.report_usage`.

Nothing of theirs is imported: their objects are known by what they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_INPUT = ("input_tokens", "prompt_tokens", "request_tokens")
_OUTPUT = ("output_tokens", "completion_tokens", "response_tokens")


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one run, all of its requests together."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class UsageReceipt:
    """What the server answers to a report."""

    id: str
    recorded: bool = True


def read_tokens(finished: object) -> TokenCounts:
    """From `TokenCounts`; from a usage or a result of pydantic-ai, OpenAI (chat, responses), OpenAI Agents or LangChain;
    or from a mapping with the same names. Raises TypeError for anything else.
    """
    usage = _usage_in(finished)
    found = _read(usage, _INPUT), _read(usage, _OUTPUT)
    if found[0] is None or found[1] is None:
        raise TypeError(
            f"There is no usage in a {type(finished).__name__}. Give the run's usage, or UsedTokens(input, output)."
        )
    return TokenCounts(found[0], found[1])


def _usage_in(finished: object) -> object:
    """A run's result holds its usage: as `usage` (a method in older libraries), or in its context."""
    if _read(finished, _INPUT) is not None:
        return finished
    context = getattr(finished, "context_wrapper", None)
    usage = getattr(context if context is not None else finished, "usage", None)
    usage = getattr(finished, "usage_metadata", None) if usage is None else usage
    if isinstance(finished, Mapping):
        usage = cast("Mapping[str, Any]", finished).get("usage")
    return usage() if callable(usage) and _read(usage, _INPUT) is None else usage


def _read(usage: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        if isinstance(usage, Mapping):
            value = cast("Mapping[str, object]", usage).get(name)
        else:
            value = getattr(usage, name, None)
        if isinstance(value, int):
            return value
    return None
