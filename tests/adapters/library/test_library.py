"""The library: what is kept of files, and snapshots that are whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from denizen.adapters.library import ConvertedText, DocumentConverters, FileLibrary
from denizen.adapters.library.ingestion import MAX_TEXT_BYTES
from denizen.domain.errors import Conflict, NeedsAttention, Unavailable
from denizen.domain.snapshot import SnapshotPart
from denizen.domain.source import SourceReading, describe_left_out
from denizen.ports.source import ReadingProgress, SourceFile
from tests.clock import ManualClock
from tests.contracts.store.records import at
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 22, tzinfo=UTC)
PLAIN = DocumentConverters(
    html=lambda data: ConvertedText(data.decode().strip("<>")),
    pdf=lambda data: ConvertedText(data.decode().removeprefix("%PDF")),
)


@pytest.fixture
def library(tmp_path: Path) -> FileLibrary:
    return FileLibrary(tmp_path / "library", PLAIN, ManualClock())


def files(given: dict[str, bytes]) -> Iterator[SourceFile]:
    return (SourceFile(name, len(data), lambda data=data: data) for name, data in given.items())


async def keep(library: FileLibrary, given: dict[str, bytes]) -> dict[str, str]:
    """What is kept of these, as text."""
    await library.publish([part(await library.take(files(given), ignore))], now=NOW)
    root = library.current_folder()
    assert root is not None
    return {path.name: path.read_bytes().decode() for path in root.rglob("*") if path.is_file()}


def ignore(progress: ReadingProgress) -> None:
    pass


def part(taken: SourceReading, folder: str = "docs/a", revision: str = "1") -> SnapshotPart:
    return SnapshotPart(
        source_id="a",
        kind="git",
        label="",
        folder=folder,
        location="x",
        branch="",
        content_path="",
        revision=revision,
        manifest=taken.manifest,
        files=taken.files,
    )


async def test_text_is_kept_as_it_is_and_of_pages_and_pdfs_the_text(library: FileLibrary) -> None:
    given = {"a.md": b"A\r\n", "b/page.html": b"<hi>", "c.pdf": b"%PDFtext", "d.txt": "\u00fc".encode()}
    taken = await library.take(files(given), ignore)
    assert (taken.files, taken.documents, taken.skipped) == (4, 2, 0)
    await library.publish([part(taken)], now=NOW)
    root = library.current_folder()
    assert root is not None
    assert {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()} == {
        "docs/a/a.md": b"A\r\n",
        "docs/a/b/page.html.md": b"hi",
        "docs/a/c.pdf.txt": b"text",
        "docs/a/d.txt": b"\xc3\xbc",
    }


async def test_text_in_the_encodings_of_windows_is_kept_in_utf_8_and_damaged_utf_8_as_it_is(
    library: FileLibrary,
) -> None:
    given = {
        "old.txt": "Grünkohl für “alle”".encode("cp1252"),
        "page.html": "<Viele Grüße>".encode("latin-1"),
        "notepad.txt": "Grünkohl".encode("utf-16"),
        "damaged.md": "Grünkohl für alle, Käse\n".encode() + b"\xff",
    }
    await library.publish([part(await library.take(files(given), ignore))], now=NOW)
    root = library.current_folder()
    assert root is not None
    assert {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()} == {
        "old.txt": "Grünkohl für “alle”".encode(),
        "page.html.md": "Viele Grüße".encode(),
        "notepad.txt": "Grünkohl".encode(),
        "damaged.md": given["damaged.md"],
    }


@pytest.mark.parametrize("text", ["a\ufffd", "\ufffd is what decoders write: \ufffd\ufffd", "Привет", "A\ufeff", ""])
async def test_utf_8_is_kept_as_it_is_also_with_the_sign_for_what_could_not_be_read(
    library: FileLibrary, text: str
) -> None:
    assert await keep(library, {"a.md": text.encode()}) == {"a.md": text}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-be"])
async def test_a_byte_order_mark_is_no_part_of_the_text_in_whatever_encoding(
    library: FileLibrary, encoding: str
) -> None:
    text = "# Grünkohl\n𝒳"
    mark = "" if encoding in {"utf-8-sig", "utf-16", "utf-32"} else "\ufeff"
    assert await keep(library, {"a.md": f"{mark}{text}".encode(encoding)}) == {"a.md": text}


async def test_damaged_utf_8_that_has_that_sign_is_left_as_it_is(library: FileLibrary) -> None:
    damaged = "ü \ufffd\ufffd".encode() + b"\xff"
    await library.publish([part(await library.take(files({"a.md": damaged}), ignore))], now=NOW)
    root = library.current_folder()
    assert root is not None and (root / "docs/a/a.md").read_bytes() == damaged


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, это документация", "cp1251"),
        ("Привет", "koi8-r"),
        ("これはテストです。", "shift_jis"),
        ("Καλημέρα κόσμε", "cp1253"),
        ("这是文档", "gbk"),
        ("これはテストです", "euc_jp"),
        ("A long introduction in English, and what follows is another language: Привет", "cp1251"),
    ],
)
async def test_text_in_an_encoding_that_nobody_can_tell_is_left_out(
    library: FileLibrary, text: str, encoding: str
) -> None:
    taken = await library.take(files({"a.txt": text.encode(encoding), "b.html": f"<{text}>".encode(encoding)}), ignore)
    assert taken.left_out == ("a.txt (its encoding is not known)", "b.html (its encoding is not known)")


@pytest.mark.parametrize(
    ("declared", "encoding", "text"),
    [
        ("windows-1251", "cp1251", "Привет"),
        ("Shift_JIS", "cp932", "これはテストです①"),
        ("gb2312", "gbk", "这是文档"),
        ("ISO-8859-1", "cp1252", "“Käse”"),
        ("euc-kr", "euc_kr", "안녕"),
        ("windows-1251", "utf-8", "Привет"),
        ("utf-7", "cp1252", "Grünkohl"),
        ("nonsense", "cp1252", "Grünkohl"),
    ],
)
async def test_a_page_is_read_in_the_encoding_that_it_declares_unless_it_is_utf_8(
    library: FileLibrary, declared: str, encoding: str, text: str
) -> None:
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}"><p>{text}'
    [kept] = (await keep(library, {"a.html": page.encode(encoding)})).values()
    assert kept.endswith(f"<p>{text}")


async def test_what_is_too_large_or_no_text_or_stands_for_something_elsewhere_is_counted_and_left_out(
    library: FileLibrary,
) -> None:
    given = {
        "big.md": b"x" * (MAX_TEXT_BYTES + 1),
        "binary.txt": b"a\0b",
        "scan.pdf": b"%PDF",
        "empty.html": b"<>",
        "fine.md": b"",
        "x.md": b"a file",
        "x.md/y.md": b"below it",
        "line\nbreak.md": b"x",
    }
    taken = await library.take(files(given), ignore)
    assert (taken.files, taken.skipped) == (2, 6)
    assert taken.left_out == (
        "big.md (larger than 5 MB)",
        "binary.txt (no text in it)",
        "scan.pdf (no text in it)",
        "empty.html (no text in it)",
        "line\\nbreak.md (its name cannot be kept)",
        "x.md (a folder has its place)",
    )
    await library.publish([part(taken)], now=NOW)
    root = library.current_folder()
    assert root is not None
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()) == [
        "docs/a/fine.md",
        "docs/a/x.md/y.md",
    ]


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 12345\n" % (b"ab" * 32)


async def test_a_pointer_of_git_lfs_is_named_as_such_whatever_it_stands_for_and_a_text_about_them_is_kept(
    library: FileLibrary,
) -> None:
    about = POINTER + b"This is what a pointer looks like. " * 40
    given = {"a.md": POINTER, "b.pdf": POINTER, "c.html": POINTER, "about.md": about}
    taken = await library.take(files(given), ignore)
    assert taken.left_out == tuple(f"{name} (a Git LFS pointer, not the file)" for name in ("a.md", "b.pdf", "c.html"))
    assert taken.files == 1


async def test_a_page_and_what_stands_beside_it_under_the_name_of_its_text_are_both_kept(library: FileLibrary) -> None:
    given = {"x.html": b"<page>", "x.html.md": b"beside", "y.html": b"<other>", "y.html.md/z.md": b"below"}
    for order in (given, dict(reversed(given.items()))):
        taken = await library.take(files(order), ignore)
        assert (taken.skipped, taken.left_out) == (0, ())
        assert await keep(library, order) == {
            "x.html.md": "beside",
            "x.html-2.md": "page",
            "y.html-2.md": "other",
            "z.md": "below",
        }


async def test_a_file_that_cannot_be_read_after_all_is_left_out_and_is_no_fault_of_the_library(
    library: FileLibrary,
) -> None:
    def fail() -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    given = [SourceFile("a.md", 1, fail), SourceFile("b.md", 1, lambda: b"B"), SourceFile("c.md", 0, bytes, "HTTP 404")]
    taken = await library.take(iter(given), ignore)
    assert (taken.files, taken.left_out) == (1, ("a.md (it cannot be read: Input/output error)", "c.md (HTTP 404)"))


async def test_of_many_files_that_are_left_out_the_first_are_named(library: FileLibrary) -> None:
    taken = await library.take(files({f"{number:02}.md": b"\0" for number in range(30)}), ignore)
    assert (taken.skipped, len(taken.left_out)) == (30, 20)
    assert describe_left_out(taken).startswith("30 left out: 00.md (no text in it); ")
    assert describe_left_out(taken).endswith("; 10 more")


async def test_the_same_content_is_kept_once_and_the_same_snapshot_made_once(
    library: FileLibrary, tmp_path: Path
) -> None:
    one = await library.take(files({"a.md": b"same", "b.md": b"same"}), ignore)
    two = await library.take(files({"b.md": b"same", "a.md": b"same"}), ignore)
    assert one == two
    first = await library.publish([part(one)], now=at(0))
    assert await library.publish([part(two)], now=at(1)) == first
    assert len([path for path in (tmp_path / "library/objects").rglob("*") if path.is_file()]) == 2
    assert (await library.publish([part(two, revision="2")], now=at(2))).id != first.id


@pytest.mark.proves("S-kv-snapshot-current")
async def test_the_current_snapshot_survives_a_restart_with_its_time(library: FileLibrary, tmp_path: Path) -> None:
    taken = await library.take(files({"a.md": b"A"}), ignore)
    made = await library.publish([part(taken)], now=at(3))
    again = FileLibrary(tmp_path / "library", PLAIN, ManualClock())
    assert await again.current() == made
    assert made.created_at == at(3)


async def test_a_snapshot_that_cannot_be_made_whole_leaves_the_old_one_current(
    library: FileLibrary, tmp_path: Path
) -> None:
    old = await library.publish([part(await library.take(files({"a.md": b"A"}), ignore))], now=NOW)
    taken = await library.take(files({"a.md": b"A", "b.md": b"B"}), ignore)
    [lost] = [
        path for path in (tmp_path / "library/objects").rglob("*") if path.is_file() and path.read_bytes() == b"B"
    ]
    lost.unlink()
    assert not await library.has(taken.manifest)
    with pytest.raises(Conflict, match="gone") as refused:
        await library.publish([part(taken)], now=NOW)
    assert "--reset" in refused.value.fix
    assert await library.current() == old
    assert list((tmp_path / "library/staging").iterdir()) == []


async def test_going_back_to_an_earlier_state_makes_it_the_latest_again(library: FileLibrary) -> None:
    one = part(await library.take(files({"a.md": b"1"}), ignore))
    two = part(await library.take(files({"a.md": b"2"}), ignore))
    for number, each in enumerate((one, two, one)):
        await library.publish([each], now=at(number))
    current, listed = await library.current(), await library.list_snapshots()
    assert current is not None
    assert [snapshot.id for snapshot in listed] == [current.id, listed[1].id]
    assert current.created_at == at(2)


async def test_a_reading_that_is_cancelled_stops_at_the_next_file(library: FileLibrary) -> None:
    seen = 0

    def endless() -> Iterator[SourceFile]:
        nonlocal seen
        while True:
            seen += 1
            yield SourceFile(f"{seen}.md", 1, lambda: b"x")
            if seen == 3:
                anyio.from_thread.run_sync(scope.cancel)

    with anyio.fail_after(HANG_LIMIT_S), anyio.CancelScope() as scope:
        await library.take(endless(), ignore)
    assert scope.cancelled_caught
    assert seen >= 3


async def test_a_disk_that_refuses_is_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "library").write_text("a file is in the way")
    library = FileLibrary(tmp_path / "library", PLAIN, ManualClock())
    with pytest.raises(NeedsAttention) as refused:
        await library.take(files({"a.md": b"A"}), ignore)
    assert "knowledge-snapshots" in refused.value.fix


async def test_without_a_snapshot_there_is_nothing_to_hold(library: FileLibrary) -> None:
    async with library.hold() as folder:
        assert folder is None
    assert library.current_folder() is None
    assert await library.current() is None
    assert await library.list_snapshots() == []


async def test_a_fault_of_the_source_comes_as_it_is(library: FileLibrary) -> None:
    def broken() -> Iterator[SourceFile]:
        yield SourceFile("a.md", 1, lambda: b"A")
        raise Unavailable("The repository is damaged.", code="source_damaged")

    with pytest.raises(Unavailable, match="damaged"):
        await library.take(broken(), ignore)
