"""The sections `listeners` and `webhooks`: what is done about events, and who may send them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import time, timedelta
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator, field_validator, model_validator
from pydantic_core import PydanticCustomError

from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.webhooks import TOKEN_SCHEMES, SchemeName, find_scheme
from denizen.app.home.secrets import FileSecrets
from denizen.app.settings.discord import DiscordSection
from denizen.app.settings.event_sources import EventsSection, build_sources
from denizen.app.settings.fields import (
    Number,
    Secret,
    Section,
    Text,
    Whole,
    Zone,
    at_most,
    keep_template,
    read_digits,
    refuse,
)
from denizen.app.settings.interpolation import as_written, names_variable
from denizen.app.settings.problem import ConfigProblem, KeyPath, suggest
from denizen.app.settings.schedules import find_account_missing
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.cloud_event import (
    ATTRIBUTES,
    COMMUNITY_FIELDS,
    COMMUNITY_KINDS,
    EMITTED,
    LOCAL,
    REACTION,
    has_field,
    list_places,
    matches_type,
)
from denizen.domain.conversation import MAX_NAME_CHARS
from denizen.domain.errors import NeedsAttention
from denizen.domain.event_listener import (
    CONDITIONS,
    HOURLY_ACTIONS,
    ActionKind,
    EventAction,
    EventListener,
    FieldCondition,
    QuietHours,
)
from denizen.domain.ids import AgentName
from denizen.domain.principal import PrincipalKind
from denizen.domain.record import record
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_compute import list_items
from denizen.domain.workflow_triggers import CALL_TRIGGER, read_tool_call
from denizen.domain.workflow_values import find_broken_place
from denizen.ports.events import EventSettings
from denizen.ports.webhooks import WebhookRoute

MESSAGE_CHARS = 8000
DISCORD_TYPES = tuple(f"{PLATFORM}.{kind}" for kind in COMMUNITY_KINDS)
"""All types of events that an account on Discord tells of."""
ROUTE_TYPE = "webhook."
_TYPED_SCHEMES = frozenset({SchemeName.GITHUB, SchemeName.GITLAB})
"""The schemes whose events have types of their own."""
MIN_SECRET_CHARS = 16
MAX_CONDITIONS = 20
DAY_S = 24 * 3600
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TYPE = re.compile(r"[a-z*][a-z0-9_.*-]{0,199}")
_QUIET = re.compile(r"((?:[01][0-9]|2[0-3]):[0-5][0-9])-(?!\1)(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_CHANNEL = re.compile(r"[0-9]{1,20}")


def _listener_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        fix = "Use lower-case letters, digits, and _ - after the first character; 64 at most."
        raise refuse("this cannot be a name.", fix)
    return value


def _event_type(value: str) -> str:
    if not _TYPE.fullmatch(value):
        fix = "Write a type such as discord.member.join, github.push or webhook.ROUTE; * stands for anything."
        raise refuse("this is no type of events.", fix)
    return value


def _channel(value: str) -> str:
    if value and not _CHANNEL.fullmatch(value):
        fix = "Write the number that `Copy ID` gives; that entry is in Discord's menus once Developer Mode is on."
        raise refuse("this is not an id of Discord.", fix)
    return value


def _read_short_condition(value: object) -> object:
    """Returns the section that a value or a list of them stands for."""
    if isinstance(value, list):
        return {"one_of": cast("list[object]", value)}
    return {"one_of": [value]} if isinstance(value, str | int | float | bool) else value


def _read_single(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _refuse_workflow() -> PydanticCustomError:
    fix = "Give the workflow a node with type: on_event, or type: on_webhook, and write action: log here."
    return refuse("a workflow waits for events by itself.", fix, key="action")


def _quiet_hours(value: str) -> str:
    if value and not _QUIET.fullmatch(value):
        raise refuse("these are no hours.", "Write two times that differ, such as 22:00-07:00, in quotes.")
    return value


EventName = Annotated[str, AfterValidator(_listener_name)]
EventType = Annotated[str, AfterValidator(_event_type)]
EventTypes = Annotated[tuple[EventType, ...], BeforeValidator(_read_single)]
ChannelId = Annotated[str, BeforeValidator(read_digits), AfterValidator(_channel), WrapValidator(keep_template)]
QuietText = Annotated[str, AfterValidator(_quiet_hours)]
MessageTemplate = Annotated[Text, at_most(MESSAGE_CHARS)]
SessionName = Annotated[Text, at_most(MAX_NAME_CHARS)]


class ConditionSection(Section):
    """A condition on one field. Everything that is given has to hold. A value alone, or a list, is the short form."""

    one_of: tuple[bool | int | float | str, ...] = Field(default=(), description="Values; in texts, * is anything.")
    not_any: tuple[bool | int | float | str, ...] = Field(default=(), description="Values that it must not have.")
    contains: str = Field(default="", description="A part of a text, or an entry of a list.")
    at_least: Number | None = Field(default=None, description="The smallest number.")
    at_most: Number | None = Field(default=None, description="The largest number.")
    exists: bool | None = Field(default=None, description="Whether the field has to be there, and not empty.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        """Refuses what is empty, which would hold for every event."""
        empty = [name for name in CONDITIONS if name in self.model_fields_set and getattr(self, name) in (None, (), "")]
        if empty or not self.model_fields_set:
            fix = f"Give it a value, or take it out. Conditions: {', '.join(CONDITIONS)}."
            raise refuse("this condition says nothing.", fix, key=empty[0] if empty else "")
        return self


Conditions = dict[Annotated[str, at_most(200)], Annotated[ConditionSection, BeforeValidator(_read_short_condition)]]


class ActionSection(Section):
    """The keys that listeners and routes have in common."""

    agent: Text = Field(default="", description="The agent that answers, or whose account posts; empty: the default.")
    message: MessageTemplate = Field(
        default="", description="What the agent is told; `{{a.b}}` is a field of the event. Empty: all of the event."
    )
    channel: ChannelId = Field(
        default="", description="Id of the channel on Discord where the answer goes; empty: it stays in the session."
    )
    session: SessionName = Field(default="", description="Name of the session; empty: `listener:NAME`.")
    new_session: bool = Field(default=False, description="Whether each event begins a new session.")
    filter: Conditions = Field(
        default_factory=dict[str, ConditionSection], description="Conditions by the path of a field, such as `user.id`."
    )
    per_hour: Whole = Field(default=HOURLY_ACTIONS, ge=1, le=10_000, description="How often an hour it acts at most.")

    @field_validator("filter")
    @classmethod
    def _few_conditions(cls, conditions: Conditions) -> Conditions:
        if len(conditions) > MAX_CONDITIONS:
            raise refuse(f"a filter has {MAX_CONDITIONS} conditions at most.", "Take some out.")
        return conditions


class ListenerSection(ActionSection):
    """A listener: types of events, conditions, and what is done then."""

    on: EventTypes = Field(
        min_length=1, description="Types of events, one or a list, such as `discord.member.join` or `github.*`."
    )
    source: Text = Field(default="", description="Only events of this source, such as `/webhooks/ROUTE`.")
    action: ActionKind = Field(
        default=ActionKind.AGENT,
        description="`agent`: an agent answers; `post`: a text is posted; `tool`: a tool is called; `log`: nothing.",
    )
    tool: Text = Field(default="", description="The tool of the agent that `action: tool` calls.")
    args: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Its arguments; `{{a.b}}` is a field of the event."
    )
    cool_down: Number = Field(
        default=0, ge=0, le=DAY_S, description="Seconds for which it leaves out further events after it has acted."
    )
    cool_down_key: MessageTemplate = Field(
        default="", description="It cools down for each value of this template, such as `{{user.id}}`."
    )
    quiet_hours: QuietText = Field(
        default="", description="Hours of each day in which it does nothing, such as `22:00-07:00`."
    )
    quiet_zone: Zone = Field(default="UTC", description="The time zone of `quiet_hours`.")
    in_quiet_hours: Literal["wait", "skip"] = Field(
        default="wait", description="What becomes of events then: `wait` for their end, or `skip`."
    )
    digest: Number = Field(
        default=0, ge=0, le=7 * DAY_S, description="Seconds for which it collects events, to act once for all of them."
    )
    enabled: bool = Field(default=True, description="Whether it acts.")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.action is ActionKind.WORKFLOW:
            raise _refuse_workflow()
        if self.action is ActionKind.POST and not (self.channel and self.message.strip()):
            fix = "Write message: 'Welcome, {{user.mention}}!' and channel: '123456789012345678'."
            raise refuse("a post needs a text and a channel.", fix, key="action")
        if self.digest and self.action in (ActionKind.LOG, ActionKind.TOOL):
            message = "events are collected for an answer or a post; they are kept, and a tool is called, one by one."
            raise refuse(message, "Take digest out.", key="digest")
        self._check_tool()
        if self.cool_down_key and not self.cool_down:
            raise refuse("without a cool_down it does nothing.", "Write cool_down: 60.", key="cool_down_key")
        return self

    def _check_tool(self) -> None:
        if self.action is not ActionKind.TOOL:
            if self.tool or self.args:
                raise refuse("a tool is called by action: tool only.", "Write action: tool.", key="tool")
            return
        if not self.tool.strip():
            raise refuse("this action needs a tool.", "Write tool: NAME, of one that the agent has.", key="action")
        if unused := next((key for key in ("message", "channel", "session") if getattr(self, key)), ""):
            fix = "Take it out, or write it among the args if the tool takes it."
            raise refuse("the call of a tool does not use it.", fix, key=unused)
        if names_variable(self.args):
            message = "arguments name no variables: they are kept with each run, for people to read."
            raise refuse(message, "Write $${ for a plain `${`; secrets stand in the settings of tools.", key="args")
        for problem in read_tool_call("name", self.tool, self.args).problems:
            raise refuse(problem.message, problem.fix, key="args")


class RouteSection(ActionSection):
    """A route: `POST /api/hooks/NAME` takes webhooks that are signed with its secret, or have the token of a scheme
    that it names.
    """

    scheme: SchemeName = Field(
        default=SchemeName.STANDARD,
        description="How senders sign: `standard` (Standard Webhooks), or like `github`, `stripe` or `slack`. `gitlab` "
        "and `bearer` take the secret itself in a header, which is no signature.",
    )
    secret: Secret = Field(default=None, description="The secret; unset: `webhooks.secret`.")
    action: ActionKind = Field(default=ActionKind.AGENT, description="`agent`: an agent answers; `log`: nothing.")
    session: SessionName = Field(default="", description="Name of the session; empty: `webhook:NAME`.")

    @model_validator(mode="after")
    def _no_post(self) -> Self:
        if self.action is ActionKind.WORKFLOW:
            raise _refuse_workflow()
        if self.action in (ActionKind.POST, ActionKind.TOOL):
            fix = f"Write action: log here, and a listener with `on: webhook.NAME` and action: {self.action}."
            raise refuse("a route neither posts nor calls a tool.", fix, key="action")
        return self


class WebhooksSection(Section):
    """Webhooks that others send here."""

    enabled: bool = Field(default=False, description="Whether routes take webhooks. Otherwise they answer 503.")
    secret: Secret = Field(default=None, description="The secret of the routes that have none of their own.")
    routes: dict[EventName, RouteSection] = Field(
        default_factory=dict[str, RouteSection], description="Routes, by the name that stands in their address."
    )


def build_events(
    listeners: Mapping[str, ListenerSection],
    webhooks: WebhooksSection,
    events: EventsSection,
    default_agent: AgentName,
    secrets: FileSecrets,
) -> EventSettings:
    """Returns listeners, routes and sources. Raises NeedsAttention for a secret that is missing or could be guessed."""
    found = [_build_listener(name, each, default_agent) for name, each in listeners.items() if each.enabled]
    routes: dict[str, WebhookRoute] = {}
    if webhooks.enabled:
        for name, section in webhooks.routes.items():
            routes[name] = _build_route(name, section, webhooks, secrets)
            found.append(_build_route_listener(name, section, routes[name], default_agent))
    websockets, polls = build_sources(events)
    return EventSettings(
        listeners={each.key: each for each in found},
        routes=routes if webhooks.enabled else None,
        websockets=websockets,
        polls=polls,
    )


def _build_listener(name: str, section: ListenerSection, default_agent: AgentName) -> EventListener:
    action = _build_action(section, section.action, default_agent)
    if section.action is ActionKind.TOOL:
        definition = read_tool_call(name, section.tool, section.args).workflow
        action = replace(action, definition=definition, trigger=CALL_TRIGGER)
    return EventListener(
        name=name,
        on=section.on,
        source=section.source,
        action=action,
        conditions=_build_conditions(section),
        cool_down=timedelta(seconds=section.cool_down),
        cool_down_key=section.cool_down_key,
        per_hour=section.per_hour,
        quiet=_build_quiet(section),
        digest=timedelta(seconds=section.digest),
    )


def _build_quiet(section: ListenerSection) -> QuietHours | None:
    if not section.quiet_hours:
        return None
    begins, ends = map(time.fromisoformat, section.quiet_hours.split("-"))
    return QuietHours(begins, ends, section.quiet_zone, skips=section.in_quiet_hours == "skip")


def _build_route_listener(
    name: str, section: RouteSection, route: WebhookRoute, default_agent: AgentName
) -> EventListener:
    return EventListener(
        name=name,
        on=("*",),
        source=route.source,
        action=_build_action(section, section.action, default_agent),
        conditions=_build_conditions(section),
        per_hour=section.per_hour,
        kind=PrincipalKind.WEBHOOK,
    )


def _build_action(section: ActionSection, kind: ActionKind, default_agent: AgentName) -> EventAction:
    return EventAction(
        kind=kind,
        agent=AgentName(section.agent) or default_agent,
        message=section.message,
        platform=PLATFORM,
        channel=section.channel,
        session=section.session,
        new_session=section.new_session,
    )


def _build_conditions(section: ActionSection) -> tuple[FieldCondition, ...]:
    return tuple(
        FieldCondition(
            path=path,
            one_of=each.one_of,
            not_any=each.not_any,
            contains=each.contains,
            at_least=each.at_least,
            at_most=each.at_most,
            exists=each.exists,
        )
        for path, each in section.filter.items()
    )


def _build_route(name: str, section: RouteSection, webhooks: WebhooksSection, secrets: FileSecrets) -> WebhookRoute:
    reference = section.secret or webhooks.secret
    secret = secrets.resolve(reference) if reference is not None else ""
    if len(secret) < MIN_SECRET_CHARS:  # the variable has changed since the file was read
        raise NeedsAttention(
            f"The webhook route '{name}' has {_describe_weak(secret)}.", code="secret_short", fix=_fix_secret(name)
        )
    return WebhookRoute(name=name, scheme=find_scheme(section.scheme), secret=secret)


def _describe_weak(secret: str) -> str:
    if not secret:
        return "no secret, so anybody could send it webhooks"
    return f"a secret of less than {MIN_SECRET_CHARS} characters, which could be guessed"


def _fix_secret(name: str) -> str:
    return f"Write webhooks.routes.{name}.secret: ${{NAME}}, and a long NAME into secrets.env."


def find_event_problems(
    document: ConfigDocument,
    listeners: Mapping[str, ListenerSection],
    webhooks: WebhooksSection,
    default_agent: str,
    discord: DiscordSection,
    secrets: FileSecrets,
) -> Iterator[ConfigProblem]:
    """Yields a problem for each answer or post that can never arrive, and for each route without a good secret."""
    for name, route in webhooks.routes.items() if webhooks.enabled else ():
        reference = route.secret or webhooks.secret
        if reference is not None and not reference.optional and not secrets.variables.get(reference.name):
            continue  # an unset variable is told of by itself
        secret = secrets.resolve(reference) if reference is not None else ""
        if len(secret) < MIN_SECRET_CHARS:
            path: KeyPath = ("webhooks", "routes", name)
            yield document.problem(path, f"this route has {_describe_weak(secret)}.", _fix_secret(name))
    sections: list[tuple[KeyPath, ActionSection]] = [(("listeners", name), each) for name, each in listeners.items()]
    sections += [(("webhooks", "routes", name), each) for name, each in webhooks.routes.items()]
    for path, section in sections:
        agent = section.agent or default_agent
        if section.channel:
            yield from find_account_missing(document, (*path, "channel"), agent, discord)


def find_token_routes(document: ConfigDocument, webhooks: WebhooksSection) -> Iterator[ConfigProblem]:
    """Yields a warning for each route in force that takes a token instead of a signature."""
    for name, route in webhooks.routes.items() if webhooks.enabled else ():
        if route.scheme in TOKEN_SCHEMES:
            yield document.problem(
                ("webhooks", "routes", name, "scheme"),
                f"{route.scheme} sends the secret itself and signs nothing: whoever sees one request can make others.",
                "Take scheme: standard where the sender can sign; otherwise have it send over https only.",
            )


def find_idle_listeners(
    document: ConfigDocument,
    listeners: Mapping[str, ListenerSection],
    webhooks: WebhooksSection,
    types: KnownEventTypes,
) -> Iterator[ConfigProblem]:
    """Yields a warning for each type of events that never comes, for each field that they do not have, and for routes
    that are off.
    """
    if webhooks.routes and not webhooks.enabled and "enabled" not in webhooks.model_fields_set:
        message = "webhooks are off, so these routes answer 503."
        yield document.problem(("webhooks", "routes"), message, "Write webhooks.enabled: true.")
    for name, section in listeners.items():
        yield from types.find_idle(document, ("listeners", name, "on"), section.on if section.enabled else (), webhooks)
        yield from _find_missing_fields(document, ("listeners", name), section, list_event_fields(section.on))
    for name, route in webhooks.routes.items():
        yield from _find_missing_fields(document, ("webhooks", "routes", name), route, None)


def find_idle_triggers(
    documents: Mapping[str, ConfigDocument],
    workflows: Mapping[str, Workflow],
    webhooks: WebhooksSection,
    types: KnownEventTypes,
) -> Iterator[ConfigProblem]:
    """Yields a warning for each trigger of a workflow that is on whose events never come."""
    for name, workflow in workflows.items():
        for node in workflow.triggers if workflow.enabled else ():
            path: KeyPath = ("nodes", node.id)
            if node.type == "on_event":
                patterns = list(map(str, list_items(node.settings["on"])))
                yield from types.find_idle(documents[name], (*path, "on"), patterns, webhooks)
            elif node.type == "on_reaction":
                yield from types.find_idle(documents[name], path, (f"{PLATFORM}.{REACTION}",), webhooks)
            elif node.type == "on_webhook" and not webhooks.enabled:
                message = "webhooks are off, so this never starts."
                yield documents[name].problem(
                    (*path, "route"), message, "Write webhooks.enabled: true in denizen.yaml."
                )


def list_event_fields(patterns: Sequence[str]) -> frozenset[str] | None:
    """Returns the fields of the events that fit; None where others than those of Discord do, whose fields are open."""
    if not all(each.startswith(f"{PLATFORM}.") for each in patterns):
        return None
    kinds = [kind for kind in COMMUNITY_KINDS if any(matches_type(each, f"{PLATFORM}.{kind}") for each in patterns)]
    return frozenset(path for kind in kinds for path in COMMUNITY_FIELDS[kind]) or None


def _find_missing_fields(
    document: ConfigDocument, path: KeyPath, section: ActionSection, fields: frozenset[str] | None
) -> Iterator[ConfigProblem]:
    """Yields a warning for each place that is not closed, and each field that is empty always. Where the fields are
    open, only attributes are checked.
    """
    templates = {"message": as_written(section.message)}
    if isinstance(section, ListenerSection):
        templates["cool_down_key"] = as_written(section.cool_down_key)
    named: list[tuple[KeyPath, str, str]] = []
    for key, template in templates.items():
        named += [((*path, key), f"{{{{{each}}}}}", each) for each in list_places(template)]
        if broken := find_broken_place(template):
            fix = "Write `{{user.name}}`: two braces on each side, and a path without spaces; `\\{{` for braces alone."
            yield document.problem((*path, key), f"`{broken}`: this place is not closed, so it is shown as it is.", fix)
    named += [((*path, "filter", each), each, each) for each in section.filter]
    known = [*(fields or ()), *(f"@{each}" for each in ATTRIBUTES)]
    for at, shown, each in named:
        if (fields is not None or each.startswith("@")) and not has_field(fields or (), each):
            yield document.problem(
                at, f"these events have no {shown}: it is always empty.", suggest(each, known, noun="fields")
            )


@record
class KnownEventTypes:
    """The types of events that can come: `listed` in full, and all that begin with one of `prefixes`."""

    listed: frozenset[str]
    prefixes: frozenset[str]

    @classmethod
    def gather(cls, webhooks: WebhooksSection, events: EventsSection, *, has_discord: bool, has_github: bool) -> Self:
        routes = webhooks.routes if webhooks.enabled else {}
        named = {name for name, route in routes.items() if route.scheme not in _TYPED_SCHEMES}
        listed = {f"{ROUTE_TYPE}{name}" for name in named} | set(DISCORD_TYPES if has_discord else ())
        schemes = {f"{route.scheme}." for route in routes.values() if route.scheme in _TYPED_SCHEMES}
        own = {EMITTED, LOCAL} | ({f"{SchemeName.GITHUB}."} if has_github else set[str]())
        types, prefixes = events.list_types()
        return cls(frozenset(listed | types), frozenset(schemes | own | prefixes))

    def admit(self, pattern: str) -> bool:
        """Returns whether an event of such a type can come."""
        head = pattern.partition("*")[0]
        is_open = head != pattern
        return any(matches_type(pattern, each) for each in self.listed) or any(
            head.startswith(each) or (is_open and each.startswith(head)) for each in self.prefixes
        )

    def find_idle(
        self, document: ConfigDocument, path: KeyPath, patterns: Sequence[str], webhooks: WebhooksSection
    ) -> Iterator[ConfigProblem]:
        """Yields a warning for each of the types at that path which never comes."""
        for index, pattern in enumerate(patterns):
            if not self.admit(pattern):
                at: KeyPath = (*path, index)
                message, fix = self.explain(pattern, webhooks)
                yield document.problem(at if document.has(at) else path, message, fix)

    def explain(self, pattern: str, webhooks: WebhooksSection) -> tuple[str, str]:
        """Returns why no event of such a type comes, and what to do."""
        message = f"no event of the type '{pattern}' ever comes."
        family, _, rest = pattern.partition(".")
        route = webhooks.routes.get(rest) if family == "webhook" else None
        if family in _TYPED_SCHEMES:
            return message, f"Add a route with scheme: {family} under webhooks.routes, and webhooks.enabled: true."
        if route is not None and not webhooks.enabled:
            return message, "Write webhooks.enabled: true."
        if route is not None:
            return message, f"The events of this route have the types of its scheme: write {route.scheme}.*."
        if family == "webhook":
            return message, f"Add it under webhooks.routes. {suggest(rest, webhooks.routes, noun='routes')}"
        if any(matches_type(pattern, each) for each in DISCORD_TYPES):
            return message, "Add an account with a token under channels.discord.accounts."
        own = (f"{EMITTED}NAME", f"{LOCAL}NAME")
        known = [*DISCORD_TYPES, *own, *self.listed, *(f"{each}*" for each in self.prefixes - {EMITTED, LOCAL})]
        return message, suggest(pattern, dict.fromkeys(known), noun="types")
