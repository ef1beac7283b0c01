"""Which tools an agent has in turns about the administration, and which elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.tool import ToolCall, ToolResult, ToolSpec
from denizen.engine.tools.toolbox import list_allowed
from denizen.ports.toolset import CallScope

pytestmark = pytest.mark.anyio


class Tools:
    """A toolset of tools that do nothing."""

    def __init__(self, name: str, *specs: ToolSpec) -> None:
        self.name = name
        self._specs = specs

    async def list_tools(self) -> Sequence[ToolSpec]:
        return self._specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        del scope
        return ToolResult(call.tool)

    async def aclose(self) -> None:
        pass


def spec(name: str, **more: bool) -> ToolSpec:
    return replace(ToolSpec(name, "", {"type": "object"}), **more)


ADMIN = Tools("admin", spec("list_users", administration=True), spec("admin", administration=True, listed_only=True))
OTHER = Tools("hub", spec("list_users"), spec("weather"))


async def names(*patterns: str, administration: bool) -> list[tuple[str, str]]:
    agent = Agent(AgentName("ada"), tool_access=ToolAccess(patterns, administration=administration))
    return [(name, tool.toolset.name) for name, tool in (await list_allowed(agent, (ADMIN, OTHER))).items()]


async def test_the_two_kinds_of_turns_have_no_tool_in_common() -> None:
    assert await names("*", administration=False) == [("list_users", "hub"), ("weather", "hub")]
    assert await names("weather", administration=True) == [("list_users", "admin")]


@pytest.mark.proves("TW6")
async def test_the_tool_of_the_configuration_must_be_listed_and_is_nowhere_else() -> None:
    assert await names("*", "admin", administration=True) == [("list_users", "admin"), ("admin", "admin")]
    assert ("admin", "admin") not in await names("*", administration=True)
    assert ("admin", "admin") not in await names("admin", "list_users", administration=False)
