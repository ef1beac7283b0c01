"""`requirements.md`: how much of what is promised is proved by a test, counted by area."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from scripts.docs.table import format_table
from tests.requirements import REQUIREMENTS, Area, Status

_HEAD = """# Requirements

Everything that Denizen promises is an entry in [tests/promises](../../tests/promises): one behaviour, where it comes
from, and the area of work that builds it. An entry is *covered* when a test that proves it exists and has to pass,
*open* until then, and *dropped* with a written reason. `python -m tests.requirements --report gate` lists what is open
in one area."""


def build_requirements() -> str:
    """The page."""
    statuses: tuple[Status, ...] = get_args(Status)
    areas: tuple[Area, ...] = get_args(Area)
    rows: list[list[str]] = []
    for area in (*areas, "all"):
        counts = Counter(each.status for each in REQUIREMENTS if area in {each.issue, "all"})
        rows.append([area, *(str(counts[status]) for status in statuses), str(counts.total())])
    dropped = [(each.id, each.says, each.reason) for each in REQUIREMENTS if each.status == "dropped"]
    return "\n\n".join(
        [
            _HEAD,
            format_table(("area", *statuses, "all"), rows),
            "## Dropped",
            format_table(("id", "what", "why not"), dropped),
        ]
    )
