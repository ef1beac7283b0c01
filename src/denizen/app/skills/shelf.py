"""Which skills of the owner there are, in which state, and the tools of those that are enabled.

`survey` runs nothing. `Shelf` loads what is enabled, for each generation anew; a skill that cannot be loaded is told in
the log, by `denizen skill list` and by doctor, and stops neither the others nor the start. The last version that worked
does not go on in its place: what runs is what the owner enabled, or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import cast

import anyio
from anyio import to_thread

from denizen.app.settings.schema_skills import UserSkillSection
from denizen.app.skills.folder import SkillFolder, list_names, load_folder
from denizen.app.skills.markdown import READ_SKILL, MarkdownToolset
from denizen.app.skills.pinned import import_entry
from denizen.app.skills.reading import read_folder_manifest
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.ports.toolset import Toolset
from denizen.skill.context import SkillServices
from denizen.skill.manifest import PERMISSION_TAINTS, SkillManifest, SkillPermission
from denizen.skill.skill import Skill
from denizen.skill.toolset import SkillToolset

IMPORT_TIMEOUT_S = 20.0

_log = logging.getLogger("denizen.skills")


class State(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    CHANGED = "changed"
    """Its content is not the one that was enabled."""
    FAILED = "failed"
    MISSING = "missing"
    """The configuration names it, and there is no such folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One skill. `why` and `fix` say what is wrong, if anything; `tools` are known once it is loaded."""

    name: str
    state: State
    manifest: SkillManifest | None = None
    folder: SkillFolder | None = None
    why: str = ""
    fix: str = ""
    tools: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        if self.folder is None:
            return "unknown"
        return "markdown" if self.folder.is_markdown else "python"


ServicesOf = Callable[[frozenset[SkillPermission], str], SkillServices]
"""What a skill of that name with these permissions may use."""


def survey(home: Path, sections: Mapping[str, UserSkillSection]) -> tuple[Entry, ...]:
    """Every skill of the folder and of the configuration, by name. Reads files, runs nothing."""
    names = sorted({*list_names(home), *sections})
    return tuple(_look(home, name, sections.get(name)) for name in names)


def _look(home: Path, name: str, section: UserSkillSection | None) -> Entry:
    try:
        folder = load_folder(home, name)
    except NotFound as error:
        if section is not None and not section.enabled:
            return Entry(
                name, State.DISABLED, fix=f"Its files are gone: take `{name}` out of `skills` in denizen.yaml."
            )
        fix = f"Put it back, or take `{name}` out of `skills` (denizen skill disable {name})."
        return Entry(name, State.MISSING, why=error.message, fix=fix)
    except InvalidInput as error:
        return Entry(name, State.FAILED, why=error.message, fix=error.fix)
    try:
        manifest = read_folder_manifest(folder)
    except InvalidInput as error:
        return Entry(name, State.FAILED, folder=folder, why=error.message, fix=error.fix)
    if section is None or not section.enabled or not section.sha256:
        return Entry(name, State.DISABLED, manifest, folder, fix=f"denizen skill enable {name}")
    if section.sha256 != folder.sha256:
        return Entry(
            name,
            State.CHANGED,
            manifest,
            folder,
            why="it has changed since it was enabled, so it is off",
            fix=f"Look at what changed in {folder.path}, then: denizen skill enable {name}",
        )
    return Entry(name, State.ENABLED, manifest, folder)


class Shelf:
    """Of one home folder. `entries` is how it was at the last load."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.entries: tuple[Entry, ...] = ()
        self._skills: dict[str, Skill] = {}

    async def has_changed(self, sections: Mapping[str, UserSkillSection]) -> bool:
        """Whether a load would give something else than the last one did, as far as files tell."""
        now = await to_thread.run_sync(survey, self._home, sections)
        return _print(now, sections) != _print(self.entries, sections)

    def misses_some(self, sections: Mapping[str, UserSkillSection]) -> bool:
        """Whether a skill that is to be loaded was not, at the last load."""
        wanted = {name for name, section in sections.items() if section.enabled and section.sha256}
        return any(entry.name in wanted and entry.state is not State.ENABLED for entry in self.entries)

    async def load(
        self, sections: Mapping[str, UserSkillSection], taken: Mapping[str, str], services_of: ServicesOf
    ) -> tuple[Toolset, ...]:
        """The tools of the skills that are enabled and work. `taken` are names of tools with who has them."""
        entries: list[Entry] = []
        toolsets: list[Toolset] = []
        pages: list[tuple[SkillManifest, SkillFolder]] = []
        names = {**taken, READ_SKILL: "the Markdown skills"}
        for entry in await to_thread.run_sync(survey, self._home, sections):
            done = entry
            if entry.state is State.ENABLED and entry.manifest and entry.folder:
                if entry.folder.is_markdown:
                    pages.append((entry.manifest, entry.folder))
                else:
                    done, toolset = await self._open(entry, sections[entry.name], names, services_of)
                    toolsets += [toolset] if toolset else []
                    names.update(dict.fromkeys(done.tools, f"the skill {entry.name}"))
            entries.append(done)
            wanted = entry.name in sections and sections[entry.name].enabled
            if wanted and done.state not in (State.ENABLED, State.DISABLED):
                _log.warning(
                    "skill left out", extra={"skill": done.name, "state": done.state, "why": done.why, "fix": done.fix}
                )
        self.entries = tuple(entries)
        return (*toolsets, *([MarkdownToolset(pages)] if pages else []))

    async def _open(
        self, entry: Entry, section: UserSkillSection, taken: Mapping[str, str], services_of: ServicesOf
    ) -> tuple[Entry, Toolset | None]:
        assert entry.manifest is not None
        manifest = entry.manifest
        try:
            skill = await self._import(entry)
            services = services_of(manifest.permissions, entry.name)
            settings = cast("Mapping[str, Json]", section.settings)
            reads = frozenset(PERMISSION_TAINTS[each] for each in manifest.permissions if each in PERMISSION_TAINTS)
            toolset = SkillToolset(skill, services, settings, floor=manifest.tier, reads=reads)
            tools = tuple(spec.name for spec in await toolset.list_tools())
            for tool in tools:
                if tool in taken:
                    raise InvalidInput(
                        f"its tool `{tool}` has the name of a tool of {taken[tool]}",
                        code="bad_skill",
                        fix="rename yours: a skill cannot take the place of another",
                    )
        except DenizenError as error:
            return replace(entry, state=State.FAILED, why=_in_a_line(error.message, error.why), fix=error.fix), None
        return replace(entry, tools=tools), toolset

    async def _import(self, entry: Entry) -> Skill:
        assert entry.manifest is not None
        assert entry.folder is not None
        known = self._skills.get(entry.folder.sha256)
        if known is not None:
            return known
        load = partial(load_skill, entry.folder, entry.manifest)
        try:
            with anyio.fail_after(IMPORT_TIMEOUT_S):
                skill = await to_thread.run_sync(load, abandon_on_cancel=True)
        except TimeoutError:
            raise InvalidInput(
                f"importing it takes more than {IMPORT_TIMEOUT_S:g} s",
                code="bad_skill",
                fix="do the work in a tool, not at the top of the module",
            ) from None
        self._skills[entry.folder.sha256] = skill
        return skill


