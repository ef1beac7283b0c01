"""What of a server's tools is offered: no server takes names that belong to another one."""

from __future__ import annotations

from mcp_types import Tool

from denizen.adapters.mcp import McpToolPolicy
from denizen.adapters.mcp.tools import build_tool_list


def make_tools(*names: str) -> list[Tool]:
    return [Tool.model_validate({"name": name, "inputSchema": {"type": "object"}}) for name in names]


def test_a_server_offers_no_tool_under_a_name_that_belongs_to_another_one() -> None:
    tools = make_tools("search", "hub_delete", "hub.delete", "hubble")
    listing = build_tool_list(tools, McpToolPolicy("git", reserved=("git_hub_",)), "mcp:git")
    assert [spec.name for spec in listing.specs] == ["git_search", "git_hubble"]
    assert set(listing.own_names) == {"git_search", "git_hubble"}
    assert set(listing.left_out) == {"hub_delete", "hub.delete"}
    assert "another server" in listing.left_out["hub_delete"]
    assert len(build_tool_list(tools, McpToolPolicy("git"), "mcp:git").specs) == 4
