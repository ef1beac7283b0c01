"""The paths of what events hold, to compare with what is promised of them."""

from __future__ import annotations

from collections.abc import Mapping

from denizen.domain.json import Json


def list_paths(data: Mapping[str, Json], above: str = "") -> set[str]:
    """Returns the dotted paths of all values that are no objects themselves."""
    found: set[str] = set()
    for name, value in data.items():
        found |= list_paths(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}"}
    return found
