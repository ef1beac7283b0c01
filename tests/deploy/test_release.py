"""`make release` refuses what is not ready, and lists the parts of the program with their licences; the site of the
documentation has every link right.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.release.__main__ import find_problems, list_parts, read_version, render_licences, render_sbom
from tests.timing import HANG_LIMIT_S

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "CHANGELOG.md", "src/denizen/__init__.py", "deploy/helm/denizen/Chart.yaml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a release looks at, ready for release."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    change(tmp_path, "CHANGELOG.md", r"^## \[Unreleased\]$", f"## [{read_version(ROOT)}] - 2026-12-01")
    return tmp_path


def change(tree: Path, name: str, pattern: str, instead: str) -> None:
    text = (tree / name).read_text(encoding="utf-8")
    changed = re.sub(pattern, instead, text, count=1, flags=re.MULTILINE)
    assert changed != text
    (tree / name).write_text(changed, encoding="utf-8")


def test_a_tree_that_is_ready_has_no_problems_and_versions_agree(tree: Path) -> None:
    assert list(find_problems(tree)) == []


@pytest.mark.parametrize(
    ("name", "pattern", "instead", "told"),
    [
        ("src/denizen/__init__.py", r'^__version__ = ".*"', '__version__ = "9.9.9"', "another version"),
        ("deploy/helm/denizen/Chart.yaml", r"^appVersion: .*$", 'appVersion: "9.9.9"', "another appVersion"),
        ("CHANGELOG.md", r"^## \[[\d.]+\] - 2026-12-01$", "## [Unreleased]", "has no heading"),
        ("CHANGELOG.md", r"^## \[", "## [Unreleased]\n\n- Something new.\n\n## [", "entries below [Unreleased]"),
    ],
)
def test_a_version_that_differs_or_a_changelog_that_is_behind_is_refused(
    tree: Path, name: str, pattern: str, instead: str, told: str
) -> None:
    change(tree, name, pattern, instead)
    (problem,) = find_problems(tree)
    assert told in problem


def test_the_list_of_parts_has_every_locked_package_with_its_licence() -> None:
    lock = (ROOT / "locks" / "run.txt").read_text(encoding="utf-8")
    parts = list_parts(lock)
    bom = json.loads(render_sbom("1.0", parts))
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", "denizen")
    assert {(each["name"], each["version"]) for each in bom["components"]} == {(name, of) for name, of, _ in parts}
    assert len(parts) == len(re.findall(r"^[\w.-]+==", lock, re.MULTILINE))
    table = render_licences(parts)
    assert re.search(r"^\| sqlalchemy \| [\d.]+\w* \| MIT", table, re.MULTILINE)
    assert [name for name, _, licence in parts if not licence and importlib.util.find_spec(name)] == []


@pytest.mark.e2e
def test_the_site_of_the_documentation_builds_with_search_and_a_broken_link_fails(tmp_path: Path) -> None:
    for each in ROOT.iterdir():
        if each.name in ("docs", "scripts"):
            shutil.copytree(each, tmp_path / each.name)
        elif each.name in ("README.md", "mkdocs.yml"):
            shutil.copy(each, tmp_path)
        elif each.name != "dist" and not each.name.startswith("."):
            (tmp_path / each.name).symlink_to(each)

    def build() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)

    built = build()
    assert built.returncode == 0, built.stderr
    index = (tmp_path / "dist" / "site" / "preview" / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "how-to/operate.html" in index
    with (tmp_path / "docs" / "how-to" / "operate.md").open("a", encoding="utf-8") as page:
        page.write("\nSee [nothing](no-such-page.md).\n")
    broken = build()
    assert broken.returncode != 0
    assert "no-such-page.md" in broken.stderr
