"""`denizen workflows`: graphs of steps that events, times and people start."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.exit_codes import DONE, INVALID, exit_code
from denizen.cli.home import load_home_settings, with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.cli.workflow_files import add, draw, examples, load_workflow, show_warnings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from denizen.app.build import Denizen
    from denizen.app.terminal import TerminalService
    from denizen.cli.server_terminal import ServerTerminal
    from denizen.domain.json import JsonObject
    from denizen.domain.workflow import Workflow, WorkflowNode
    from denizen.domain.workflow_run import WorkflowRunListing

SHOWN_CHARS = 300
"""How much of the outputs of a node is printed."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Workflows: graphs of steps that events, times and people start. They stand in `workflows/NAME.yaml`."""


for each in (add, draw, examples):
    command.add_command(each)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each workflow, a line each.")
@click.pass_obj
def list_command(home: Path, *, as_json: bool) -> None:
    """List the workflows, each with what starts it."""
    settings = load_home_settings(home)
    for each in settings.workflows.values():
        echo(printable_json(_fields(each)) if as_json else _line(each))
    for name, problems in settings.broken_workflows.items():
        told = [f"{each}" for each in problems]
        echo(printable_json({"name": name, "broken": told}) if as_json else f"{name}  broken  {told[0]}")
    if not (settings.workflows or settings.broken_workflows) and not as_json:
        echo(f"There are no workflows. Write one into {home / 'workflows'}/NAME.yaml.")


@command.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all nodes.")
@click.pass_obj
def show(home: Path, name: str, *, as_json: bool) -> None:
    """Show the nodes of a workflow, and where each leads."""
    workflow = load_workflow(home, name)
    if as_json:
        nodes: JsonObject = {each.id: _node_fields(each) for each in workflow.nodes.values()}
        echo(printable_json({**_fields(workflow), "digest": workflow.digest, "nodes": nodes}))
        return
    echo(_line(workflow))
    for node in workflow.nodes.values():
        ways = ", ".join(f"{edge.port} -> {edge.target}" for edge in node.edges)
        echo(f"  {node.id}  {node.type}{f'  {ways}' if ways else ''}")


