"""Folders as sources: one file that cannot be read holds up no other, and is named with the reason."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from denizen.adapters.files import FolderReader
from denizen.domain.source import Source, SourceKind
from denizen.ports.source import ReadingProgress, SourceFile
from tests.contracts.store.records import at
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, write
from tests.unprivileged import run_unprivileged


def ignore(progress: ReadingProgress) -> None:
    pass


def folder_source(location: Path) -> Source:
    return Source(id="notes", kind=SourceKind.FOLDER, location=str(location), created_at=at(0), updated_at=at(0))


def with_engine(root: Path, act: Callable[[KnowledgeFixture], Awaitable[None]]) -> None:
    """Without the right of root to read everything."""

    async def main() -> None:
        async with KnowledgeFixture(root) as engine:
            await act(engine)

    run_unprivileged(main)


def test_a_file_and_a_folder_that_may_not_be_read_are_named_and_hold_up_nothing_else(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "b.md": "B", "open/c.md": "C", "shut/d.md": "D", "dark/e.md": "E"})
    (notes / "b.md").chmod(0)
    (notes / "shut").chmod(0)
    (notes / "dark").chmod(0o444)  # its names can be listed, its files not opened

    async def act(engine: KnowledgeFixture) -> None:
        await engine.add(notes)
        run = await engine.run()
        assert (run.failed, run.changed) == ({}, ("notes",))
        assert engine.files() == {"docs/notes/a.md": "A", "docs/notes/open/c.md": "C"}
        why = "Denizen may not read it"
        assert run.left_out == {"notes": f"3 left out: b.md ({why}); dark/e.md ({why}); shut/ ({why})"}
        again = await engine.run()
        assert (again.changed, again.left_out) == ((), run.left_out)
        for each in ("b.md", "shut", "dark"):
            (notes / each).chmod(0o755)
        run = await engine.run()
        assert (run.changed, run.left_out) == (("notes",), {})
        assert len(engine.files()) == 5

    with_engine(tmp_path, act)


def test_a_folder_of_which_nothing_may_be_read_fails_and_what_was_read_of_it_stays(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A"})

    async def act(engine: KnowledgeFixture) -> None:
        await engine.add(notes)
        await engine.run()
        for shut in (notes / "a.md", notes):
            shut.chmod(0)
            failed = (await engine.run()).failed["notes"]
            assert "may not be read. Let the user that runs Denizen read it" in failed
            assert engine.files() == {"docs/notes/a.md": "A"}
        notes.chmod(0o755)

    with_engine(tmp_path, act)


@contextmanager
def held(file: Path) -> Generator[None]:
    """Whoever opens the file without waiting is refused, root too."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    handle = os.open(file, os.O_RDWR)
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(handle)
        signal.signal(signal.SIGIO, before)


@pytest.mark.anyio
async def test_a_file_that_a_failing_disk_does_not_give_out_is_read_once_it_does(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "b.md": "B", "c.md": "C"})
    async with KnowledgeFixture(tmp_path) as engine:
        await engine.add(notes)
        with held(notes / "b.md"):
            run = await engine.run()
        assert run.failed == {}
        assert run.left_out["notes"].startswith("1 left out: b.md (it cannot be ")
        assert sorted(engine.files()) == ["docs/notes/a.md", "docs/notes/c.md"]
        assert (await engine.run()).left_out == {}
        assert len(engine.files()) == 3


@pytest.mark.anyio
async def test_when_most_files_cannot_be_read_what_was_read_before_stays(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "b.md": "B", "c.md": "C"})
    async with KnowledgeFixture(tmp_path) as engine:
        await engine.add(notes)
        await engine.run()
        with held(notes / "b.md"), held(notes / "c.md"):
            failed = (await engine.run()).failed["notes"]
        assert failed.startswith(
            "Most files of the folder could not be read. 2 of 3, such as b.md (it cannot be read: "
        )
        assert len(engine.files()) == 3


@pytest.mark.anyio
async def test_files_and_folders_that_go_or_become_links_while_a_folder_is_read_hold_up_nothing(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "b.md": "B", "c/d.md": "D", "e/f.md": "F", "g.md": "G"})
    reader = FolderReader(tmp_path / "home", tmp_path / "library")

    def follow(files: Iterator[SourceFile]) -> dict[str, str]:
        first = next(files)
        found = {first.path: first.read().decode()}
        (notes / "b.md").unlink()
        (notes / "b.md").symlink_to("/etc/passwd")
        shutil.rmtree(notes / "c")
        shutil.rmtree(notes / "e")
        (notes / "e").symlink_to("e")
        return found | {each.path: each.lacks or each.read().decode() for each in files}

    async with reader.open(folder_source(notes), ignore) as tree:
        assert await anyio.to_thread.run_sync(partial(follow, tree.files)) == {"a.md": "A", "g.md": "G"}


@pytest.mark.anyio
async def test_names_that_are_no_utf_8_loops_of_links_and_pipes_hold_up_nothing(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A", "deep/" * 120 + "b.md": "B"})
    Path(os.fsdecode(os.fsencode(notes) + b"/\xff.md")).write_text("name")
    (notes / "loop").symlink_to("loop")
    (notes / "gone.md").symlink_to("nowhere")
    os.mkfifo(notes / "pipe.md")
    async with KnowledgeFixture(tmp_path) as engine:
        await engine.add(notes)
        run = await engine.run()
        assert engine.files() == {"docs/notes/a.md": "A"}
        assert run.left_out == {
            "notes": "2 left out: \\udcff.md (its name cannot be kept); "
            f"{'deep/' * 101} (it cannot be read: it lies too deep)"
        }
