"""The sections `listeners` and `webhooks`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.adapters.webhooks import SchemeName, find_scheme
from denizen.domain.errors import DenizenError
from denizen.domain.event_listener import ActionKind, EventAction, EventListener, FieldCondition
from denizen.domain.ids import AgentName
from denizen.domain.principal import PrincipalKind
from denizen.ports.events import EventSettings
from denizen.ports.webhooks import WebhookRoute
from tests.app.home_folder import Home
from tests.clock import NOON

SECRET = "a-secret-of-the-route"


@pytest.mark.proves("T-config-webhooks")
def test_webhooks_are_off_by_default_and_have_a_secret_and_routes_when_they_are_on(home: Home) -> None:
    assert home.load("").events == EventSettings()
    routes = "secret: '${HOOK}', routes: {alerts: {action: log}, hub: {scheme: github, secret: '${HUB}'}}"
    off = home.load(f"webhooks: {{{routes}}}", HOOK=SECRET, HUB=f"{SECRET}2").events
    assert off == EventSettings()
    on = home.load(f"webhooks: {{enabled: true, {routes}}}", HOOK=SECRET, HUB=f"{SECRET}2").events
    assert on.routes == {
        "alerts": WebhookRoute(name="alerts", scheme=find_scheme(SchemeName.STANDARD), secret=SECRET),
        "hub": WebhookRoute(name="hub", scheme=find_scheme(SchemeName.GITHUB), secret=f"{SECRET}2"),
    }
    alerts, hub = on.listeners.values()
    assert (alerts.key, alerts.source, alerts.action.kind) == ("webhook:alerts", "/webhooks/alerts", ActionKind.LOG)
    assert (hub.kind, hub.action.kind, hub.session_name) == (PrincipalKind.WEBHOOK, ActionKind.AGENT, "webhook:hub")


def test_every_key_of_a_listener_is_read(home: Home) -> None:
    settings = home.load(
        """\
agents: {ada: {}, bert: {}}
default_agent: ada
channels: {discord: {accounts: {bert: "${TOKEN}"}}}
listeners:
  plain: {on: discord.message}
  unused: {on: discord.message, enabled: false}
  full:
    on: [github.*, webhook.hub]
    source: /webhooks/hub
    action: post
    agent: bert
    message: "{{a.b}}"
    channel: 12345
    session: mine
    new_session: true
    filter: {a: 1, b: [x, "y*"], c: {not_any: [no], contains: z, at_least: 1, at_most: 2.5, exists: true}, d: true}
    cool_down: 90
    cool_down_key: "{{a}}"
    per_hour: 5
""",
        TOKEN="t",
    )
    plain, full = settings.events.listeners.values()
    answer = EventAction(kind=ActionKind.AGENT, agent=AgentName("ada"), platform="discord")
    assert plain == EventListener(name="plain", on=("discord.message",), action=answer)
    assert full == EventListener(
        name="full",
        on=("github.*", "webhook.hub"),
        source="/webhooks/hub",
        action=EventAction(
            kind=ActionKind.POST,
            agent=AgentName("bert"),
            message="{{a.b}}",
            platform="discord",
            channel="12345",
            session="mine",
            new_session=True,
        ),
        conditions=(
            FieldCondition(path="a", one_of=(1,)),
            FieldCondition(path="b", one_of=("x", "y*")),
            FieldCondition(path="c", not_any=("no",), contains="z", at_least=1, at_most=2.5, exists=True),
            FieldCondition(path="d", one_of=(True,)),
        ),
        cool_down=timedelta(seconds=90),
        cool_down_key="{{a}}",
        per_hour=5,
    )


def test_a_listener_calls_a_tool_with_arguments_from_the_event(home: Home) -> None:
    settings = home.load(
        """\
listeners:
  sky:
    on: webhook.trips
    action: tool
    tool: weather
    args: {place: "{{ trip.city }}, {{@subject}}", days: "{{trip.days}}", more: [1, {a: "$${B}"}]}
