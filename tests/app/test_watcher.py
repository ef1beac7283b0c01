"""The watcher tells once for each burst of changes, however the change came about."""

from __future__ import annotations

import inspect
import logging
import os
import resource
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event

import anyio
import pytest

from denizen.app.reload import Notices, native_notices, watch
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio
NEVER_S = 3600.0
"""A poll that does not come within a test: what is told then was told by a notice."""


class Watcher:
    """Records what each call of `on_change` found in the file, and counts the notices that came."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "denizen.yaml"
        self.found: list[str] = []
        self._news = anyio.Event()
        self._notice = anyio.Event()

    async def on_change(self) -> None:
        self.found.append(self.file.read_text(encoding="utf-8") if self.file.exists() else "")
        self._news.set()
        self._news = anyio.Event()

    def count_notice(self) -> None:
        self._notice.set()
        self._notice = anyio.Event()

    async def after(self, change: Callable[[], object]) -> None:
        """Makes a change and waits until it is told."""
        news = self._news
        change()
        with anyio.fail_after(HANG_LIMIT_S):
            await news.wait()

    async def listens_to(self, folder: Path) -> None:
        """Waits until notices come from a folder. What it writes there is no file that counts."""
        with anyio.fail_after(HANG_LIMIT_S):
            while True:
                notice = self._notice
                (folder / "probe.txt").write_text("x", encoding="utf-8")
                with anyio.move_on_after(0.2):
                    await notice.wait()
                    return


@asynccontextmanager
async def watching(
    home: Path, *, poll_s: float = NEVER_S, notices: Notices = native_notices
) -> AsyncGenerator[Watcher]:
    """A watcher that has taken its first look."""
    watcher, looked = Watcher(home), anyio.Event()

    async def counted(paths: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        looked.set()
        async with aclosing(notices(paths, stop)) as stream:
            async for each in stream:
                yield each
                if each is not None:
                    watcher.count_notice()

    async def run() -> None:
        await watch([home], watcher.on_change, debounce_s=0.05, poll_s=poll_s, notices=counted)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.fail_after(HANG_LIMIT_S):
            await looked.wait()
        yield watcher
        group.cancel_scope.cancel()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents/rose").mkdir(parents=True)
    (tmp_path / "denizen.yaml").write_text("first", encoding="utf-8")
    (tmp_path / "agents/rose/SOUL.md").write_text("first", encoding="utf-8")
    return tmp_path


def replace(file: Path, text: str) -> None:
    """As most editors save: a new file that takes the name of the old one."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, file)  # noqa: PTH105 - what editors call


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


