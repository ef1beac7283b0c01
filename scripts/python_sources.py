"""Python files, each read, parsed and walked once for all rules."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
_INLINE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

MODULE = "<module>"
"""The owner of what stands outside of functions."""


@dataclass
class Walk:
    """All nodes of a module. `definitions` are its classes and functions by dotted names, outer ones first; `owners`
    the innermost function around each call and attribute; `inline` the calls in lambdas and comprehensions.
    """

    nodes: list[ast.AST] = field(default_factory=list[ast.AST])
    definitions: list[tuple[str, Definition]] = field(default_factory=list[tuple[str, Definition]])
    owners: dict[ast.AST, str] = field(default_factory=dict[ast.AST, str])
    inline: set[ast.AST] = field(default_factory=set[ast.AST])

    def visit(self, node: ast.AST, prefix: str, owner: str, *, is_inline: bool) -> None:
        self.nodes.append(node)
        if isinstance(node, Definition):
            name = f"{prefix}{node.name}"
            self.definitions.append((name, node))
            prefix = f"{name}."
            if not isinstance(node, ast.ClassDef):
                owner, is_inline = name, False
        elif isinstance(node, ast.Call | ast.Attribute):
            self.owners[node] = owner
            if is_inline:
                self.inline.add(node)
        elif isinstance(node, _INLINE):
            is_inline = True
        for child in ast.iter_child_nodes(node):
            self.visit(child, prefix, owner, is_inline=is_inline)


@dataclass(frozen=True)
class Module:
    """A Python file. `name` is dotted, `path` relative to the root of the repository."""

    name: str
    path: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def walk(self) -> Walk:
        walk = Walk()
        walk.visit(self.tree, "", MODULE, is_inline=False)
        return walk

    @property
    def nodes(self) -> Sequence[ast.AST]:
        return self.walk.nodes

    @property
    def definitions(self) -> Sequence[tuple[str, Definition]]:
        return self.walk.definitions

    @property
    def folder(self) -> str:
        """The dotted name of the package in which the file lies."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def load_modules(root: Path, folder: str) -> list[Module]:
    """The Python files below a folder of the repository. Migrations are left out: they are a log, not a design."""
    base = root / folder
    return [
        build_module(path.relative_to(base).as_posix(), path.read_text(encoding="utf-8"), folder)
        for path in sorted(base.rglob("*.py"))
        if "versions" not in path.parts
    ]


def build_module(path: str, text: str, folder: str = "src") -> Module:
    """A module from its path below `folder` and its text. Only files below `src` are named without their folder."""
    parts = path.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__"
    named = parts[:-1] if is_package else parts
    return Module(".".join(named if folder == "src" else [folder, *named]), f"{folder}/{path}", text, is_package)


def get_last_name(node: ast.AST | None) -> str:
    """`c` for `c` and for `a.b.c`; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
