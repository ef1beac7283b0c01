"""Bounds the values of workflows: what can be kept at all, and how large it may become. Pure.

A value is measured while it is looked at, and no further than to its limit. So one that multiplies itself, as a list
that names a large output a thousand times, costs no more than the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from denizen.domain.cloud_event import MAX_NESTING
from denizen.domain.errors import InvalidInput, LimitExceeded
from denizen.domain.json import Json
from denizen.domain.workflow_run import MAX_INPUT_CHARS, MAX_STORED_CHARS

MAX_NUMBER_BITS = 1024
"""The limit of a whole number: about 300 digits, as of a number with a point."""


def measure(value: Json, most_chars: float = math.inf) -> int:
    """Returns about how many characters a value has as JSON; of one with more than `most_chars` just more than that.

    Raises InvalidInput (`workflow_value`) for what cannot be kept: a number that is none or too large, half a
    character, and what is nested too deeply.
    """
    chars, waiting = 0, [(value, 0)]
    while waiting and chars <= most_chars:
        each, depth = waiting.pop()
        if depth > MAX_NESTING:
            raise _refuse(f"more than {MAX_NESTING} lists and objects stand within each other", "Make it flatter.")
        match each:
            case str():
                _check_text(each)
                chars += len(each) + 2
            case Mapping():
                chars += 2 + sum(len(name) + 4 for name in each)
                waiting += [(inner, depth + 1) for inner in each.values()]
            case Sequence():
                chars += 2 + 2 * len(each)
                waiting += [(inner, depth + 1) for inner in each]
            case float() if not math.isfinite(each):
                raise _refuse(f"{each} is no number that can be kept", "Leave it out, or write it as text.")
            case int() if each.bit_length() > MAX_NUMBER_BITS:
                raise _refuse("a number has more than 300 digits", "Write it as text.")
            case _:
                chars += len(str(each))
    return chars


def check_inputs(inputs: Json) -> int:
    """Returns the size of the inputs of a node, or of what a run is given. Raises LimitExceeded (`workflow_input_long`)
    for what is too large, and as `measure`.
    """
    if (size_chars := measure(inputs, MAX_INPUT_CHARS)) > MAX_INPUT_CHARS:
        raise LimitExceeded(
            f"The inputs have more than {MAX_INPUT_CHARS} characters.",
            code="workflow_input_long",
            fix="Give or name fewer or smaller values.",
        )
    return size_chars


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refuse("a text has half a character, which cannot be written", "Correct the escape \\uD...") from None


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(f"{message[:1].upper()}{message[1:]}.", code="workflow_value", fix=fix)


@dataclass(slots=True)
class OutputRoom:
    """The characters that the outputs of one node may still have."""

    left_chars: int = MAX_STORED_CHARS

    def take(self, value: Json) -> None:
        """Raises LimitExceeded (`workflow_output_long`) when there is no room for it, and as `measure`."""
        self.left_chars -= measure(value, max(self.left_chars, 0))
        if self.left_chars < 0:
            raise LimitExceeded(
                f"The outputs of this node have more than {MAX_STORED_CHARS} characters.",
                code="workflow_output_long",
                fix="Take a part of them, or fetch less.",
            )
