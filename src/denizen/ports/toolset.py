"""Sources of tools: built-in skills, the owner's skills, MCP servers, custom tools.

Only `engine/gate` calls `Toolset.call`, so that no tool runs without a decision; an architecture test checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, ConversationId, SessionId, TurnId
from denizen.domain.principal import Principal
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


@dataclass(frozen=True, slots=True)
class NestedCall:
    """A call that a skill made from within another call."""

    call: ToolCall
    outcome: CallOutcome


def _tell_nobody(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True)
class CallScope:
    """On whose behalf and where a tool runs.

    `depth` counts calls that a skill made from within a skill. `account` is the agent whose login on the platform
    answers, None off platforms. `idempotency_key` is the same when an interrupted call runs again after a restart.
    `taint` is what the turn has read so far that neither the owner nor the asker wrote. `guild` is the platform's id of
    the community. `question` is what the turn answers. `shell_session` names the shell session to continue, where the
    caller named one.
    """

    agent: AgentName
    principal: Principal
    place: Place
    conversation_id: ConversationId
    session_id: SessionId
    turn_id: TurnId
    idempotency_key: str = ""
    depth: int = 0
    chain: tuple[str, ...] = field(default_factory=tuple)
    account: AgentName | None = None
    taint: frozenset[Taint] = frozenset()
    guild: str = ""
    question: str = field(default="", compare=False)
    shell_session: str = ""
    trail: CallTrail = field(default_factory=CallTrail, compare=False)
    report: Callable[[str], None] = field(default=_tell_nobody, compare=False)
    """Takes one line about how far the call is, which people see when it takes long."""


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