def load_skill(folder: SkillFolder, manifest: SkillManifest) -> Skill:
    """Runs the code. Raises InvalidInput for whatever is wrong with it."""
    try:
        module = import_entry(folder, manifest.entry)
    except DenizenError:
        raise
    except (Exception, SystemExit) as error:
        reference = fresh("err")
        _log.warning("skill fault", exc_info=True, extra={"skill": folder.name, "reference": reference})
        text = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"{manifest.entry} cannot be imported: {type(error).__name__}: {text}",
            code="bad_skill",
            fix=f"`denizen skill check {folder.name}` shows where; the log has it under {reference}",
        ) from error
    found = getattr(module, "skill", None)
    if not isinstance(found, Skill) or found.name != manifest.name:
        raise InvalidInput(
            f"{manifest.entry} holds no skill of the name `{manifest.name}`",
            code="bad_skill",
            fix=f'write `skill = Skill("{manifest.name}", description=...)` at its top',
        )
    found.specs()
    if not found.tools:
        raise InvalidInput("it has no tools", code="bad_skill", fix="mark a function with @skill.tool(...)")
    return found


def _print(entries: Sequence[Entry], sections: Mapping[str, UserSkillSection]) -> list[tuple[str, str]]:
    return [
        (entry.name, entry.folder.sha256 if entry.folder else entry.why) for entry in entries if entry.name in sections
    ]


def _in_a_line(message: str, why: str) -> str:
    return f"{message} ({why})" if why else message
