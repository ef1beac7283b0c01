"""Writing skills, for the tools of `skill_manager` and `skill_agent` and for `denizen skill new`.

What is written here is never enabled by it: a new skill is in no configuration, and an edited one no longer has the
content that was enabled (inventory VW6). Nor does any of it run: the check is of texts only (`statics.py`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from anyio import to_thread

from denizen.app.settings.files import edit_lock, write_whole
from denizen.app.settings.schema_skills import UserSkillSection
from denizen.app.skills.example import GUIDE
from denizen.app.skills.folder import MAX_BYTES, SKILLS_FOLDER, load_folder
from denizen.app.skills.shelf import survey
from denizen.app.skills.statics import find_problems
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.skill.manifest import check_skill_name
from denizen.skill.services import SkillInfo

MAX_FILE_CHARS = 200_000
MAX_FILES_WRITTEN = 30

_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class SkillWorkshop:
    """Implements `denizen.skill.SkillEditor`."""

    def __init__(self, home: Path, sections: Mapping[str, UserSkillSection]) -> None:
        self._home = home
        self._sections = sections

    async def list_skills(self) -> Sequence[SkillInfo]:
        entries = await to_thread.run_sync(survey, self._home, self._sections)
        return [
            SkillInfo(e.name, e.kind, e.state, e.manifest.description if e.manifest else "", e.why) for e in entries
        ]

    async def read(self, name: str) -> Mapping[str, str]:
        check_skill_name(name)
        folder = await to_thread.run_sync(load_folder, self._home, name)
        return {file: _text(data) for file, data in folder.files.items()}

    async def create(self, name: str, files: Mapping[str, str]) -> Sequence[str]:
        check_skill_name(name)
        return await to_thread.run_sync(self._create, name, files)

    async def edit(self, name: str, file: str, text: str) -> Sequence[str]:
        check_skill_name(name)
        return await to_thread.run_sync(self._edit, name, file, text)

    async def delete(self, name: str) -> None:
        check_skill_name(name)
        await to_thread.run_sync(self._delete, name)

    def guide(self) -> str:
        return GUIDE

    def _create(self, name: str, files: Mapping[str, str]) -> Sequence[str]:
        if not files or len(files) > MAX_FILES_WRITTEN:
            raise InvalidInput(f"A new skill has 1 to {MAX_FILES_WRITTEN} files.", code="bad_skill")
        for file, text in files.items():
            _check_file(file, text)
        with edit_lock(self._home):
            folder = self._home / SKILLS_FOLDER / name
            try:
                folder.mkdir(mode=0o700, parents=True)
            except FileExistsError:
                fix = "Edit it, or take another name."
                raise Conflict(f"There is a skill '{name}' already.", code="skill_taken", fix=fix) from None
            for file, text in files.items():
                write_whole(folder / file, text, mode=0o600)
        return find_problems(load_folder(self._home, name))

    def _edit(self, name: str, file: str, text: str) -> Sequence[str]:
        _check_file(file, text)
        with edit_lock(self._home):
            folder = load_folder(self._home, name)  # whole and without links
            if file not in folder.files and folder.size_bytes + len(text.encode()) > MAX_BYTES:
                raise InvalidInput(f"'{name}' would become too large.", code="bad_skill", fix="Shorten it.")
            write_whole(folder.path / file, text, mode=0o600)
        return find_problems(load_folder(self._home, name))

    def _delete(self, name: str) -> None:
        with edit_lock(self._home):
            place = self._home / SKILLS_FOLDER / name
            if place.is_symlink() or not place.is_dir():
                raise NotFound(f"There is no skill '{name}'.", code="skill_unknown")
            gone = place.with_name(f".deleted-{name}-{os.getpid()}")
            place.rename(gone)  # at once, so that nobody sees half of it
            shutil.rmtree(gone)


def _check_file(file: str, text: str) -> None:
    steps = PurePosixPath(file).parts
    if not 1 <= len(steps) <= 4 or "/".join(steps) != file or not all(map(_STEP.fullmatch, steps)):
        raise InvalidInput(
            f"'{file[:100]}' cannot be a file of a skill.",
            code="bad_skill",
            fix="Give a path below its folder such as skill.py or notes/style.md.",
        )
    if len(text) > MAX_FILE_CHARS or "\x00" in text:
        fix = f"Write plain text of at most {MAX_FILE_CHARS} characters."
        raise InvalidInput(f"{file} is too long or no text.", code="bad_skill", fix=fix)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are no text]"
