"""The skills of the open home folder, for people who look after them (`denizen.ports.skill_configuration`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from anyio import to_thread

from denizen import __version__
from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.settings.tools import ToolSection
from denizen.app.skill_loading.check import find_problems, list_tool_names
from denizen.app.skill_loading.folder import SkillFolder, load_folder
from denizen.app.skill_loading.history import SkillHistory
from denizen.app.skill_loading.registry import SkillEntry, SkillStatus, survey_skills
from denizen.app.skill_loading.review import plan_enabling, refuse_skill
from denizen.app.toolsets import explain_idle, find_taken
from denizen.builtin_skills import BUILTIN, OPT_IN, load_builtin
from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.principal import Principal
from denizen.domain.proposal import diff_lines
from denizen.ports.skill_configuration import SkillEventKind, SkillFileChange, SkillReview, SkillState, SkillToolInfo
from denizen.skill.manifest import PERMISSION_DESCRIPTIONS

_ON_BY_DEFAULT = "on: it can do no harm, and is of use to most"
_OFF_BY_DEFAULT = "off: it can do harm, or costs tokens that not everybody wants to pay"
_OWN_DEFAULT = "off: it runs after its owner has looked at it"


class HomeSkills:
    """The skills of the open home folder: those that ship with Denizen, and those in its folder `skills/`."""

    def __init__(self, denizen: Denizen, configuration: HomeConfiguration) -> None:
        self._denizen = denizen
        self._configuration = configuration
        self._history = SkillHistory(denizen.home)

    async def list_skills(self) -> Sequence[SkillState]:
        built_in = await to_thread.run_sync(self._list_built_in)  # imports those that were never used
        return [*built_in, *[await self._describe(entry) for entry in await self._survey()]]

    async def review(self, name: str) -> SkillReview:
        entry = await self._find(name)
        section, folder = self._denizen.settings.skills.get(name), entry.folder
        enabled = await to_thread.run_sync(self._history.find, name, section.sha256) if section else None
        is_same = folder is not None and section is not None and section.sha256 == folder.sha256
        refusal = ""
        if folder is not None and not is_same:
            refusal = "Put back what was enabled" if section and section.sha256 else "Delete it"
        permissions = sorted(entry.manifest.permissions) if entry.manifest else []
        return SkillReview(
            state=await self._describe(entry),
            sha256=folder.sha256 if folder else "",
            changes=_compare(enabled or {}, folder) if folder else (),
            permissions=[f"{each}: {PERMISSION_DESCRIPTIONS[each]}" for each in permissions],
            problems=await to_thread.run_sync(find_problems, folder) if folder else (),
            events=await to_thread.run_sync(self._history.list_events, name),
            is_compared=enabled is not None,
            refusal=refusal,
        )

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> None:
        if name in BUILTIN:
            await self._configuration.put_values(by, {("tools", name, "enabled"): is_on})
            return
        await self._find(name)
        if is_on:
            raise InvalidInput("A skill of your own is enabled after a look at it.", fix=f"Review {name}.")
        if name in self._denizen.settings.skills:
            await self._configuration.put_values(by, {("skills", name, "enabled"): False})

    async def enable(self, by: Principal, name: str, sha256: str) -> None:
        await self._find(name)
        settings = self._denizen.settings
        taken = await to_thread.run_sync(find_taken, settings, name)
        plan = await plan_enabling(settings, name, sha256, taken)
        if plan.report.problems:
            raise InvalidInput(
                f"'{name}' cannot work as it is.",
                code="skill_check_failed",
                why="\n".join(plan.report.problems),
                fix="Have it corrected, then look at it once more.",
            )
        folder = await to_thread.run_sync(load_folder, self._denizen.home, name)
        await self._configuration.put_values(by, plan.values)
        await to_thread.run_sync(self._history.note, folder, SkillEventKind.ENABLED, by.name)

    async def refuse(self, by: Principal, name: str, sha256: str) -> None:
        await self._find(name)
        await refuse_skill(self._denizen.settings, name, sha256, by.name)
        services = self._denizen.services
        event = AuditEvent(AuditKind.SETTINGS, services.clock.now(), by.key, f"skills/{name}", {"refused": sha256[:12]})
        async with services.store.work() as work:
            await work.audit.add([event])
        await self._configuration.reload_and_tell()

    def _list_built_in(self) -> list[SkillState]:
        settings, policy = self._denizen.settings, self._denizen.runtime.current.policy
        rows: list[SkillState] = []
        for name in BUILTIN:
            skill, fix = load_builtin(name), explain_idle(name, settings)
            written = settings.tools.get(name, ToolSection()).enabled
            is_wanted = written if written is not None else name not in OPT_IN
            rows.append(
                SkillState(
                    name=name,
                    origin=f"ships with Denizen {__version__}",
                    state="on" if not fix else "idle" if is_wanted else "off",
                    description=skill.description,
                    default=_OFF_BY_DEFAULT if name in OPT_IN else _ON_BY_DEFAULT,
                    tools=[SkillToolInfo(spec.name, policy.tier(spec)) for spec in skill.specs()],
                    why="It is of no use yet, so its tools are not there." if fix and is_wanted else "",
                    fix=fix if is_wanted else "",
                    is_built_in=True,
                )
            )
        return rows

    async def _survey(self) -> Sequence[SkillEntry]:
        """Returns the owner's skills: those that were loaded as the load left them, the others as they lie there."""
        loaded = {entry.name: entry for entry in self._denizen.generation_deps.own_skills.entries}
        now = await to_thread.run_sync(survey_skills, self._denizen.home, self._denizen.settings.skills)
        found: list[SkillEntry] = []
        for entry in now:
            known = loaded.get(entry.name)
            is_as_loaded = known and known.folder and entry.folder and known.folder.sha256 == entry.folder.sha256
            found.append(known if known and is_as_loaded and entry.state is SkillStatus.ENABLED else entry)
        return found

    async def _find(self, name: str) -> SkillEntry:
        found = next((entry for entry in await self._survey() if entry.name == name), None)
        if found is None:
            raise NotFound(f"There is no skill '{name}' of your own.", code="skill_unknown")
        return found

    async def _describe(self, entry: SkillEntry) -> SkillState:
        events = await to_thread.run_sync(self._history.list_events, entry.name)
        author = next((each.by for each in events if each.kind is SkillEventKind.WRITTEN), "")
        section, manifest = self._denizen.settings.skills.get(entry.name), entry.manifest
        state = {SkillStatus.ENABLED: "on", SkillStatus.DISABLED: "off"}.get(entry.state, entry.state.value)
        if entry.state is SkillStatus.DISABLED and (section is None or not section.sha256):
            state = "waiting"
        return SkillState(
            name=entry.name,
            origin=f"written by {author}" if author else f"the folder skills/{entry.name}",
            state=state,
            description=manifest.description if manifest else "",
            version=manifest.version if manifest else "",
            default=_OWN_DEFAULT,
            tools=await self._list_tools(entry),
            why=entry.why,
            fix=entry.fix if entry.why else "",
            trace=entry.trace,
        )

    async def _list_tools(self, entry: SkillEntry) -> Sequence[SkillToolInfo]:
        """Returns the tools of a skill; of one that is not loaded as its text states them, with the lowest tier that
        they may have.
        """
        current = self._denizen.runtime.current
        if not entry.tools and entry.folder and entry.manifest and not entry.folder.is_markdown:
            names = list_tool_names(entry.folder, entry.manifest)
            return [SkillToolInfo(name, entry.manifest.tier) for name in names]
        return [
            SkillToolInfo(spec.name, current.policy.tier(spec))
            for toolset in current.toolsets
            if toolset.name == entry.name
            for spec in await toolset.list_tools()
        ]


