"""Long work is never silent: on a terminal, in a log, and in the scripts that install everything."""

from __future__ import annotations

import io
import subprocess
import threading
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from denizen.adapters.models.embedded.progress import LoadProgress
from denizen.cli import terminal
from denizen.cli.terminal import WeightsProgressLine, show_waiting
from tests.timing import HANG_LIMIT_S

PROGRESS = Path(__file__).parents[2] / "scripts/progress"


class Lines(io.StringIO):
    """Standard error of a process in the background."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def write(self, text: str) -> int:
        self.told.set()
        return super().write(text)


def test_what_takes_long_is_told_until_it_ends() -> None:
    with redirect_stderr(Lines()) as lines, show_waiting("starting", every_s=0.001):
        assert lines.told.wait(HANG_LIMIT_S)
    assert lines.getvalue().startswith("[starting: 0 s]\n")


def test_what_is_quick_is_not_told() -> None:
    with redirect_stderr(Lines()) as lines, show_waiting("starting", every_s=HANG_LIMIT_S):
        pass
    assert lines.getvalue() == ""


def test_in_a_log_a_download_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now_s[0])
    line = WeightsProgressLine()
    with redirect_stderr(Lines()) as lines:
        for done in range(0, 110, 10):
            line(LoadProgress("fetching", done, 100))
            now_s[0] += 1.0
        line(LoadProgress("fetching", 100, 100))
        line(LoadProgress("assembling", 0, 100))
    shares = [text.split(": ")[1].split(" %")[0] for text in lines.getvalue().splitlines()]
    assert shares == ["0", "30", "60", "90", "100", "0"]


def test_a_command_of_the_installation_keeps_its_exit_code_and_output() -> None:
    done = subprocess.run(
        [PROGRESS, "trying", "sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "trying err\n\n")
