"""`denizen doctor` and GitHub: what it says of an account that works, and of one that does not."""

from __future__ import annotations

import pytest
from anyio import to_thread

from tests.e2e.github import GitHubDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("C-inspect-commands")
async def test_doctor_says_what_works_and_what_does_not(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    github_deployment.app.hook.url = "https://agents.example.org/api/webhooks/github"
    github_deployment.script("OK", "OK")
    done = await to_thread.run_sync(github_deployment.home.do, "doctor")
    told = [line for line in done.out.splitlines() if "github ada" in line]
    assert told[0] == "ok    github ada: The credentials belong to the App Denizen (denizen[bot])."
    assert (done.code, [line for line in told if not line.startswith("ok")]) == (0, [])
    assert "warn  nobody is told of calls that wait for owners: ada on github\n      fix: Set gate.obs" in done.out
    github_deployment.app.permissions["issues"] = "read"
    done = await to_thread.run_sync(github_deployment.home.do, "doctor")
    assert "FAIL  github ada: The App may not write in: Issues." in done.out
    assert done.code == 2


async def test_offline_nobody_is_asked(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    done = await to_thread.run_sync(github_deployment.home.do, "doctor", "--offline")
    assert (done.code, "github ada" in done.out, github_deployment.github.requests) == (0, False, [])
