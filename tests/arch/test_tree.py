"""The tree as a whole: every module says what it is, names say something, and files fit every machine."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "base", "core", "shared"}

MACHINE_PATHS = re.compile(r"(?<![\w.~}])/(?:home|Users|root|work|mnt|private)/\w[\w.-]*")
"""Places that exist on one machine only. Where an example needs a path, `~` or `/srv` do."""

# Put together here, so that this file names none either.
HOSTS = tuple(
    f"{name}.{ending}"
    for names, ending in (("pypi pythonhosted npmjs debian", "org"), ("npmjs", "com"), ("crates", "io"))
    for name in names.split()
)
INDEX_HOSTS = re.compile(
    rf"(?:{'|'.join(re.escape(host) for host in HOSTS)})|https?://\S+/simple\b|(?:extra-)?index-url[ =]\S"
)
"""Where packages come from is the reader's business: the locks work with any mirror."""

SPELT_HERE = {"tests/arch/test_tree.py"}


def list_modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "versions" not in path.parts)


def list_files() -> list[str]:
    """What is, or would be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a checkout")
    return [name for name in listed.stdout.split("\0") if name and name not in SPELT_HERE and (ROOT / name).is_file()]


def find_lines(pattern: re.Pattern[str], *, leave_out: str = "") -> list[str]:
    found: list[str] = []
    for name in list_files():
        if leave_out and name.startswith(leave_out):
            continue
        text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
        found += [f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {hit.group()}" for hit in pattern.finditer(text)]
    return found


def test_every_package_has_an_init_and_every_module_a_docstring() -> None:
    folders = {path.parent for path in list_modules()} - {SOURCE}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
    silent = [
        path.relative_to(SOURCE).as_posix()
        for path in list_modules()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {path.relative_to(SOURCE).with_suffix("") for path in list_modules()}
    assert sorted(name.as_posix() for name in names if EMPTY_NAMES & set(name.parts)) == []


def test_no_file_holds_a_path_of_one_machine() -> None:
    assert find_lines(MACHINE_PATHS) == []


def test_no_file_names_the_host_of_a_package_index() -> None:
    assert find_lines(INDEX_HOSTS) == []


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (MACHINE_PATHS, "cd /home/ann/denizen", True),
        (MACHINE_PATHS, "open('/root/x')", True),
        (MACHINE_PATHS, "~/work/x and ${HOME}/root/x and GET /api/root/x", False),
        (INDEX_HOSTS, f"https://files.{HOSTS[1]}/packages/x", True),
        (INDEX_HOSTS, "https://mirror.example/root/pypi/+simple/ https://mirror.example/simple/x", True),
        (INDEX_HOSTS, "--index-url https://x", True),
        (INDEX_HOSTS, "a simple index of https://example.org/docs", False),
    ],
)
def test_the_patterns_see_what_they_are_for(pattern: re.Pattern[str], text: str, *, expected: bool) -> None:
    assert bool(pattern.search(text)) is expected
