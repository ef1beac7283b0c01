"""The manifest of a skill in the owner's folder, and the permissions that it asks for.

The manifest is `skill.yaml` of a Python skill, or the front matter of a SKILL.md:

    name: dice
    version: 0.1.0
    description: Rolls dice.
    tier: 0                      # no tool of it is below this; 3 unless it is said
    permissions: [network]
    entry: skill.py
    examples:
      - {tool: roll_dice, args: {sides: 1}, expect: "1"}

Parsing is pure: the caller reads the file (`app/skill_loading`). A skill's context holds only the services that it has
permissions for. That keeps honest code honest and tells the owner what to expect. It is no sandbox: a Python skill that
is enabled runs inside Denizen and can do anything that Denizen can. That is why nothing runs before its owner has
enabled exactly this content.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import cast

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.tool import Taint, Tier, ToolResult
from denizen.ports.fetch import NO_HEADERS, FetchedPage
from denizen.ports.toolset import CallScope
from denizen.skill.context import AccountServices, HistoryMessage, OwnerServices, ScopedServices, SkillServices


class SkillPermission(StrEnum):
    """A permission of one of the owner's skills. The skill's context holds the services of its permissions only."""

    NETWORK = "network"
    """`context.fetch` and `context.download`."""
    TOOLS = "tools"
    """`context.call_tool`: other tools, through the gate."""
    HISTORY = "history"
    """Earlier messages and actions: `context.history`, `archive`, `memory`, `call_log`."""
    PROGRAMS = "programs"
    """`context.run_program`."""
    MODEL = "model"
    """`context.ask_model`, which whoever asked pays for."""


PERMISSION_DESCRIPTIONS: dict[SkillPermission, str] = {
    SkillPermission.NETWORK: "reads pages and files of the web",
    SkillPermission.TOOLS: "calls other tools, through the gate",
    SkillPermission.HISTORY: "reads what was said and done where it is used, the archive and the memory",
    SkillPermission.PROGRAMS: "runs programs on this machine",
    SkillPermission.MODEL: "asks the model, which costs money",
}
"""A sentence for each permission, for the owner who decides whether to enable a skill."""


PERMISSION_TAINTS: dict[SkillPermission, Taint] = {
    SkillPermission.NETWORK: Taint.WEB,
    SkillPermission.HISTORY: Taint.OTHERS,
    SkillPermission.PROGRAMS: Taint.TOOL,
}
"""The taint that a skill with the permission gets, whatever its tools declare."""


def restrict_services(services: SkillServices, skill: str, granted: Collection[SkillPermission]) -> SkillServices:
    """Returns the services without those that the skill has no permission for, and without those for built-in skills
    only.
    """
    denied = _PermissionRefusal(skill)
    scoped = services.scoped if SkillPermission.HISTORY in granted else ScopedServices()
    scoped = replace(
        scoped,
        open_platform=_nothing,
        open_reminders=_nothing,
        open_feeds=_nothing,
        open_schedules=_nothing,
        open_workflows=_nothing,
        open_questions=_nothing,
        open_events=_nothing,
        open_projects=_nothing,
        open_shell=_nothing,
    )
    services = replace(
        services, scoped=scoped, owner=OwnerServices(), accounts=AccountServices(), send_request=None, browser=None
    )
    if SkillPermission.NETWORK not in granted:
        services = replace(services, fetcher=denied, download=None)
    if SkillPermission.TOOLS not in granted:
        services = replace(services, call_tool=denied.call_tool)
    if SkillPermission.HISTORY not in granted:
        services = replace(services, search_history=denied.search_history, read_history=denied.read_history)
    if SkillPermission.PROGRAMS not in granted:
        services = replace(services, run_program=None)
    if SkillPermission.MODEL not in granted:
        services = replace(services, ask_model=None)
    return services


def _nothing(scope: CallScope) -> None:
    del scope


class _PermissionRefusal:
    """Services that say which permission the manifest would have to ask for."""

    def __init__(self, skill: str) -> None:
        self._skill = skill

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        raise self._refusal(SkillPermission.NETWORK)

    async def aclose(self) -> None:
        """Does nothing: nothing is open."""

    async def call_tool(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult:
        raise self._refusal(SkillPermission.TOOLS)

    async def search_history(self, scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
        raise self._refusal(SkillPermission.HISTORY)

    async def read_history(self, scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]:
        raise self._refusal(SkillPermission.HISTORY)

    def _refusal(self, missing: SkillPermission) -> NotAllowed:
        return NotAllowed(
            f"The skill {self._skill} has no permission for this.",
            code="skill_permission",
            fix=f"Its skill.yaml needs `{missing}` under permissions; then its owner enables it again.",
        )


MAX_DESCRIPTION_CHARS = 1024
MAX_EXAMPLES = 50
ENTRY = "skill.py"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_MARKDOWN_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.py")
_KEYS = ("name", "version", "description", "tier", "permissions", "entry", "examples")


@record
class SkillExample:
    """One call of a tool, whose result must contain the text. With `is_error` the call must fail."""

    tool: str
    args: Mapping[str, Json]
    expect: str
    is_error: bool = False


@record
class SkillManifest:
    """The name, description and permissions of a skill. `tier` is the lowest tier that one of its tools may have. A
    Markdown skill has no tools, so its manifest is only a name, a description and a version.
    """

    name: str
    description: str
    version: str = ""
    tier: Tier = Tier.DANGEROUS
    permissions: frozenset[SkillPermission] = frozenset()
    entry: str = ENTRY
    examples: tuple[SkillExample, ...] = ()


def parse_manifest(tree: Json, *, folder: str) -> SkillManifest:
    """Parses `skill.yaml`. Raises InvalidInput (`bad_skill`) that names the wrong key and how it is written.

    The skill's name must be that of its folder, so that the folder tells what is enabled.
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
        raise _bad("`entry` is not a Python file in the skill's folder", f"write `entry: {ENTRY}`, or leave it out")
    return SkillManifest(
        name=_name(known, folder, _NAME),
        description=_description(known),
        version=_text(known, "version"),
        tier=_tier(known),
        permissions=frozenset(map(_permission, _list(known, "permissions"))),
        entry=entry,
        examples=tuple(map(_example, _list(known, "examples")[:MAX_EXAMPLES])),
    )


