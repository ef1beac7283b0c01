"""The shape of `mcp`: servers whose tools agents may use (inventory 5.1)."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from denizen.app.settings.fields import HttpUrl, Name, Number, Section, SomeText, Text, refuse
from denizen.domain.tool import Tier

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,32}")
_OF_PROGRAMS = ("args", "env", "cwd")
_OF_SITES = ("headers",)


class McpServerSection(Section):
    """One MCP server: a program that is started here (`command`), or a server behind a web address (`url`)."""

    command: Text = Field(default="", description="The program, spoken to over its standard input and output.")
    args: tuple[Text, ...] = Field(default=(), description="Its arguments; no shell reads them.")
    env: dict[str, Text] = Field(
        default_factory=dict[str, str],
        description="Its environment. Of Denizen's own it sees HOME, LOGNAME, PATH, SHELL, TERM and USER only; write "
        "what else it needs, secrets as ${NAME}.",
    )
    cwd: Text = Field(
        default="", description="The folder it runs in, relative to the home folder, which is the default."
    )
    url: HttpUrl = Field(default="", description="The address of a server that speaks streamable HTTP.")
    headers: dict[str, Text] = Field(
        default_factory=dict[str, str],
        description="Sent with every request to `url`, such as Authorization: Bearer ${NAME}.",
    )
    enabled: bool = Field(default=True, description="Whether the server is used.")
    trusted: bool = Field(
        default=False,
        description="Whether what the server says about the risk of its tools is believed: tools that only read are "
        "tier 1 then and the others tier 2. All tools of other servers are tier 3.",
    )
    tools: tuple[SomeText, ...] = Field(
        default=("*",), description="Which tools are offered: names or patterns, as the server writes them."
    )
    tiers: dict[str, Tier] = Field(
        default_factory=dict[str, Tier],
        description="The risk of tools, 0 to 3, by name or pattern as the server writes them; the first match counts.",
    )
    prefix: Text | None = Field(
        default=None,
        description="Stands in front of the names of its tools, with an underscore. Unset: the server's name; empty: "
        "nothing.",
    )
    timeout_s: Number = Field(default=360.0, ge=1, le=600, description="How long one call may take, in seconds.")
    start_timeout_s: Number = Field(
        default=30.0, ge=1, le=600, description="How long starting and shaking hands may take, in seconds."
    )

    @property
    def foreign_keys(self) -> frozenset[str]:
        return frozenset(("command", *_OF_PROGRAMS)) if self.url else frozenset(("url", *_OF_SITES))

    @field_validator("env")
    @classmethod
    def _plain_variables(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if not _VARIABLE.fullmatch(name) or "\0" in value:
                raise refuse("this cannot be a variable.", "Use letters, digits and _ in its name, and text as value.")
        return env

    @field_validator("headers")
    @classmethod
    def _plain_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not (name.isascii() and name.isprintable() and name) or "\n" in value or "\r" in value:
                raise refuse("a header has a plain name and one line of text.", "Take line breaks out.")
        return headers

    @field_validator("prefix")
    @classmethod
    def _plain_prefix(cls, prefix: str | None) -> str | None:
        if prefix is not None and not _PREFIX.fullmatch(prefix):
            raise refuse("this cannot stand in front of names.", "Use letters, digits, _ and -; 32 at most.")
        return prefix

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if bool(self.command.strip()) == bool(self.url):
            raise refuse("an MCP server needs either command or url.", "Write command: PROGRAM, or url: ADDRESS.")
        way, foreign = ("url", _OF_PROGRAMS) if self.url else ("command", _OF_SITES)
        for key in foreign:
            if key in self.model_fields_set:
                raise refuse(f"does not go together with {way}.", "Take the key out.", key=key)
        return self


class McpSection(Section):
    """Servers of the Model Context Protocol."""

    servers: dict[Name, McpServerSection] = Field(
        default_factory=dict[str, McpServerSection],
        description="By name, which stands in front of the names of its tools.",
    )

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        seen: dict[str, str] = {}
        for name, server in self.servers.items():
            prefix = prefix_of(name, server)
            if prefix and seen.setdefault(prefix, name) != name:
                fix = "Give one of them another name, or its own prefix."
                raise refuse("two servers would have the same names for their tools.", fix, key="servers")
        return self


def prefix_of(name: str, section: McpServerSection) -> str:
    """What stands in front of the names of its tools."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:32] if section.prefix is None else str(section.prefix)
