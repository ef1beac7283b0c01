"""`denizen workflows`: graphs of steps that events, times and people start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.exit_codes import DONE, INVALID
from denizen.cli.home import load_home_settings
from denizen.cli.terminal import echo, printable_json
from denizen.cli.workflow_files import add, draw, examples

if TYPE_CHECKING:
    from denizen.domain.json import JsonObject
    from denizen.domain.workflow import Workflow, WorkflowNode


@click.group()
def command() -> None:
    """Workflows: graphs of steps that events, times and people start. They stand in `workflows/NAME.yaml`."""


for each in (add, draw, examples):
    command.add_command(each)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each workflow, a line each.")
@click.pass_obj
def list_command(home: Path, *, as_json: bool) -> None:
    """List the workflows, each with what starts it."""
    found = load_home_settings(home).workflows.values()
    for each in found:
        echo(printable_json(_fields(each)) if as_json else _line(each))
    if not found and not as_json:
        echo(f"There are no workflows. Write one into {home / 'workflows'}/NAME.yaml.")


@command.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all nodes.")
@click.pass_obj
def show(home: Path, name: str, *, as_json: bool) -> None:
    """Show the nodes of a workflow, and where each leads."""
    from denizen.domain.workflow import get_workflow

    workflow = get_workflow(load_home_settings(home).workflows, name)
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
    """List every problem with file, line and fix; exit code 2 when there is one."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import find_config_problems
    from denizen.builtin_skills import BUILTIN

    problems = find_config_problems(home, read_environment(), known_tools=BUILTIN)
    for each in problems:
        echo(f"error: {each}\nfix: {each.fix}", err=True)
    if problems:
        return INVALID
    count = len(load_home_settings(home).workflows)
    echo(f"{count} workflow{'' if count == 1 else 's'} can be used.")
    return DONE


@command.command()
@click.argument("group", required=False, default="")
def nodes(group: str) -> None:
    """List the types of nodes, or those of one group."""
    from denizen.domain.workflow_nodes import NodeGroup, list_node_types

    for each in NodeGroup:
        if group in ("", each.value):
            echo(f"{each.value}:")
            for kind in list_node_types(each):
                echo(f"  {kind.name}  {kind.about}")


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
