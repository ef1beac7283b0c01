"""Whether a skill works: its texts are looked at, then its code is imported and its examples are run in a child
process.

The child has an environment without secrets, an empty folder as its home, and a bounded time, so that a mistake in a
skill cannot take Denizen along. It is no sandbox: whoever asks for this has decided to run the code. What a model has
written is only looked at (`statics.py`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from denizen.adapters.commands import run_program
from denizen.app.environment import read_environment
from denizen.app.skills.folder import SkillFolder
from denizen.app.skills.reading import read_folder_manifest
from denizen.app.skills.statics import find_problems

CHILD_TIMEOUT_S = 60.0
_SHOWN_CHARS = 2000
_NO_EXAMPLES = (
    "skill.yaml: there are no examples: write some under `examples`, such as "
    '- {tool: NAME, args: {}, expect: "part of the result"}'
)


@dataclass(frozen=True, slots=True)
class Report:
    """`problems` are lines with file, line and remedy where these are known; `tools` are (name, tier) pairs; `passed`
    counts the examples that came out as they should.
    """

    problems: tuple[str, ...]
    tools: tuple[tuple[str, int], ...] = ()
    passed: int = 0


async def check_skill(folder: SkillFolder, taken: Mapping[str, str], *, with_examples: bool) -> Report:
    """A Markdown skill has no code, so only its text is looked at. `taken` are names that its tools must not have, with
    who has them.
    """
    problems = find_problems(folder)
    if problems or folder.is_markdown:
        return Report(tuple(problems))
    examples = read_folder_manifest(folder).examples if with_examples else ()
    if with_examples and not examples:
        return Report((_NO_EXAMPLES,))
    with tempfile.TemporaryDirectory(prefix="denizen-skill-") as place:
        report = await _in_child(folder, Path(place), "test" if with_examples else "check")
    clashes = tuple(
        f"its tool `{tool}` has the name of a tool of {taken[tool]}: rename yours"
        for tool, _ in report.tools
        if tool in taken
    )
    return replace(report, problems=(*report.problems, *clashes))


async def _in_child(folder: SkillFolder, place: Path, mode: str) -> Report:
    result = place / "result.json"
    home = place / "home"
    home.mkdir()
    argv = [
        sys.executable,
        "-I",
        "-B",
        "-m",
        "denizen.app.skills.child",
        mode,
        str(folder.path.parents[1]),
        folder.name,
        folder.sha256,
        str(result),
    ]
    path = read_environment().get("PATH") or "/usr/bin:/bin"
    environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    ended = await run_program(argv, cwd=home, environ=environ, timeout_s=CHILD_TIMEOUT_S)
    if ended.exit_code is None:
        return Report((f"it was not done within {CHILD_TIMEOUT_S:g} s, or printed too much",))
    try:
        row = cast("dict[str, Any]", json.loads(result.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        said = ended.text.strip()[-_SHOWN_CHARS:]
        return Report((f"its code ended the process (exit code {ended.exit_code}): {said or 'without a word'}",))
    tools = tuple((str(name), int(tier)) for name, tier in row["tools"])
    return Report(tuple(map(str, row["problems"])), tools, int(row["passed"]))
