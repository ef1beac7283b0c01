"""The command line: prints what breaks a rule, and keeps the list of what is excused."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.conventions import english, names, structure, suite
from scripts.docs.glossary import GENERATED, GLOSSARY, find_unexplained_terms
from scripts.python_sources import load_modules

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "scripts/conventions/baseline.txt"
_HEAD = "# What breaks a rule of scripts/conventions today. New offences fail, and so do entries that are gone.\n"


@dataclass(frozen=True, order=True)
class Offence:
    """Something that breaks a rule. `place` says where, without line numbers, so that it stays the same."""

    rule: str
    place: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.place}"


def find_offences(root: Path) -> set[Offence]:
    """Everything in the repository that breaks a rule."""
    source = load_modules(root, "src")
    tests = load_modules(root, "tests")
    tools = [*load_modules(root, "benchmarks"), *load_modules(root, "scripts")]
    test_texts = [module.text for module in tests]
    promises = english.list_promise_ids(each.text for each in tests if each.path.startswith("tests/promises/"))
    rules: Mapping[str, Iterable[str]] = {
        "duplicate-class": names.find_duplicate_classes(source),
        "bare-word": names.find_bare_words(source),
        "vendor-literal": names.find_vendor_literals(source),
        "of-function": names.find_of_functions(source),
        "unclear-opening": english.find_unclear_openings([*source, *tools]),
        "citation": english.find_citations(load_texts(root), promises),
        "unexplained-term": find_unexplained_terms(load_glossary(root), source),
        "package-docstring": english.find_missing_package_docstrings(source),
        "folder-cycle": structure.find_folder_cycles(source),
        "single-use-helper": structure.find_single_use_helpers(source, test_texts),
        "wide-record": structure.find_wide_records(source),
        "long-call": structure.find_long_calls(source),
        "format-skip": structure.find_format_skips([*source, *tests, *tools]),
        "clock-in-test": suite.find_clock_readings(tests),
        "short-limit": suite.find_short_limits(tests),
    }
    return {Offence(rule, place) for rule, places in rules.items() for place in places}


def load_texts(root: Path) -> dict[str, str]:
    """Sources and pages by their paths. Left out are the page that lists the promises themselves, and the lists of the
    glossary, which say what docstrings say.
    """
    paths = [root / "README.md", *sorted((root / "src").rglob("*.py")), *sorted((root / "docs").rglob("*.md"))]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    texts.pop("docs/reference/requirements.md", None)
    texts[GLOSSARY] = load_glossary(root).partition(GENERATED)[0]
    return texts


def load_glossary(root: Path) -> str:
    path = root / GLOSSARY
    return path.read_text(encoding="utf-8") if path.exists() else ""


def parse_baseline(text: str) -> set[Offence]:
    """Reads lines of `rule: place`; a line that begins with `#` is a comment."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {Offence(*line.split(": ", 1)) for line in lines}


def format_baseline(offences: Iterable[Offence]) -> str:
    return _HEAD + "".join(f"{offence}\n" for offence in sorted(offences))


def load_baseline(root: Path) -> set[Offence]:
    """The excused offences; none when there is no such file."""
    path = root / BASELINE
    return parse_baseline(path.read_text(encoding="utf-8")) if path.exists() else set()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code 1 when an offence is not excused, or an excuse is not needed any more."""
    parser = argparse.ArgumentParser(prog="python -m scripts.conventions", description="Checks names, English, shape.")
    parser.add_argument("--all", action="store_true", help="print excused offences as well")
    parser.add_argument("--write-baseline", action="store_true", help="excuse everything that breaks a rule now")
    chosen = parser.parse_args(arguments)
    found = find_offences(root)
    if chosen.write_baseline:
        (root / BASELINE).write_text(format_baseline(found), encoding="utf-8")
    excused = load_baseline(root)
    new, gone = sorted(found - excused), sorted(excused - found)
    sys.stdout.writelines(f"{offence}\n" for offence in (sorted(found) if chosen.all else new))
    sys.stdout.writelines(f"{offence}: is gone; take it out of {BASELINE}\n" for offence in gone)
    sys.stdout.write(f"{len(found)} offences, {len(found & excused)} of them excused\n")
    return 1 if new or gone else 0


if __name__ == "__main__":
    raise SystemExit(main())
