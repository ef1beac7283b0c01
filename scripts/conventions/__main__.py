"""The command line: prints what breaks a rule. Nothing is excused."""

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
        "dead-reference": english.find_dead_references(source),
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


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code 1 when anything breaks a rule."""
    parser = argparse.ArgumentParser(prog="python -m scripts.conventions", description="Checks names, English, shape.")
    parser.parse_args(arguments)
    found = sorted(find_offences(root))
    sys.stdout.writelines(f"{offence}\n" for offence in found)
    sys.stdout.write(f"{len(found)} offences\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
