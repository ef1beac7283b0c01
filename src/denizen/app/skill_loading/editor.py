"""Writing skills: the guide and the examples to begin with, and the editor behind the tools of `skill_manager` and
`skill_agent` and `denizen skill new`.

Nothing written here is enabled by it: a new skill is in no configuration, and an edited one no longer has the content
that was enabled. Nor does any of it run: only its text is checked.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from anyio import to_thread

from denizen.app.home.files import edit_lock, write_whole
from denizen.app.settings.tools import OwnSkillSection
from denizen.app.skill_loading.check import find_problems
from denizen.app.skill_loading.folder import MAX_BYTES, SKILLS_FOLDER, load_folder
from denizen.app.skill_loading.history import SkillHistory
from denizen.app.skill_loading.registry import survey_skills
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.ports.skill_configuration import SkillEventKind
from denizen.skill.instance_services import SkillInfo
from denizen.skill.manifest import check_skill_name

_MANIFEST = """\
name: {name}
version: 0.1.0
description: Rolls dice.
# No tool of it has a lower tier than this: 0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous (left out: 3).
tier: 0
# What its context holds: network, tools, history, programs, model.
permissions: []
# Run by `denizen skill test {name}`: the result must hold the text.
examples:
  - {{tool: {name}_roll, args: {{sides: 6, count: 3}}, expect: "rolled"}}
  - {{tool: {name}_roll, args: {{sides: 1}}, expect: "minimum of 2", error: true}}
"""

_CODE = '''\
"""Rolls dice. An example: change it to what you need."""

from __future__ import annotations

import secrets
from typing import Annotated

from denizen.skill import Param, Skill, Tier, ToolContext

skill = Skill("{name}", description="Rolls dice.")


@skill.tool(tier=Tier.HARMLESS)
async def {name}_roll(
    context: ToolContext,
    sides: Annotated[int, Param("2 to 1000", ge=2, le=1000)] = 6,
    count: Annotated[int, Param("how many dice", ge=1, le=20)] = 1,
) -> str:
    """Rolls dice and tells what they show."""
    rolled = [secrets.randbelow(sides) + 1 for _ in range(count)]
    return f"rolled {{', '.join(map(str, rolled))}}, together {{sum(rolled)}}"
'''

_MARKDOWN = """\
---
name: {name}
description: How we write announcements. Read it before you write one.
---

# Announcements

1. Begin with what changes for the reader, in one sentence.
2. Say from when on.
3. End with whom to ask.

Keep it below 120 words. `example.md` shows a good one.
"""

_MARKDOWN_EXAMPLE = """\
The library opens at 8 from Monday on. The early shift is a trial until March. Questions: ask Ana.
"""

GUIDE = f"""\
A skill is a folder. A Python skill has two files:

skill.yaml
```yaml
{_MANIFEST.format(name="dice")}```

skill.py
```python
{_CODE.format(name="dice")}```

Rules: the folder, `name` and Skill(...) have the same name (a-z, 0-9, _). Import from denizen.skill, the standard
library and files of your own (`from .other import thing`) only. Every tool has a docstring of one sentence, a context
as its first parameter and a type for each other parameter (str, int, float, bool, Literal, list, dict). Tool names are
unique among all skills: begin them with the skill's name. Return text; raise ToolError("what is wrong") for what the
caller can correct. `await context.fetch(url)` needs the permission network and gives .status and .text; context.folder
is a folder of its own.

A Markdown skill, which tells how something is done, has one file SKILL.md:
```markdown
{_MARKDOWN.format(name="announcements")}```
"""


def python_example(name: str) -> dict[str, str]:
    """Returns the files of a working Python skill."""
    return {"skill.yaml": _MANIFEST.format(name=name), "skill.py": _CODE.format(name=name)}


def markdown_example(name: str) -> dict[str, str]:
    """Returns the files of a Markdown skill."""
    return {"SKILL.md": _MARKDOWN.format(name=name), "example.md": _MARKDOWN_EXAMPLE}


MAX_FILE_CHARS = 200_000
MAX_FILES_WRITTEN = 30

_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class SkillFolderEditor:
    """Lists, reads and writes the skills of a home folder (`denizen.skill.SkillEditor`)."""

    def __init__(self, home: Path, sections: Mapping[str, OwnSkillSection]) -> None:
        self._home = home
        self._sections = sections

    async def list_skills(self) -> Sequence[SkillInfo]:
        entries = await to_thread.run_sync(survey_skills, self._home, self._sections)
        return [
            SkillInfo(e.name, e.kind, e.state, e.manifest.description if e.manifest else "", e.why) for e in entries
        ]

    async def read(self, name: str) -> Mapping[str, str]:
        check_skill_name(name)
        folder = await to_thread.run_sync(load_folder, self._home, name)
        return {file: _text(data) for file, data in folder.files.items()}

    async def create(self, name: str, files: Mapping[str, str], *, by: str) -> Sequence[str]:
        check_skill_name(name)
        return await to_thread.run_sync(self._create, name, files, by)

    async def edit(self, name: str, file: str, text: str, *, by: str) -> Sequence[str]:
        check_skill_name(name)
        return await to_thread.run_sync(self._edit, name, file, text, by)

    async def delete(self, name: str) -> None:
        check_skill_name(name)
        await to_thread.run_sync(self._delete, name)

    def guide(self) -> str:
        return GUIDE

    def _create(self, name: str, files: Mapping[str, str], by: str) -> Sequence[str]:
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
            try:
                for file, text in files.items():
                    write_whole(folder / file, text, mode=0o600)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return self._check(name, by)

    def _edit(self, name: str, file: str, text: str, by: str) -> Sequence[str]:
        _check_file(file, text)
        with edit_lock(self._home):
            folder = load_folder(self._home, name)  # whole and without links
            if file not in folder.files and folder.size_bytes + len(text.encode()) > MAX_BYTES:
                raise InvalidInput(f"'{name}' would become too large.", code="bad_skill", fix="Shorten it.")
            write_whole(folder.path / file, text, mode=0o600)
        return self._check(name, by)

    def _check(self, name: str, by: str) -> Sequence[str]:
        """Returns what the check finds in what was just written, and notes who wrote it."""
        written = load_folder(self._home, name)
        SkillHistory(self._home).note(written, SkillEventKind.WRITTEN, by)
        return find_problems(written)

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
