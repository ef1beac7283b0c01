"""Files of the home folder that cannot be written: an error that says what to do, and nothing half written."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from denizen.app.home.files import restore_on_failure, write_whole
from denizen.app.settings import remove_value, set_secret, set_value
from denizen.app.settings.setup import SetupAnswers, write_setup
from denizen.app.store_move import write_store_url
from denizen.app.workflow_configuration import add_workflow_file
from denizen.domain.errors import NeedsAttention

CONFIG = f"# {'x' * 3000}\nserver: {{port: 9000}}\n"
WORKFLOW = "nodes: {begin: {type: manual, then: say}, say: {type: log, text: hello}}\n"
SMALL_BYTES = 1000


@contextmanager
def no_file_above(limit_bytes: int) -> Generator[None]:
    """The kernel refuses to write files that are longer, whoever asks: a disk without room for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def read_all(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


WRITERS: dict[str, Callable[[Path], object]] = {
    "set": lambda home: set_value(home, {}, ("server", "port"), 9001),
    "remove": lambda home: remove_value(home, {}, ("server", "port")),
    "secret": lambda home: set_secret(home, {}, ("knowledge", "youtube", "api_key"), ("YOUTUBE_KEY", "a-key")),
    "store": lambda home: write_store_url(home, "postgresql://me@db/denizen", {}),
    "setup": lambda home: write_setup(home, SetupAnswers(), environment={}, force=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_configuration_that_cannot_be_written_is_explained_and_all_files_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / "denizen.yaml").write_text(CONFIG)
    (tmp_path / "secrets.env").write_text("OTHER=1\n")
    before = read_all(tmp_path)
    with no_file_above(SMALL_BYTES), pytest.raises(NeedsAttention) as raised:
        WRITERS[name](tmp_path)
    assert raised.value.code == "config_not_writable"
    assert raised.value.why and "read-only" in raised.value.fix
    assert read_all(tmp_path) == before


def test_a_folder_that_takes_no_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "workflows").symlink_to("/proc")
    with pytest.raises(NeedsAttention) as raised:
        add_workflow_file(tmp_path, {}, "mine", WORKFLOW)
    assert raised.value.code == "config_not_writable"
    assert list(tmp_path.iterdir()) == [tmp_path / "workflows"]


def test_files_that_belong_together_are_put_back_with_their_modes(tmp_path: Path) -> None:
    kept, gone, new = tmp_path / "kept", tmp_path / "gone", tmp_path / "new"
    for each in (kept, gone):
        each.write_text("old\n")
        each.chmod(0o600)

    def change() -> None:
        with restore_on_failure(kept, gone, new):
            write_whole(kept, "other\n", mode=0o644)
            write_whole(new, "new\n")
            gone.unlink()
            raise KeyError

    with pytest.raises(KeyError):
        change()
    assert read_all(tmp_path) == {"kept": "old\n", "gone": "old\n"}
    assert {each.stat().st_mode & 0o777 for each in (kept, gone)} == {0o600}
