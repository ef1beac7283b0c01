"""The shell's tools for agents of the OpenAI Agents SDK. Needs the extra `sdk-openai-agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.tools import ShellTools

if TYPE_CHECKING:
    from agents import Tool


def openai_agents_tools(tools: ShellTools) -> list[Tool]:
    """For `Agent(..., tools=openai_agents_tools(tools))`. Failures of the server or the network end the run."""
    from agents import function_tool

    return [function_tool(each, failure_error_function=None) for each in (tools.bash, tools.bash_batch)]
