"""Log lines: whole, tame and without secrets, whatever is in them."""

import logging
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from denizen.app.logging import ACCESS_LOG, LogKeeper, RepeatFilter, configure_logging
from denizen.domain.errors import Unavailable
from denizen.domain.log import LogEntry, decode_entry
from tests.timing import HANG_LIMIT_S

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


class MemorySink:
    """Keeps lines in memory; `is_full` makes it fail as a full disk does."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_full = False

    def append(self, lines: Sequence[str]) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.lines.extend(lines)

    @property
    def entries(self) -> list[LogEntry]:
        return [entry for line in self.lines if (entry := decode_entry(line)) is not None]


def keep(tmp_path: Path, sink: MemorySink) -> tuple[logging.Handler, Path]:
    file = tmp_path / "log"
    configure_logging(
        level="info", style="console", mask=lambda text: text.replace("s3cret", "***"), file=file, keep=sink
    )
    return logging.getLogger().handlers[0], file


def test_what_is_logged_is_kept_with_its_fields_and_traceback_and_without_secrets(tmp_path: Path) -> None:
    sink = MemorySink()
    handler, file = keep(tmp_path, sink)
    log = logging.getLogger("denizen.test")
    log.info("turn", extra={"status": "done", "key": "s3cret", "steps": 2})
    log.debug("nothing")
    try:
        raise ValueError("s3cret is wrong")
    except ValueError:
        log.exception("fault with s3cret")
    handler.flush()
    turn, fault = sink.entries
    assert (turn.level, turn.event, turn.fields) == ("info", "turn", {"status": "done", "key": "***", "steps": 2})
    assert (fault.level, fault.event) == ("error", "fault with ***")
    assert "ValueError: *** is wrong" in fault.trace
    assert "turn" in file.read_text(encoding="utf-8")
    assert "s3cret" not in "".join(sink.lines)


def test_nobody_is_named_in_what_is_kept_so_that_nobody_has_to_be_forgotten_in_it(tmp_path: Path) -> None:
    sink = MemorySink()
    handler, _ = keep(tmp_path, sink)
    told = {"principal": "platform_user:12345", "by": "api_key:ann", "key": "web_user:usr_1", "user": "12345"}
    logging.getLogger("denizen.test").info("direct call", extra={**told, "path": "/api:x"})
    handler.flush()
    [entry] = sink.entries
    assert entry.fields == {"principal": "platform_user", "by": "api_key", "key": "web_user", "path": "/api:x"}


def test_requests_are_kept_and_not_shown_to_people(tmp_path: Path) -> None:
    sink = MemorySink()
    handler, file = keep(tmp_path, sink)
    logging.getLogger(ACCESS_LOG).info("request", extra={"path": "/", "status": 200})
    handler.flush()
    assert [entry.event for entry in sink.entries] == ["request"]
    assert "request" not in file.read_text(encoding="utf-8")


def test_a_full_disk_is_told_once_and_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = MemorySink()
    handler, file = keep(tmp_path, sink)
    log, sink.is_full = logging.getLogger("denizen.test"), True
    for number in range(3):
        log.info("lost %d", number)
        handler.flush()
    sink.is_full = False
    log.info("kept")
    handler.flush()
    assert [entry.event for entry in sink.entries] == ["kept"]
    assert capsys.readouterr().err.count("The log cannot be kept any more: No space left on device") == 1
    assert "lost 2" in file.read_text(encoding="utf-8")


def test_more_than_can_be_written_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogKeeper, "WAITING", 2)
    busy, goes_on = threading.Event(), threading.Event()

    class SlowSink(MemorySink):
        def append(self, lines: Sequence[str]) -> None:
            busy.set()
            assert goes_on.wait(HANG_LIMIT_S)
            super().append(lines)

    sink = SlowSink()
    keeper = LogKeeper(sink, lambda text: text)
    for number in range(6):
        keeper.handle(logging.makeLogRecord({"msg": f"entry {number}", "levelname": "INFO"}))
        assert busy.wait(HANG_LIMIT_S)
    goes_on.set()
    keeper.flush()
    keeper.close()
    assert [entry.event for entry in sink.entries] == ["entry 0", "entry 1", "entry 2", "log entries left out"]
    assert sink.entries[-1].fields == {"left_out": 3}
