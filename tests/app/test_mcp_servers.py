"""MCP servers across changes of the configuration, and beside whatever else is configured."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from denizen.app.build import Denizen, OpenOptions, open_denizen
from denizen.app.reload import Reloader
from denizen.domain.errors import InvalidInput
from denizen.domain.tool import Tier
from tests.app.home_folder import Home
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]

SMALL = Path(__file__).parent.parent / "adapters" / "mcp" / "quick_server.py"
LAB = """
models:
  providers: {lab: {kind: openai-compatible, base_url: "http://127.0.0.1:9/v1"}}
  aliases: {balanced: lab/one}
"""


def configure(home: Home, more: str = "", rest: str = "") -> None:
    home.write(
        f"{LAB}{rest}\nmcp: {{servers: {{small: {{command: {sys.executable}, args: [{SMALL}], "
        f"env: {{STARTS: {home.path / 'starts.txt'}}}{more}}}}}}}\n"
    )


def starts(home: Home) -> int:
    return (home.path / "starts.txt").read_text().count("start")


async def tiers(denizen: Denizen) -> dict[str, Tier]:
    return {tool.spec.name: tool.tier for tool in await denizen.queries.list_tools() if "small" in tool.spec.name}


@pytest.mark.proves("LW3", "T4")
async def test_a_server_goes_on_through_changes_that_are_not_its_own(home: Home):
    configure(home)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        reloader = Reloader(denizen)
        assert (await tiers(denizen))["small_pid"] is Tier.DANGEROUS
        configure(home, ", trusted: true, tiers: {wipe: 0}", "agents: {ada: {}}")
        assert (await reloader.reload()).changed
        after = await tiers(denizen)
        assert (after["small_pid"], after["small_wipe"]) == (Tier.LIMITED, Tier.HARMLESS)
        assert starts(home) == 1
        (toolset,) = denizen.mcp_toolsets
        configure(home, ", start_timeout_s: 40")
        assert (await reloader.reload()).changed
        await tiers(denizen)
        assert starts(home) == 2
        with anyio.fail_after(HANG_LIMIT_S):
            while toolset.server.state.why != "It was stopped.":
                await anyio.lowlevel.checkpoint()


@pytest.mark.proves("T4", "TW19")
async def test_a_server_that_is_taken_out_ends_when_the_last_turn_is_done_with_it(home: Home):
    configure(home)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        await tiers(denizen)
        (toolset,) = denizen.mcp_toolsets
        async with denizen.runtime.lease():
            home.write(LAB)
            await Reloader(denizen).reload()
            assert denizen.mcp_toolsets == ()
            result = await toolset.server.call_tool("pid", {}, print)
            assert os.kill(int(result.content[0].text), 0) is None  # pyright: ignore[reportAttributeAccessIssue]
        with anyio.fail_after(HANG_LIMIT_S):
            while toolset.server.state.why != "It was stopped.":
                await anyio.lowlevel.checkpoint()


async def test_a_change_that_is_refused_starts_nothing(home: Home):
    home.write(LAB)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        denizen.generation_deps.mcp.start()
        configure(home, rest="agents: {ada: {tools: [fly]}}")
        with pytest.raises(InvalidInput, match="fly"):
            await Reloader(denizen).reload()
    assert not (home.path / "starts.txt").exists()


@pytest.mark.proves("T2", "E9")
async def test_a_change_that_the_store_cannot_record_leaves_everything_as_it_was(home: Home):
    home.write(LAB)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        before, settings = denizen.runtime.current, denizen.settings
        configure(home)
        async with denizen.services.store.work():
            with pytest.raises(RuntimeError):  # a task has one unit of work at a time
                await Reloader(denizen).reload()
        assert denizen.runtime.current is before
        assert denizen.settings is settings
        assert not denizen.generation_deps.mcp._servers, "what was opened for it is closed"
        assert (await Reloader(denizen).reload()).generation == before.number + 1


@pytest.mark.proves("LW5")
async def test_an_agent_may_list_tools_of_a_server_that_does_not_answer(home: Home):
    home.write(
        LAB + "agents: {ada: {tools: [near_read, clock_*]}}\n"
        "mcp: {servers: {near: {command: no-such-program}, clock: {command: no-such-program}}}\n"
    )
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        assert await denizen.queries.list_tools("ada") == []
        assert {each.server.state.why for each in denizen.mcp_toolsets} == {
            "there is no program or folder 'no-such-program'"
        }
