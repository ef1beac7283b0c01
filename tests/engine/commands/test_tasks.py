"""/tasks: the tasks of those who read along, listed and added to."""

from __future__ import annotations

import pytest

from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.project import ProjectDraft, TaskDraft
from tests.engine.commands.command_fixture import BEN, DIRECT, OTHER_ROOM, open_commands

pytestmark = pytest.mark.anyio

OWNER = Principal(PrincipalKind.LOCAL, "operator", "operator", frozenset({RoleName.OWNER}))


@pytest.mark.proves("T35-tasks")
async def test_a_task_is_added_with_a_title_and_a_status_and_listed_where_it_was_added() -> None:
    async with open_commands() as engine:
        added = await engine.give("/tasks add Buy tea status: in_progress")
        assert added.text.startswith("Added `tsk_")
        assert "in progress: Buy tea" in added.text
        await engine.give("/tasks add Buy milk", BEN)
        slash = await engine.slash("tasks", "add", {"title": "Sell tea", "status": "done"})
        assert "done: Sell tea" in slash.text
        assert "Sell tea" in (await engine.slash("tasks", "list", {"status": "done"})).text
        assert (await engine.give("/tasks list", BEN)).text.count("Buy") == 2
        assert "Buy milk" not in (await engine.slash("tasks", "list", {"status": "in_progress"})).text
        for room in (OTHER_ROOM, DIRECT):
            assert (await engine.give("/tasks list", room=room)).text.startswith("No task fits.")
        await engine.give("/tasks add Mine", room=DIRECT)
        assert "Mine" in (await engine.give("/tasks list", room=DIRECT)).text
        assert "Mine" not in (await engine.give("/tasks list")).text


async def test_a_project_is_suggested_and_a_wrong_one_refused() -> None:
    async with open_commands() as engine:
        boards = engine.services.projects
        assert boards is not None
        made = await boards.open_for(OWNER).create_project(ProjectDraft(name="Website"), for_everybody=True)
        await boards.open_for(OWNER).create_task(TaskDraft(title="Fix it"), made.id)
        assert list(await engine.suggest("tasks", "add", "project", "web")) == ["Website"]
        await engine.slash("tasks", "add", {"title": "Paint it", "project": "website"})
        assert (await engine.slash("tasks", "list", {"project": "Website"})).text.count(" it") == 2
        wrong = await engine.slash("tasks", "add", {"title": "x", "project": "Nowhere"})
        assert wrong.is_failure and "no project 'Nowhere'" in wrong.text


async def test_a_long_list_fits_one_message() -> None:
    async with open_commands() as engine:
        for number in range(25):
            await engine.slash("tasks", "add", {"title": f"{number} " + "x" * 150})
        told = (await engine.give("/tasks list")).text
        assert len(told) <= engine.account_policy.style.message_limit
        assert told.endswith("… and more; give a status or a project.")
