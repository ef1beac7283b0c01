"""What the code imports is declared: what another package happens to bring along may be gone with its next release."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]

EXTRAS = {"anthropic", "openai"}
"""Brought by the extras of pydantic-ai-slim, which pick their versions."""
OPTIONAL = {"pytest", "zstandard"}
"""Used where they are there; pytest only by the fixtures for authors of skills."""


def list_imported() -> set[str]:
    """Returns the top-level packages of others that the code imports, anywhere in a module."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    own = {folder.name for folder in (ROOT / "src").iterdir()}
    return {name for name in found - own if name not in sys.stdlib_module_names}


def list_declared(project: Path) -> set[str]:
    """Returns the distributions that the project names, for running and in its extras."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    named = [*table["dependencies"], *(each for extra in table["optional-dependencies"].values() for each in extra)]
    return {normalize(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in named}


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_that_is_imported_is_declared() -> None:
    declared, distributions = list_declared(ROOT / "pyproject.toml"), packages_distributions()
    undeclared = {
        name
        for name in list_imported() - EXTRAS - OPTIONAL
        if name in distributions and not {normalize(each) for each in distributions[name]} & declared
    }
    assert undeclared == set()
