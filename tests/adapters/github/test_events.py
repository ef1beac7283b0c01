"""What webhooks say, read from the simulator's own payloads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.github.events import EVENTS, MessageChange, parse_event
from denizen.adapters.github.threads import ThreadKind
from denizen.domain.clock import SystemClock
from tests.github_simulator.hooks import make_payload
from tests.github_simulator.world import GitHubWorld, WebhookEvent


def list_events(act: Callable[[GitHubWorld], object]) -> list[tuple[str, dict[str, Any]]]:
    """The events of what is done in a new world."""
    world = GitHubWorld(SystemClock())
    found: list[tuple[str, dict[str, Any]]] = []

    def tell(happened: WebhookEvent) -> None:
        found.append((happened.event, json.loads(json.dumps(make_payload(happened, "https://api.example")))))

    world.told.append(tell)
    act(world)
    return found


def everything(world: GitHubWorld) -> None:
    ana, ben = world.add_user("ana"), world.add_user("ben")
    boats = world.add_repository("harbour/boats", owner=ana)
    issue = world.open_issue(ben, boats, "Leak", "Water.\r\nMuch.", labels=("bug",))
    comment = world.comment(ana, issue, "Pump!")
    world.edit(ana, issue, comment, "Pump it!")
    pull = world.open_pull(ben, boats, "Paint")
    world.comment(ana, pull, "Blue?")
    world.review(ana, pull, "Fine.")
    world.review(ana, pull, "")
    line = world.comment_code(ana, pull, "Why?")
    world.comment_code(ben, pull, "Because.", answers=line)
    talk = world.open_discussion(ana, boats, "Sea?", "North?")
    root = world.comment(ben, talk, "South.")
    world.comment(ana, talk, "No.", parent=root)
    world.remove(ana, issue, comment)
    world.label(ana, issue, "wet")


@pytest.mark.proves("S33", "S33-context")
def test_messages_are_read_with_their_thread_and_what_it_is_about() -> None:
    rows = []
    for name, payload in list_events(everything):
        event = parse_event(name, payload)
        if event.message and event.topic:
            rows.append((event.change, event.message.thread.kind, event.topic.subject.kind, event.message.post.text))
        else:
            rows.append(None)
    issue, review, talk = ThreadKind.ISSUE, ThreadKind.REVIEW, ThreadKind.DISCUSSION
    assert rows == [
        (MessageChange.MADE, issue, "issue", "Water.\nMuch."),
        (MessageChange.MADE, issue, "issue", "Pump!"),
        (MessageChange.EDITED, issue, "issue", "Pump it!"),
        (MessageChange.MADE, issue, "pull request", ""),
        (MessageChange.MADE, issue, "pull request", "Blue?"),
        (MessageChange.MADE, issue, "pull request", "Fine."),
        None,
        (MessageChange.MADE, review, "pull request", "Why?"),
        (MessageChange.MADE, review, "pull request", "Because."),
        (MessageChange.MADE, talk, "discussion", "North?"),
        (MessageChange.MADE, talk, "discussion", "South."),
        (MessageChange.MADE, talk, "discussion", "No."),
        (MessageChange.GONE, issue, "issue", "Pump it!"),
        None,
    ]


@pytest.mark.proves("S33")
def test_nothing_but_what_is_newly_written_is_a_new_message() -> None:
    told = list_events(everything)
    assert {name for name, _ in told} == set(EVENTS)
    others = "edited deleted dismissed closed reopened labeled assigned pinned transferred synchronize ready_for_review"
    for name, payload in told:
        for action in (*others.split(), "review_requested", "answered", ""):
            event = parse_event(name, payload | {"action": action})
            assert event.message is None or event.change is not MessageChange.MADE, (name, action)


def test_who_wrote_it_is_told_with_what_they_are_to_the_repository() -> None:
    events = [parse_event(name, payload) for name, payload in list_events(everything)]
    first, second = (event.message for event in events[:2])
    assert first and second
    assert (first.post.author.name, first.association, first.is_opening) == ("ben", "none", True)
    assert (second.post.author.name, second.association, second.is_opening) == ("ana", "owner", False)
    assert events[0].topic and events[0].topic.subject.labels == ("bug",)


def test_answers_to_one_comment_share_a_room() -> None:
    heard = [
        event.message for name, payload in list_events(everything) if (event := parse_event(name, payload)).message
    ]
    rooms = [each.thread.room_id for each in heard if each and each.thread.root]
    assert rooms[0] == rooms[1] and rooms[2] == rooms[3] and rooms[0] != rooms[2]


@given(
    st.sampled_from(["issues", "issue_comment", "pull_request_review", "discussion_comment", "push", ""]),
    st.dictionaries(
        st.sampled_from(["action", "repository", "issue", "comment", "review", "discussion", "installation"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.sampled_from(["created", "opened", "harbour/boats"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["full_name", "id", "body", "user", "number"]), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    ),
)
def test_whatever_is_sent_is_read_without_a_fault(name: str, payload: dict[str, Any]) -> None:
    parse_event(name, payload)