"""
    )
    [listener] = settings.events.listeners.values()
    call = listener.action.definition
    assert call is not None and listener.action.trigger == "start" and call.name == "listener-sky"
    assert call.nodes["start"].list_targets("then") == ["call"]
    assert call.nodes["call"].settings["tool"] == "weather"
    assert call.nodes["call"].settings["args"] == {
        "place": "{{event.trip.city}}, {{event.@subject}}",
        "days": "{{event.trip.days}}",
        "more": [1, {"a": "${B}"}],
    }


EVE = "agents: {denizen: {}, eve: {}}\nchannels: {discord: {accounts: {eve: '${TOKEN}'}}}\n"
"""Another agent than the one that delivers has an account."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("listeners: {a: {}}", "listeners.a.on"),
        ("listeners: {a: {on: []}}", "listeners.a.on"),
        ("listeners: {a: {on: Discord message}}", "no type of events"),
        ("listeners: {A B: {on: x.y}}", "cannot be a name"),
        ("listeners: {a: {on: x.y, action: post, message: hi}}", "a post needs a text and a channel"),
        ("listeners: {a: {on: x.y, cool_down_key: '{{a}}'}}", "without a cool_down"),
        ("listeners: {a: {on: x.y, channel: general}}", "not an id of Discord"),
        (f"{EVE}listeners: {{a: {{on: x.y, channel: 123}}}}", "has no account under channels.discord.accounts"),
        ("listeners: {a: {on: x.y, agent: nobody}}", "there is no agent 'nobody'"),
        ("listeners: {a: {on: x.y, filter: {b: {}}}}", "this condition says nothing"),
        ("listeners: {a: {on: x.y, filter: {b: []}}}", "this condition says nothing"),
        ("listeners: {a: {on: x.y, filter: {b: {not_any: []}}}}", "this condition says nothing"),
        ("listeners: {a: {on: x.y, filter: {b: {contains: ''}}}}", "this condition says nothing"),
        ("listeners: {a: {on: x.y, filter: {b: null}}}", "this condition says nothing"),
        ("listeners: {a: {on: x.y, filter: {b: {not_anny: [a]}}}}", "not_anny"),
        ("webhooks: {routes: {a: {agent: nobody}}}", "there is no agent 'nobody'"),
        ("webhooks: {routes: {a: {action: post}}}", "a route neither posts nor calls a tool"),
        ("webhooks: {routes: {a: {action: tool}}}", "and action: tool"),
        ("listeners: {a: {on: x.y, action: tool}}", "this action needs a tool"),
        ("listeners: {a: {on: x.y, tool: weather}}", "by action: tool only"),
        ("listeners: {a: {on: x.y, action: tool, tool: weather, message: hi}}", "listeners.a.message"),
        ("listeners: {a: {on: x.y, action: tool, tool: weather, digest: 60}}", "one by one"),
        ("listeners: {a: {on: x.y, action: tool, tool: weather, args: {a: ['${TOKEN}']}}}", "name no variables"),
        ("webhooks: {routes: {a: {secret: literal}}}", "secret"),
        ("webhooks: {routes: {a: {scheme: hmac}}}", "webhooks.routes.a.scheme"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(home: Home, text: str, said: str) -> None:
    with pytest.raises(DenizenError) as refused:
        home.load(text, TOKEN="t")
    assert said in refused.value.explain()


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("{secret: '${HOOK:-}'}", "no secret, so anybody"),
        ("{message: hi}", "no secret, so anybody"),
        ("{secret: '${SHORT}'}", "a secret of less than 16 characters"),
    ],
)
def test_a_route_without_a_secret_that_keeps_strangers_out_is_refused_when_the_file_is_read(
    home: Home, route: str, said: str
) -> None:
    refused = home.refuse(f"webhooks: {{enabled: true, routes: {{a: {route}}}}}", SHORT="short")
    assert said in refused.explain()
    assert "webhooks.routes.a.secret" in refused.explain()
    home.load(f"webhooks: {{enabled: false, routes: {{a: {route}}}}}", SHORT="short")


def test_an_unset_secret_of_a_route_is_told_of_once(home: Home) -> None:
    [problem] = home.refuse("webhooks: {enabled: true, routes: {a: {secret: '${HOOK}'}}}").context["problems"]  # pyright: ignore[reportGeneralTypeIssues]
    assert "HOOK is not set" in problem["message"]


ROUTES = "webhooks: {enabled: true, secret: '${HOOK}', routes: {alerts: {}, hub: {scheme: github}}}\n"
ACCOUNT = "channels: {discord: {accounts: {denizen: '${TOKEN}'}}}\n"


@pytest.mark.parametrize(
    ("sections", "kind", "fix"),
    [
        (ACCOUNT, "discord.member.joined", "Did you mean 'discord.member.join'?"),
        (ACCOUNT, "discrod.message", "Did you mean 'discord.message'?"),
        ("", "discord.message", "channels.discord.accounts"),
        (ROUTES, "webhook.alert", "Did you mean 'alerts'?"),
        ("", "webhook.alerts", "Add it under webhooks.routes."),
        (ROUTES.replace("true", "false"), "webhook.alerts", "Write webhooks.enabled: true."),
        (ROUTES, "webhook.hub", "write github.*."),
        (ROUTES, "gitlab.push", "scheme: gitlab"),
        ("", "github.*", "scheme: github"),
        ("", "denizen.emited.lunch", "denizen.emitted.NAME"),
    ],
)
def test_a_listener_whose_events_never_come_is_warned_of_with_the_place_and_what_to_do(
    home: Home, sections: str, kind: str, fix: str
) -> None:
    settings = home.load(f"{sections}listeners: {{a: {{on: ['denizen.emitted.*', {kind}]}}}}", TOKEN="t", HOOK=SECRET)
    [warning] = settings.warnings
    assert (warning.path, warning.message) == (
        ("listeners", "a", "on", 1),
        f"no event of the type '{kind}' ever comes.",
    )
    assert fix in warning.fix


