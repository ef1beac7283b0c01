"""Checks of a skill. `find_problems` looks at manifest, syntax, names, docstrings, annotations and imports without
running anything; `check_skill` then imports the code and runs its examples in a child process.

The child has an environment without secrets, an empty folder as its home, and a bounded time, so that a mistake in a
skill cannot take Denizen along. It is no sandbox: whoever asks for this has decided to run the code. What a model has
written is only looked at.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from denizen.adapters.commands import run_program
from denizen.app.home.environment import read_environment
from denizen.app.skill_loading.folder import SkillFolder, decode_source, read_folder_manifest, split_front_matter
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record
from denizen.skill.manifest import SkillManifest

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_problems(folder: SkillFolder) -> list[str]:
    """Returns one line for each problem, with file, line and remedy; empty when nothing is wrong so far."""
    try:
        manifest = read_folder_manifest(folder)
    except InvalidInput as error:
        return [f"{error.message}: {error.fix}"]
    if folder.is_markdown:
        body = split_front_matter(folder)[1]
        return [] if body else ["SKILL.md: it holds no text: write below the front matter how to do it"]
    return list(_python_problems(folder, manifest))


def list_tool_names(folder: SkillFolder, manifest: SkillManifest) -> list[str]:
    """Returns the names of the tools as the entry states them; none when it is not Python."""
    try:
        tree = ast.parse(decode_source(manifest.entry, folder.files.get(manifest.entry, b"")))
    except (SyntaxError, ValueError, InvalidInput):
        return []
    return [_tool_name(function, decorator) for function, decorator in _tools(tree)]


def _python_problems(folder: SkillFolder, manifest: SkillManifest) -> Iterator[str]:
    for file in sorted(folder.files):
        if not file.endswith(".py"):
            continue
        try:
            tree = ast.parse(decode_source(file, folder.files[file]), filename=file)
        except InvalidInput as error:
            yield f"{error.message}: {error.fix}"
            continue
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            yield f"{file}:{line}: this is no Python: {getattr(error, 'msg', None) or error}"
            continue
        yield from _import_problems(folder, file, tree)
        if file == manifest.entry:
            yield from _entry_problems(file, tree, manifest)


def _entry_problems(file: str, tree: ast.Module, manifest: SkillManifest) -> Iterator[str]:
    made = [node for node in tree.body if isinstance(node, ast.Assign) and _is_skill(node)]
    if not made:
        yield f'{file}:1: it makes no skill: write skill = Skill("{manifest.name}", description=...)'
    tools = list(_tools(tree))
    if made and not tools:
        yield f"{file}:1: it has no tools: mark a function with @skill.tool(...)"
    for function, decorator in tools:
        if not isinstance(decorator, ast.Call):
            yield f"{file}:{function.lineno}: write @skill.tool() with parentheses"
        if not ast.get_docstring(function):
            yield f"{file}:{function.lineno}: `{function.name}` has no docstring: say in a sentence what it does"
        parameters = [*function.args.posonlyargs, *function.args.args]
        if not parameters:
            yield f"{file}:{function.lineno}: `{function.name}` takes no context: make it the first parameter"
        for parameter in (*parameters[1:], *function.args.kwonlyargs):
            if parameter.annotation is None:
                yield f"{file}:{parameter.lineno}: say the type of `{parameter.arg}` in `{function.name}`"


def _tools(tree: ast.Module) -> Iterator[tuple[_Function, ast.expr]]:
    """Yields the functions that are tools, each with the decorator that makes it one."""
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield from ((node, decorator) for decorator in node.decorator_list if _is_tool(decorator))


def _tool_name(function: _Function, decorator: ast.expr) -> str:
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value) or function.name
    return function.name


def _is_skill(node: ast.Assign) -> bool:
    named = any(isinstance(target, ast.Name) and target.id == "skill" for target in node.targets)
    return named and isinstance(node.value, ast.Call)


def _is_tool(decorator: ast.expr) -> bool:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(made, ast.Attribute) and made.attr == "tool"


def _import_problems(folder: SkillFolder, file: str, tree: ast.Module) -> Iterator[str]:
    """Yields imports of modules that do not exist. Nothing is imported to find out: only the place is looked up."""
    own = {PurePosixPath(name).parts[0].removesuffix(".py") for name in folder.files}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if top in sys.stdlib_module_names:
                continue
            if top in own:
                yield f"{file}:{node.lineno}: write `from .{name} import ...` for a file of the skill's own"
            elif top == "denizen" and name not in ("denizen.skill", "denizen"):
                yield f"{file}:{node.lineno}: import from denizen.skill only, not from {name}"
            elif importlib.util.find_spec(top) is None:
                yield f"{file}:{node.lineno}: there is no module `{top}` where Denizen runs: install it there"


CHILD_TIMEOUT_S = 60.0
_SHOWN_CHARS = 2000
_NO_EXAMPLES = (
    "skill.yaml: there are no examples: write some under `examples`, such as "
    '- {tool: NAME, args: {}, expect: "part of the result"}'
)


@record
class SkillCheckReport:
    """The result of a check. `problems` are lines with file, line and remedy where these are known; `tools` are (name,
    tier) pairs; `passed` counts the examples with the expected result.
    """

    problems: tuple[str, ...]
    tools: tuple[tuple[str, int], ...] = ()
    passed: int = 0


async def check_skill(folder: SkillFolder, taken: Mapping[str, str], *, with_examples: bool) -> SkillCheckReport:
    """Checks a skill. Of a Markdown skill, which has no code, only the text is looked at. `taken` are names that its
    tools must not have, with who has them.
    """
    problems = find_problems(folder)
    if problems or folder.is_markdown:
        return SkillCheckReport(tuple(problems))
    examples = read_folder_manifest(folder).examples if with_examples else ()
    if with_examples and not examples:
        return SkillCheckReport((_NO_EXAMPLES,))
    with tempfile.TemporaryDirectory(prefix="denizen-skill-") as place:
        report = await _in_child(folder, Path(place), "test" if with_examples else "check")
    clashes = tuple(
        f"its tool `{tool}` has the name of a tool of {taken[tool]}: rename yours"
        for tool, _ in report.tools
        if tool in taken
    )
    return replace(report, problems=(*report.problems, *clashes))


async def _in_child(folder: SkillFolder, place: Path, mode: str) -> SkillCheckReport:
    result = place / "result.json"
    home = place / "home"
    home.mkdir()
    argv = [
        sys.executable,
        "-I",
        "-B",
        "-m",
        "denizen.app.skill_loading.check_child",
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
        return SkillCheckReport((f"it was not done within {CHILD_TIMEOUT_S:g} s, or printed too much",))
    try:
        row = cast("dict[str, Any]", json.loads(result.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        said = ended.text.strip()[-_SHOWN_CHARS:]
        return SkillCheckReport(
            (f"its code ended the process (exit code {ended.exit_code}): {said or 'without a word'}",)
        )
    tools = tuple((str(name), int(tier)) for name, tier in row["tools"])
    return SkillCheckReport(tuple(map(str, row["problems"])), tools, int(row["passed"]))
