"""Tools: their specification, their calls and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum, StrEnum

from denizen.domain.ids import CallId, derive_call_key
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record


class Tier(IntEnum):
    """Risk. A tool of unknown risk is DANGEROUS."""

    HARMLESS = 0
    LIMITED = 1
    SENSITIVE = 2
    DANGEROUS = 3


class Origin(StrEnum):
    """Who caused a call. The gate sees it; nothing passes beside the gate."""

    MODEL = "model"
    HOOK = "hook"
    WORKFLOW = "workflow"
    SCHEDULE = "schedule"
    COMMAND = "command"
    SKILL = "skill"
    API = "api"


class Taint(StrEnum):
    """Where a text comes from that nobody vouches for. What a turn has read decides what it may do without a human."""

    WEB = "web"
    MAIL = "mail"
    DOCUMENT = "document"
    OTHERS = "others"
    """People other than the one who asks."""
    TOOL = "tool"
    """The result of a tool that comes from outside."""


class Effect(StrEnum):
    """An effect that a text from elsewhere must not bring about."""

    MEMORY = "memory"
    SCHEDULE = "schedule"
    SEND = "send"
    REVEAL = "reveal"
    """Shows what is secret."""


class CacheScope(StrEnum):
    """Whom the cached result of a tool may answer when the same call comes again within a while, in other turns too."""

    NONE = "none"
    ASKER = "asker"
    """The one who asked, in the same conversation."""
    EVERYONE = "everyone"
    """Results do not depend on who asks, so that one may answer others, once the gate lets them."""


@record
class DataFlow:
    """Which foreign text a tool lets in, and what a call changes or sends outside its result. The gate decides by it.

    `reads` are the kinds of foreign text that its results hold, `effects` what it does beyond its result.
    """

    reads: frozenset[Taint] = frozenset()
    effects: frozenset[Effect] = frozenset()
    destinations: tuple[str, ...] = ()
    """Names of the arguments that say where a tool with the effect SEND sends to. A tool that sends and names none may
    send anywhere, as far as the gate knows.
    """
    here_by_default: bool = True
    """Whether a call that leaves all of them empty sends to the conversation itself. Otherwise it may send anywhere."""
    statement: str = ""
    """The name of the argument that a tool with the effect MEMORY writes down about the asker, for the asker alone,
    when the call has no other one.
    """


@record
class ToolSpec:
    """A tool as models, the gate and people see it.

    `parameters` is a JSON schema of type object. `read_only` tools change nothing and may be answered from the cache
    of the turn. A `destructive` one needs a human whatever a model thinks of it. `source` names the toolset that it
    came from.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    tier: Tier = Tier.DANGEROUS
    read_only: bool = False
    idempotent: bool = False
    timeout_s: float = 60.0
    source: str = ""
    destructive: bool = False
    flow: DataFlow = DataFlow()
    cache: CacheScope = CacheScope.NONE
    listed_only: bool = False
    """An agent has it only when its `tools` name it in full; no pattern brings it in."""
    administration: bool = False
    """It is offered, and runs, in turns of chats about the administration only, for owners and admins."""


@record
class ToolCall:
    """One call, with arguments that fit the tool's schema."""

    id: CallId
    tool: str
    args: JsonObject
    origin: Origin = Origin.MODEL


def find_call_key(call: ToolCall, turn_id: str, step: int, position: int) -> str:
    """Returns the idempotency key of a call that a step of a turn makes. A node of a workflow that is tried again makes
    the same call in a later step: there the id of the call is its key.
    """
    return call.id if call.origin is Origin.WORKFLOW else derive_call_key(turn_id, step, position)


@record
class ToolResult:
    """The result of a call: `text` for the model; `data` for people and machines (embeds, files), never for
    the model.

    `is_own`: the text is the tool's own, such as "Nothing was found.", and holds none of the foreign text that the tool
    reads. A tool that is not sure does not say so.
    """

    text: str
    is_error: bool = False
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    is_own: bool = False


@record
class IdleTools:
    """The tools of a skill that are off, and how to switch them on."""

    skill: str
    fix: str
    tools: Sequence[str]
