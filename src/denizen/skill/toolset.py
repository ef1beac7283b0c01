"""`SkillToolset`: a skill as a source of tools (`ports/toolset`).

The composition root and tests make it. Only the gate calls it; the gate also enforces the deadline (`timeout_s`) and
turns a fault in a tool's code into an error result with a reference.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    NeedsApproval,
    NeedsAttention,
    NotAllowed,
    NotFound,
)
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.tool import Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.configuration import ChangePlanned, planning_changes
from denizen.ports.toolset import CallOptions, CallScope
from denizen.skill.context import OpenPlatform, ScopedServices, SkillServices, ToolContext, run_in_thread
from denizen.skill.services import PlatformActions
from denizen.skill.signature import ToolError, to_result
from denizen.skill.skill import Skill, Tool


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
        self._reads = reads
        self._options = skill.read_settings(section or {})
        self._specs = tuple(
            replace(spec, tier=max(spec.tier, floor), flow=replace(spec.flow, reads=spec.flow.reads | reads))
            for spec in skill.specs()
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
            context = ToolContext(self._services, scope, skill=self.name, options=self._options)
            result = to_result(await _run(tool, context, values))
        # Before DenizenError, which they are too.
        except (NeedsApproval, NeedsAttention):
            raise
        except DenizenError as error:
            if error.code == STORE_MOVED:  # the call is made again where the store is
                raise
            is_own = isinstance(error, ToolError) and error.is_own
            result = ToolResult(error.explain(), is_error=True, is_own=is_own)
        # What the owner's manifest says of all its tools holds for each of their results.
        return replace(result, is_own=result.is_own and not self._reads)

    async def preview(self, call: ToolCall, scope: CallScope) -> str:
        """Runs a tool that changes the configuration up to the change, which is planned and not made."""
        tool = self._skill.find_tool(call.tool)
        if tool is None or not tool.changes_configuration:
            return ""
        context = ToolContext(
            self._services, replace(scope, options=CallOptions()), skill=self.name, options=self._options
        )
        try:
            with planning_changes():
                await _run(tool, context, tool.signature.bind(call.args))
        except ChangePlanned as change:
            return change.planned.changed_lines
        return ""

    async def find_refusal(self, call: ToolCall, scope: CallScope) -> str:
        """Runs the tool up to its first action on the platform, which is checked and not done, or up to the first use
        of another service: nobody has approved that yet. One that changes the configuration runs up to the change.
        """
        tool = self._skill.find_tool(call.tool)
        if tool is not None and tool.changes_configuration:
            try:
                await self.preview(call, scope)
            except (NotAllowed, NotFound, InvalidInput, Conflict) as error:
                return error.explain()
            return ""
        if tool is None or not self._skill.acts_on_platform:
            return ""
        # Without a key no tool takes this for its first attempt.
        bare = replace(scope, options=CallOptions())
        context = ToolContext(_limit_to_check(self._services), bare, skill=self.name, options=self._options)
        try:
            await _run(tool, context, tool.signature.bind(call.args))
        except (NotAllowed, NotFound, InvalidInput) as error:
            return error.explain()
        except (_CheckEnded, DenizenError):
            return ""
        return ""

    async def aclose(self) -> None:
        """Does nothing: a skill holds nothing open."""


class _CheckEnded(Exception):  # noqa: N818 - it reports no error
    """Ends a call whose first action was checked, or that would use another service first."""


def _end_check(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands in for every service
    raise _CheckEnded


class _NoFetcher:
    fetch = staticmethod(_end_check)
    aclose = staticmethod(_end_check)


def _limit_to_check(services: SkillServices) -> SkillServices:
    """Returns services that check actions on the platform; any other one ends the check."""
    return SkillServices(
        clock=services.clock,
        folders=services.folders,
        fetcher=_NoFetcher(),
        search_history=_end_check,
        read_history=_end_check,
        search_documents=_end_check,
        call_tool=_end_check,
        download=_end_check,
        send_request=_end_check,
        run_program=_end_check,
        ask_model=_end_check,
        scoped=ScopedServices(
            open_platform=partial(_open_check, services.scoped.open_platform),
            open_archive=_end_check,
            open_memory=_end_check,
            open_call_log=_end_check,
            open_shell=_end_check,
            open_reminders=_end_check,
            open_feeds=_end_check,
            open_projects=_end_check,
            open_schedules=_end_check,
            open_events=_end_check,
            open_workflows=_end_check,
        ),
    )


@record
class _FirstActionCheck:
    """The platform for a call that is run up to its first action only."""

    platform: PlatformActions

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        await self.platform.check(action, **details)
        raise _CheckEnded

    async def check(self, action: str, /, **details: Json) -> None:
        await self.platform.check(action, **details)


def _open_check(open_platform: OpenPlatform, scope: CallScope) -> PlatformActions | None:
    platform = open_platform(scope)
    return _FirstActionCheck(platform) if platform else None


async def _run(tool: Tool, context: ToolContext, values: Mapping[str, object]) -> object:
    if inspect.iscoroutinefunction(tool.function):
        return await cast("Awaitable[object]", tool.function(context, **values))
    return await run_in_thread(partial(tool.function, context, **values))
