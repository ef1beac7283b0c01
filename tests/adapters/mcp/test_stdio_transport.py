"""One server as a program: started once, its own environment, its results, its death, its changes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import psutil
import pytest

from denizen.adapters.mcp import McpPool, McpServerPhase, McpServerSpec, McpToolPolicy, McpToolset, StdioTransport
from denizen.adapters.mcp.connection import find_reason
from denizen.domain.clock import SystemClock
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.tool import CacheScope, Taint, Tier
from denizen.engine.tools.toolbox import list_all
from tests.adapters.mcp.mcp_fixture import TRUSTED, call, made_with_sdk, names, old, open_toolset, small, starts
from tests.timing import HANG_LIMIT_S, poll

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("mcp")]


@pytest.mark.proves("LW4")
async def test_a_server_sees_its_own_environment_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-servers")
    async with open_toolset(small(tmp_path, MINE="1")) as toolset:
        seen = (await call(toolset, "small_environment")).text.split()
    assert {"MINE", "STARTS", "PATH"} <= set(seen)
    assert set(seen) - {"MINE", "STARTS"} <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE", "PWD"}


@pytest.mark.proves("LW3", "LW12")
async def test_a_server_is_started_once_whatever_asks_for_it_and_ended_with_its_last_user(tmp_path: Path):
    spec = small(tmp_path)
    with anyio.fail_after(HANG_LIMIT_S):
        async with McpPool(SystemClock()) as pool:
            pool.start()
            (first,) = pool.open({spec: TRUSTED})
            (second,) = pool.open({spec: McpToolPolicy("other")})
            assert len(await names(first)) == len(await names(second)) > 0
            number = (await call(first, "small_pid")).text
            await first.aclose()
            await first.aclose()
            assert (await call(second, "other_pid")).text == number
            assert starts(tmp_path) == ["start"]
            await second.aclose()
            (third,) = pool.open({spec: TRUSTED})
            assert (await call(third, "small_pid")).text != number
    assert starts(tmp_path) == ["start", "start"]
    assert not psutil.pid_exists(int(number))


@pytest.mark.proves("LW12")
async def test_a_server_is_opened_used_and_closed_from_different_tasks_and_outlives_a_caller_that_gives_up(
    tmp_path: Path,
):
    async def in_a_task_of_its_own(do: Callable[[], Coroutine[object, object, object]]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(do)

    with anyio.fail_after(HANG_LIMIT_S):
        async with McpPool(SystemClock()) as pool:
            (toolset,) = pool.open({small(tmp_path): TRUSTED})
            await in_a_task_of_its_own(toolset.list_tools)  # starts the server
            number, texts = (await call(toolset, "small_pid")).text, list[str]()

            async def give_up() -> None:
                with anyio.CancelScope() as scope:
                    await call(toolset, "small_fall", report=lambda _: scope.cancel())

            async def ask() -> None:
                texts.append((await call(toolset, "small_pid")).text)

            await in_a_task_of_its_own(give_up)
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(ask)
            await in_a_task_of_its_own(toolset.aclose)
    assert texts == [number] * 5
    assert starts(tmp_path).count("start") == 1
    assert not psutil.pid_exists(int(number))


@pytest.mark.proves("L6", "LW11", "VW4", "L-result-cache")
async def test_a_server_that_nobody_believes_has_dangerous_tools_and_a_trusted_one_says_how_dangerous_they_are(
    tmp_path: Path,
):
    async with open_toolset(small(tmp_path), McpToolPolicy("x", tiers=(("p*", Tier.HARMLESS),))) as toolset:
        unbelieved = {spec.name: spec for spec in await toolset.list_tools()}
        toolset.offer = replace(TRUSTED, prefix="")
        toolset._version = -1
        believed = {spec.name: spec for spec in await toolset.list_tools()}
    assert {spec.tier for name, spec in unbelieved.items() if name != "x_pid"} == {Tier.DANGEROUS}
    assert unbelieved["x_pid"].tier is Tier.HARMLESS
    assert not any(spec.read_only or spec.idempotent for spec in unbelieved.values())
    assert {spec.cache for spec in unbelieved.values()} == {CacheScope.NONE}
    assert unbelieved["x_wipe"].destructive
    assert (believed["pid"].tier, believed["fall"].tier) == (Tier.LIMITED, Tier.SENSITIVE)
    assert believed["wipe"].destructive and not believed["pid"].destructive
    assert believed["pid"].read_only and believed["pid"].cache is CacheScope.NONE
    assert believed["roll"].cache is CacheScope.EVERYONE
    assert believed["fall_once"].idempotent and not believed["fall_once"].read_only
    assert believed["fall_once"].cache is CacheScope.NONE
    assert {spec.flow.reads for spec in believed.values()} == {frozenset({Taint.TOOL})}
    assert {spec.timeout_s for spec in believed.values()} == {360.0}
    assert believed["roll"].parameters == {
        "type": "object",
        "properties": {"sides": {"type": "integer"}},
        "required": ["sides"],
    }


async def test_only_tools_of_the_allow_list_are_offered_or_called(tmp_path: Path):
    async with open_toolset(small(tmp_path), McpToolPolicy("s", allow=("pid", "roll*"))) as toolset:
        assert await names(toolset) == ["s_pid", "s_roll"]
        assert (await call(toolset, "s_wipe")).is_error
    assert starts(tmp_path) == ["start"]


async def test_a_result_has_text_for_the_model_and_everything_else_for_people(tmp_path: Path):
    async with open_toolset(small(tmp_path)) as toolset:
        shown = await call(toolset, "small_show")
        facts = await call(toolset, "small_facts")
    assert shown.data == {
        "images": [{"url": "data:image/png;base64,iVBORw==", "name": "image-1.png"}],
        "files": [
            {"url": "data:audio/wav;base64,UklGRg==", "name": "audio-1.wav"},
            {"url": "data:application/pdf;base64,JVBERg==", "name": "report.pdf"},
        ],
        "embeds": [{"title": "manual", "text": "How to", "url": "https://example.org/manual"}],
    }
    assert shown.text.splitlines() == [
        "Look:",
        "[image-1.png (image/png) is shown to the user]",
        "[audio-1.wav (audio/wav) is shown to the user]",
        "[file:///notes.txt]",
        "remember",
        "[report.pdf (application/pdf) is shown to the user]",
        "[resource: manual https://example.org/manual How to]",
        "[resource: local file:///etc/passwd]",
    ]
    assert (facts.text, facts.is_error) == ('{"answer": 42}', False)


@pytest.mark.proves("LW6")
async def test_a_failure_of_the_tool_is_a_failure(tmp_path: Path):
    async with open_toolset(small(tmp_path)) as toolset:
        failed = await call(toolset, "small_fail")
    assert (failed.is_error, failed.text) == (True, "the well is dry")


@pytest.mark.proves("L11", "LW6")
async def test_a_server_that_was_killed_between_calls_is_back_for_the_next_one(tmp_path: Path):
    async with open_toolset(small(tmp_path)) as toolset:
        number = int((await call(toolset, "small_pid")).text)
        os.kill(number, signal.SIGKILL)
        with anyio.fail_after(HANG_LIMIT_S):
            while toolset.server.state.phase is McpServerPhase.UP:
                await anyio.lowlevel.checkpoint()
        assert (await call(toolset, "small_wipe")).text == "gone"
        assert toolset.server.state.starts == 2
    assert starts(tmp_path) == ["start", "start", "wipe"]


@pytest.mark.proves("LW6", "LW5")
async def test_a_server_that_failed_at_first_is_tried_again_though_nobody_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("denizen.adapters.mcp.server.FIRST_PAUSE_S", 0.01)
    late, spec = tmp_path / "late.py", small(tmp_path)
    assert isinstance(spec.transport, StdioTransport)
    script = Path(spec.transport.args[0])
    async with open_toolset(replace(spec, transport=replace(spec.transport, args=(str(late),)))) as toolset:
        assert await names(toolset) == []
        late.symlink_to(script)
        assert "small_pid" in await poll(partial(names, toolset))


@pytest.mark.proves("LW6")
async def test_a_call_that_is_lost_with_its_server_is_not_repeated_and_says_so(tmp_path: Path):
    async with open_toolset(small(tmp_path)) as toolset:
        number, heard = int((await call(toolset, "small_pid")).text), list[str]()

        def kill(text: str) -> None:
            heard.append(text)
            os.kill(number, signal.SIGKILL)

        with pytest.raises(Unavailable, match="its outcome is unknown") as lost:
            await call(toolset, "small_fall", report=kill)
        assert lost.value.code == "mcp_lost"
        assert heard == ["begun (25%)"]
        assert (await call(toolset, "small_wipe")).text == "gone"
    assert starts(tmp_path) == ["start", "fall", "start", "wipe"]


async def test_a_server_is_restarted_by_hand_at_once_and_its_running_call_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("denizen.adapters.mcp.server.FIRST_PAUSE_S", 10 * HANG_LIMIT_S)
    async with open_toolset(small(tmp_path)) as toolset:
        number = (await call(toolset, "small_pid")).text
        with pytest.raises(Unavailable, match="its outcome is unknown"):
            await call(toolset, "small_fall", report=lambda _: toolset.server.restart())
        while toolset.server.state.starts < 2:  # without anybody who calls it
            await anyio.lowlevel.checkpoint()
        assert (await call(toolset, "small_pid")).text != number
        assert (toolset.server.state.starts, toolset.server.state.failure) == (2, "")
    assert starts(tmp_path) == ["start", "fall", "start"]


async def test_a_server_that_waits_for_its_next_attempt_is_restarted_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("denizen.adapters.mcp.server.FIRST_PAUSE_S", 10 * HANG_LIMIT_S)
    late, spec = tmp_path / "late.py", small(tmp_path)
    assert isinstance(spec.transport, StdioTransport)
    script = Path(spec.transport.args[0])
    async with open_toolset(replace(spec, transport=replace(spec.transport, args=(str(late),)))) as toolset:
        assert await names(toolset) == []
        late.symlink_to(script)
        toolset.server.restart()
        while toolset.server.state.phase is not McpServerPhase.UP:
            await anyio.lowlevel.checkpoint()
        assert "late.py" in toolset.server.state.failure  # what went wrong before stays to be read
        assert any("late.py" in text for _, text in toolset.server.output)


@pytest.mark.parametrize("make", [small, made_with_sdk])
async def test_a_call_that_may_be_repeated_is_repeated_once_when_its_server_is_killed(
    tmp_path: Path, make: Callable[[Path], McpServerSpec]
):
    async with open_toolset(make(tmp_path)) as toolset:
        number = int((await call(toolset, "small_pid")).text)
        done = await call(toolset, "small_fall_once", report=lambda _: os.kill(number, signal.SIGKILL))
    assert done.text == "done at last"
    assert starts(tmp_path) == ["start", "fall_once", "start", "fall_once"]


async def test_a_call_that_nobody_waits_for_any_more_leaves_the_server_usable(tmp_path: Path):
    async with open_toolset(small(tmp_path)) as toolset:
        with anyio.CancelScope() as scope:
            await call(toolset, "small_fall", report=lambda _: scope.cancel())
        assert scope.cancelled_caught
        assert (await call(toolset, "small_wipe")).text == "gone"
        assert toolset.server.state.starts == 1


async def test_tools_that_a_server_adds_are_there_without_a_new_start(tmp_path: Path):
    async with open_toolset(made_with_sdk(tmp_path)) as toolset:
        assert "small_grown" not in await names(toolset)
        await call(toolset, "small_grow")
        with anyio.fail_after(HANG_LIMIT_S):
            while "small_grown" not in await names(toolset):
                await anyio.lowlevel.checkpoint()
        assert (await call(toolset, "small_grown")).text == "gone"


async def test_a_server_of_an_earlier_protocol_is_understood_and_its_changes_too(tmp_path: Path):
    async with open_toolset(old(tmp_path), McpToolPolicy("old")) as toolset:
        assert "old_newer" not in await names(toolset)
        assert (await call(toolset, "old_plain")).text == "plain enough"
        with anyio.fail_after(HANG_LIMIT_S):
            while "old_newer" not in await names(toolset):
                await anyio.lowlevel.checkpoint()
        assert toolset.server.state.about == "old 0.1"


@pytest.mark.proves("LW11")
async def test_a_tool_with_a_schema_that_cannot_be_used_is_left_out_and_the_others_stay(tmp_path: Path):
    async with open_toolset(old(tmp_path), McpToolPolicy("old")) as toolset:
        listed = await names(toolset)
        assert list(toolset.listing.left_out) == ["broken"]
        assert "not valid" in toolset.listing.left_out["broken"]
        strange = [name for name in listed if "rename" in name]
        assert len(set(listed)) == len(listed) and len(strange) == 2
        assert all(len(name) <= 64 for name in listed)
        for name in strange:
            assert (await call(toolset, name)).text == f"called {toolset.listing.own_names[name]}"


def test_a_missing_program_is_named_also_where_the_event_loop_does_not_tell_it():
    untold = FileNotFoundError(2, "No such file or directory")
    assert find_reason(untold, StdioTransport("lost", (), Path("/srv"))) == (
        "there is no program 'lost', or no folder '/srv' to run it in"
    )


async def find_fault(toolset: McpToolset) -> str:
    """Returns why its server is down; empty while it is being started again."""
    return toolset.server.state.why if toolset.server.state.phase is McpServerPhase.DOWN else ""


@pytest.mark.proves("L6")
async def test_a_call_goes_to_the_server_that_has_the_tool_though_another_one_has_it_too(tmp_path: Path):
    specs = {small(tmp_path, name, MINE=name): McpToolPolicy(name) for name in ("one", "two")}
    with anyio.fail_after(HANG_LIMIT_S):
        async with McpPool(SystemClock()) as pool:
            tools = await list_all(pool.open(specs))
            for name in ("two", "one"):
                number = (await call(cast("McpToolset", tools[f"{name}_pid"].toolset), f"{name}_pid")).text
                assert psutil.Process(int(number)).environ()["MINE"] == name


@pytest.mark.proves("LW5")
async def test_one_server_that_fails_stops_neither_the_others_nor_the_start(tmp_path: Path):
    broken = McpServerSpec("broken", StdioTransport("no-such-program", (), tmp_path))
    complains = McpServerSpec(
        "complains", StdioTransport(sys.executable, ("-c", "raise SystemExit('no key given')"), tmp_path)
    )
    silent = McpServerSpec(
        "silent", StdioTransport(sys.executable, ("-c", "import sys; sys.stdin.read()"), tmp_path), start_timeout_s=0.2
    )
    chatty = McpServerSpec("chatty", StdioTransport(sys.executable, ("-c", "print('hello')"), tmp_path))
    with anyio.fail_after(HANG_LIMIT_S):
        async with McpPool(SystemClock()) as pool:
            toolsets = pool.open({spec: McpToolPolicy(spec.name) for spec in (broken, complains, silent, chatty)})
            (good,) = pool.open({small(tmp_path): TRUSTED})
            assert (await call(good, "small_wipe")).text == "gone"
            for toolset in toolsets:
                assert await names(toolset) == []
            whys = [await poll(partial(find_fault, toolset)) for toolset in toolsets]
            assert (await call(toolsets[0], "broken_thing")).is_error
            with pytest.raises(Unavailable, match="cannot be reached"):
                await toolsets[0].server.call_tool("thing", {}, print)
    told = " ".join(whys)
    assert "no program or folder 'no-such-program'" in told
    assert "no key given" in told
    assert "did not answer within 0.2 s" in told


@pytest.mark.proves("LW6")
async def test_what_a_server_refuses_is_told_in_its_own_words(tmp_path: Path):
    async with open_toolset(old(tmp_path), McpToolPolicy("old")) as toolset:
        await toolset.list_tools()
        with pytest.raises(InvalidInput) as refused:
            await toolset.server.call_tool("nothing", {}, print)
    assert "no such thing here" in refused.value.why


@pytest.mark.proves("L11")
async def test_leaving_the_pool_ends_the_programs_and_errors_from_within_pass_as_they_are(tmp_path: Path):
    numbers: list[int] = []

    async def use_it_and_fail() -> None:
        async with McpPool(SystemClock()) as pool:
            (toolset,) = pool.open({small(tmp_path): TRUSTED})
            numbers.append(int((await call(toolset, "small_pid")).text))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await use_it_and_fail()
    assert numbers and not psutil.pid_exists(numbers[0])
