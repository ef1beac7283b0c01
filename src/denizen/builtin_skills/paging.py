"""Splits long texts into parts that a model can ask for one after the other, for the skills that read."""

from __future__ import annotations

from denizen.skill import ToolError

PART_CHARS = 8000


def read_part(text: str, start: int, *, what: str) -> tuple[str, str]:
    """Returns the part that begins at character `start`, and a sentence that says how to read on (empty at the end).

    Raises ToolError when the text ends before `start`. `what` names the text in that error.
    """
    if start and start >= len(text):
        raise ToolError(f"{what} has only {len(text)} characters; start at a smaller number.")
    end = min(start + PART_CHARS, len(text))
    more = f"Characters {start} to {end} of {len(text)}; to read on, start at {end}." if end < len(text) else ""
    return text[start:end], more