@command.command()
@click.pass_obj
def check(home: Path) -> int:
    """List every problem with file, line and fix; exit code 2 when there is one. What a workflow needs and the
    configuration has not, such as a tool or an account, is a warning.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import find_config_problems
    from denizen.builtin_skills import BUILTIN

    problems = find_config_problems(home, read_environment(), known_tools=BUILTIN)
    for each in problems:
        echo(f"error: {each}\nfix: {each.fix}", err=True)
    if problems:
        return INVALID
    settings = load_home_settings(home)
    show_warnings(settings)
    count = len(settings.workflows)
    echo(f"{count} workflow{'' if count == 1 else 's'} can be used.")
    return DONE


@command.command()
@click.argument("name")
@click.pass_obj
def enable(home: Path, name: str) -> None:
    """Switch a workflow on. A running server takes it up."""
    _switch(home, name, is_on=True)


@command.command()
@click.argument("name")
@click.pass_obj
def disable(home: Path, name: str) -> None:
    """Switch a workflow off. Runs that have begun go on."""
    _switch(home, name, is_on=False)


@command.command()
@click.argument("name", required=False, default="")
def nodes(name: str) -> None:
    """List the types of nodes, those of one group, or the settings of one type."""
    from denizen.domain.errors import InvalidInput
    from denizen.domain.workflow_nodes import NodeGroup, list_node_types

    known = {kind.name: kind for each in NodeGroup for kind in list_node_types(each)}
    if name in known:
        kind = known[name]
        echo(f"{kind.name}: {kind.about}")
        for key, setting in kind.settings.items():
            echo(f"  {key}{' (required)' if setting.is_required else ''}  {setting.about}")
        echo(f"It leads on by: {', '.join(kind.ports)}. Its outputs: {', '.join(kind.outputs) or 'none'}.")
        return
    if name and name not in tuple(NodeGroup):
        fix = f"Name a type, or one of the groups {', '.join(NodeGroup)}."
        raise InvalidInput(f"There is no type of nodes '{name[:60]}'.", code="workflow_node", fix=fix)
    for each in NodeGroup:
        if name in ("", each.value):
            echo(f"{each.value}:")
            for kind in list_node_types(each):
                echo(f"  {kind.name}  {kind.about}")


@command.command()
@click.argument("name")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="An input; several may be given.")
@click.option("--json-input", default="", metavar="JSON", help="All inputs, or the data of an event, as one object.")
@click.option("--trigger", default="", help="The node to start at.  [default: a manual one]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the run and its nodes.")
@click.pass_obj
def run(home: Path, name: str, inputs: tuple[str, ...], json_input: str, trigger: str, *, as_json: bool) -> int:
    """Run a workflow now, and wait for its end. A `denizen run` of this home does it, if there is one. Calls that need
    people wait for `denizen approvals`.
    """
    given = _read_inputs(inputs, json_input)
    return _run_to_end(home, lambda terminal: terminal.start_workflow(name, given, trigger), as_json=as_json)


@command.command("dry-run")
@click.argument("name")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="An input; several may be given.")
@click.option("--json-input", default="", metavar="JSON", help="All inputs, or the data of an event, as one object.")
@click.option("--trigger", default="", help="The node to start at.  [default: a manual one]")
@with_denizen
async def dry_run(denizen: Denizen, name: str, inputs: tuple[str, ...], json_input: str, trigger: str) -> None:
    """Show what a run would do, and do nothing. A `?` marks what depends on a result that only a real run has."""
    given = _read_inputs(inputs, json_input)
    for each in await denizen.workflows.plan(name, given, denizen.operator, trigger=trigger):
        echo(f"{'  ' if each.is_sure else '? '}{each.path}  {each.type}")
        for told in (each.effect, f"gate: {each.gate}" if each.gate else "", each.error):
            if told:
                echo(f"      {told}")


@command.command()
@click.argument("run")
@click.option("--from", "from_node", default="", metavar="NODE", help="Only this node and what follows run again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with the run and its nodes.")
@click.pass_obj
def rerun(home: Path, run: str, from_node: str, *, as_json: bool) -> int:
    """Run a run once more, with what it was given, and wait for its end."""
    return _run_to_end(home, lambda terminal: terminal.rerun_workflow(run, from_node), as_json=as_json)


@command.command()
@click.argument("name", required=False, default="")
@click.option("--limit", default=20, type=click.IntRange(1, 500), show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each run, a line each.")
@with_denizen
async def runs(denizen: Denizen, name: str, limit: int, *, as_json: bool) -> None:
    """List the runs of a workflow, or of all, the newest first."""
    from denizen.ports.workflows import RunSearch

    found = await denizen.workflows.list_runs(RunSearch(workflow=name, limit=limit))
    for each in found:
        echo(printable_json(_run_fields(each)) if as_json else _run_line(each))
    if not found and not as_json:
        echo("There was no run yet.")


@command.command("run-show")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all inputs and outputs.")
@with_denizen
async def run_show(denizen: Denizen, run: str, *, as_json: bool) -> None:
    """Show the nodes of a run, with inputs, outputs and times."""
    from denizen.domain.ids import TurnId

    _print_run(await denizen.workflows.get_run(TurnId(run)), as_json=as_json)


def _fields(workflow: Workflow) -> JsonObject:
    return {
        "name": workflow.name,
        "description": workflow.description,
        "agent": workflow.agent,
        "enabled": workflow.enabled,
        "triggers": [each.type for each in workflow.triggers],
    }


def _node_fields(node: WorkflowNode) -> JsonObject:
    ways: list[JsonObject] = [{"port": edge.port, "target": edge.target} for edge in node.edges]
    return {"type": node.type, "group": node.kind.group.value, "settings": dict(node.settings), "edges": ways}


def _line(workflow: Workflow) -> str:
    state = "" if workflow.enabled else "  off"
    about = f"  {workflow.description}" if workflow.description else ""
    return f"{workflow.name}{state}  {', '.join(each.type for each in workflow.triggers)}{about}"


def _switch(home: Path, name: str, *, is_on: bool) -> None:
    from denizen.app.home.files import write_whole
    from denizen.app.settings.workflows import workflow_file
    from denizen.app.workflow_configuration import switch_text
    from denizen.domain.workflow import get_workflow

    settings = load_home_settings(home)
    if name not in settings.broken_workflows:
        get_workflow(settings.workflows, name)
    file = workflow_file(home, name)
    write_whole(file, switch_text(file.read_text(encoding="utf-8-sig"), file=file, is_on=is_on))
    echo(f"{name} is {'on' if is_on else 'off'}.")
    for each in settings.broken_workflows.get(name, ()):
        echo(f"It cannot be used: {each}\nfix: {each.fix}", err=True)


def _run_to_end(
    home: Path, begin: Callable[[TerminalService | ServerTerminal], Awaitable[str]], *, as_json: bool
) -> int:
    """Starts a run in the server of this home, or else here, waits for its end and prints it."""
    import anyio

    from denizen.cli.terminal_client import find_server

    server = find_server(home)

    async def act() -> int:
        from denizen.app.build import open_denizen
        from denizen.app.terminal import TerminalService
        from denizen.cli.server_terminal import ServerTerminal
        from denizen.domain.events import ApprovalRequested
        from denizen.domain.ids import TurnId

        async with open_denizen(home) as denizen:
            run = TurnId(await begin(TerminalService(denizen) if server is None else ServerTerminal(server)))
            if server is not None:
                echo(f"The running server does {run}; calls may wait for `denizen approvals`.", err=True)
            async with aclosing(denizen.turns.watch(run)) as events:
                async for event in events:
                    if isinstance(event, ApprovalRequested):
                        key = event.approval.id
                        echo(f"It waits: `denizen approvals approve {key}`, or `deny`.", err=True)
            found = await denizen.workflows.get_run(run)
            _print_run(found, as_json=as_json)
            return exit_code(found.family) if found.status.is_error else DONE

    return anyio.run(act)


def _read_inputs(pairs: Sequence[str], text: str) -> JsonObject:
    given: object = {}
    if text:
        try:
            given = json.loads(text)
        except ValueError as error:
            raise click.UsageError(f"--json-input is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise click.UsageError("--json-input is no JSON object.")
    found = cast("JsonObject", given)
    for pair in pairs:
        name, is_pair, value = pair.partition("=")
        if not is_pair:
            raise click.UsageError(f"Write --input NAME=VALUE, not '{pair}'.")
        found[name] = value
    return found


def _print_run(found: WorkflowRunListing, *, as_json: bool) -> None:
    if as_json:
        nodes: list[JsonObject] = [
            {
                "path": each.path,
                "type": each.type,
                "status": each.status.value,
                "port": each.port,
                "inputs": dict(each.inputs),
                "outputs": dict(each.outputs),
                "error": each.error,
                "started_at": each.started_at.isoformat(),
                "duration_ms": each.duration_ms,
            }
            for each in found.nodes
        ]
        echo(printable_json({**_run_fields(found), "scope": dict(found.run.scope), "nodes": nodes}))
        return
    echo(_run_line(found))
    for each in found.nodes:
        way = f" -> {each.port}" if each.port not in ("", "then") else ""
        echo(f"  {each.path}  {each.type}  {each.status.value}{way}  {each.duration_ms} ms")
        told = each.error or (printable_json(dict(each.outputs)) if each.outputs else "")
        if told:
            echo(f"      {told if len(told) <= SHOWN_CHARS else f'{told[:SHOWN_CHARS]}...'}")
    if found.reply:
        echo(found.reply)


def _run_fields(found: WorkflowRunListing) -> JsonObject:
    run = found.run
    return {
        "id": run.id,
        "workflow": run.workflow,
        "status": found.status.value,
        "trigger": run.trigger,
        "agent": run.agent,
        "started_by": run.started_by,
        "started_at": run.started_at.isoformat(),
        "ended_at": found.ended_at.isoformat() if found.ended_at else None,
        "rerun_of": run.rerun_of,
        "from_node": run.from_node,
        "reply": found.reply,
        "failure": found.failure,
    }


def _run_line(found: WorkflowRunListing) -> str:
    run = found.run
    why = f"  {found.failure}" if found.failure else ""
    return f"{run.id}  {run.started_at:%Y-%m-%d %H:%M:%S} UTC  {run.workflow}  {run.trigger}  {found.status.value}{why}"
