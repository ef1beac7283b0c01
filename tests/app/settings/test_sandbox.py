"""The read-only shell in the configuration: limits, and when its tools exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.app.build import OpenOptions, open_denizen
from denizen.app.knowledge import build_sandbox
from denizen.domain.clock import SystemClock
from tests.app.home_folder import Home

pytestmark = pytest.mark.anyio


def test_limits_come_from_the_configuration(home: Home) -> None:
    usual = build_sandbox(home.load("").sandbox, SystemClock()).limits
    assert (usual.workers, usual.timeout_s, usual.batch_timeout_s, usual.memory_mb, usual.idle_s) == (
        2,
        10,
        30,
        512,
        300,
    )
    text = "sandbox: {workers: 3, timeout_s: 2.5, batch_timeout_s: 5, memory_mb: 200}"
    given = build_sandbox(home.load(text).sandbox, SystemClock()).limits
    assert (given.workers, given.timeout_s, given.batch_timeout_s, given.memory_mb) == (3, 2.5, 5, 200)


def test_a_batch_has_at_least_the_time_of_one_command(home: Home) -> None:
    error = home.refuse("sandbox: {timeout_s: 20, batch_timeout_s: 10}")
    assert "batch_timeout_s" in error.explain()


async def _tools(path: Path) -> set[str]:
    async with open_denizen(path, OpenOptions(durable=False)) as denizen:
        return {tool.spec.name for tool in await denizen.queries.list_tools()}


async def test_the_tools_exist_where_there_is_knowledge_and_can_be_switched_off(home: Home) -> None:
    home.write("")
    assert not {"bash", "bash_batch"} & await _tools(home.path)
    (home.path / "knowledge").mkdir()
    found = await _tools(home.path)
    if "bash" not in found:
        pytest.skip("no sandbox here")
    assert {"bash", "bash_batch"} <= found
    home.write("sandbox: {enabled: false}")
    assert not {"bash", "bash_batch"} & await _tools(home.path)
