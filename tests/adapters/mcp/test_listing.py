"""What of a server's tools is offered, and what each is taken to let in and send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from mcp_types import Tool

from denizen.adapters.mcp import McpDataFlow, McpToolPolicy
from denizen.adapters.mcp.tools import build_tool_list
from denizen.domain.tool import DataFlow, Effect, Taint


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


def flow_of(schema: Mapping[str, object], policy: McpToolPolicy, **annotations: bool) -> DataFlow:
    described = {"name": "tool", "inputSchema": {"type": "object", **schema}, "annotations": annotations}
    (spec,) = build_tool_list([Tool.model_validate(described)], policy, "mcp:mail").specs
    return spec.flow


MAIL = {
    "properties": {"to": {"type": "array"}, "cc": {"type": "array"}, "body": {"type": "string"}},
    "required": ["to"],
}
TRUSTED = McpToolPolicy("mail", trusted=True)


def test_a_tool_that_does_not_only_read_sends_to_the_addresses_in_its_arguments() -> None:
    sends = DataFlow(frozenset({Taint.TOOL}), frozenset({Effect.SEND}), ("to", "cc"), here_by_default=False)
    assert flow_of(MAIL, TRUSTED) == sends
    assert flow_of(MAIL, McpToolPolicy("mail"), readOnlyHint=True) == sends, (
        "a server that is not trusted is not believed"
    )
    assert flow_of(MAIL, TRUSTED, readOnlyHint=True, openWorldHint=True).effects == frozenset()


@pytest.mark.parametrize(
    ("properties", "required", "found"),
    [
        ({"recipientEmail": {}, "text": {}}, ["recipientEmail"], ("recipientEmail",)),
        ({"channel_id": {}, "text": {}}, ["channel_id"], ("channel_id",)),
        ({"target": {"type": "string", "format": "uri"}}, ["target"], ("target",)),
        ({"people": {"type": "array", "items": {"type": "string", "format": "email"}}}, ["people"], ("people",)),
        ({"token": {}, "total": {}, "photo": {}, "customer": {}}, ["token", "total", "photo", "customer"], ()),
        ({"url": {}, "text": {}}, ["text"], ()),
        ({}, [], ()),
    ],
)
def test_addresses_are_told_by_the_names_and_formats_of_arguments(
    properties: Mapping[str, object], required: list[str], found: tuple[str, ...]
) -> None:
    """Without a required one the tool has a place of its own to send to, which may be anywhere."""
    assert flow_of({"properties": properties, "required": required}, TRUSTED).destinations == found


def test_the_owner_says_what_a_tool_lets_in_and_sends() -> None:
    quiet = replace(TRUSTED, flows=(("t*", McpDataFlow(reads=(), effects=())), ("*", McpDataFlow(reads=(Taint.MAIL,)))))
    assert flow_of(MAIL, quiet) == DataFlow(here_by_default=False)
    narrow = replace(TRUSTED, flows=(("tool", McpDataFlow(reads=(Taint.MAIL,), destinations=("body",))),))
    assert flow_of(MAIL, narrow).reads == {Taint.MAIL}
    assert flow_of(MAIL, narrow).destinations == ("body",)
    assert flow_of(MAIL, narrow).effects == {Effect.SEND}
