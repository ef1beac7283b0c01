"""Users and roles as people write them in an option: an id, a mention, or `@Name`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from denizen.domain.errors import InvalidInput, NotFound
from denizen.engine.commands.scene import Given

_USER_ID = re.compile(r"(?:<@!?)?([0-9]+)>?")
_ROLE_ID = re.compile(r"(?:<@&)?([0-9]+)>?")


async def find_user(given: Given, text: str) -> str:
    """The id of a user. Raises NotFound for a name that nobody here has, InvalidInput for a role."""
    if match := _USER_ID.fullmatch(text):
        return match.group(1)
    names = await given.at.find_names(given.command.room.place, _with_at(text))
    if found := _find_by_name(names.users, text):
        return found
    if text.startswith("<@&") or _find_by_name(names.roles, text):
        raise InvalidInput(f"{text} is a role.", code="command_role", fix=f"Write role: {text}.")
    raise _unknown_name("user", text)


async def find_role(given: Given, text: str) -> str:
    """The id of a role. Raises NotFound for a name that no role here has."""
    if match := _ROLE_ID.fullmatch(text):
        return match.group(1)
    names = await given.at.find_names(given.command.room.place, _with_at(text))
    if found := _find_by_name(names.roles, text):
        return found
    raise _unknown_name("role", text)


def _with_at(text: str) -> str:
    return f"@{text.removeprefix('@')}"


def _find_by_name(names: Mapping[str, str], text: str) -> str:
    """The one of that name, in any case; written exactly it goes first."""
    wanted = text.removeprefix("@").strip()
    folded = {name.casefold(): found for name, found in names.items()}
    return names.get(wanted) or folded.get(wanted.casefold(), "")


def _unknown_name(noun: str, text: str) -> NotFound:
    return NotFound(f"I know no {noun} '{text}' here.", code=f"command_{noun}", fix="Write @Name, or the id.")
