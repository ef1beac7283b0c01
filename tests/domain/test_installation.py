"""Fixes that name a package work for the installation that shows them."""

from __future__ import annotations

import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from denizen.domain.installation import build_install_command, list_extra_packages

ROOT = Path(__file__).resolve().parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_command_installs_the_packages_of_the_extra_into_this_python(extra: str) -> None:
    program, *arguments = shlex.split(build_install_command(extra))
    assert shutil.which(program)
    assert program == sys.executable or sys.executable in arguments
    assert arguments[-len(EXTRAS[extra]) :] == list_extra_packages(extra) == EXTRAS[extra]


def test_no_text_names_an_extra_in_brackets_which_works_in_no_checkout() -> None:
    texts = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py")}
    assert [name for name, text in texts.items() if any(f"denizen[{extra}]" in text for extra in EXTRAS)] == []
