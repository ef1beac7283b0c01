"""The types of nodes that workflows are made of: one table with the settings, ways on and outputs of each. Pure.

Checks, forms, pages and the runner all read this table. A text may hold places such as `{{greet.text}}`, unless its
setting is literal; a text that is nothing but a place has the value itself, be it a list or a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from denizen.domain.json import Json
from denizen.domain.record import record

THEN, ELSE, ON_ERROR, EACH, CASES = "then", "else", "on_error", "each", "cases"
"""The ways on from a node. Those of CASES are named `case:VALUE`."""
CASE = "case:"


class NodeGroup(StrEnum):
    """The group of a type: what starts a run, decides, acts, computes, or steers the run."""

    TRIGGER = "trigger"
    CONDITION = "condition"
    ACTION = "action"
    TRANSFORM = "transform"
    CONTROL = "control"


class SettingKind(StrEnum):
    """TEXT may have places, LITERAL none. DURATION is in seconds or like `10m`. VALUE is anything, OBJECT a mapping and
    LITERALS one text or several. TEST is a test or a list of them, FILTER conditions by path. ZONE is a time zone,
    CLOCK a time of the day, DAYS are days of the week. POST is a TEXT in which nothing foreign is markup.
    """

    TEXT = "text"
    LITERAL = "literal"
    LITERALS = "literals"
    NUMBER = "number"
    WHOLE = "whole"
    FLAG = "flag"
    CHOICE = "choice"
    DURATION = "duration"
    VALUE = "value"
    OBJECT = "object"
    TEST = "test"
    FILTER = "filter"
    ZONE = "zone"
    CLOCK = "clock"
    DAYS = "days"
    POST = "post"


class NodeEffect(StrEnum):
    """The effect of a node besides computing: none, a wait, a question to people or a model, or a call of a tool."""

    NONE = "none"
    WAITS = "waits"
    PEOPLE = "people"
    MODEL = "model"
    ACTS = "acts"


@record(kw_only=True)
class NodeSetting:
    """One setting. `is_per_item`: its places are filled for each item of a list. `least` and `most` bound numbers."""

    kind: SettingKind
    about: str
    is_required: bool = False
    default: Json = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    is_per_item: bool = False


@record(kw_only=True)
class NodeType:
    """One type of nodes. `ports` are the ways on besides ON_ERROR, which all but triggers have. `outputs` are what
    later nodes can take from it, by `{{id.output}}`.
    """

    name: str
    group: NodeGroup
    about: str
    settings: Mapping[str, NodeSetting] = field(default_factory=dict[str, NodeSetting])
    ports: tuple[str, ...] = (THEN,)
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    effect: NodeEffect = NodeEffect.NONE

    @property
    def is_trigger(self) -> bool:
        return self.group is NodeGroup.TRIGGER

    @property
    def all_ports(self) -> tuple[str, ...]:
        return self.ports if self.is_trigger else (*self.ports, ON_ERROR)


def _text(about: str, *, default: str | None = None) -> NodeSetting:
    return NodeSetting(kind=SettingKind.TEXT, about=about, is_required=default is None, default=default)


def _literal(about: str, *, default: str | None = None) -> NodeSetting:
    return NodeSetting(kind=SettingKind.LITERAL, about=about, is_required=default is None, default=default)


_ZONE = NodeSetting(
    kind=SettingKind.ZONE, about="Time zone, such as Europe/Berlin; empty: that of the agent.", default=""
)


def _flag(about: str, *, default: bool = False) -> NodeSetting:
    return NodeSetting(kind=SettingKind.FLAG, about=about, default=default)


def _whole(about: str, default: int, least: int, most: int) -> NodeSetting:
    return NodeSetting(kind=SettingKind.WHOLE, about=about, default=default, least=least, most=most)


def _duration(about: str, *, default: float | None = None, most: float = 30 * 86_400) -> NodeSetting:
    return NodeSetting(
        kind=SettingKind.DURATION, about=about, is_required=default is None, default=default, least=0, most=most
    )


def _choice(about: str, default: str, *choices: str) -> NodeSetting:
    return NodeSetting(kind=SettingKind.CHOICE, about=about, default=default, choices=(default, *choices))


def _object(about: str, *, is_required: bool = False, is_per_item: bool = False) -> NodeSetting:
    return NodeSetting(
        kind=SettingKind.OBJECT,
        about=about,
        is_required=is_required,
        default=None if is_required else {},
        is_per_item=is_per_item,
    )


def _value(about: str, *, is_required: bool = True, is_per_item: bool = False) -> NodeSetting:
    return NodeSetting(kind=SettingKind.VALUE, about=about, is_required=is_required, is_per_item=is_per_item)


_ITEMS = _value("A list, such as `{{parsed.value.rows}}`.")
_TEST = NodeSetting(
    kind=SettingKind.TEST,
    about="A test with a `value` and what it must be: `equals`, `not_equals`, `one_of`, `contains`, `matches` (has *), "
    "`at_least`, `at_most`, `exists`. Of a list of tests all have to hold. Where a value is missing, none does but "
    "`exists: false`.",
    is_required=True,
)
_ANY = _flag("Whether one of several tests is enough.")
_FILTER = NodeSetting(
    kind=SettingKind.FILTER,
    about="Conditions by the path of a field of the event, as those of listeners. A field that is missing meets none "
    "but `exists: false`.",
    default={},
)
_PER_HOUR = _whole("How often an hour it runs at most.", 60, 1, 10_000)
_POST = NodeSetting(
    kind=SettingKind.POST,
    about="The text; nothing in it is markup that the workflow does not say itself.",
    is_required=True,
)
_CHANNEL = _text("Id of a channel on Discord.")
_MEMBER = _text("Name or id of a member, such as `{{event.user.id}}`.")
_REASON = _text("Why, for the audit log of the server.", default="")
_MESSAGE = _text("Id of the message, or its link.", default="{{event.message.id}}")
_RESULT = {"text": "What the tool answered.", "is_error": "Whether it failed."}
_LIST = {"items": "The list.", "count": "How many there are."}
_BOOLEAN = {"result": "Whether it holds."}

_TRIGGERS = (
    NodeType(
        name="on_event",
        group=NodeGroup.TRIGGER,
        about="Runs for each event of these types.",
        settings={
            "on": NodeSetting(
                kind=SettingKind.LITERALS,
                about="Types of events, such as `discord.member.join` or `github.*`.",
                is_required=True,
            ),
            "source": _literal("Only events of this source.", default=""),
            "filter": _FILTER,
            "cool_down": _duration("How long it leaves out further events after one.", default=0, most=86_400),
            "cool_down_key": _text("It cools down for each value of this template.", default=""),
            "per_hour": _PER_HOUR,
        },
    ),
    NodeType(
        name="on_webhook",
        group=NodeGroup.TRIGGER,
        about="Runs for each webhook that a route of the configuration takes.",
        settings={
            "route": _literal("Name of a route under `webhooks.routes`."),
            "filter": _FILTER,
            "per_hour": _PER_HOUR,
        },
    ),
    NodeType(
        name="on_schedule",
        group=NodeGroup.TRIGGER,
        about="Runs at set times.",
        settings={"cron": _literal("Minute, hour, day, month and weekday, such as `0 9 * * 1-5`."), "zone": _ZONE},
    ),
    NodeType(
        name="on_command",
        group=NodeGroup.TRIGGER,
        about="Runs when somebody sends the command `/run` with its name. `{{input.text}}` is what they write behind.",
        settings={"admin_only": _flag("Whether owners and admins alone may.", default=True)},
    ),
    NodeType(
        name="on_reaction",
        group=NodeGroup.TRIGGER,
        about="Runs when somebody puts a reaction on a message on Discord.",
        settings={
            "emoji": _literal("The reaction; empty: any.", default=""),
            "message": _literal("Id of the message; empty: any.", default=""),
            "channel": _literal("Id of the channel; empty: any.", default=""),
            "on": _choice("Whether it is put on or taken away.", "added", "removed"),
            "per_hour": _PER_HOUR,
        },
    ),
    NodeType(
        name="manual",
        group=NodeGroup.TRIGGER,
        about="Runs when the operator starts it, by command line, page or API.",
        settings={"input": _object("The names of its inputs with the values that they have when none is given.")},
    ),
)

_CONDITIONS = (
    NodeType(
        name="if",
        group=NodeGroup.CONDITION,
        about="Goes on by `then` where the test holds, by `else` where it does not.",
        settings={"test": _TEST, "any": _ANY},
        ports=(THEN, ELSE),
        outputs=_BOOLEAN,
    ),
    NodeType(
        name="switch",
        group=NodeGroup.CONDITION,
        about="Goes on by the case that the value equals, or else by `else`.",
        settings={"value": _text("The value.")},
        ports=(CASES, ELSE),
        outputs={"case": "The case that was taken."},
    ),
    NodeType(
        name="cooldown",
        group=NodeGroup.CONDITION,
        about="Goes on by `then` once in a while, and by `else` until that is over.",
        settings={
            "seconds": _duration("How long it is.", most=30 * 86_400),
            "key": _text("Counts for each value of this, such as `{{event.user.id}}`.", default=""),
            "times": _whole("How often in that time.", 1, 1, 1000),
        },
        ports=(THEN, ELSE),
        outputs={**_BOOLEAN, "wait_s": "How many seconds are left."},
    ),
    NodeType(
        name="permission",
        group=NodeGroup.CONDITION,
        about="Whether the one for whom the run is has one of these roles. A run for an event has none.",
        settings={
            "roles": NodeSetting(
                kind=SettingKind.LITERALS, about="`owner`, `admin`, `member` or ids of roles.", is_required=True
            )
        },
        ports=(THEN, ELSE),
        outputs=_BOOLEAN,
    ),
    NodeType(
        name="in_hours",
        group=NodeGroup.CONDITION,
        about="Whether it is between two times of the day now, on these days.",
        settings={
            "start": NodeSetting(kind=SettingKind.CLOCK, about="Such as `09:00`.", is_required=True),
            "end": NodeSetting(
                kind=SettingKind.CLOCK, about="Such as `17:30`; before `start` it is on the next day.", is_required=True
            ),
            "days": NodeSetting(
                kind=SettingKind.DAYS, about="Such as `mon-fri` or `sat,sun`; empty: every day.", default=""
            ),
            "zone": _ZONE,
        },
        ports=(THEN, ELSE),
        outputs=_BOOLEAN,
    ),
    NodeType(
        name="match",
        group=NodeGroup.CONDITION,
        about="Whether a regular expression is found in a text.",
        settings={"text": _text("The text."), "pattern": _literal("The regular expression.")},
        ports=(THEN, ELSE),
        outputs={**_BOOLEAN, "match": "What was found.", "groups": "The groups, by number and name."},
    ),
)

_ACTIONS = (
    NodeType(
        name="call_tool",
        group=NodeGroup.ACTION,
        about="Calls a tool that the agent has. The gate decides on it like on a call of the agent.",
        settings={"tool": _literal("Name of the tool."), "args": _object("Its arguments.")},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="ask_model",
        group=NodeGroup.ACTION,
        about="Asks the agent's model once, without tools.",
        settings={
            "prompt": _text("What it is asked."),
            "json": _flag("Whether the answer is JSON, which `{{id.value}}` has."),
        },
        outputs={"text": "The answer.", "value": "The answer as JSON."},
        effect=NodeEffect.MODEL,
    ),
    NodeType(
        name="ask_agent",
        group=NodeGroup.ACTION,
        about="Gives a task to an agent, which works on it in a turn of its own, with its tools.",
        settings={"agent": _literal("One of those that the agent may give tasks to."), "task": _text("The task.")},
        outputs={"text": "Its answer.", "is_error": "Whether it failed."},
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="send_message",
        group=NodeGroup.ACTION,
        about="Posts a text in a channel on Discord with the account of the agent.",
        settings={"channel": _CHANNEL, "text": _POST},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="direct_message",
        group=NodeGroup.ACTION,
        about="Writes to a member on Discord.",
        settings={"member": _MEMBER, "text": _POST},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="reply",
        group=NodeGroup.ACTION,
        about="Says a text where the workflow was started: it is the answer of the run.",
        settings={"text": _text("The text.")},
        outputs={"text": "The text."},
    ),
    NodeType(
        name="add_role",
        group=NodeGroup.ACTION,
        about="Gives a member a role on Discord.",
        settings={"member": _MEMBER, "role": _text("Name or id of the role."), "reason": _REASON},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="remove_role",
        group=NodeGroup.ACTION,
        about="Takes a role from a member on Discord.",
        settings={"member": _MEMBER, "role": _text("Name or id of the role."), "reason": _REASON},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="react",
        group=NodeGroup.ACTION,
        about="Puts a reaction on a message on Discord.",
        settings={
            "message": _MESSAGE,
            "emoji": _text("The reaction."),
            "channel": _text("Id of the channel; empty: where the run is.", default="{{event.channel.id}}"),
        },
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="open_thread",
        group=NodeGroup.ACTION,
        about="Opens a thread on Discord.",
        settings={
            "name": _text("Its name."),
            "channel": _text("Id of the channel.", default="{{event.channel.id}}"),
            "text": NodeSetting(kind=SettingKind.POST, about="Its first message.", default=""),
            "message": _text("Id of a message to begin it from.", default=""),
            "private": _flag("Whether only those see it who are added."),
        },
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="fetch",
        group=NodeGroup.ACTION,
        about="Reads a page of the web.",
        settings={"url": _text("Its address.")},
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="emit_event",
        group=NodeGroup.ACTION,
        about="Emits the event `denizen.emitted.NAME`, for which listeners and other workflows may wait.",
        settings={"name": _literal("Its name, such as `order.paid`."), "data": _object("Its data.")},
        outputs={"type": "Its type."},
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="create_task",
        group=NodeGroup.ACTION,
        about="Adds a task to a project of the agent.",
        settings={
            "project": _text("Name of the project."),
            "title": _text("Its title."),
            "description": _text("What is to be done.", default=""),
        },
        outputs=_RESULT,
        effect=NodeEffect.ACTS,
    ),
    NodeType(
        name="log",
        group=NodeGroup.ACTION,
        about="Writes a line into the log of the server.",
        settings={"text": _text("The line."), "level": _choice("Its level.", "info", "warning", "error")},
        outputs={"text": "The line."},
    ),
)

_TRANSFORMS = (
    NodeType(
        name="set",
        group=NodeGroup.TRANSFORM,
        about="Gives names to values: `{{id.NAME}}`.",
        settings={"values": _object("The values by name.", is_required=True)},
        outputs={"NAME": "Each of the values."},
    ),
    NodeType(
        name="template",
        group=NodeGroup.TRANSFORM,
        about="Fills a text.",
        settings={"text": _text("The text with its places.")},
        outputs={"text": "The text."},
    ),
    NodeType(
        name="parse_json",
        group=NodeGroup.TRANSFORM,
        about="Reads a text as JSON.",
        settings={"text": _text("The text.")},
        outputs={"value": "The value."},
    ),
    NodeType(
        name="extract",
        group=NodeGroup.TRANSFORM,
        about="Finds what a regular expression matches in a text.",
        settings={"text": _text("The text."), "pattern": _literal("The regular expression.")},
        outputs={
            "match": "The first match.",
            "groups": "Its groups, by number and name.",
            "items": "All matches.",
            "count": "How many there are.",
        },
    ),
    NodeType(
        name="filter",
        group=NodeGroup.TRANSFORM,
        about="Keeps the items for which a test holds; `{{item}}` is the one in question.",
        settings={
            "items": _ITEMS,
            "test": NodeSetting(kind=SettingKind.TEST, about=_TEST.about, is_required=True, is_per_item=True),
            "any": _ANY,
        },
        outputs=_LIST,
    ),
    NodeType(
        name="map",
        group=NodeGroup.TRANSFORM,
        about="Makes a value of each item, `{{item}}`; `{{index}}` counts from 0.",
        settings={"items": _ITEMS, "to": _value("The value.", is_per_item=True)},
        outputs=_LIST,
    ),
    NodeType(
        name="sort",
        group=NodeGroup.TRANSFORM,
        about="Sorts a list.",
        settings={
            "items": _ITEMS,
            "by": _literal("Path of a field of the items; empty: the items themselves.", default=""),
            "descending": _flag("Whether the largest comes first."),
        },
        outputs=_LIST,
    ),
    NodeType(
        name="unique",
        group=NodeGroup.TRANSFORM,
        about="Leaves out items that were there before.",
        settings={
            "items": _ITEMS,
            "by": _literal("Path of a field of the items; empty: the items themselves.", default=""),
        },
        outputs=_LIST,
    ),
    NodeType(
        name="slice",
        group=NodeGroup.TRANSFORM,
        about="Takes a part of a list.",
        settings={
            "items": _ITEMS,
            "start": _whole("From which one on; the first is 0, the last -1.", 0, -10_000, 10_000),
            "most": _whole("How many at most.", 10, 0, 10_000),
        },
        outputs=_LIST,
    ),
    NodeType(
        name="count",
        group=NodeGroup.TRANSFORM,
        about="Counts the items of a list, or the characters of a text.",
        settings={"items": _ITEMS},
        outputs={"count": "How many there are."},
    ),
    NodeType(
        name="split_text",
        group=NodeGroup.TRANSFORM,
        about="Cuts a text into a list.",
        settings={"text": _text("The text."), "separator": _literal("What stands between.", default="\n")},
        outputs=_LIST,
    ),
    NodeType(
        name="join_text",
        group=NodeGroup.TRANSFORM,
        about="Makes one text of a list.",
        settings={"items": _ITEMS, "separator": _literal("What stands between.", default="\n")},
        outputs={"text": "The text."},
    ),
    NodeType(
        name="format_date",
        group=NodeGroup.TRANSFORM,
        about="Writes a time in words.",
        settings={
            "time": _text("The time, such as `2026-11-29T07:00:00Z`; empty: now.", default=""),
            "format": _literal("As `strftime` takes it.", default="%Y-%m-%d %H:%M"),
            "zone": _ZONE,
        },
        outputs={"text": "The words.", "time": "The time with its zone."},
    ),
    NodeType(
        name="pick",
        group=NodeGroup.TRANSFORM,
        about="Takes a value out of another.",
        settings={
            "from": _value("The other value."),
            "path": _text("The path in it, such as `rows.0.name`."),
            "default": _value("What it is where there is none.", is_required=False),
        },
        outputs={"value": "The value.", "found": "Whether there was one."},
    ),
)

_CONTROL = (
    NodeType(
        name="parallel",
        group=NodeGroup.CONTROL,
        about="Goes on in several ways side by side: tools of nodes that are ready together run together.",
        outputs={},
    ),
    NodeType(
        name="join",
        group=NodeGroup.CONTROL,
        about="Brings several ways together.",
        settings={"wait_for": _choice("Whether it waits for all that are taken, or for the first.", "all", "any")},
    ),
    NodeType(
        name="wait",
        group=NodeGroup.CONTROL,
        about="Waits for a while, also across a restart of the server.",
        settings={"seconds": _duration("How long, such as `10m`.")},
        effect=NodeEffect.WAITS,
    ),
    NodeType(
        name="approval",
        group=NodeGroup.CONTROL,
        about="Asks people for a yes: `then` follows a yes, `else` a no or none in time.",
        settings={
            "question": _text("What they are asked."),
            "role": _literal("The role that decides.", default="owner"),
            "timeout": _duration("How long it waits; 0: for ever.", default=86_400),
        },
        ports=(THEN, ELSE),
        outputs={"approved": "Whether it was a yes.", "by": "Who decided.", "note": "What they wrote."},
        effect=NodeEffect.PEOPLE,
    ),
    NodeType(
        name="ask_owner",
        group=NodeGroup.CONTROL,
        about="Asks the owner a question and waits for the words of the answer.",
        settings={"question": _text("The question."), "timeout": _duration("How long it waits.", default=86_400)},
        ports=(THEN, ELSE),
        outputs={"answered": "Whether there was an answer.", "text": "The answer."},
        effect=NodeEffect.PEOPLE,
    ),
    NodeType(
        name="for_each",
        group=NodeGroup.CONTROL,
        about="Runs the nodes behind `each` for every item, one after another, then goes on by `then`. They read "
        "`{{item}}` and `{{index}}`.",
        settings={
            "items": _ITEMS,
            "most": _whole("How many items at most; more are an error.", 100, 1, 1000),
            "collect": _value("What is kept of each, such as `{{ask.text}}`.", is_required=False, is_per_item=True),
        },
        ports=(EACH, THEN),
        outputs=_LIST,
    ),
    NodeType(
        name="sub_workflow",
        group=NodeGroup.CONTROL,
        about="Runs another workflow within this run. `{{input}}` is what it is given.",
        settings={"workflow": _literal("Its name."), "input": _object("Its input.")},
        outputs={"reply": "What it replied.", "output": "The outputs of its `stop` node."},
    ),
    NodeType(
        name="stop",
        group=NodeGroup.CONTROL,
        about="Ends the run here, or the other workflow in a `sub_workflow`.",
        settings={
            "result": _choice("Whether the run is done or has failed.", "done", "failed"),
            "text": _text("What is said about it.", default=""),
            "output": _object("What a `sub_workflow` node gets."),
        },
        ports=(),
        outputs={},
    ),
)

NODE_TYPES: Mapping[str, NodeType] = {
    each.name: each for each in (*_TRIGGERS, *_CONDITIONS, *_ACTIONS, *_TRANSFORMS, *_CONTROL)
}

COMMON_SETTINGS: Mapping[str, NodeSetting] = {
    "about": _literal("What the node is for, for people.", default=""),
    "retry": _whole("How often it is tried again when it fails.", 0, 0, 10),
    "retry_after": _duration("How long it waits before that.", default=5, most=86_400),
}
"""The settings that all nodes but triggers have; triggers have `about` only."""


def list_settings(kind: NodeType) -> Mapping[str, NodeSetting]:
    """Returns the settings that a node of the type may have."""
    common = {"about": COMMON_SETTINGS["about"]} if kind.is_trigger else COMMON_SETTINGS
    return {**common, **kind.settings}


def list_node_types(group: NodeGroup) -> Sequence[NodeType]:
    return [each for each in NODE_TYPES.values() if each.group is group]
