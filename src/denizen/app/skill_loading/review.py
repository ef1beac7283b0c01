"""Enabling and refusing what stands in a skill's folder: the decisions of its owner, for command line and pages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread

from denizen.app.home.files import SECRET_MODE, edit_lock, write_whole
from denizen.app.settings import Settings
from denizen.app.settings.problem import KeyPath
from denizen.app.skill_loading.check import SkillCheckReport, check_skill
from denizen.app.skill_loading.editor import SkillFolderEditor
from denizen.app.skill_loading.folder import SKILLS_FOLDER, SkillFolder, load_folder
from denizen.app.skill_loading.history import SkillHistory
from denizen.domain.errors import Conflict, NotFound
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.ports.skill_configuration import SkillEventKind


@record
class EnablingPlan:
    """The result of the check before enabling. Without problems, `values` are what the configuration has to say."""

    report: SkillCheckReport
    values: Mapping[KeyPath, Json]


async def plan_enabling(settings: Settings, name: str, sha256: str, taken: Mapping[str, str]) -> EnablingPlan:
    """Checks the content with this digest, in a child process without secrets. `taken` are names that its tools
    must not have, with who has them. Raises NotFound, and Conflict where the content is another by now: of that one
    nothing is run.
    """
    home = settings.home
    folder = await to_thread.run_sync(load_folder, home, name)
    _compare(folder, sha256)
    report = await check_skill(folder, taken, with_examples=False)
    await to_thread.run_sync(check_unchanged, home, name, sha256)
    if report.problems:
        return EnablingPlan(report, {})
    is_off = name in settings.skills and not settings.skills[name].enabled
    values: dict[KeyPath, Json] = {("skills", name, "sha256"): sha256}
    return EnablingPlan(report, {**values, ("skills", name, "enabled"): True} if is_off else values)


def check_unchanged(home: Path, name: str, sha256: str) -> None:
    """Raises Conflict where the folder has another content than the one that somebody has looked at."""
    _compare(load_folder(home, name), sha256)


def _compare(folder: SkillFolder, sha256: str) -> None:
    if folder.sha256 != sha256:
        raise Conflict(f"'{folder.name}' changed meanwhile.", code="skill_changed", fix="Look at it once more.")


async def refuse_skill(settings: Settings, name: str, sha256: str, by: str) -> None:
    """Puts back the content that was enabled last, or deletes a skill that never was. What is refused stays in the
    history. Raises NotFound where no content is kept to be put back.
    """
    home, section = settings.home, settings.skills.get(name)
    history = SkillHistory(home)
    folder = await to_thread.run_sync(load_folder, home, name)
    await to_thread.run_sync(check_unchanged, home, name, sha256)
    if section is None or not section.sha256:
        await to_thread.run_sync(history.note, folder, SkillEventKind.REFUSED, by)
        await SkillFolderEditor(home, settings.skills).delete(name)
        return
    enabled = await to_thread.run_sync(history.find, name, section.sha256)
    if enabled is None:
        raise NotFound(
            "The content that was enabled last is not kept.",
            code="skill_content_unknown",
            why="It was enabled by an older Denizen, and never loaded by this one.",
            fix=f"Put the files in {folder.path} back yourself, or enable them as they are.",
        )
    await to_thread.run_sync(history.note, folder, SkillEventKind.REFUSED, by)
    await to_thread.run_sync(partial(_put_back, home, name, enabled))


def _put_back(home: Path, name: str, files: Mapping[str, bytes]) -> None:
    with edit_lock(home):
        place = home / SKILLS_FOLDER / name
        new, old = place.with_name(f".new-{name}"), place.with_name(f".deleted-{name}")
        for each in (new, old):
            shutil.rmtree(each, ignore_errors=True)
        for file, data in files.items():
            (new / file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(new / file, data, mode=SECRET_MODE)
        place.rename(old)
        new.rename(place)
        shutil.rmtree(old)
