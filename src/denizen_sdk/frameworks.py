"""The shell's tools for other agent frameworks: pydantic-ai, the OpenAI Agents SDK, LangChain.

Each needs its extra: `sdk-pydantic-ai`, `sdk-openai-agents`, `sdk-langchain`. A framework is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.shell import ShellTools

if TYPE_CHECKING:
    import agents
    import pydantic_ai
    from langchain_core.tools import BaseTool


def pydantic_ai_tools(tools: ShellTools) -> list[pydantic_ai.Tool[object]]:
    """Returns the tools for `Agent(..., tools=pydantic_ai_tools(tools))` of pydantic-ai."""
    from pydantic_ai import Tool

    return [Tool(tools.bash, takes_ctx=False), Tool(tools.bash_batch, takes_ctx=False)]


def openai_agents_tools(tools: ShellTools) -> list[agents.Tool]:
    """Returns the tools for `Agent(..., tools=openai_agents_tools(tools))` of the OpenAI Agents SDK.

    Failures of the server or the network end the run.
    """
    from agents import function_tool

    # The SDK's own handler would tell the model of a lost connection, which no rewording of the command repairs.
    return [function_tool(each, failure_error_function=None) for each in (tools.bash, tools.bash_batch)]


def langchain_tools(tools: ShellTools) -> list[BaseTool]:
    """Returns the tools for `create_agent(model, tools=langchain_tools(tools))`; asynchronous only."""
    from langchain_core.tools import StructuredTool

    return [
        StructuredTool.from_function(coroutine=each, parse_docstring=True) for each in (tools.bash, tools.bash_batch)
    ]
