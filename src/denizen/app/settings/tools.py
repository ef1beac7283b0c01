"""The tools of agents in the configuration: skills, custom tools, MCP servers, and custom slash commands."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from denizen.app.settings.fields import HttpUrl, Name, Number, Section, SomeText, Text, at_most, refuse
from denizen.domain.custom_command import DESCRIPTION_CHARS, INPUT, NAME_CHARS, OUTPUT
from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier

_SKILL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLACE = re.compile(r"\{\{([^{}]*)\}\}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _skill_name(value: str) -> str:
    if not _SKILL_NAME.fullmatch(value):
        raise refuse("this cannot be the name of a skill.", "Use lower-case letters, digits, _ and -.")
    return value


def _tool_name(value: str) -> str:
    if not _TOOL_NAME.fullmatch(value):
        raise refuse("this cannot be the name of a tool.", "Use lower-case letters, digits and _.")
    return value


def _sha256(value: str) -> str:
    if value and not _SHA256.fullmatch(value):
        raise refuse("this is no sha256.", "Let `denizen skill enable NAME` write it.")
    return value


def _plain_variables(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise refuse("this cannot be a variable.", "Use letters, digits and _ in its name, and text as value.")
    return env


Variables = Annotated[dict[str, Text], AfterValidator(_plain_variables)]
"""Environment variables of a program."""
SkillName = Annotated[str, AfterValidator(_skill_name)]
ToolName = Annotated[str, AfterValidator(_tool_name)]


class OwnSkillSection(Section):
    """A skill in the folder `skills/`. It is loaded when its content is exactly the one that was enabled."""

    enabled: bool = Field(default=True, description="Whether it is loaded, if its content is the pinned one.")
    sha256: Annotated[Text, AfterValidator(_sha256)] = Field(
        default="",
        description="Of the content of its folder; `denizen skill enable NAME` writes it. Any change of the folder "
        "switches the skill off until it is enabled again.",
    )
    settings: dict[str, object] = Field(
        default_factory=dict[str, object], description="The skill's own settings; it checks them itself."
    )


class ParameterSection(Section):
    """A parameter of a custom tool. Every one is required."""

    description: Annotated[Text, at_most(500)] = Field(default="", description="For the model, in a few words.")
    enum: tuple[SomeText, ...] = Field(default=(), description="The only values that it may have; empty: any text.")


class CustomToolSection(Section):
    """A program as a tool of agents. No shell reads its arguments."""

    description: Annotated[SomeText, at_most(1000)] = Field(description="What it does, for the model.")
    argv: tuple[SomeText, ...] = Field(
        min_length=1,
        description="The program and its arguments. `{{name}}` is what the model gave for the parameter `name`; it "
        "stays one argument, whatever it holds.",
    )
    parameters: dict[ToolName, ParameterSection] = Field(
        default_factory=dict[str, ParameterSection], description="By name; each must have a place in `argv`."
    )
    tier: Tier = Field(
        default=Tier.DANGEROUS, description="0 harmless, 1 limited by rate, 2 sensitive, 3 dangerous (the default)."
    )
    env: Variables = Field(
        default_factory=dict[str, str],
        description="Its environment beside PATH, HOME and LANG, which is all that it sees of Denizen's own; secrets "
        "as ${NAME}.",
    )
    destructive: bool = Field(default=False, description="Whether a human must approve each call.")
    timeout_s: Number = Field(default=30.0, ge=1, le=600, description="Seconds until the program is stopped.")

    @model_validator(mode="after")
    def _places_are_parameters(self) -> Self:
        if "{{" in self.argv[0]:
            fix = "Write the program itself first; parameters may only be arguments."
            raise refuse("the first part of argv must be a program.", fix, key="argv")
        places = set(_PLACE.findall(" ".join(self.argv)))
        if places - set(self.parameters):
            raise refuse("argv has a place for no parameter.", "Write each one under parameters.", key="argv")
        if set(self.parameters) - places:
            raise refuse("a parameter has no place in argv.", "Write {{its name}} into argv.", key="parameters")
        return self


_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,32}")
_OF_PROGRAMS = ("args", "env", "cwd")
_OF_SITES = ("headers",)


class McpFlowSection(Section):
    """The data flow of some tools of a server. What is unset is guessed from what the server says of the tool."""

    reads: tuple[Taint, ...] | None = Field(
        default=None,
        description="Whose text its results hold: web, mail, document, others or tool. Empty: no foreign text, so that "
        "a turn that read it is not held back. Unset: tool.",
    )
    effects: tuple[Effect, ...] | None = Field(
        default=None,
        description="What it does besides its result: memory, schedule, send or reveal. It needs a human where a turn "
        "has read foreign text. Empty: none. Unset: send, unless a trusted server says that it only reads.",
    )
    destinations: tuple[SomeText, ...] | None = Field(
        default=None,
        description="The arguments that say where it sends to; `gate.destinations` lists places that need no human. "
        "Unset: those that are named like addresses; without any, it may send anywhere.",
    )


class McpServerSection(Section):
    """One MCP server: a program that is started here (`command`), or a server behind a web address (`url`)."""

    command: Text = Field(
        default="",
        description="The program, spoken to over its standard input and output. It is looked for in PATH and beside "
        "Denizen's own programs.",
    )
    args: tuple[Text, ...] = Field(default=(), description="Its arguments; no shell reads them.")
    env: Variables = Field(
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
    flows: dict[str, McpFlowSection] = Field(
        default_factory=dict[str, McpFlowSection],
        description="What tools let in and send, by name or pattern as the server writes them; the first match counts.",
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
            prefix = get_tool_prefix(name, server)
            if prefix and seen.setdefault(prefix, name) != name:
                fix = "Give one of them another name, or its own prefix."
                raise refuse("two servers would have the same names for their tools.", fix, key="servers")
        return self


def get_tool_prefix(name: str, section: McpServerSection) -> str:
    """Returns the prefix of the names of a server's tools."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:32] if section.prefix is None else str(section.prefix)