async def failing_notices(_: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
    raise OSError("no watches left")
    yield  # a generator all the same


async def silent_notices(_: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
    await anyio.sleep_forever()
    yield


@pytest.mark.proves("T3", "E9")
def test_changes_may_rest_for_half_a_second_and_are_looked_for_every_two():
    defaults = {name: each.default for name, each in inspect.signature(watch).parameters.items()}
    assert (defaults["debounce_s"], defaults["poll_s"]) == (0.5, 2.0)


@pytest.mark.proves("T3")
async def test_a_burst_of_changes_is_told_once(folder: Path):
    async with watching(folder) as watcher:
        await watcher.listens_to(folder / "agents")

        def burst() -> None:
            for number in range(20):
                write(watcher.file, f"burst {number}")
                write(folder / "agents/rose/SOUL.md", f"burst {number}")

        await watcher.after(burst)
        await watcher.after(lambda: write(watcher.file, "last"))
        assert watcher.found == ["burst 19", "last"]


@pytest.mark.parametrize("way", [write, replace])
async def test_every_way_of_saving_is_noticed_every_time(folder: Path, way: Callable[[Path, str], None]):
    async with watching(folder) as watcher:
        await watcher.listens_to(folder / "agents")
        for text in ("one", "two", "three"):
            await watcher.after(lambda text=text: way(watcher.file, text))
        assert watcher.found == ["one", "two", "three"]


async def test_secrets_and_persona_files_count_and_other_files_do_not(folder: Path):
    async with watching(folder) as watcher:
        await watcher.listens_to(folder / "agents/rose")
        (folder / "denizen.db").write_text("busy", encoding="utf-8")
        (folder / "agents/rose/notes.txt").write_text("busy", encoding="utf-8")
        await watcher.after(lambda: write(folder / "secrets.env", "A=1"))
        await watcher.after(lambda: write(folder / "agents/rose/SOUL.md", "changed"))
        await watcher.after(lambda: write(folder / "agents/rose/NEW.md", "new"))
        assert len(watcher.found) == 3


async def test_a_file_that_goes_and_comes_back_is_told_both_times(folder: Path):
    async with watching(folder) as watcher:
        await watcher.listens_to(folder / "agents")
        await watcher.after(watcher.file.unlink)
        await watcher.after(lambda: write(watcher.file, "again"))
        assert watcher.found == ["", "again"]


async def test_folders_that_go_and_come_back_are_listened_to_again(folder: Path):
    async with watching(folder) as watcher:
        await watcher.listens_to(folder / "agents/rose")
        await watcher.after(lambda: shutil.rmtree(folder / "agents"))

        def rebuild() -> None:
            (folder / "agents/rose").mkdir(parents=True)
            write(folder / "agents/rose/SOUL.md", "again")

        await watcher.after(rebuild)
        await watcher.listens_to(folder / "agents/rose")
        await watcher.after(lambda: write(folder / "agents/rose/SOUL.md", "changed"))
        assert len(watcher.found) == 3


@pytest.mark.proves("T3", "E9")
async def test_it_is_told_when_the_files_have_been_still_for_half_a_second(folder: Path):
    file, looks, found, news = folder / "denizen.yaml", list[float](), list[str](), anyio.Event()

    def look_elsewhere() -> Sequence[Path]:
        """Called at each look: at the third, somebody goes on writing."""
        looks.append(anyio.current_time())
        if len(looks) == 3:
            write(file, "the whole text")
        return []

    async def one_notice(_: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        write(file, "half a te")
        yield
        await anyio.sleep_forever()

    async def on_change() -> None:
        found.append(file.read_text(encoding="utf-8"))
        news.set()

    async with anyio.create_task_group() as group:
        group.start_soon(partial(watch, [folder, look_elsewhere], on_change, poll_s=NEVER_S, notices=one_notice))
        with anyio.fail_after(HANG_LIMIT_S):
            await news.wait()
        group.cancel_scope.cancel()
    assert found == ["the whole text"]
    assert len(looks) == 4
    assert all(later - earlier >= 0.499 for earlier, later in pairwise(looks[1:]))


@pytest.mark.proves("T3", "E9")
@pytest.mark.parametrize("notices", [failing_notices, silent_notices])
async def test_without_notices_the_files_are_looked_at(
    folder: Path, notices: Notices, caplog: pytest.LogCaptureFixture
):
    async with watching(folder, poll_s=0.02, notices=notices) as watcher:
        for text in ("one", "two"):
            await watcher.after(lambda text=text: replace(watcher.file, text))
        await watcher.after(watcher.file.unlink)
        await watcher.after(lambda: write(watcher.file, "again"))
        assert watcher.found == ["one", "two", "", "again"]
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == (1 if notices is failing_notices else 0)


async def test_what_changed_before_the_first_look_can_be_caught_up_with(folder: Path):
    watcher = Watcher(folder)
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await watch([folder], watcher.on_change, poll_s=NEVER_S, notices=silent_notices, catch_up=True)

        await watcher.after(lambda: group.start_soon(run))
        group.cancel_scope.cancel()
    assert watcher.found == ["first"]


async def test_a_watcher_that_is_stopped_says_nothing(folder: Path, caplog: pytest.LogCaptureFixture):
    waits = anyio.Event()

    async def in_a_thread(_: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        """Like the native notices: no cancellation reaches them while they wait."""

        def wait() -> None:
            anyio.from_thread.run_sync(waits.set)
            stop.wait()

        await anyio.to_thread.run_sync(wait)
        return
        yield

    async with watching(folder, notices=in_a_thread):
        with anyio.fail_after(HANG_LIMIT_S):
            await waits.wait()
    assert caplog.records == []


async def test_a_home_that_is_not_there_yet_is_looked_for(tmp_path: Path):
    home = tmp_path / "later"

    def make() -> None:
        home.mkdir()
        write(home / "denizen.yaml", "made")

    async with watching(home, poll_s=0.02) as watcher:
        await watcher.after(make)
        assert watcher.found == ["made"]


async def test_single_files_can_be_watched(folder: Path):
    told = anyio.Event()

    async def on_change() -> None:
        told.set()

    async def started(paths: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        write(folder / "denizen.yaml", "changed")
        yield paths

    async with anyio.create_task_group() as group:

        async def run() -> None:
            await watch([folder / "denizen.yaml"], on_change, debounce_s=0.01, poll_s=NEVER_S, notices=started)

        group.start_soon(run)
        with anyio.fail_after(HANG_LIMIT_S):
            await told.wait()
        group.cancel_scope.cancel()


async def test_a_file_that_never_rests_is_told_all_the_same(folder: Path):
    told = anyio.Event()

    async def on_change() -> None:
        told.set()

    async def never_still(paths: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        number = 0
        while not stop.is_set():
            number += 1
            write(paths[0], "x" * number)
            yield number
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:

        async def run() -> None:
            await watch([folder / "a.yaml"], on_change, debounce_s=0.001, poll_s=NEVER_S, notices=never_still)

        group.start_soon(run)
        with anyio.fail_after(HANG_LIMIT_S):
            await told.wait()
        group.cancel_scope.cancel()


async def test_what_on_change_raises_ends_the_watch(folder: Path):
    async def on_change() -> None:
        raise ZeroDivisionError

    async def started(paths: Sequence[Path], stop: Event) -> AsyncGenerator[object]:
        write(folder / "denizen.yaml", "changed")
        yield paths

    with anyio.fail_after(HANG_LIMIT_S), pytest.raises(ExceptionGroup) as caught:
        await watch([folder], on_change, debounce_s=0.01, poll_s=NEVER_S, notices=started)
    assert caught.group_contains(ZeroDivisionError)


async def test_without_file_descriptors_nothing_has_changed_and_the_log_says_so_once(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    (folder / "skills").mkdir()
    watcher, looked, looks = Watcher(folder), anyio.Event(), 0
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def count_look() -> Sequence[Path]:
        nonlocal looks
        looks += 1
        if looks == 2:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        elif looks == 5:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        elif looks == 6:
            looked.set()
        return []

    async def run() -> None:
        paths = [folder, count_look]
        await watch(paths, watcher.on_change, debounce_s=0.01, poll_s=0.01, notices=silent_notices)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            with anyio.fail_after(HANG_LIMIT_S):
                await looked.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert watcher.found == []
        await watcher.after(lambda: write(watcher.file, "changed"))
        group.cancel_scope.cancel()
    assert watcher.found == ["changed"]
    assert [each.message for each in caplog.records] == ["the configuration cannot be watched now"]