def parse_front_matter(tree: Json, *, folder: str) -> SkillManifest:
    """Parses the front matter of a SKILL.md. Keys other than name, description and version belong to other programs
    and are ignored.
    """
    known = _mapping(tree)
    return SkillManifest(
        _name(known, folder, _MARKDOWN_NAME), _description(known), _text(known, "version"), tier=Tier.HARMLESS
    )


def check_skill_name(name: str) -> None:
    """Raises InvalidInput for a name that a skill and its folder cannot have."""
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
        raise _bad("`name` is missing or not a valid name", "use a-z, 0-9 and _, beginning with a letter")
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
    # In YAML `true` is a bool, which Python takes for the integer 1.
    if isinstance(value, bool) or not isinstance(value, int) or value not in tuple(Tier):
        raise _bad("`tier` must be 0, 1, 2 or 3", "0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous")
    return Tier(value)


def _permission(value: Json) -> SkillPermission:
    try:
        return SkillPermission(str(value))
    except ValueError:
        known = ", ".join(SkillPermission)
        raise _bad(f"there is no permission `{value}`", f"there are: {known}") from None


def _example(value: Json) -> SkillExample:
    if not isinstance(value, Mapping) or set(value) - {"tool", "args", "expect", "error"}:
        raise _bad("an example has the keys tool, args, expect and error", _EXAMPLE)
    args: Json = value.get("args") or dict[str, Json]()
    tool, expect, error = value.get("tool"), value.get("expect", ""), value.get("error", False)
    if not isinstance(tool, str) or not isinstance(args, Mapping) or not isinstance(error, bool):
        raise _bad("an example names a tool and its arguments", _EXAMPLE)
    return SkillExample(tool, cast("Mapping[str, Json]", args), str(expect), is_error=error)


_EXAMPLE = 'write - {tool: NAME, args: {}, expect: "part of the result"}'


def _bad(what: str, fix: str) -> InvalidInput:
    return InvalidInput(what, code="bad_skill", fix=fix)