BUILT_IN_COMMANDS = frozenset(
    {
        "ask",
        "new",
        "agent",
        "agents",
        "model",
        "mode",
        "context",
        "compact",
        "why",
        "usage",
        "allow",
        "memory",
        "migrate",
        "handover",
        "help",
        "reset",
        "run",
        "observer",
        "reminders",
        "tasks",
        "schedules",
    }
)

_NAME = re.compile(rf"[a-z0-9_-]{{1,{NAME_CHARS}}}")
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}")


def _command_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        fix = f"Use lower-case letters, digits, _ and -; {NAME_CHARS} characters at most."
        raise refuse("this cannot be the name of a command.", fix)
    if value in BUILT_IN_COMMANDS:
        raise refuse("this command is built in.", "Give yours another name.")
    return value


CommandName = Annotated[str, AfterValidator(_command_name)]


class CommandSection(Section):
    """A slash command of your own: a program, a prompt, or a prompt about what the program printed."""

    description: Annotated[SomeText, at_most(DESCRIPTION_CHARS)] = Field(
        description=f"What it does, for people; at most {DESCRIPTION_CHARS} characters."
    )
    shell: tuple[Text, ...] = Field(
        default=(),
        description="A program and its arguments, run through the gate; no shell reads them. `{{input}}` is what the "
        "user wrote.",
    )
    prompt: Text = Field(
        default="",
        description="What the agent is asked. `{{input}}` is what the user wrote, `{{output}}` what the program "
        "printed; without a place it comes at the end.",
    )
    agent: Text = Field(default="", description="Who answers the prompt; empty: the agent that was asked.")
    new_session: bool = Field(default=False, description="Whether the prompt begins a new session.")
    timeout_s: Number = Field(default=30.0, ge=1, le=600, description="Seconds until the program is stopped.")
    admin_only: bool = Field(
        default=True,
        description="Whether only administrators may give it; if not, everybody whom the agent answers, on the web "
        "everybody with an account or a key.",
    )

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.shell and not self.prompt.strip():
            fix = "Write shell: [PROGRAM, ARGUMENT], or prompt: TEXT, or both."
            raise refuse("a command needs shell or prompt.", fix)
        if self.shell and (not self.shell[0].strip() or "{{" in self.shell[0]):
            fix = "Write the program itself first; what the user wrote may only be an argument."
            raise refuse("the first part of shell must be a program.", fix, key="shell")
        _check_placeholders(" ".join(self.shell), (INPUT,), key="shell")
        _check_placeholders(self.prompt, (INPUT, OUTPUT) if self.shell else (INPUT,), key="prompt")
        return self


def _check_placeholders(text: str, known: tuple[str, ...], *, key: str) -> None:
    for placeholder in _PLACEHOLDER.findall(text):
        if placeholder in known:
            continue
        if placeholder == OUTPUT:
            fix = "Use {{output}} in prompt, and write shell beside it."
            raise refuse("there is no output here: it is what the program of shell printed.", fix, key=key)
        raise refuse("this placeholder is not known.", f"Known here: {' and '.join(known)}.", key=key)


class ToolSection(Section):
    """One skill. All keys but `enabled` are the skill's own; it checks them itself."""

    model_config = ConfigDict(extra="allow")

    enabled: bool | None = Field(
        default=None,
        description="Whether its tools exist. Unset: yes, except for skills that can do harm, such as `files` and "
        "`system`; those have to be switched on.",
    )

    @property
    def options(self) -> dict[str, Json]:
        return dict(self.model_extra or {})
