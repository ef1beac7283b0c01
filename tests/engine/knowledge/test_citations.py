"""What proving a place may cost: its work grows with what was read, whatever stands in it."""

from __future__ import annotations

import threading
from pathlib import Path
from types import FrameType

import anyio
import pytest

from denizen.domain.citation import Citation, CitationFault, DocumentRef
from denizen.domain.cited_text import CitationMark
from denizen.engine.knowledge.citations import MAX_CLAIMS, CitationProver, ReadPlaces, UnrecordedResults
from tests.engine.engine_fixture import NAME
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture

PATH = "own/notes/big.md"
LINE = "Nobody reads this line."


def look_up(root: Path, seen: ReadPlaces, text: str = LINE) -> Citation:
    async def look() -> Citation:
        prover = CitationProver(KnowledgeFixture(root).library, NAME, lambda _, __: text, seen)
        [citation] = await prover.prove(CitationMark((DocumentRef(PATH),)))
        return citation

    return anyio.run(look)


def count_work(root: Path, seen: ReadPlaces, text: str) -> int:
    """How many functions are called for it in the thread where it is judged."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    threading.setprofile(note)
    try:
        look_up(root, seen, text)
    finally:
        threading.setprofile(None)
    return count


@pytest.mark.parametrize(
    "said", [f"./{PATH}\n", f"{PATH}:12: not there\n", f"[{PATH}:1-2]\n3: not there\n", f"{PATH}-is free.\n"]
)
def test_the_work_grows_with_what_was_read_and_with_the_document(tmp_path: Path, said: str) -> None:
    def work(size: int) -> int:
        seen = ReadPlaces(earlier=UnrecordedResults([f"{said * size}{LINE}"]))
        return count_work(tmp_path, seen, "Another line.\n" * size + LINE)

    assert work(800) < 8 * work(200)


def test_what_a_hostile_page_says_of_a_document_is_looked_up_for_a_while_only(tmp_path: Path) -> None:
    false = f"{PATH}: it is not there"
    for count, doubt in ((MAX_CLAIMS - 1, None), (MAX_CLAIMS, CitationFault.NOT_READ)):
        told = "\n".join([*[false] * count, f"{PATH}:{LINE}"])
        assert look_up(tmp_path, ReadPlaces(earlier=UnrecordedResults([told]))).doubt is doubt


@pytest.mark.parametrize(
    ("pattern", "is_read"),
    [
        ("own/*/big.md", True),
        ("./own/n?tes/[ab]ig.md", True),
        ("own/*.md", False),
        ("own/notes/" + "*" * 400, False),
        ("a/?/b " * 3 + "own/notes/*", True),
        (" ".join(f"a/{n}/*" for n in range(600)) + " own/notes/*", False),
    ],
)
def test_patterns_in_calls_are_those_that_people_write(tmp_path: Path, pattern: str, is_read: bool) -> None:
    seen = ReadPlaces(earlier=UnrecordedResults([LINE], [f'{{"command": "cat {pattern}"}}']))
    assert (look_up(tmp_path, seen).doubt is None) == is_read
