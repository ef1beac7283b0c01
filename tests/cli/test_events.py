"""`denizen events`: what is refused says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.home import Home


@pytest.mark.parametrize(
    ("command", "said", "fix"),
    [
        (("emit", "lunch", "--data", '{"a":1'), "What follows --data is not valid JSON.", "Write an object"),
        (("emit", "lunch", "--data", "[1]"), "What follows --data is no object.", "Write an object"),
        (("show", "nosuch"), "There is no event 'nosuch'", "`denizen events list`"),
        (("replay", "nosuch"), "There is no delivery 'nosuch'", "`denizen events failed`"),
    ],
)
def test_what_cannot_be_done_with_events_is_refused_with_what_to_do(
    tmp_path: Path, command: tuple[str, ...], said: str, fix: str
) -> None:
    home = Home(tmp_path / "home")
    home.configure("http://127.0.0.1:9/v1")
    refused = home.do("events", *command)
    assert refused.code != 0 and said in refused.err and f"fix: {fix}" in refused.err
