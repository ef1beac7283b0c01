"""Application commands as registered, and the record of every write to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Command:
    """A slash command (kind 1), or a user (2) or message (3) command. `fields` is its body as it was given."""

    id: int
    application_id: int
    guild_id: int | None
    version: int
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def kind(self) -> int:
        return int(self.fields.get("type") or 1)


@dataclass(frozen=True, slots=True)
class CommandWrite:
    """One write: `create`, `edit`, `delete` or `overwrite`, global or for one guild."""

    application_id: int
    guild_id: int | None
    how: str
    names: tuple[str, ...]
