"""`SkillToolset`: a skill as a source of tools (`ports/toolset`).

The composition root and tests make it. Only the gate calls it; the gate also enforces the deadline (`timeout_s`) and
turns a fault in a tool's code into an error result with a reference.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NeedsApproval, NeedsAttention
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.tool import Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.fetch import Fetcher
from denizen.ports.toolset import CallScope
from denizen.skill.context import HistoryMessage, ToolContext, no_documents, run_in_thread
from denizen.skill.services import (
    ArchiveLookup,
    Download,
    InstanceControl,
    MemoryAccess,
    PlatformActions,
    ReminderAccess,
    RunProgram,
    RunShell,
    SearchDocuments,
    SkillEditor,
    ToolCallLog,
)
from denizen.skill.signature import to_result
from denizen.skill.skill import Skill, Tool


class SearchHistory(Protocol):
    """Finds earlier messages that the agent of this scope may see in the conversation of this scope."""

    async def __call__(self, scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]: ...


class ReadHistory(Protocol):
    """Reads messages of the session of this scope by their numbers, as far as they belong to its conversation."""

    async def __call__(self, scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]: ...


class CallThroughGate(Protocol):
    """Sends a call that a skill makes through the gate; the engine extends the scope's depth and chain."""

    async def __call__(self, scope: CallScope, tool: str, args: JsonObject) -> ToolResult: ...


class AskModelForScope(Protocol):
    """Asks the model of the scope's agent; whoever asked pays."""

    async def __call__(
        self, scope: CallScope, instructions: str, text: str, *, max_output_tokens: int = 4000
    ) -> str: ...


class OpenArchive(Protocol):
    """Returns the archive as the call of this scope may see it; None where there is none."""

    def __call__(self, scope: CallScope) -> ArchiveLookup | None: ...


class OpenMemory(Protocol):
    """Returns the agent's memory as the call of this scope may see and change it; None where there is none."""

    def __call__(self, scope: CallScope) -> MemoryAccess | None: ...


class OpenToolCallLog(Protocol):
    """Returns the log of tool calls as the call of this scope may see it; None where nothing is recorded."""

    def __call__(self, scope: CallScope) -> ToolCallLog | None: ...


async def _no_messages(scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]:
    del scope, first, last
    return ()


class OpenPlatform(Protocol):
    """Returns the actions on the platform for the call of this scope; None where there is none."""

    def __call__(self, scope: CallScope) -> PlatformActions | None: ...


class OpenReminders(Protocol):
    """Returns the reminders of the asker for the call of this scope; None where nobody could be reminded."""

    def __call__(self, scope: CallScope) -> ReminderAccess | None: ...


class OpenShell(Protocol):
    """Returns the read-only shell for the agent and conversation of this scope; None where there is nothing to look
    into.
    """

    def __call__(self, scope: CallScope) -> RunShell | None: ...


def _no_archive(scope: CallScope) -> None:
    del scope


def _no_folder(skill: str) -> None:
    del skill


def _no_snapshot() -> None:
    """Returns None: no source was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillServices:
    """The services that contexts are made of, given once for all skills.

    `folder_of` maps an agent and a skill to a folder. `find_shared_folder` maps a skill to the folder that all agents
    share, None for skills without one. `snapshot` returns the folder of the sources of knowledge.
    """

    clock: Clock
    fetcher: Fetcher
    folder_of: Callable[[AgentName, str], Path]
    search_history: SearchHistory
    call_tool: CallThroughGate
    read_history: ReadHistory = _no_messages
    open_archive: OpenArchive = _no_archive
    open_memory: OpenMemory = _no_archive
    open_call_log: OpenToolCallLog = _no_archive
    open_platform: OpenPlatform = _no_archive
    open_shell: OpenShell = _no_archive
    open_reminders: OpenReminders = _no_archive
    find_shared_folder: Callable[[str], Path | None] = _no_folder
    snapshot: Callable[[], Path | None] = _no_snapshot
    search_documents: SearchDocuments = no_documents
    download: Download | None = None
    run_program: RunProgram | None = None
    ask_model: AskModelForScope | None = None
    skill_editor: SkillEditor | None = None
    instance: InstanceControl | None = None


@dataclass(frozen=True, slots=True)
class _ScopedHistory:
    services: SkillServices
    scope: CallScope

    async def search(self, words: str, *, limit: int = 5) -> Sequence[HistoryMessage]:
        return await self.services.search_history(self.scope, words, limit)

    async def read(self, first: int, last: int) -> Sequence[HistoryMessage]:
        return await self.services.read_history(self.scope, first, last)


class SkillToolset:
    """The tools of one skill. No tool has a tier below `floor`, and every tool counts as reading what `reads` says.

    Raises InvalidInput when the section does not fit the skill's settings, and for types without a schema.
    """

    def __init__(
        self,
        skill: Skill,
        services: SkillServices,
        section: Mapping[str, Json] | None = None,
        *,
        floor: Tier = Tier.HARMLESS,
        reads: frozenset[Taint] = frozenset(),
    ) -> None:
        self._skill = skill
        self._services = services
        self._options = skill.read_settings(section or {})
        self._specs = tuple(
            replace(spec, tier=max(spec.tier, floor), reads=spec.reads | reads) for spec in skill.specs()
        )

    @property
    def name(self) -> str:
        return self._skill.name

    async def list_tools(self) -> Sequence[ToolSpec]:
        return self._specs

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        """Runs the tool. Known errors become results that the model reads. NeedsApproval and NeedsAttention are
        raised, because a human has to act, and so are faults of the tool's code.
        """
        tool = self._skill.find_tool(call.tool)
        if tool is None:
            names = ", ".join(spec.name for spec in self._specs)
            return ToolResult(f"The skill {self.name} has no tool `{call.tool}`. It has: {names}.", is_error=True)
        try:
            values = tool.signature.bind(call.args)
            return to_result(await _run(tool, self._context(scope), values))
        except (NeedsApproval, NeedsAttention):
            raise
        except DenizenError as error:
            return ToolResult(error.explain(), is_error=True)

    async def aclose(self) -> None:
        """Does nothing: a skill holds nothing open."""

    def _context(self, scope: CallScope) -> ToolContext:
        return ToolContext(
            agent=scope.agent,
            principal=scope.principal,
            place=scope.place,
            turn_id=scope.turn_id,
            idempotency_key=scope.idempotency_key,
            clock=self._services.clock,
            folder=self._services.folder_of(scope.agent, self.name),
            fetch=self._services.fetcher.fetch,
            history=_ScopedHistory(self._services, scope),
            call_tool=partial(self._services.call_tool, scope),
            archive=self._services.open_archive(scope),
            memory=self._services.open_memory(scope),
            call_log=self._services.open_call_log(scope),
            platform=self._services.open_platform(scope),
            reminders=self._services.open_reminders(scope),
            shared=self._services.find_shared_folder(self.name),
            snapshot=self._services.snapshot(),
            documents=self._services.search_documents,
            conversation=scope.conversation_id,
            guild=scope.guild,
            download=self._services.download,
            run_program=self._services.run_program,
            ask_model=partial(self._services.ask_model, scope) if self._services.ask_model else None,
            skill_editor=self._services.skill_editor,
            instance=self._services.instance,
            shell=self._services.open_shell(scope),
            shows_cards=scope.account is not None,
            options=self._options,
        )


async def _run(tool: Tool, context: ToolContext, values: Mapping[str, object]) -> object:
    if inspect.iscoroutinefunction(tool.function):
        return await cast("Awaitable[object]", tool.function(context, **values))
    return await run_in_thread(partial(tool.function, context, **values))
