"""The triggers of workflows for events, reactions, webhooks and times, as listeners and schedules. Pure.

They are listeners and schedules like those of the configuration, so filters, limits, retries and the rules about
foreign text hold for them too. Their names have a dot, which no name of the configuration has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import cast

from denizen.domain.cloud_event import REACTION, fill_template, list_places
from denizen.domain.event_listener import ActionKind, EventAction, EventListener, FieldCondition
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonScalar
from denizen.domain.principal import PrincipalKind
from denizen.domain.schedule import Schedule
from denizen.domain.workflow import Workflow, WorkflowNode
from denizen.domain.workflow_checks import WorkflowReading, read_workflow

CALL_TRIGGER, CALL_NODE = "start", "call"
"""The nodes of the workflow of a listener that calls a tool."""
MAX_NAME_CHARS = 64

_EVENT = re.compile(r"\{\{\s*event\.")

FindSource = Callable[[str], str]
"""Returns the source of the events of a webhook route; empty for a route that is off."""


def list_listeners(
    workflows: Mapping[str, Workflow], default_agent: AgentName, find_source: FindSource
) -> Iterator[EventListener]:
    """Yields a listener for each trigger of a workflow that is on."""
    for workflow in workflows.values():
        for node in workflow.triggers if workflow.enabled else ():
            action = EventAction(
                kind=ActionKind.WORKFLOW, agent=workflow.agent or default_agent, workflow=workflow.name, trigger=node.id
            )
            found = _plan_listener(node, f"{workflow.name}.{node.id}", action, find_source)
            if found is not None:
                yield found


def _plan_listener(node: WorkflowNode, name: str, action: EventAction, find_source: FindSource) -> EventListener | None:
    given = node.settings
    per_hour = int(str(given.get("per_hour") or 0))
    match node.type:
        case "on_event":
            return EventListener(
                name=name,
                on=tuple(map(str, cast("list[Json]", given["on"]))),
                action=action,
                source=str(given["source"] or ""),
                conditions=tuple(read_conditions(given["filter"])),
                cool_down=timedelta(seconds=float(str(given["cool_down"] or 0))),
                # The templates of listeners begin within the event.
                cool_down_key=_EVENT.sub("{{", str(given["cool_down_key"] or "")),
                per_hour=per_hour,
            )
        case "on_webhook":
            source = find_source(str(given["route"]))
            return (
                EventListener(
                    name=name,
                    on=("*",),
                    action=action,
                    source=source,
                    conditions=tuple(read_conditions(given["filter"])),
                    per_hour=per_hour,
                    kind=PrincipalKind.WEBHOOK,
                )
                if source
                else None
            )
        case "on_reaction":
            wanted = {"reaction.emoji": given["emoji"], "message.id": given["message"], "channel.id": given["channel"]}
            conditions = [FieldCondition(path=path, one_of=(str(value),)) for path, value in wanted.items() if value]
            is_on = FieldCondition(path="reaction.is_on", one_of=(given["on"] == "added",))
            return EventListener(
                name=name, on=(f"*.{REACTION}",), action=action, conditions=(is_on, *conditions), per_hour=per_hour
            )
        case _:
            return None


def list_schedules(
    workflows: Mapping[str, Workflow], default_agent: AgentName, find_zone: Callable[[AgentName], str]
) -> Iterator[Schedule]:
    """Yields a schedule for each trigger of a workflow that waits for times."""
    for workflow in workflows.values():
        agent = workflow.agent or default_agent
        for node in workflow.triggers:
            if node.type == "on_schedule":
                yield Schedule(
                    name=f"{workflow.name}.{node.id}",
                    cron=str(node.settings["cron"]),
                    zone=str(node.settings["zone"] or "") or find_zone(agent),
                    prompt="",
                    agent=agent,
                    enabled=workflow.enabled,
                    workflow=workflow.name,
                    trigger=node.id,
                )


def read_tool_call(name: str, tool: str, args: Mapping[str, Json], *, caller: str = "listener") -> WorkflowReading:
    """Reads the workflow of a listener, or schedule, that calls a tool: its run has steps, approvals and a history like
    all others. The places in `args` begin within the event, as in all texts of listeners.
    """
    nodes: dict[str, Json] = {
        CALL_TRIGGER: {"type": "on_event", "on": ["*"], "then": CALL_NODE},
        CALL_NODE: {"type": "call_tool", "tool": tool, "args": _begin_within_event(args)},
    }
    return read_workflow(f"{caller}-{name}"[:MAX_NAME_CHARS], {"nodes": nodes})


def _begin_within_event(value: Json) -> Json:
    match value:
        case str():
            return fill_template(value, {path: f"{{{{event.{path}}}}}" for path in list_places(value)})
        case Mapping():
            return {name: _begin_within_event(each) for name, each in value.items()}
        case list():
            return [_begin_within_event(each) for each in value]
        case _:
            return value


def read_conditions(value: Json) -> Iterator[FieldCondition]:
    """Yields the conditions of a filter: by path a value, a list of values, or a mapping as of listeners."""
    for path, wanted in value.items() if isinstance(value, Mapping) else ():
        if not isinstance(wanted, Mapping):
            yield FieldCondition(path=path, one_of=_scalars(wanted))
            continue
        least, most, exists = (wanted.get(name) for name in ("at_least", "at_most", "exists"))
        yield FieldCondition(
            path=path,
            one_of=_scalars(wanted.get("one_of")),
            not_any=_scalars(wanted.get("not_any")),
            contains=str(wanted.get("contains") or ""),
            at_least=least if isinstance(least, int | float) else None,
            at_most=most if isinstance(most, int | float) else None,
            exists=exists if isinstance(exists, bool) else None,
        )


def _scalars(value: Json) -> tuple[JsonScalar, ...]:
    several = value if isinstance(value, list) else [value]
    return tuple(each for each in several if isinstance(each, str | int | float))
