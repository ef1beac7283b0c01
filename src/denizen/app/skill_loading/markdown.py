"""Markdown skills as one tool (the SKILL.md convention): its description lists names and purposes, a call returns the
text.

So a prompt carries a line for each skill and nothing more until one is needed. Other files of the skill's folder can be
read in the same way; nothing of it is ever run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from denizen.app.skill_loading.folder import MARKDOWN_FILE, SkillFolder, split_front_matter
from denizen.domain.json import Json
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.words import truncate
from denizen.ports.toolset import CallScope
from denizen.skill.manifest import SkillManifest

READ_SKILL = "read_skill"
MAX_FILE_CHARS = 60_000
MAX_LISTED_CHARS = 200
"""The limit of a description, which is in the prompt of every request."""


class MarkdownToolset:
    """The tool that reads Markdown skills. It is made with those that are enabled, at least one."""

    def __init__(self, skills: Iterable[tuple[SkillManifest, SkillFolder]]) -> None:
        self._skills = {manifest.name: (manifest, folder) for manifest, folder in skills}

    @property
    def name(self) -> str:
        return "skills"

    async def list_tools(self) -> Sequence[ToolSpec]:
        listed = "; ".join(
            f"{name} ({truncate(manifest.description, MAX_LISTED_CHARS)})"
            for name, (manifest, _) in self._skills.items()
        )
        names: list[Json] = list(self._skills)
        return [
            ToolSpec(
                READ_SKILL,
                f"Reads how to do something, before you do it. There are: {listed}",
                {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "enum": names},
                        "file": {"type": "string", "description": "one of the files that the text names"},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                },
                tier=Tier.HARMLESS,
                read_only=True,
                idempotent=True,
                timeout_s=5.0,
            )
        ]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Returns the text of a skill or of one of its files, as it was pinned when the skill was loaded."""
        name, file = str(call.args.get("name", "")), str(call.args.get("file", ""))
        if name not in self._skills:
            return ToolResult(f"There is no skill '{name}'. There are: {', '.join(self._skills)}.", is_error=True)
        _, folder = self._skills[name]
        others = [each for each in folder.files if each != MARKDOWN_FILE]
        if not file or file == MARKDOWN_FILE:
            body = split_front_matter(folder)[1]
            return ToolResult(f"{body}\n\n[files of this skill: {', '.join(others)}]" if others else body)
        data = folder.files.get(file.removeprefix("./"))
        if data is None:
            return ToolResult(f"'{name}' has no file '{file}'. It has: {', '.join(others) or 'none'}.", is_error=True)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return ToolResult(f"{file} is no text ({len(data)} bytes).", is_error=True)
        cut = f"\n[cut: the file has {len(text)} characters]" if len(text) > MAX_FILE_CHARS else ""
        return ToolResult(f"{text[:MAX_FILE_CHARS]}{cut}")

    async def aclose(self) -> None:
        """Does nothing: nothing is open."""
