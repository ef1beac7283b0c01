"""`docs/explanation/glossary.md`: people write the table of terms; packages and records are listed from the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.docs.table import escape, format_table
from scripts.python_sources import Module, load_modules

GLOSSARY = "docs/explanation/glossary.md"
GENERATED = "<!-- Written by `make docs` from the code. Changes made below are lost. -->\n"
_RECORD_PACKAGES = ("denizen.domain", "denizen.ports")
_HELPERS = frozenset({"clock", "data_uri", "ids", "installation", "json", "markup", "moment", "split", "words"})
"""Modules of `denizen.domain` that hold tools for texts and values, and no concept of their own."""


def build_glossary(written: str, modules: Sequence[Module]) -> str:
    """The page: what people wrote, then the lists of packages and records."""
    head = written.partition(GENERATED)[0].rstrip() or "# Glossary"
    packages = [
        (f"`{module.name}`", summarize(ast.get_docstring(module.tree)))
        for module in modules
        if module.is_package and module.name.partition(".")[2]
    ]
    records = [
        (f"`{node.name}`", f"`{module.name.removeprefix('denizen.')}`", summarize(ast.get_docstring(node)))
        for module, node in sorted(list_records(modules), key=lambda record: record[1].name)
    ]
    parts = [
        head,
        GENERATED.rstrip(),
        "## Packages",
        format_table(["Package", "What it holds"], packages),
        "## Records and protocols",
        "Every public class of `denizen.domain` and `denizen.ports`. Each name exists once in the whole code.",
        format_table(["Name", "Module", "Meaning"], records),
    ]
    return "\n\n".join(parts) + "\n"


def list_records(modules: Sequence[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    """The public classes that the glossary lists."""
    for module in modules:
        if module.folder.startswith(_RECORD_PACKAGES):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield module, node


def summarize(docstring: str | None) -> str:
    """The first sentence of a docstring. Its code stays code; nothing else means anything to Markdown."""
    text = " ".join((docstring or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`\d])", text, maxsplit=1)[0]
    return "`".join(part if number % 2 else escape(part) for number, part in enumerate(sentence.split("`")))


def load_source(root: Path) -> list[Module]:
    """The modules of `denizen` itself."""
    return [module for module in load_modules(root, "src") if module.name.startswith("denizen.")]


def find_unexplained_terms(written: str, modules: Sequence[Module]) -> Iterator[str]:
    """Modules of the domain that no term of the page names, terms that name nothing, records without a docstring."""
    named = {name for _, names in list_terms(written) for name in names}
    known = {module.name for module in modules}
    for module in modules:
        concept = module.name.removeprefix("denizen.domain.")
        if concept not in {module.name, *_HELPERS} and module.name not in named:
            yield f"{module.name} is no term of {GLOSSARY}"
    for term, names in list_terms(written):
        yield from (f"the term {term} names {name}, which is not there" for name in names if name not in known)
    for module, node in list_records(modules):
        if not ast.get_docstring(node):
            yield f"{module.name}.{node.name} has no docstring"


def list_terms(written: str) -> Iterator[tuple[str, list[str]]]:
    """The terms that people wrote, each with the modules that its row names."""
    for line in written.partition(GENERATED)[0].splitlines():
        cells = line.strip("|").split(" | ")
        if line.startswith("| ") and len(cells) == 3:
            yield cells[0].strip(), re.findall(r"`(denizen[\w.]*)`", cells[2])
