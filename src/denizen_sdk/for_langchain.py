"""The shell's tools for LangChain. Needs the extra `sdk-langchain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.tools import ShellTools

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def langchain_tools(tools: ShellTools) -> list[BaseTool]:
    """For `create_agent(model, tools=langchain_tools(tools))`; asynchronous only."""
    from langchain_core.tools import StructuredTool

    return [
        StructuredTool.from_function(coroutine=each, parse_docstring=True) for each in (tools.bash, tools.bash_batch)
    ]
