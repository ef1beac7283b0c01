"""The registry of the owner's skills: which there are, their state, and the tools of those that are enabled.

Code is imported from the bytes that were pinned, never from the files: neither byte code beside them nor a change a
moment later can come in between. Each version is a package of its own, named after its content: turns that began with
an old version keep it, and lazy imports in it find their own siblings. Versions stay for the life of the process; they
are a few kilobytes each.

A skill that cannot be loaded is reported in the log, by `denizen skill list` and by doctor, and stops neither the
others nor the start. The last version that worked does not go on in its place: either what the owner enabled runs, or
nothing.
"""

from __future__ import annotations

import importlib
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import cast

import anyio
from anyio import to_thread

from denizen.app.settings.tools import OwnSkillSection
from denizen.app.skill_loading.folder import (
    SkillFolder,
    decode_source,
    list_skill_names,
    load_folder,
    read_folder_manifest,
)
from denizen.app.skill_loading.history import SkillHistory
from denizen.app.skill_loading.markdown import READ_SKILL, MarkdownToolset
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.ports.toolset import Toolset
from denizen.skill.context import SkillServices
from denizen.skill.manifest import PERMISSION_TAINTS, SkillManifest, SkillPermission
from denizen.skill.skill import Skill
from denizen.skill.toolset import SkillToolset

ROOT = "denizen_skill_of_owner"
"""The prefix of the names of these packages."""


