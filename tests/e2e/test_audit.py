"""The audit log from the command line: shown, verified, exported, and found out when somebody changed it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.test_usage import configure

pytestmark = pytest.mark.e2e


def test_calls_are_shown_verified_and_exported_and_a_change_is_found_out(home: Home, provider: Provider) -> None:
    configure(home, provider, "{}")
    assert home.do("audit", "list").ending == (0, "The audit log is empty.\n")
    provider.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6*7"})]), ModelAnswer(text="42."))
    assert home.do("ask", "--no-stream", "6*7?").code == 0
    shown = home.do("audit", "list").out
    assert "call  calculator  by local:operator" in shown
    verified = home.do("audit", "verify")
    assert verified.code == 0
    assert "1 entries, nothing was changed" in verified.out
    mistyped = home.do("audit", "verify", "--noted", "abc")
    assert (mistyped.code, "'abc' is no digest" in mistyped.err) == (2, True)
    entry = json.loads(home.do("audit", "export").out)
    assert (entry["number"], entry["kind"], entry["details"]["decision"]) == (1, "call", "approve")
    assert entry["digest"] in verified.out
    assert "6*7" not in json.dumps(entry)
    with closing(sqlite3.connect(home.folder / "denizen.db")) as connection:
        connection.execute("UPDATE audit SET actor = 'local:nobody'")
        connection.commit()
    found = home.do("audit", "verify")
    assert found.code != 0
    assert "Entry 1 was changed after it was written" in found.err
