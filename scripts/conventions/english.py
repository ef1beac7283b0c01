"""Rules about texts: how docstrings open, and that nothing cites what the repository does not hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scripts.python_sources import Definition, Module

_OPENING = re.compile(r"\s*(What|Of)\b")
_CITATION = re.compile(
    r"\b(?:the )?inventory\b,? ?\(?(?:section )?[VSCTLP\d][\w.-]*|\([^()]*\binventory\b[^()]*\d[^()]*\)", re.IGNORECASE
)
_PROMISE = re.compile(r"\bpromises? [0-9]+\b", re.IGNORECASE)
_LISTED_IDS = re.compile(r"\((?:[VSCTLP]W?\d{1,2}(?:, | and )?)+\)")
_TOKEN = re.compile(r"\b[VSCTLP][\w]*(?:-[a-z0-9]+)*\b")
_NOQA = re.compile(r"#\s*noqa\b[^\n]*")
_REQUIREMENT = re.compile(r"\bRequirement\(\s*\"([^\"]+)\"")
_REFERENCE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+)(?:\.\w+)*`")
_AMBIGUOUS = frozenset({"S3", "P2", "T1", "T2", "L1", "L2", "L3"})
"""Ids that are words of the trade as well: storage, caches, processors. They count in parentheses only."""


def find_unclear_openings(modules: Sequence[Module]) -> Iterator[str]:
    """A docstring that opens with "What" or "Of": it has no subject. Docstrings of attributes count, too."""
    for module in modules:
        for name, text in list_docstrings(module):
            if _OPENING.match(text):
                yield f"{module.path}::{name}"


def list_docstrings(module: Module) -> Iterator[tuple[str, str]]:
    """Each docstring with the dotted name of what it describes; the module's own is named `<module>`."""
    yield from _list_docstrings(module.tree, "")


def _list_docstrings(node: ast.Module | Definition, prefix: str) -> Iterator[tuple[str, str]]:
    if (text := ast.get_docstring(node)) is not None:
        yield prefix.removesuffix(".") or "<module>", text
    previous: ast.stmt | None = None
    for statement in node.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _list_docstrings(statement, f"{prefix}{statement.name}.")
            case ast.Expr(value=ast.Constant(value=str(text))) if isinstance(previous, ast.Assign | ast.AnnAssign):
                yield f"{prefix}{_get_target(previous)}", text
            case _:
                pass
        previous = statement


def _get_target(statement: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0])


def find_citations(texts: Mapping[str, str], known_ids: Iterable[str]) -> Iterator[str]:
    """A reference to the inventory, to a numbered promise or to the id of one, in texts by their paths.

    `known_ids` are the ids of `tests/promises`. Codes behind `noqa` are no citations.
    """
    ids = frozenset(known_ids) - _AMBIGUOUS
    for path, text in texts.items():
        plain = _NOQA.sub("", text)
        found: set[str] = set()
        for pattern in (_CITATION, _PROMISE, _LISTED_IDS):
            found.update(match.group() for match in pattern.finditer(plain))
            plain = pattern.sub("", plain)
        found |= ids.intersection(_TOKEN.findall(plain))
        for citation in sorted(" ".join(each.split()) for each in found):
            yield f"{path}::{citation}"


def find_dead_references(modules: Sequence[Module]) -> Iterator[str]:
    """A path in backticks, such as `engine/gate/decision`, that begins with a package and leads to no module."""
    known = {_shorten(module.path.removesuffix(".py").removesuffix("/__init__")) for module in modules}
    packages = {path.partition("/")[0] for path in known if "/" in path}
    for module in modules:
        for reference in _REFERENCE.findall(module.text):
            if reference.partition("/")[0] in packages and reference not in known:
                yield f"{module.path}::{reference}"


def _shorten(path: str) -> str:
    """Returns the path as texts name it: without `src` and the package that holds everything."""
    return path.partition("/")[2].partition("/")[2]


def list_promise_ids(texts: Iterable[str]) -> set[str]:
    """The ids of the requirements in the sources of `tests/promises`."""
    return {name for text in texts for name in _REQUIREMENT.findall(text)}


def find_missing_package_docstrings(modules: Sequence[Module]) -> Iterator[str]:
    """A package whose `__init__` says nothing, or TODO."""
    for module in modules:
        if module.is_package and ("TODO" in (text := ast.get_docstring(module.tree) or "TODO") or not text.strip()):
            yield module.path
