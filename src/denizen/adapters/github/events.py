"""What a webhook says, as far as it is about messages (inventory S33). Pure.

Created comments, submitted reviews, and issues, pull requests and discussions that were opened are messages; edits and
deletions of them are told so that nothing outlives them here. Everything else is None: labels, pushes, stars.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from denizen.adapters.github.heard import Heard, Topic, answer_thread, comment_of, review_thread, topic_of
from denizen.adapters.github.payload import Payload, number_of, part_of, text_of
from denizen.adapters.github.threads import PostKind, Thread

EVENTS = (
    "issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "discussion",
    "discussion_comment",
)  # fmt: skip
"""What an App has to subscribe to."""


class Change(StrEnum):
    MADE = "made"
    EDITED = "edited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Event:
    """`heard` is None for an event that is about no message; `installation` 0 for a webhook of a repository."""

    repository: str
    installation: int
    change: Change = Change.MADE
    topic: Topic | None = None
    heard: Heard | None = None


_CHANGES = {
    "opened": Change.MADE,
    "created": Change.MADE,
    "submitted": Change.MADE,
    "edited": Change.EDITED,
    "deleted": Change.GONE,
    "dismissed": None,
}
_ACTIONS = {
    "issues": {"opened", "edited", "deleted"},
    "pull_request": {"opened", "edited"},
    "discussion": {"created", "edited", "deleted"},
    "issue_comment": {"created", "edited", "deleted"},
    "pull_request_review": {"submitted", "edited"},
    "pull_request_review_comment": {"created", "edited", "deleted"},
    "discussion_comment": {"created", "edited", "deleted"},
}


def read_event(name: str, payload: Payload) -> Event:
    """`name` is that of the header `X-GitHub-Event`."""
    repository = text_of(part_of(payload, "repository"), "full_name")
    installation = number_of(part_of(payload, "installation"), "id")
    action = text_of(payload, "action")
    change = _CHANGES.get(action)
    if not repository or change is None or action not in _ACTIONS.get(name, ()):
        return Event(repository, installation)
    topic, heard = _read_topic_and_post(name, repository, payload)
    if not heard.body.strip() and not heard.is_opening:  # a review without words
        return Event(repository, installation)
    return Event(repository, installation, change, topic, heard)


def _read_topic_and_post(name: str, repository: str, payload: Payload) -> tuple[Topic, Heard]:
    if name.startswith("discussion"):
        topic = topic_of(repository, part_of(payload, "discussion"), PostKind.DISCUSSION)
        if name == "discussion":
            return topic, topic.opening
        comment = part_of(payload, "comment")
        thread = answer_thread(repository, topic.subject.number, comment)
        return topic, comment_of(thread, comment, PostKind.DISCUSSION_COMMENT)
    if name.startswith("pull_request"):
        return _read_pull(name, repository, payload)
    topic = topic_of(repository, part_of(payload, "issue"))
    if name == "issues":
        return topic, topic.opening
    thread = Thread(repository, topic.subject.number)
    return topic, comment_of(thread, part_of(payload, "comment"), PostKind.COMMENT)


def _read_pull(name: str, repository: str, payload: Payload) -> tuple[Topic, Heard]:
    topic = topic_of(repository, part_of(payload, "pull_request"), is_pull=True)
    number = topic.subject.number
    match name:
        case "pull_request_review":
            review = part_of(payload, "review")
            return topic, comment_of(Thread(repository, number), review, PostKind.REVIEW)
        case "pull_request_review_comment":
            comment = part_of(payload, "comment")
            return topic, comment_of(review_thread(repository, number, comment), comment, PostKind.REVIEW_COMMENT)
        case _:
            return topic, topic.opening
