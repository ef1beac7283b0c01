"""The tools about agents: listing and describing them, and making, removing and switching one.

An agent has those that its `tools` name in full. What changes something is for owners and admins, and whoever runs the
server agrees to each call: they see the difference that it makes to the configuration and to the files of the agent.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.agent import Agent
from denizen.domain.agent_draft import MAX_DESCRIPTION_CHARS, MAX_TEXT_CHARS, MAX_TOOLS, AgentDraft
from denizen.domain.errors import DenizenError
from denizen.domain.json import Json, JsonObject
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.engine.agents.catalog import AgentCatalog, check_may_manage
from denizen.ports.toolset import CallScope

SOURCE = "agents"

LIST_AGENTS, DESCRIBE_AGENT = "list_agents", "describe_agent"
CREATE_AGENT, DELETE_AGENT, SWITCH_AGENT = CHANGES = "create_agent", "delete_agent", "switch_agent"
TOOL_NAMES = (LIST_AGENTS, DESCRIBE_AGENT, *CHANGES)

_NAME: JsonObject = {"type": "string", "minLength": 1, "maxLength": 32}


def _spec(
    name: str, description: str, properties: JsonObject, *, optional: Sequence[str] = (), tier: Tier = Tier.DANGEROUS
) -> ToolSpec:
    required: list[Json] = [each for each in properties if each not in optional]
    return ToolSpec(
        name,
        description,
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        tier=tier,
        read_only=name not in CHANGES,
        # A human agrees to each change, whatever a model thinks of it: an agent may do what its tools do.
        destructive=name in CHANGES,
        listed_only=True,
        source=SOURCE,
    )


def _text(about: str, most: int, *, least: int = 0) -> JsonObject:
    return {"type": "string", "description": about, "minLength": least, "maxLength": most}


SPECS = (
    _spec(LIST_AGENTS, "Lists the agents, what each is for, and whether it is on.", {}, tier=Tier.HARMLESS),
    _spec(DESCRIBE_AGENT, "Tells an agent's purpose, model and tools.", {"name": _NAME}, tier=Tier.HARMLESS),
    _spec(
        CREATE_AGENT,
        "Makes an agent. Owners see what is written and agree.\n"
        "First ask the user, one after another, for its name, what it is for, its character, what it has to do, its "
        "tools and its model.",
        {
            "name": {**_NAME, "description": "small letters, digits, - or _"},
            "description": _text("what it is for, in one sentence", MAX_DESCRIPTION_CHARS, least=1),
            "identity": _text("who it is, spoken to it: You are ...", MAX_TEXT_CHARS),
            "instructions": _text("what it does and leaves", MAX_TEXT_CHARS),
            "tools": {
                "type": "array",
                "items": {"type": "string", "maxLength": 64},
                "maxItems": MAX_TOOLS,
                "description": "names or patterns; none by default",
            },
            "model": _text("an alias or provider/model; empty for the usual one", 200),
        },
        optional=("identity", "instructions", "tools", "model"),
    ),
    _spec(DELETE_AGENT, "Takes an agent out of the configuration. Its files stay.", {"name": _NAME}),
    _spec(
        SWITCH_AGENT,
        "Switches an agent on or off. One that is off answers nobody.",
        {"name": _NAME, "enabled": {"type": "boolean"}},
    ),
)


class AgentTools:
    """Implements `Toolset`, `CheckingToolset` and `PreviewingToolset`."""

    def __init__(self, catalog: AgentCatalog) -> None:
        self._catalog = catalog

    @property
    def name(self) -> str:
        return SOURCE

    async def list_tools(self) -> Sequence[ToolSpec]:
        return SPECS

    async def find_refusal(self, call: ToolCall, scope: CallScope) -> str:
        try:
            await self.preview(call, scope)
        except DenizenError as error:
            return error.explain()
        return ""

    async def preview(self, call: ToolCall, scope: CallScope) -> str:
        if call.tool not in CHANGES:
            return ""
        check_may_manage(scope.principal)
        if call.tool == CREATE_AGENT:
            return await self._catalog.describe_plan(_read_draft(call.args))
        if call.tool == DELETE_AGENT or call.args["enabled"] is False:
            self._catalog.check_not_default(str(call.args["name"]))
        return ""

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        catalog, by, name = self._catalog, scope.principal, str(call.args.get("name", ""))
        match call.tool:
            case "list_agents":
                text = "\n".join(map(_line, catalog.list_agents()))
            case "describe_agent":
                text = _describe(catalog.get_agent(name))
            case "create_agent":
                check_may_manage(by)
                draft = _read_draft(call.args)
                await catalog.create(by, draft)
                text = f"{draft.name} is there now."
            case "delete_agent":
                check_may_manage(by)
                await catalog.remove(by, name)
                text = f"{name} is gone. Its files are still there."
            case _:
                check_may_manage(by)
                is_on = call.args["enabled"] is True
                await catalog.switch(by, name, is_on=is_on)
                text = f"{name} is {'on' if is_on else 'off'} now."
        return ToolResult(text, is_own=True)

    async def aclose(self) -> None:
        """Nothing is open."""


def _read_draft(args: JsonObject) -> AgentDraft:
    tools = args.get("tools")
    return AgentDraft(
        name=str(args["name"]),
        description=str(args["description"]),
        identity=str(args.get("identity", "")),
        instructions=str(args.get("instructions", "")),
        tools=tuple(map(str, tools)) if isinstance(tools, list) else (),
        model=str(args.get("model", "")),
    )


def _line(agent: Agent) -> str:
    off = "" if agent.enabled else " (off)"
    return f"{agent.name}{off}: {agent.description}" if agent.description else f"{agent.name}{off}"


def _describe(agent: Agent) -> str:
    access = agent.tool_access
    lines = [_line(agent), f"model: {agent.model_word}", f"tools: {', '.join(access.tools) or 'none'}"]
    if access.delegates_to:
        lines.append(f"gives tasks to: {', '.join(access.delegates_to)}")
    return "\n".join(lines)
