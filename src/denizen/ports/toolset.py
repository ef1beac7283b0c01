"""Sources of tools: built-in skills, the owner's skills, MCP servers, custom tools.

Only `engine/gate` calls `Toolset.call`, so that no tool runs without a decision; an architecture test checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from denizen.domain.agent import Agent
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, ConversationId, SessionId, TurnId
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.tool import Taint, ToolCall, ToolResult, ToolSpec
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome
from denizen.ports.sandbox import ShellReply


@dataclass(slots=True)
class CallTrail:
    """A mutable record of what one call and the calls from within it did, filled as it happens.

    `taint` is what the inner calls have read, `usage` what deciding about all of them cost. `inner` lists the calls
    from within it, where somebody records them. `shell` is the last reply of the shell, stream by stream; a result has
    it as text only.
    """

    taint: frozenset[Taint] = frozenset()
    usage: Usage = field(default_factory=Usage)
    inner: list[NestedCall] | None = None
    shell: ShellReply | None = None


@record
class NestedCall:
    """A call that a skill made from within another call."""

    tool_call: ToolCall
    outcome: CallOutcome


def _tell_nobody(text: str) -> None:
    del text


@record(kw_only=True)
class CallOptions:
    """How a call runs. `idempotency_key` is the same when an interrupted call runs again after a restart.
    `shell_session` names the shell session to continue, where the caller named one.
    """

    idempotency_key: str = ""
    shell_session: str = ""
    report: Callable[[str], None] = field(default=_tell_nobody, compare=False)
    """Takes one line about how far the call is, which people see when it takes long."""


@record
class AskedText:
    """The text that a turn answers. `own_words` is what of it the asker alone wrote, empty where that is not sure."""

    text: str = ""
    own_words: str = ""


@record
class Delegator:
    """The turn that handed its task to the one that makes a call. The rules for its `agent` hold too; `question` is
    what it was asked.
    """

    turn_id: TurnId
    agent: AgentName
    question: str = ""


@record
class OperatedGuild:
    """The community in which a workflow does what its operator has written down, for an event from there."""

    platform: str
    id: str


@record(kw_only=True)
class CallScope:
    """On whose behalf and where a tool runs.

    `account` is the agent whose login on the platform answers, None off platforms, and `guild` the platform's id of the
    community. `is_administration`: the turn belongs to a chat about the administration. `question` is what the turn
    answers. `taint` is what the turn has read so far that neither the owner nor the asker wrote. `chain` names the
    tools from within which a skill makes the call, the outermost first. `delegator` is set in a delegated turn,
    `operated` in the run of a workflow for an event of a community.
    """

    agent: AgentName
    principal: Principal
    place: Place
    session_id: SessionId
    turn_id: TurnId
    account: AgentName | None = None
    guild: str = ""
    is_administration: bool = False
    question: AskedText = field(default=AskedText(), compare=False)
    taint: frozenset[Taint] = frozenset()
    chain: tuple[str, ...] = ()
    delegator: Delegator | None = None
    operated: OperatedGuild | None = None
    options: CallOptions = field(default_factory=CallOptions)
    trail: CallTrail = field(default_factory=CallTrail, compare=False)

    @property
    def conversation_id(self) -> ConversationId:
        return self.place.conversation_id

    @property
    def depth(self) -> int:
        """How many tools the call is made from within."""
        return len(self.chain)


class Toolset(Protocol):
    """A source of tools. `list_tools` may change from call to call: the loop asks again in each iteration."""

    @property
    def name(self) -> str: ...

    async def list_tools(self) -> Sequence[ToolSpec]: ...

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the tool. Failures that the model should read come back as `is_error` results. Faults of the tool's
        code may be raised; the gate turns them into an error result with a reference.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class AgentToolset(Toolset, Protocol):
    """A toolset whose tools differ from agent to agent. `list_tools` returns all that any agent could have."""

    async def list_tools_for(self, agent: Agent) -> Sequence[ToolSpec]:
        """Returns the tools as this agent has them."""
        ...


@runtime_checkable
class CheckingToolset(Protocol):
    """A toolset that can tell before a call whether it would be refused, so that nobody is asked to approve it."""

    async def find_refusal(self, call: ToolCall, scope: CallScope) -> str:
        """Returns why the call would be refused now, for the model; empty where nothing is known against it. Changes
        nothing. Faults of the tool's code may be raised.
        """
        ...
