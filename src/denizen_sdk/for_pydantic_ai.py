"""The shell's tools for agents of pydantic-ai. Needs the extra `sdk-pydantic-ai`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen_sdk.tools import ShellTools

if TYPE_CHECKING:
    from pydantic_ai import Tool


def pydantic_ai_tools(tools: ShellTools) -> list[Tool[object]]:
    """For `Agent(..., tools=pydantic_ai_tools(tools))`."""
    from pydantic_ai import Tool

    return [Tool(tools.bash, takes_ctx=False), Tool(tools.bash_batch, takes_ctx=False)]
