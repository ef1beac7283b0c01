"""Texts to search through that are on every machine which runs the benchmarks, and questions to which one of their
passages is the answer.

The texts are what installed packages ship: their manuals, and where these do not suffice their source code. Which ones
these are differs between machines, so figures are compared within a run only.
"""

from __future__ import annotations

import ast
import gzip
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from denizen.domain.passage import MAX_CHARS
from denizen.domain.words import split_words
from denizen.ports.documents import IndexedDocument

MANUALS = Path("/usr/share/man")
MANUAL_SECTIONS = ("man1", "man3", "man5", "man7", "man8")
PROSE, CODE = (".md", ".rst", ".txt"), (".py",)
MIN_BYTES, MAX_BYTES = 400, 1_000_000
SOURCE = "library"
DOCSTRINGS_PER_FILE = 3

_HEADING = re.compile(r'\.S[HS]\s+"?([^"\n]+)"?')
_REQUEST = re.compile(r"^['.].*$", re.MULTILINE)
_ESCAPE = re.compile(r"\\f(?:\(\w\w|\[\w*\]|\w)|\\[-&|^]|\\s[-+]?\d|\\\((?:\w\w)|\\\*(?:\(\w\w|\[\w*\]|\w)")


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A question to which the passage `key` is the answer."""

    question: str
    key: str


def load_documents(passages: int) -> list[IndexedDocument]:
    """Documents with about so many passages, none of them twice: prose first, each kind in an order that its contents
    decide.
    """
    documents: list[IndexedDocument] = []
    seen: set[str] = set()
    found = 0
    for path, text in _load_texts():
        document = IndexedDocument.cut(path, SOURCE, "1", text)
        if not document.passages or not seen.isdisjoint(document.keys):
            continue
        seen.update(document.keys)
        documents.append(document)
        found += len(document.passages)
        if found >= passages:
            break
    return documents


def make_questions(documents: Sequence[IndexedDocument], count: int, *, of_titles: bool) -> list[KnownItem]:
    """Questions of six words out of a passage, in its order: two of its rarer ones that others have too, and four as
    they come. Those of titles are a heading, and one word of the text below it.
    """
    chosen = random.Random(7)
    frequency = Counter(word for each in documents for words in each.words for word in set(words.split()))
    places = [(document, number) for document in documents for number in range(len(document.passages))]
    chosen.shuffle(places)
    questions: list[KnownItem] = []
    for document, number in places:
        passage = document.passages[number]
        words = [word for word in split_words(passage.text) if word.isalpha() and len(word) > 2]
        known = [word for word in dict.fromkeys(words) if frequency[word] > 2]
        rare = sorted(known, key=lambda word: frequency[word])[: len(known) // 4]
        if len(rare) < 4:
            continue
        if of_titles:
            title = split_words(passage.headings[-1]) if passage.headings else []
            if not 2 <= len(title) <= 8:
                continue
            picked = [*title, chosen.choice(rare)]
        else:
            taken = {*chosen.sample(rare, 2), *chosen.sample(words, 4)}
            picked = [word for word in dict.fromkeys(words) if word in taken]
        questions.append(KnownItem(" ".join(picked), document.keys[number]))
        if len(questions) == count:
            break
    return questions


def load_paraphrases(count: int) -> tuple[list[IndexedDocument], list[KnownItem]]:
    """Docstrings of the installed code without their first paragraph, and that paragraph as the question: it says the
    same in other words.
    """
    documents: list[IndexedDocument] = []
    questions: list[KnownItem] = []
    packages, library = (Path(sysconfig.get_paths()[name]) for name in ("purelib", "stdlib"))
    paths = sorted({*_list_files(packages, CODE), *_list_files(library, CODE)})
    seen: set[str] = set()
    for path in sorted(paths, key=lambda path: sha256(str(path).encode()).digest()):
        found = 0
        for summary, rest in _read_docstrings(path):
            key = f"docs/{path.stem}-{len(documents)}.md"
            if found < DOCSTRINGS_PER_FILE and summary not in seen and len(documents) < count:
                document = IndexedDocument.cut(key, SOURCE, "1", rest)
                documents.append(document)
                questions.append(KnownItem(summary, document.keys[0]))
                seen.add(summary)
                found += 1
        if len(documents) >= count:
            break
    return documents, questions


def _read_docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The first paragraph and as much of the rest as one passage holds, of each that has enough of both."""
    if path.stat().st_size > MAX_BYTES or "tests" in path.parts:
        return
    try:
        module = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
            if 5 <= len(first.split()) <= 20 and len(rest) >= MIN_BYTES:
                yield " ".join(first.split()), rest[:MAX_CHARS]


def _load_texts() -> Iterator[tuple[str, str]]:
    packages, library = (Path(sysconfig.get_paths()[name]) for name in ("purelib", "stdlib"))
    prose = [path for path in _list_files(packages, PROSE) if ".dist-info" not in str(path)]
    manuals = [path for section in MANUAL_SECTIONS for path in _list_files(MANUALS / section, (".gz",))]
    for paths in ([*prose, *manuals], [*_list_files(packages, CODE), *_list_files(library, CODE)]):
        for path in sorted(paths, key=lambda path: sha256(path.name.encode()).digest()):
            if path.suffix == ".gz":
                data = gzip.decompress(path.read_bytes())
                name, text = f"docs/manuals/{path.stem}.md", _convert_manual(data.decode(errors="replace"))
            else:
                name, text = (
                    f"docs/{path.relative_to(packages if packages in path.parents else library)}",
                    path.read_bytes().decode(errors="replace"),
                )
            if MIN_BYTES <= len(text) <= MAX_BYTES:
                yield name, text


def _list_files(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.suffix in suffixes)
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _convert_manual(text: str) -> str:
    """The text of a manual page as Markdown, without its requests to the formatter."""
    titled = _HEADING.sub(lambda found: f"\n# {found.group(1).strip().capitalize()}\n", text)
    return _ESCAPE.sub("", _REQUEST.sub("", titled))
