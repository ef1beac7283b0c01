"""`/run`: who may start which workflow, and what it is given."""

from __future__ import annotations

import pytest

from denizen.domain.workflow_run import start_from_json
from tests.engine.commands.command_fixture import ANA, open_commands
from tests.engine.workflows.workflow_fixture import make

pytestmark = pytest.mark.anyio

OPEN = make({"cmd": {"type": "on_command", "admin_only": False, "then": "say"}, "say": {"type": "reply", "text": "x"}})
ADMINS = make({"cmd": {"type": "on_command"}}, "secret")
OTHERS = make({"cmd": {"type": "manual"}}, "manual") | make({"cmd": {"type": "on_command"}}, "off", enabled=False)


@pytest.mark.proves("V31-nodes")
async def test_a_workflow_runs_with_the_words_behind_its_name() -> None:
    async with open_commands(workflows=OPEN | ADMINS | OTHERS) as engine:
        reply = await engine.give("/run flow two words")
        assert reply.is_pending and not reply.is_failure
        [opened] = engine.opened
        start = start_from_json(opened.workflow)
        assert start is not None
        assert (start.name, start.trigger, start.scope) == ("flow", "cmd", {"input": {"text": "two words"}})
        async with engine.store.work(write=False) as work:
            assert await work.workflows.find_version(start.digest) is not None
        assert list(await engine.suggest("run", "", "workflow", "")) == ["flow", "secret"]


async def test_only_admins_run_what_is_for_admins_and_nobody_what_has_no_command() -> None:
    async with open_commands(workflows=OPEN | ADMINS | OTHERS) as engine:
        refused = await engine.give("/run secret", ANA)
        assert refused.is_failure and "for admins" in refused.text
        for name in ("manual", "off", "nothing"):
            assert (await engine.give(f"/run {name}", ANA)).is_failure
        assert engine.opened == []
