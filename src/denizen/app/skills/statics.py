"""What can be said of a skill without running any of it: manifest, syntax, names, docstrings, annotations, imports."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from denizen.app.skills.folder import SkillFolder
from denizen.app.skills.reading import read_folder_manifest, split_front_matter
from denizen.domain.errors import InvalidInput
from denizen.skill.manifest import SkillManifest

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_problems(folder: SkillFolder) -> list[str]:
    """One line each, with file, line and remedy; empty when nothing is wrong so far."""
    try:
        manifest = read_folder_manifest(folder)
    except InvalidInput as error:
        return [f"{error.message}: {error.fix}"]
    if folder.is_markdown:
        body = split_front_matter(folder)[1]
        return [] if body else ["SKILL.md: it holds no text: write below the front matter how to do it"]
    return list(_python_problems(folder, manifest))


def list_tool_names(folder: SkillFolder, manifest: SkillManifest) -> list[str]:
    """As far as its entry states them; none where that is no Python."""
    try:
        tree = ast.parse(folder.files.get(manifest.entry, b""))
    except (SyntaxError, ValueError):
        return []
    return [_tool_name(function, decorator) for function, decorator in _tools(tree)]


def _python_problems(folder: SkillFolder, manifest: SkillManifest) -> Iterator[str]:
    for file in sorted(folder.files):
        if not file.endswith(".py"):
            continue
        try:
            tree = ast.parse(folder.files[file], filename=file)
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
    """Functions that are tools, each with the decorator that makes it one."""
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
    """Modules that are not there. Nothing is imported to find out: only where it would lie is looked up."""
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
