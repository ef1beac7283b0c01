"""The prompt of a model as segments with a stability class. The provider adapter turns them into its own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum

from denizen.domain.json import Json
from denizen.domain.message import Part, Role
from denizen.domain.record import record
from denizen.domain.tool import Taint, ToolSpec

CHARS_PER_TOKEN = 4
"""The estimate that every budget uses."""


class Stability(IntEnum):
    """How long a segment keeps its bytes. Segments are ordered by it, so that the stable prefix can be cached. REQUEST
    is for messages that one request shows and the next does not.
    """

    FOREVER = 0
    CONFIG = 1
    SESSION = 2
    TURN = 3
    REQUEST = 4


@record
class Segment:
    """A named piece of the system prompt. What holds somebody's words is SESSION or TURN: only of more stable ones is
    the text kept with the record of a prompt (`domain/trace`).
    """

    name: str
    text: str
    stability: Stability = Stability.CONFIG


@record
class PromptMessage:
    """A message as a model sees it: a role and parts, without the store's bookkeeping.

    `kind` says where it comes from, for people who ask why; models do not see it. `stability` says how long the prompt
    keeps its bytes up to the end of this message, where somebody promises that. `taint` says which texts it holds that
    neither the owner nor the one who asks has written: it bounds what the turn may do without a human. `author` is the
    platform's id of who wrote it, empty for what nobody said. `read` is what its results were read from, by call (see
    `domain/evidence`); None where nobody recorded that.
    """

    role: Role
    parts: tuple[Part, ...]
    kind: str = field(default="history", compare=False)
    stability: Stability = field(default=Stability.TURN, compare=False)
    taint: frozenset[Taint] = field(default_factory=frozenset[Taint], compare=False)
    author: str = field(default="", compare=False)
    read: Mapping[str, Json] | None = field(default=None, compare=False)


def estimate_tokens(text: str) -> int:
    """Tokens of a text by the shared estimate, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def count_tool_tokens(spec: ToolSpec) -> int:
    """Estimates the tokens that a tool adds to each prompt."""
    return estimate_tokens(f"{spec.name}{spec.description}{spec.parameters}")


def order_segments(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Most stable first; the given order is kept within a class. Empty segments are left out."""
    return tuple(sorted((s for s in segments if s.text), key=lambda s: s.stability))
