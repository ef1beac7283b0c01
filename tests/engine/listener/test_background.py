"""Work beside an account: it is tried again when it fails, and the log says so once."""

from __future__ import annotations

import errno

import pytest

from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.engine.listener import background
from denizen.engine.listener.background import run_forever

pytestmark = pytest.mark.anyio


class FailingWork:
    """Raises these errors, one each time that it is run, and ends well then."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def run(self) -> None:
        if self._errors:
            raise self._errors.pop(0)

    @property
    def is_over(self) -> bool:
        return not self._errors


FULL = OSError(errno.EMFILE, "Too many open files")
GONE = Unavailable("The database is gone.", code="gone")
GROUPED = ExceptionGroup("in two tasks", [ExceptionGroup("one", [GONE]), NeedsAttention("The disk is full.")])


@pytest.mark.parametrize(("steady_s", "logged"), [(60.0, ["fault", "gone"]), (0.0, ["fault", "fault", "gone", "gone"])])
async def test_work_that_fails_again_and_again_goes_on_and_is_logged_once_until_it_was_steady(
    steady_s: float, logged: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "PAUSE_S", 0.0)
    monkeypatch.setattr(background, "STEADY_S", steady_s)
    work = FailingWork(FULL, FULL, GONE, GROUPED)
    await run_forever("trying", work.run)
    assert work.is_over
    texts = {"trying ended with a fault": "fault", "trying ended: The database is gone.": "gone"}
    assert [texts[each.message] for each in caplog.records] == logged
    assert [each.exc_info is not None for each in caplog.records] == [each == "fault" for each in logged]
