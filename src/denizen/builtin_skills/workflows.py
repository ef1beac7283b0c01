"""Workflows in conversation: create, list, read, change, delete, switch, run them, and look at their runs. For owners.

What is written runs by itself later, so each change needs an approval, which shows the text as it would be written: all
of a new workflow, and of a change the old and the new part.
"""

from __future__ import annotations

import json
from typing import Annotated

from denizen.builtin_skills.skill_manager import require_owner
from denizen.skill import (
    Effect,
    NotAllowed,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    WorkflowAccess,
    WorkflowRunSummary,
    WorkflowStep,
    WorkflowSummary,
    quote_untrusted,
    truncate,
)

MAX_OUTPUT_CHARS = 600
"""So much of what came out of each step is shown."""

skill = Skill("workflows", description="Makes, runs and reviews workflows, for owners.")

Name = Annotated[str, Param("a-z, 0-9, - and _", max_length=64)]


@skill.tool(tier=Tier.DANGEROUS, effects={Effect.SCHEDULE}, destructive=True, changes_configuration=True)
async def create_workflow(
    context: ToolContext, name: Name, text: Annotated[str, Param("YAML with description and nodes", max_length=50_000)]
) -> str:
    """Adds a workflow. Each node has a type, its settings, and `then`: the next ones. Read another one first."""
    await _workflows(context).create(name, text)
    return f"The workflow {name} is there."


@skill.tool(tier=Tier.LIMITED, read_only=True)
async def list_workflows(context: ToolContext) -> str:
    """Lists the workflows with what begins them and how the last run went."""
    found = await _workflows(context).list()
    return "\n".join(map(_describe, found)) or "There are none."


@skill.tool(tier=Tier.LIMITED, read_only=True)
async def read_workflow(context: ToolContext, name: Name) -> str:
    """Reads the text of a workflow."""
    return await _workflows(context).read(name)


@skill.tool(tier=Tier.DANGEROUS, effects={Effect.SCHEDULE}, destructive=True, changes_configuration=True)
async def change_workflow(
    context: ToolContext,
    name: Name,
    old: Annotated[str, Param("a part that is there once", min_length=1, max_length=20_000)],
    new: Annotated[str, Param("what comes in its place", max_length=20_000)],
) -> str:
    """Replaces a part of a workflow. Runs that have begun go on as they began."""
    await _workflows(context).change(name, old, new)
    return f"The workflow {name} is changed."


@skill.tool(tier=Tier.DANGEROUS, effects={Effect.SCHEDULE}, destructive=True, changes_configuration=True)
async def delete_workflow(context: ToolContext, name: Name) -> str:
    """Deletes a workflow. The history of its runs stays."""
    await _workflows(context).delete(name)
    return f"The workflow {name} is deleted."


@skill.tool(tier=Tier.DANGEROUS, effects={Effect.SCHEDULE}, destructive=True, changes_configuration=True)
async def switch_workflow(context: ToolContext, name: Name, enabled: bool) -> str:  # noqa: FBT001 - a model names it
    """Switches a workflow on or off."""
    await _workflows(context).switch(name, is_on=enabled)
    return f"The workflow {name} is {'on' if enabled else 'off'}."


@skill.tool(tier=Tier.SENSITIVE, effects={Effect.SCHEDULE})
async def run_workflow(
    context: ToolContext, name: Name, given: Annotated[dict[str, str] | None, Param("its input, by name")] = None
) -> str:
    """Runs a workflow now. It needs a `manual` node."""
    return f"The run {await _workflows(context).run(name, dict(given or {}))} begins."


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS])
async def list_workflow_runs(
    context: ToolContext,
    name: Annotated[str, Param("empty for all", max_length=64)] = "",
    limit: Annotated[int, Param(ge=1, le=50)] = 10,
) -> str:
    """Lists the newest runs of a workflow."""
    found = await _workflows(context).list_runs(name, limit=limit)
    return quote_untrusted("\n".join(map(_describe_run, found)) or "There was none.", source="workflow runs")


@skill.tool(tier=Tier.LIMITED, read_only=True, reads=[Taint.OTHERS])
async def show_workflow_run(context: ToolContext, run: Annotated[str, Param("its id", max_length=100)]) -> str:
    """Shows how each node of a run went: its time and its output."""
    found, steps = await _workflows(context).get_run(run)
    lines = [_describe_run(found), *map(_describe_step, steps)]
    return quote_untrusted("\n".join(lines), source=f"workflow run {found.id}")


def _workflows(context: ToolContext) -> WorkflowAccess:
    require_owner(context, "use workflows")
    if context.workflows is None:
        raise NotAllowed("there are no workflows here")
    return context.workflows


def _describe(each: WorkflowSummary) -> str:
    if each.problem:
        return f"{each.name} (broken): {each.problem}"
    last = f", last run {each.last_status}" if each.last_status else ""
    state = "on" if each.enabled else "off"
    return f"{each.name} ({', '.join(each.triggers)}; {state}{last}): {each.description}"


def _describe_run(each: WorkflowRunSummary) -> str:
    why = f": {each.reason}" if each.reason else ""
    return f"{each.id} of {each.workflow}, {each.started_at:%Y-%m-%d %H:%M} UTC, {each.status}{why}"


def _describe_step(each: WorkflowStep) -> str:
    took = f" in {each.duration_s:.1f} s" if each.duration_s is not None else ""
    why = f", {each.error}" if each.error else ""
    output = json.dumps(each.output, ensure_ascii=False) if each.output is not None else ""
    shown = f": {truncate(output, MAX_OUTPUT_CHARS)}" if output else ""
    return f"{each.node} ({each.type}) {each.status}{took}{why}{shown}"
