"""`denizen doctor` and GitHub: what it says of an account that works, and of one that does not."""

from __future__ import annotations

import pytest
from anyio import to_thread

from tests.e2e.github import Yard

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


async def test_doctor_says_what_works_and_what_does_not(yard: Yard) -> None:
    yard.configure()
    yard.app.hook.url = "https://agents.example.org/api/webhooks/github"
    yard.script("OK", "OK")
    done = await to_thread.run_sync(yard.home.do, "doctor")
    told = [line for line in done.out.splitlines() if "github ada" in line]
    assert told[0] == "ok    github ada: The credentials belong to the App Denizen (denizen[bot])."
    assert (done.code, [line for line in told if not line.startswith("ok")]) == (0, [])
    yard.app.permissions["issues"] = "read"
    done = await to_thread.run_sync(yard.home.do, "doctor")
    assert "FAIL  github ada: The App may not write in: Issues." in done.out
    assert done.code == 2


async def test_offline_nobody_is_asked(yard: Yard) -> None:
    yard.configure()
    done = await to_thread.run_sync(yard.home.do, "doctor", "--offline")
    assert (done.code, "github ada" in done.out, yard.github.requests) == (0, False, [])
