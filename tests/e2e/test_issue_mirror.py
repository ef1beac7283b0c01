"""`denizen run` mirrors issues into tasks and back: webhooks tell it, and a `kill -9` makes nothing twice."""

from __future__ import annotations

import pytest
from anyio import to_thread

from tests.e2e.deployment import wait_until_reached
from tests.e2e.github import GitHubDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

PROJECT = "projects: {Boats: {github: {repository: harbour/boats, direction: both}}}\n"


async def test_a_kill_right_after_an_issue_was_opened_for_a_task_makes_no_second_one(
    github_deployment: GitHubDeployment,
) -> None:
    deployment, world = github_deployment, github_deployment.world
    deployment.configure(rest=PROJECT)
    leak = world.open_issue(deployment.ana, deployment.boats, "It leaks")
    async with deployment.run() as first:
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM issue_mirrors WHERE is_imported"))
        added = await to_thread.run_sync(lambda: deployment.home.do("tasks", "add", "Paint", "--project", "Boats"))
        assert added.code == 0, added.err
        written = deployment.github.hold("POST", r"/issues$", when="after")
        world.comment(deployment.ana, leak, "Still.")
        await wait_until_reached(written)
        await first.kill()
    written.release()
    assert [each.title for each in deployment.boats.issues.values()] == ["It leaks", "Paint"]
    async with deployment.run():
        world.change_issue(deployment.ana, leak, "closed", closed="completed")
        await deployment.until(
            lambda: deployment.rows("SELECT 1 FROM tasks WHERE title = 'It leaks' AND status = 'done'")
        )
        await deployment.until(lambda: len(deployment.rows("SELECT 1 FROM tasks WHERE link != ''")) == 2)
    assert [each.title for each in deployment.boats.issues.values()] == ["It leaks", "Paint"]
    assert len(deployment.rows("SELECT 1 FROM tasks WHERE title = 'Paint'")) == 1