@pytest.mark.parametrize(
    ("section", "path", "message", "fix"),
    [
        (
            "listeners: {a: {on: discord.member.join, message: 'Hi {{user.nam}}'}}",
            "message",
            "{{user.nam}}",
            "user.name",
        ),
        ("listeners: {a: {on: discord.member.*, message: '{{message.text}}'}}", "message", "{{message.text}}", "user."),
        ("listeners: {a: {on: discord.message, message: '{{@typ}} {{user}}'}}", "message", "{{@typ}}", "'@type'"),
        ("listeners: {a: {on: ['denizen.emitted.*'], message: '{{@typ}} {{x}}'}}", "message", "{{@typ}}", "'@type'"),
        (
            "listeners: {a: {on: discord.reaction, filter: {reaction.emojy: x}}}",
            "filter.reaction.emojy",
            "reaction.emojy",
            "'reaction.emoji'",
        ),
        (
            "listeners: {a: {on: discord.message, cool_down: 5, cool_down_key: '{{user.idd}}'}}",
            "cool_down_key",
            "{{user.idd}}",
            "'user.id'",
        ),
    ],
)
def test_a_field_that_the_events_of_a_listener_never_have_is_warned_of(
    home: Home, section: str, path: str, message: str, fix: str
) -> None:
    settings = home.load(f"{ACCOUNT}{section}", TOKEN="t")
    [warning] = settings.warnings
    assert (warning.path[:2], ".".join(map(str, warning.path[2:]))) == (("listeners", "a"), path)
    assert warning.message == f"these events have no {message}: it is always empty."
    assert fix in warning.fix


def test_a_place_that_is_not_closed_is_warned_of(home: Home) -> None:
    settings = home.load(
        f"{ACCOUNT}listeners: {{a: {{on: discord.message, message: 'Hi {{{{user.name}}'}}}}", TOKEN="t"
    )
    [warning] = settings.warnings
    assert warning.path == ("listeners", "a", "message")
    assert warning.message == "`{{user.name}`: this place is not closed, so it is shown as it is."


def test_fields_that_are_there_or_may_be_are_not_warned_of(home: Home) -> None:
    listeners = """listeners:
  a: {on: "discord.*", message: "{{message.text}} {{user.roles.0}} {{role.name}} {{user}} {{@subject}}"}
  b: {on: ["discord.message", "denizen.emitted.*"], message: "{{any.thing}}", filter: {what.ever: 1}}
"""
    assert home.load(f"{ACCOUNT}{listeners}", TOKEN="t").warnings == ()


def test_listeners_whose_events_come_and_those_that_are_off_are_not_warned_of(home: Home) -> None:
    kinds = "discord.message, 'discord.member.*', 'dis*', 'github.push', 'git*', webhook.alerts, 'webhook.*', '*'"
    text = f"{ROUTES}{ACCOUNT}listeners: {{a: {{on: [{kinds}, denizen.emitted.x]}}, b: {{on: x.y, enabled: false}}}}"
    assert home.load(text, TOKEN="t", HOOK=SECRET).warnings == ()


def test_routes_that_wait_for_webhooks_to_be_switched_on_are_warned_of(home: Home) -> None:
    [warning] = home.load("webhooks: {secret: '${HOOK}', routes: {c: {}}}", HOOK=SECRET).warnings
    assert (warning.path, warning.fix) == (("webhooks", "routes"), "Write webhooks.enabled: true.")


@pytest.mark.proves("V34")
def test_only_a_route_that_names_such_a_scheme_takes_a_token_and_is_warned_of(home: Home) -> None:
    schemes = ", ".join(f"{name}: {{scheme: {name}}}" for name in SchemeName)
    text = f"webhooks: {{enabled: true, secret: '${{HOOK}}', routes: {{plain: {{}}, {schemes}}}}}"
    settings = home.load(text, HOOK=SECRET)
    routes = settings.events.routes
    assert routes is not None and routes["plain"].scheme is find_scheme(SchemeName.STANDARD)
    takes_token = {
        name
        for name, route in routes.items()
        if any(
            route.scheme.is_genuine(SECRET, {header: SECRET}, b"{}", now=NOON)
            for header in ("x-webhook-token", "x-gitlab-token", "authorization", "webhook-signature")
        )
    }
    warned = {warning.path[2]: warning for warning in settings.warnings}
    assert takes_token == set(warned) == {"gitlab", "bearer"}
    assert "signs nothing" in warned["bearer"].message and "scheme: standard" in warned["bearer"].fix
    assert not home.load(text.replace("true", "false"), HOOK=SECRET).warnings
