"""Programs that the owner configured as tools: arguments stay arguments, and are bounded like all programs."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from denizen.adapters.commands import CustomToolset
from denizen.domain.custom_tool import MAX_ARGUMENT_CHARS, CustomTool
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import CallId
from denizen.domain.json import JsonObject
from denizen.domain.tool import Tier, ToolCall, ToolResult
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S, controlled_clock

pytestmark = pytest.mark.anyio

SCOPE = scope()
TEXT: JsonObject = {"type": "string"}


def toolset(home: Path, *argv: str, timeout_s: float = HANG_LIMIT_S) -> CustomToolset:
    names = [part[2:-2] for part in argv if part.startswith("{{")]
    tool = CustomTool("it", "It.", argv, dict.fromkeys(names, TEXT), timeout_s=timeout_s)
    return CustomToolset([tool], cwd=home, environ={"PATH": os.environ["PATH"], "API_KEY": "sk-1"})


async def run(tools: CustomToolset, **args: str) -> ToolResult:
    return await tools.call(ToolCall(CallId("1"), "it", dict(args)), SCOPE)


@pytest.mark.proves("T-tool-custom")
async def test_what_is_given_stays_one_argument_and_is_not_searched_for_places_again(tmp_path: Path) -> None:
    tools = toolset(tmp_path, "printf", "%s|", "{{one}}", "{{two}}")
    result = await run(tools, one="$(touch made); `id` {{two}}", two="a  b")
    assert result == ToolResult("$(touch made); `id` {{two}}|a  b|", data={"exit_code": 0})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("T-tool-custom")
async def test_all_parameters_are_required_and_the_tier_is_the_highest_unless_it_is_said(tmp_path: Path) -> None:
    (spec,) = await toolset(tmp_path, "printf", "{{one}}", "{{two}}", timeout_s=30.0).list_tools()
    assert spec.parameters["required"] == ["one", "two"]
    assert (spec.tier, spec.timeout_s) == (Tier.DANGEROUS, 40.0)


async def test_a_program_sees_none_of_the_secrets(tmp_path: Path) -> None:
    assert "sk-1" not in (await run(toolset(tmp_path, "env"))).text


async def test_a_program_sees_the_variables_that_are_named_for_it_alone(tmp_path: Path) -> None:
    tool = CustomTool("it", "It.", ("env",), env={"TOKEN": "token-of-it", "LANG": "de"})
    other = CustomTool("other", "Other.", ("env",))
    tools = CustomToolset([tool, other], cwd=tmp_path, environ={"PATH": os.environ["PATH"], "API_KEY": "sk-1"})
    seen = set((await run(tools)).text.splitlines())
    assert seen == {f"PATH={os.environ['PATH']}", f"HOME={tmp_path}", "LANG=de", "TOKEN=token-of-it"}
    assert "token-of-it" not in (await tools.call(ToolCall(CallId("1"), "other", {}), SCOPE)).text
    assert "token-of-it" not in repr(tool)


async def test_a_value_that_would_be_an_option_is_refused_unless_options_have_ended(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="dash"):
        await run(toolset(tmp_path, "ls", "{{one}}"), one="-la")
    assert (await run(toolset(tmp_path, "printf", "--", "{{one}}"), one="-la")).text == "-la"


@pytest.mark.parametrize("value", ["a\x00b", "x" * (MAX_ARGUMENT_CHARS + 10)])
async def test_what_no_program_can_be_given_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidInput):
        await run(toolset(tmp_path, "printf", "{{one}}"), one=value)


@pytest.mark.proves("T-tool-custom")
async def test_it_is_stopped_after_30_s(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    tools = CustomToolset(
        [CustomTool("it", "It.", ("cat", str(pipe)))], cwd=tmp_path, environ={"PATH": os.environ["PATH"]}
    )
    results: list[ToolResult] = []

    async def wait_for_ever() -> None:
        results.append(await run(tools))

    with controlled_clock() as clock:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_ever)
            held = await anyio.to_thread.run_sync(os.open, pipe, os.O_WRONLY, abandon_on_cancel=True)  # once it is read
            await anyio.wait_all_tasks_blocked()
            clock.advance(20)
            await anyio.lowlevel.checkpoint()
            assert not results
            clock.advance(10)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            os.close(held)  # ends a program that nobody stopped
    assert results == [ToolResult("[stopped: it was not done within 30 s]", is_error=True)]


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "no-such-program" in (await run(toolset(tmp_path, "no-such-program"))).text


def test_an_argument_inside_of_code_is_refused_when_the_tool_is_built(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="as code"):
        CustomToolset([CustomTool("it", "It.", ("sh", "-c", "echo {{x}}"), {"x": TEXT})], cwd=tmp_path, environ={})
