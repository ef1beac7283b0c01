"""What a skill in the owner's folder says about itself: `skill.yaml` of a Python skill, the front matter of a SKILL.md.

    name: dice
    version: 0.1.0
    description: Rolls dice.
    tier: 0                      # no tool of it is below this; 3 unless it is said
    permissions: [network]
    entry: skill.py
    examples:
      - {tool: roll_dice, args: {sides: 1}, expect: "1"}

Pure: whoever read the file hands in its tree (`app/skill_loading`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.tool import Tier
from denizen.skill.permission import Permission

MAX_DESCRIPTION_CHARS = 1024
MAX_EXAMPLES = 50
ENTRY = "skill.py"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_MARKDOWN_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.py")
_KEYS = ("name", "version", "description", "tier", "permissions", "entry", "examples")


@dataclass(frozen=True, slots=True)
class Example:
    """One call of a tool, whose result must hold the text. With `is_error` the call must fail."""

    tool: str
    args: Mapping[str, Json]
    expect: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """`tier` is the lowest that a tool of it may have. A Markdown skill has no tools, so nothing but name and
    description.
    """

    name: str
    description: str
    version: str = ""
    tier: Tier = Tier.DANGEROUS
    permissions: frozenset[Permission] = frozenset()
    entry: str = ENTRY
    examples: tuple[Example, ...] = ()


def read_manifest(tree: Json, *, folder: str) -> Manifest:
    """Raises InvalidInput (`bad_skill`) that says which key is wrong and how it is written. The skill's name must be
    that of its folder, so that the folder tells what is enabled.
    """
    known = _mapping(tree)
    for key in known:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            raise _bad(
                f"there is no key `{key}`", f"did you mean `{near[0]}`?" if near else f"keys: {', '.join(_KEYS)}"
            )
    entry = _text(known, "entry", default=ENTRY)
    if not _ENTRY.fullmatch(entry):
        raise _bad("`entry` is no Python file of the skill's folder", f"write `entry: {ENTRY}`, or leave it out")
    return Manifest(
        name=_name(known, folder, _NAME),
        description=_description(known),
        version=_text(known, "version"),
        tier=_tier(known),
        permissions=frozenset(map(_permission, _list(known, "permissions"))),
        entry=entry,
        examples=tuple(map(_example, _list(known, "examples")[:MAX_EXAMPLES])),
    )


def read_front_matter(tree: Json, *, folder: str) -> Manifest:
    """Of a SKILL.md. Other keys than name, description and version belong to other programs and are passed over."""
    known = _mapping(tree)
    return Manifest(
        _name(known, folder, _MARKDOWN_NAME), _description(known), _text(known, "version"), tier=Tier.HARMLESS
    )


def check_skill_name(name: str) -> None:
    """Raises InvalidInput for what cannot name a skill and its folder."""
    if not _MARKDOWN_NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name[:80]}' cannot be a skill's name.",
            code="bad_skill",
            fix="Use a-z, 0-9 and _, beginning with a letter; in Markdown skills - too.",
        )


def _mapping(tree: Json) -> Mapping[str, Json]:
    if not isinstance(tree, Mapping):
        raise _bad("it holds no keys", "write `name: ...` and `description: ...`, one a line")
    return tree


def _name(known: Mapping[str, Json], folder: str, form: re.Pattern[str]) -> str:
    name = _text(known, "name")
    if not form.fullmatch(name):
        raise _bad("`name` is missing or no name", "use a-z, 0-9 and _, beginning with a letter")
    if name != folder:
        raise _bad(f"`name` is {name}, and the folder is called {folder}", "give both the same name")
    return name


def _description(known: Mapping[str, Json]) -> str:
    text = " ".join(_text(known, "description").split())
    if not text or len(text) > MAX_DESCRIPTION_CHARS:
        raise _bad(
            "`description` is missing or too long",
            f"say in a sentence what the skill is for; {MAX_DESCRIPTION_CHARS} characters at most",
        )
    return text


def _text(known: Mapping[str, Json], key: str, *, default: str = "") -> str:
    value = known.get(key)
    if value is None:
        return default
    if isinstance(value, bool | dict | list):
        raise _bad(f"`{key}` must be a text", f"write `{key}: ...` on one line")
    return str(value).strip()


def _list(known: Mapping[str, Json], key: str) -> list[Json]:
    value = known.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _bad(f"`{key}` must be a list", f"write `{key}: [...]`")
    return value


def _tier(known: Mapping[str, Json]) -> Tier:
    value = known.get("tier")
    if value is None:
        return Tier.DANGEROUS
    if isinstance(value, bool) or not isinstance(value, int) or value not in tuple(Tier):
        raise _bad("`tier` must be 0, 1, 2 or 3", "0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous")
    return Tier(value)


def _permission(value: Json) -> Permission:
    try:
        return Permission(str(value))
    except ValueError:
        known = ", ".join(Permission)
        raise _bad(f"there is no permission `{value}`", f"there are: {known}") from None


def _example(value: Json) -> Example:
    if not isinstance(value, Mapping) or set(value) - {"tool", "args", "expect", "error"}:
        raise _bad("an example has the keys tool, args, expect and error", _EXAMPLE)
    args: Json = value.get("args") or dict[str, Json]()
    tool, expect, error = value.get("tool"), value.get("expect", ""), value.get("error", False)
    if not isinstance(tool, str) or not isinstance(args, Mapping) or not isinstance(error, bool):
        raise _bad("an example names a tool and its arguments", _EXAMPLE)
    return Example(tool, cast("Mapping[str, Json]", args), str(expect), is_error=error)


_EXAMPLE = 'write - {tool: NAME, args: {}, expect: "part of the result"}'


def _bad(what: str, fix: str) -> InvalidInput:
    return InvalidInput(what, code="bad_skill", fix=fix)
