"""What is kept of a server, and how an agent takes part in its talk: sessions, surroundings, time lines."""

from __future__ import annotations

import pytest

from denizen.adapters.discord.client.settings import POST_LINK
from denizen.app.settings import render_settings
from denizen.domain.agent import Agent, SessionScope, TimestampPolicy
from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.ids import AgentName
from tests.app.home_folder import Home


def agent(home: Home, keys: str) -> Agent:
    return home.load(f"agents: {{ada: {{{keys}}}}}").agents[AgentName("ada")]


def test_the_archive_is_on_and_keeps_everything_unless_something_else_is_said(home: Home):
    policy = home.load("").archive
    assert policy == ArchivePolicy(channels={"discord": frozenset()}, post_links={"discord": POST_LINK})
    assert (policy.enabled, policy.backfill, policy.backfill_limit_per_room, policy.retention_days) == (
        True,
        True,
        10_000,
        0,
    )


def test_every_key_of_the_archive_is_read(home: Home):
    settings = home.load(
        "archive: {enabled: false, channels: [1], backfill: false, backfill_per_room: 0, retention_days: 30, "
        "opt_out_channels: [2], opt_out_roles: ['3'], opt_out_users: [4]}"
    )
    opted_out = OptOuts(users=frozenset({"4"}), roles=frozenset({"3"}), channels=frozenset({"2"}))
    assert settings.archive == ArchivePolicy(
        enabled=False,
        retention_days=30,
        backfill=False,
        backfill_limit_per_room=0,
        channels={"discord": frozenset({"1"})},
        opt_outs=opted_out,
        post_links={"discord": POST_LINK},
    )
    assert home.load(render_settings(settings)).archive == settings.archive


def test_models_name_chats_unless_something_else_is_said(home: Home):
    assert home.load("").channels.web.model_titles
    assert not home.load("channels: {web: {model_titles: false}}").channels.web.model_titles


@pytest.mark.proves("X-session-scope", "L3")
def test_a_session_spans_a_thread_and_ten_messages_around_it_are_told_unless_something_else_is_said(home: Home):
    found = agent(home, "")
    assert (found.history.session_scope, found.history.recent_messages, found.history.timestamps) == (
        SessionScope.THREAD,
        10,
        None,
    )


@pytest.mark.proves("X-session-scope", "T34")
@pytest.mark.parametrize("scope", SessionScope)
def test_a_session_can_span_a_channel_a_thread_or_a_user(home: Home, scope: SessionScope):
    assert agent(home, f"session_scope: {scope}").history.session_scope is scope


def test_how_much_of_the_talk_around_it_an_agent_is_told_can_be_set(home: Home):
    assert [agent(home, f"recent_messages: {number}").history.recent_messages for number in (0, 100)] == [0, 100]


@pytest.mark.proves("C-config-timestamps", "C13")
def test_time_lines_are_off_and_when_switched_on_come_after_ten_minutes(home: Home):
    assert agent(home, "").history.timestamps is None
    assert agent(home, "timestamps: {enabled: false, zone: Asia/Tokyo}").history.timestamps is None
    assert agent(home, "timestamps: {enabled: true}").history.timestamps == TimestampPolicy(zone="UTC", gap_s=600.0)


@pytest.mark.proves("C-config-timestamps")
def test_zone_and_gap_of_time_lines_are_settings(home: Home):
    found = agent(home, "timestamps: {enabled: true, zone: Europe/Berlin, gap_minutes: 2.5}").history.timestamps
    assert found == TimestampPolicy(zone="Europe/Berlin", gap_s=150.0)


TIMES = "agents: {ada: {timestamps: {enabled: true, zone: "
# (what it is, text, what the error says, what the fix says)
BAD = [
    ("zone without continent", f"{TIMES}Berlin}}}}}}", "not a time zone", "Did you mean 'Europe/Berlin'?"),
    ("zone as an offset", f"{TIMES}'+02:00'}}}}}}", "not a time zone", "UTC or Europe/Berlin"),
    ("zone as a path", f"{TIMES}'../UTC'}}}}}}", "not a time zone", "UTC or Europe/Berlin"),
    ("zone as a folder", f"{TIMES}Europe}}}}}}", "not a time zone", "UTC or Europe/Berlin"),
    ("empty zone", f"{TIMES}''}}}}}}", "not a time zone", "UTC or Europe/Berlin"),
    ("zone as a number", f"{TIMES}2}}}}}}", "must be a text, not a number", "quotes"),
    ("gap below", "agents: {ada: {timestamps: {gap_minutes: 0.5}}}", "must be between 1 and 1440", "bounds"),
    ("gap above", "agents: {ada: {timestamps: {gap_minutes: 1441}}}", "must be between 1 and 1440", "bounds"),
    ("times", "agents: {ada: {timestamps: true}}", "must be a group of keys", "key: value"),
    ("scope", "agents: {ada: {session_scope: thred}}", "'thred' is not possible", "Did you mean 'thread'?"),
    ("recent below", "agents: {ada: {recent_messages: -1}}", "must be between 0 and 100", "bounds"),
    ("recent above", "agents: {ada: {recent_messages: 101}}", "must be between 0 and 100", "bounds"),
    ("key of the archive", "archive: {opt_out_user: []}", "this key is not known", "Did you mean 'opt_out_users'?"),
    ("name for an id", "archive: {opt_out_users: [ada]}", "not an id of Discord", "Copy ID"),
    ("backfill below", "archive: {backfill_per_room: -1}", "must be between 0 and 10000000", "bounds"),
    ("retention below", "archive: {retention_days: -1}", "must be between 0 and 36500", "bounds"),
    ("retention as a part", "archive: {retention_days: 0.5}", "must be a whole number", "without quotes"),
]


@pytest.mark.parametrize(("text", "says", "fix"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_wrong_value_is_named_with_its_remedy(home: Home, text: str, says: str, fix: str):
    error = home.refuse(text)
    assert says in error.message
    assert fix in error.fix


def test_a_zone_from_the_environment_is_checked_and_not_compared_aloud(home: Home):
    text = TIMES + "'${ZONE}'}}}"
    settings = home.load(text, ZONE="Asia/Tokyo")
    assert settings.agents[AgentName("ada")].history.timestamps == TimestampPolicy("Asia/Tokyo")
    error = home.refuse(text, ZONE="Asia/Tokio")
    assert "this is not a time zone" in error.message
    assert "Asia" not in error.explain()
