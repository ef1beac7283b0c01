"""Log lines: whole, tame and without secrets, whatever is in them."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from denizen.app.logging import RepeatFilter, configure_logging
from denizen.domain.errors import Unavailable

FORGED = "2026-11-21T12:00:00Z [info     ] turn   status=done"
NASTY = f"\x1b]0;owned\x07\x9b2J\n{FORGED}"


@contextmanager
def wide_open_umask() -> Generator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def log_to(file: Path, style: str) -> logging.Logger:
    configure_logging(level="info", style=style, mask=lambda text: text.replace("s3cret", "***"), file=file)  # pyright: ignore[reportArgumentType]
    return logging.getLogger("denizen.test")


@pytest.mark.parametrize("style", ["console", "json"])
def test_what_others_wrote_begins_no_line_and_sends_no_control_sequence(tmp_path: Path, style: str) -> None:
    file = tmp_path / "log"
    log = log_to(file, style)
    log.warning("path %s", NASTY, extra={"path": NASTY, "bare": "\x9b2J"})
    try:
        raise ValueError(NASTY)
    except ValueError:
        log.exception("fault")
    text = file.read_text(encoding="utf-8")
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not any(line.startswith(FORGED) for line in text.split("\n"))
    assert text.count("owned") >= 3
    records = [line for line in text.split("\n") if line.strip() and not line.startswith("    ")]
    assert len(records) == 2


def test_a_secret_is_masked_in_fields_and_tracebacks(tmp_path: Path) -> None:
    file = tmp_path / "log"
    log = log_to(file, "console")
    try:
        raise ValueError("the key is s3cret")
    except ValueError:
        log.exception("fault", extra={"key": "s3cret"})
    assert "s3cret" not in file.read_text(encoding="utf-8")


def test_a_log_file_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "denizen.log"
    with wide_open_umask():
        log_to(file, "json")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_lost_connection_to_discord_is_one_line_and_a_fault_of_our_own_keeps_its_traceback(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ours = log_to(log, "console")
    try:
        raise ConnectionError("refused: s3cret")
    except ConnectionError:
        logging.getLogger("discord.client").exception("Attempting a reconnect in %.2fs", 1.5)
        ours.exception("fault")
    lines = log.read_text().splitlines()
    assert "Attempting a reconnect in 1.50s (ConnectionError: refused: ***)" in lines[0]
    assert "fault" in lines[1] and "Traceback" in "\n".join(lines[2:])


def make_record(
    text: str, *, level: int = logging.WARNING, error: BaseException | None = None, **fields: object
) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    record = logging.LogRecord("denizen.test", level, "", 0, text, (), info)
    vars(record).update(fields)
    return record


def test_the_same_warning_is_told_once_a_minute_and_how_often_it_was_left_out() -> None:
    now = [0.0]
    repeats = RepeatFilter(lambda: now[0])
    told = [repeats.filter(make_record("busy", room="a")) for _ in range(3)]
    assert told == [True, False, False]
    assert repeats.filter(make_record("busy", room="b")), "another room is another warning"
    now[0] = 60.0
    again = make_record("busy", room="a")
    assert repeats.filter(again)
    assert vars(again)["left_out"] == 2


def test_while_a_database_is_away_one_warning_stands_for_all_that_fails_by_it() -> None:
    repeats = RepeatFilter(lambda: 0.0)
    code = "store_unavailable"
    assert repeats.filter(make_record("a delivery waits", code=code))
    assert not repeats.filter(make_record("a turn could not be recorded", level=logging.ERROR, code=code))
    assert repeats.filter(make_record("configuration refused", level=logging.ERROR, code="config_invalid"))
    assert repeats.filter(make_record("configuration refused", level=logging.ERROR, code="config_invalid"))


AWAY = Unavailable("The database does not answer.", code="store_unavailable", fix="Start it.")
REFUSED = psycopg.OperationalError("connection refused\nIs the server running?")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AWAY, "looking fails (The database does not answer. Start it.)"),
        (REFUSED, "looking fails (OperationalError: connection refused)"),
    ],
)
def test_of_a_database_that_is_away_one_line_is_logged_and_a_bug_keeps_its_traceback(
    error: Exception, said: str, tmp_path: Path
) -> None:
    log = log_to(tmp_path / "log", "console")
    for cause in (error, ValueError("a bug")):
        try:
            raise RuntimeError("outer") from cause
        except RuntimeError:
            log.exception("looking fails")
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert said in lines[0]
    assert lines[1].endswith("looking fails")
    assert any("ValueError: a bug" in line for line in lines[2:])