def _compare(before: Mapping[str, bytes], folder: SkillFolder) -> list[SkillFileChange]:
    """Returns the differences by file, the changed ones only."""
    names = sorted({*before, *folder.files})
    return [
        _compare_file(before.get(name), folder.files.get(name), name)
        for name in names
        if before.get(name) != folder.files.get(name)
    ]


def _compare_file(before: bytes | None, after: bytes | None, name: str) -> SkillFileChange:
    """Returns the difference without its head, or a sentence where there are no lines to show."""
    try:
        old, new = ((each or b"").decode("utf-8-sig") for each in (before, after))
    except UnicodeDecodeError:
        told = f"This is no text and cannot be shown. Now: {_identify(after)}. As enabled last: {_identify(before)}."
        return SkillFileChange(name, told, is_shown=False)
    return SkillFileChange(name, _diff(old, new, name, is_removed=after is None))


def _identify(data: bytes | None) -> str:
    return "not there" if data is None else f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def _diff(old: str, new: str, name: str, *, is_removed: bool) -> str:
    # A last line without its end would run into the next one.
    old, new = (text if not text or text.endswith("\n") else f"{text}\n" for text in (old, new))
    lines = "".join(diff_lines(old, new, name).splitlines(keepends=True)[2:])
    if lines:
        return lines
    return "The file is removed." if is_removed else "Only the end of its last line changed, or it is empty."