class _Loader(InspectLoader):
    """Loads one module from its source in memory."""

    def __init__(self, source: bytes, file: str, *, is_package: bool) -> None:
        self._source = source
        self._file = file
        self._is_package = is_package

    def is_package(self, fullname: str) -> bool:
        return self._is_package

    def get_source(self, fullname: str) -> str:
        return decode_source(self._file, self._source)

    def get_code(self, fullname: str) -> CodeType:
        # Of text, not of bytes: Python would look for the name of an encoding in these once more, and in other lines.
        return compile(self.get_source(fullname), self._file, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._file
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - what the owner enabled


class _Finder(MetaPathFinder):
    """Finds the modules of all versions that were loaded. There is one in each process."""

    def __init__(self) -> None:
        self.packages: dict[str, tuple[Path, Mapping[str, bytes]]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package not in self.packages:
            return None
        folder, files = self.packages[package]
        stem = rest.replace(".", "/")
        for file, is_package in ((f"{stem}.py", False), (f"{stem}/__init__.py" if stem else "__init__.py", True)):
            if file in files:
                return self._spec(fullname, files[file], folder / file, is_package=is_package)
        if not stem or any(name.startswith(f"{stem}/") for name in files):  # a folder without a module of its own
            return self._spec(fullname, b"", folder / stem, is_package=True)
        return None

    @staticmethod
    def _spec(fullname: str, source: bytes, file: Path, *, is_package: bool) -> ModuleSpec:
        loader = _Loader(source, str(file), is_package=is_package)
        return ModuleSpec(fullname, loader, origin=str(file), is_package=is_package)


_FINDER = _Finder()


def import_entry(folder: SkillFolder, entry: str) -> ModuleType:
    """Imports the module that holds the skill; the same one when this content was imported before. Raises whatever its
    code raises; nothing of a version that failed is kept.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    package = f"{ROOT}_{folder.name}_{folder.sha256[:16]}"
    _FINDER.packages[package] = (folder.path, folder.files)
    try:
        return importlib.import_module(f"{package}.{entry.removesuffix('.py')}")
    except BaseException:
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        raise


IMPORT_TIMEOUT_S = 20.0

_log = logging.getLogger("denizen.skills")


class SkillStatus(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    CHANGED = "changed"
    """Its content is not the one that was enabled."""
    FAILED = "failed"
    MISSING = "missing"
    """The configuration names it, and there is no such folder."""


@record
class SkillEntry:
    """One skill and its state. `why` and `fix` say what is wrong, if anything, and `trace` the lines of its code that
    led there; `tools` are known once it is loaded.
    """

    name: str
    state: SkillStatus
    manifest: SkillManifest | None = None
    folder: SkillFolder | None = None
    why: str = ""
    fix: str = ""
    tools: tuple[str, ...] = ()
    trace: str = ""

    @property
    def kind(self) -> str:
        if self.folder is None:
            return "unknown"
        return "markdown" if self.folder.is_markdown else "python"


ServicesForSkill = Callable[[frozenset[SkillPermission], str], SkillServices]
"""Returns the services of the skill of that name with these permissions."""


def survey_skills(home: Path, sections: Mapping[str, OwnSkillSection]) -> tuple[SkillEntry, ...]:
    """Returns every skill of the folder and of the configuration, by name. Reads files, runs nothing."""
    names = sorted({*list_skill_names(home), *sections})
    return tuple(_look(home, name, sections.get(name)) for name in names)


def misses_some(entries: Sequence[SkillEntry], sections: Mapping[str, OwnSkillSection]) -> bool:
    """Returns whether a skill that is to be loaded is not fit to be."""
    wanted = {name for name, section in sections.items() if section.enabled and section.sha256}
    return any(entry.name in wanted and entry.state is not SkillStatus.ENABLED for entry in entries)


def _look(home: Path, name: str, section: OwnSkillSection | None) -> SkillEntry:
    try:
        folder = load_folder(home, name)
    except NotFound as error:
        if section is not None and not section.enabled:
            return SkillEntry(
                name, SkillStatus.DISABLED, fix=f"Its files are gone: take `{name}` out of `skills` in denizen.yaml."
            )
        fix = f"Put it back, or take `{name}` out of `skills` (denizen skill disable {name})."
        return SkillEntry(name, SkillStatus.MISSING, why=error.message, fix=fix)
    except InvalidInput as error:
        return SkillEntry(name, SkillStatus.FAILED, why=error.message, fix=error.fix)
    try:
        manifest = read_folder_manifest(folder)
    except InvalidInput as error:
        return SkillEntry(name, SkillStatus.FAILED, folder=folder, why=error.message, fix=error.fix)
    if section is None or not section.enabled or not section.sha256:
        return SkillEntry(name, SkillStatus.DISABLED, manifest, folder, fix=f"denizen skill enable {name}")
    if section.sha256 != folder.sha256:
        return SkillEntry(
            name,
            SkillStatus.CHANGED,
            manifest,
            folder,
            why="it has changed since it was enabled, so it is off",
            fix=f"Look at what changed in {folder.path}, then: denizen skill enable {name}",
        )
    return SkillEntry(name, SkillStatus.ENABLED, manifest, folder)


class SkillRegistry:
    """The skills of one home folder. `entries` is their state at the last load; each generation loads them anew."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.entries: tuple[SkillEntry, ...] = ()
        self._skills: dict[str, Skill] = {}

    async def has_changed(self, sections: Mapping[str, OwnSkillSection]) -> bool:
        """Returns whether a load would give something else than the last one did, as far as files tell."""
        now = await to_thread.run_sync(survey_skills, self._home, sections)
        return _print(now, sections) != _print(self.entries, sections)

    def misses_some(self, sections: Mapping[str, OwnSkillSection]) -> bool:
        """Returns whether a skill that is to be loaded was not, at the last load."""
        return misses_some(self.entries, sections)

    async def load(
        self, sections: Mapping[str, OwnSkillSection], taken: Mapping[str, str], services_of: ServicesForSkill
    ) -> tuple[Toolset, ...]:
        """Loads the skills that are enabled and returns their tools. `taken` are names of tools with who has them."""
        entries: list[SkillEntry] = []
        toolsets: list[Toolset] = []
        pages: list[tuple[SkillManifest, SkillFolder]] = []
        names = {**taken, READ_SKILL: "the Markdown skills"}
        for entry in await to_thread.run_sync(survey_skills, self._home, sections):
            done = entry
            if entry.state is SkillStatus.ENABLED and entry.manifest and entry.folder:
                if entry.folder.is_markdown:
                    pages.append((entry.manifest, entry.folder))
                else:
                    done, toolset = await self._open(entry, sections[entry.name], names, services_of)
                    toolsets += [toolset] if toolset else []
                    names.update(dict.fromkeys(done.tools, f"the skill {entry.name}"))
            entries.append(done)
            wanted = entry.name in sections and sections[entry.name].enabled
            if wanted and done.state not in (SkillStatus.ENABLED, SkillStatus.DISABLED):
                _log.warning(
                    "skill left out", extra={"skill": done.name, "state": done.state, "why": done.why, "fix": done.fix}
                )
        self.entries = tuple(entries)
        await to_thread.run_sync(self._keep_enabled)
        return (*toolsets, *([MarkdownToolset(pages)] if pages else []))

    def _keep_enabled(self) -> None:
        """Keeps what is enabled, so that a later change can be compared with it."""
        history = SkillHistory(self._home)
        for entry in self.entries:
            if entry.state is SkillStatus.ENABLED and entry.folder:
                try:
                    history.keep(entry.folder)
                except (OSError, NeedsAttention) as error:
                    _log.warning("the content of a skill is not kept", extra={"skill": entry.name, "why": str(error)})

    async def _open(
        self, entry: SkillEntry, section: OwnSkillSection, taken: Mapping[str, str], services_of: ServicesForSkill
    ) -> tuple[SkillEntry, Toolset | None]:
        assert entry.manifest is not None
        assert entry.folder is not None
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
            why, trace = _in_a_line(error.message, error.why), "\n".join(list_own_frames(entry.folder, error))
            return replace(entry, state=SkillStatus.FAILED, why=why, fix=error.fix, trace=trace), None
        return replace(entry, tools=tools), toolset

    async def _import(self, entry: SkillEntry) -> Skill:
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


def list_own_frames(folder: SkillFolder, error: DenizenError) -> list[str]:
    """Returns the lines of a skill's own code that led to an error, such as "skill.py:12 in roll: x = 1/0", in the
    order of their calls.
    """
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    own = [(Path(frame.filename), frame) for frame in frames if Path(frame.filename).is_relative_to(folder.path)]
    return [f"{file.relative_to(folder.path)}:{frame.lineno} in {frame.name}: {frame.line}" for file, frame in own]


def load_skill(folder: SkillFolder, manifest: SkillManifest) -> Skill:
    """Runs the code. Raises InvalidInput for whatever is wrong with it."""
    for file, data in folder.files.items():
        if file.endswith(".py"):
            decode_source(file, data)
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


def _print(entries: Sequence[SkillEntry], sections: Mapping[str, OwnSkillSection]) -> list[tuple[str, str]]:
    return [
        (entry.name, entry.folder.sha256 if entry.folder else entry.why) for entry in entries if entry.name in sections
    ]


def _in_a_line(message: str, why: str) -> str:
    return f"{message} ({why})" if why else message
