"""PDFs among the documents of a source, with the real reader: what is named, and what is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from denizen.adapters.library import FileLibrary
from denizen.app.knowledge import open_library
from denizen.domain.errors import Unavailable
from denizen.ports.source import ReadingProgress, SourceFile
from tests.adapters.documents.pdf_files import encrypted_pdf, make_pdf
from tests.clock import ManualClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def library(tmp_path: Path) -> FileLibrary:
    return open_library(tmp_path, ManualClock())


def files(given: dict[str, bytes]) -> Iterator[SourceFile]:
    return (SourceFile(name, len(data), lambda data=data: data) for name, data in given.items())


def ignore(progress: ReadingProgress) -> None:
    pass


async def test_a_pdf_without_text_is_named_with_the_reason(library: FileLibrary) -> None:
    given = {
        "fine.pdf": make_pdf(["High at six"]),
        "locked.pdf": encrypted_pdf("secret", "word"),
        "broken.pdf": b"%PDF",
        "scan.pdf": make_pdf([""]),
    }
    taken = await library.take(files(given), ignore)
    assert taken.files == 1
    assert taken.left_out == (
        "locked.pdf (it is encrypted)",
        "broken.pdf (it is damaged)",
        "scan.pdf (it has no text, only pictures)",
    )


async def test_a_pdf_is_not_left_out_because_its_reader_could_not_be_started(
    library: FileLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"fine.pdf": make_pdf(["High at six"])}
    with monkeypatch.context() as without:
        without.setattr("denizen.adapters.documents.pdf._COMMAND", ("/nonexistent/python",))
        with pytest.raises(Unavailable) as refused:
            await library.take(files(given), ignore)
    assert "could not be started" in refused.value.explain() and refused.value.fix
    assert (await library.take(files(given), ignore)).files == 1
