"""The command line: writes the reference, or finds what is out of date, and checks all pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.docs.glossary import GLOSSARY, build_glossary, load_source
from scripts.docs.links import find_broken_links
from scripts.docs.markdown import list_pages, load_page
from scripts.docs.pages import REFERENCE, build_pages
from scripts.docs.snippets import find_broken_snippets

ROOT = Path(__file__).resolve().parents[2]


def find_stale(root: Path) -> Iterator[str]:
    """Yields a line for each generated page that is out of date."""
    built = build_all(root)
    for name, text in built.items():
        path = root / name
        if not path.exists():
            yield f"{name}: is missing"
        elif path.read_text(encoding="utf-8") != text:
            yield f"{name}: is out of date"
    for path in sorted((root / REFERENCE).glob("*")):
        if (name := path.relative_to(root).as_posix()) not in built:
            yield f"{name}: nothing generates this"


def write(root: Path) -> None:
    """Writes every page of the reference, and the generated part of the glossary."""
    for name, text in build_all(root).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def build_all(root: Path) -> dict[str, str]:
    """The generated pages by their paths. What people wrote in the glossary stays."""
    glossary = root / GLOSSARY
    written = glossary.read_text(encoding="utf-8") if glossary.exists() else ""
    pages = {f"{REFERENCE}/{name}": text for name, text in build_pages().items()}
    return {**pages, GLOSSARY: build_glossary(written, load_source(ROOT))}


def find_problems(root: Path) -> Iterator[str]:
    """Links that lead nowhere and snippets that do not hold, in all pages."""
    pages = [load_page(path, root) for path in list_pages(root)]
    yield from find_broken_links(pages, root)
    for page in pages:
        yield from find_broken_snippets(page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 when there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description="Writes and checks the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    chosen = parser.parse_args(arguments)
    if not chosen.check:
        write(ROOT)
    stale = list(find_stale(ROOT))
    problems = [*stale, *find_problems(ROOT)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    if stale:
        sys.stderr.write("fix: run `make docs`\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
