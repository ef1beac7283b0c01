"""`/run`: starts a workflow that has a trigger for it, in the name of whoever gives it."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.approval import has_role
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.principal import RoleName
from denizen.domain.workflow import Workflow, get_workflow
from denizen.domain.workflow_run import WorkflowStart, start_to_json
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import rank_suggestions
from denizen.engine.workflows.history import keep_version
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec


async def _run(context: CommandContext) -> CommandReply:
    name, _, typed = context.option("workflow").partition(" ")  # all that is typed is the first option
    workflow = get_workflow(_list_runnable(context), name)
    trigger = workflow.find_trigger("on_command")
    assert trigger is not None  # as it is listed
    if trigger.settings["admin_only"] is True and not has_role(context.caller.principal, RoleName.ADMIN):
        raise NotAllowed("This workflow is for admins.", code="workflow_admins", fix="Ask one of them to run it.")
    text = context.option("text") or typed.strip()
    start = WorkflowStart(
        name=workflow.name, digest=workflow.digest, trigger=trigger.id, scope={"input": {"text": text}}
    )
    async with context.store.work() as work:
        await keep_version(work, workflow, context.now())
    said = f"/run {workflow.name} {text}".strip()
    await context.deps.open_turn(context.command, said, agent=workflow.agent, workflow=start_to_json(start))
    return CommandReply(private=False, is_pending=True)


def _list_runnable(context: CommandContext) -> dict[str, Workflow]:
    found = {each.name: each for each in context.generation.workflows.values() if each.enabled}
    runnable = {name: each for name, each in found.items() if each.find_trigger("on_command")}
    if not runnable:
        raise InvalidInput(
            "No workflow can be run with a command.",
            code="workflow_none",
            fix="Give one a node with `type: on_command`.",
        )
    return runnable


async def _suggest(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, list(_list_runnable(context)))


RUN = CommandDefinition(
    CommandSpec(
        "run",
        "Run a workflow.",
        (
            CommandOption("workflow", "Its name.", required=True, suggests=True),
            CommandOption("text", "What it is given."),
        ),
        public=True,
    ),
    _run,
    {"workflow": _suggest},
)
