"""Issues of a repository mirrored into the tasks of a project: what stands for what, and who wins. Pure.

Both sides are compared with what they held when they last agreed, field by field. So what one side wrote never comes
back as a change of the other, and a run that begins again finds what it had done. A field that changed on both sides
gets the value of the side that changed last; the other one is kept in a comment.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.ids import AgentName, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author
from denizen.domain.project import MAX_NAME_CHARS, MAX_TAGS, MAX_TEXT_CHARS, MAX_TITLE_CHARS, Task, TaskStatus
from denizen.domain.record import record

DIGEST_CHARS = 16
UNTITLED = "(no title)"
CUT = "\n\n*(cut: the whole text is on the page of the issue)*"
_NO_TAG = re.compile(r"[^\w-]+")
_MAX_TAG_CHARS = 40


class IssueState(StrEnum):
    """The state of an issue. NOT_PLANNED: closed without being done."""

    OPEN = "open"
    COMPLETED = "completed"
    NOT_PLANNED = "not_planned"


_CLOSED = {TaskStatus.DONE: IssueState.COMPLETED, TaskStatus.ARCHIVED: IssueState.NOT_PLANNED}
_STATUS = {state: status for status, state in _CLOSED.items()} | {IssueState.OPEN: TaskStatus.BACKLOG}


@record(kw_only=True)
class IssueMirror:
    """A project, by its name or id, whose tasks mirror the issues of a repository. With `goes_out` tasks change issues
    too. `account` is the agent whose login is used. A project that does not exist is made for owners and admins, or
    `for_everybody`.
    """

    project: str
    platform: str
    repository: str
    account: AgentName
    goes_out: bool = False
    every: timedelta = timedelta(minutes=5)
    for_everybody: bool = False

    @property
    def key(self) -> str:
        """Names the mirror: another repository is another mirror."""
        return derive("mirror", self.project.casefold(), self.platform, self.repository.lower())


@record(kw_only=True)
class MirrorState:
    """How far a mirror has come. `seen_at` and `heard_at` are the times up to which issues and comments were read,
    `written_at` the one up to which tasks were compared. Until it `is_imported`, open issues are read for the first
    time, of which `imported` are tasks by now. `failure` tells why the last look failed.
    """

    key: str
    project_id: str
    repository: str
    seen_at: datetime
    heard_at: datetime
    written_at: datetime
    looked_at: datetime
    is_imported: bool = False
    imported: int = 0
    failure: str = ""


class LinkKind(StrEnum):
    """The kind of what is linked: a task with an issue, or a comment with a comment."""

    ISSUE = "issue"
    COMMENT = "comment"


@record(kw_only=True)
class IssueLink:
    """A task or comment and its counterpart at the repository. `base` has digests of what both sides held when they
    last agreed. With `is_gone` the counterpart does not exist any more, and the link rests.
    """

    mirror: str
    kind: LinkKind
    local_id: str
    remote_id: str
    base: JsonObject
    is_gone: bool = False


@record(kw_only=True)
class Issue:
    """An issue. `mark` is the id of the task from which the account itself made it, else empty."""

    number: int
    url: str
    title: str
    text: str
    state: IssueState
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    author: Author
    created_at: datetime
    updated_at: datetime
    comments: int = 0
    mark: str = ""


@record(kw_only=True)
class IssueComment:
    """A comment on an issue. `mark` is the id of the comment from which the account itself made it, else empty."""

    id: str
    number: int
    text: str
    author: Author
    created_at: datetime
    updated_at: datetime
    mark: str = ""


@record(kw_only=True)
class IssueDraft:
    """The fields that an issue should have. None stays as it is."""

    title: str | None = None
    text: str | None = None
    state: IssueState | None = None
    labels: tuple[str, ...] | None = None
    assignee: str | None = None

    @property
    def is_empty(self) -> bool:
        return self == IssueDraft()


@record
class LostValue:
    """A value that gave way to one of the other side."""

    field: str
    value: str


@record
class IssueMerge:
    """A task and its issue brought together. `base` holds as soon as the task is written; `note_pushed` tells
    it for the issue.
    """

    task: Task
    draft: IssueDraft
    lost: tuple[LostValue, ...]
    base: JsonObject


def read_state(status: TaskStatus) -> IssueState:
    """Returns the state of the issue of a task."""
    return _CLOSED.get(status, IssueState.OPEN)


def read_status(state: IssueState, status: TaskStatus = TaskStatus.BACKLOG) -> TaskStatus:
    """Returns the status of the task of an issue. A task that is under way stays so while its issue is open."""
    return status if read_state(status) is state else _STATUS[state]


def to_tags(labels: Sequence[str]) -> tuple[str, ...]:
    """Returns labels as tags: `good first issue` is `good-first-issue`."""
    return tuple(sorted({tag for label in labels if (tag := to_tag(label))}))


def to_tag(label: str) -> str:
    """Returns a label as a tag; empty for one of signs alone."""
    return _NO_TAG.sub("-", label.strip().lower()).strip("-")[:_MAX_TAG_CHARS]


def to_title(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS].rstrip() or UNTITLED


def to_text(text: str) -> str:
    """Returns the text of an issue or comment as one of a task."""
    clean = text.strip()
    return clean if len(clean) <= MAX_TEXT_CHARS else clean[: MAX_TEXT_CHARS - len(CUT)].rstrip() + CUT


def fill_task(task: Task, issue: Issue) -> Task:
    """Returns the task as its issue has it when they are linked for the first time."""
    return replace(
        task,
        title=to_title(issue.title),
        description=to_text(issue.text),
        status=read_status(issue.state, task.status),
        tags=to_tags(issue.labels)[:MAX_TAGS],
        assignee=_to_assignee(issue),
        link=issue.url,
    )


def draft_issue(task: Task) -> IssueDraft:
    """Returns the issue that is made for a task."""
    return IssueDraft(title=task.title, text=task.description, labels=task.tags, assignee=task.assignee)


def make_base(task: Task, issue: Issue) -> JsonObject:
    """Returns the base of a task and an issue that agree."""
    return {"task": digest_task(task), "issue": _digest_issue(issue)}


def digest_task(task: Task) -> JsonObject:
    """Returns what the base of a task says about the task itself."""
    fields: JsonObject = {name: _digest(value) for name, value in _read_task(task).items()}
    return fields | {"tags": list(task.tags)}


def merge_issue(base: JsonObject, task: Task, issue: Issue, *, goes_out: bool, rendered: str) -> IssueMerge:
    """Brings a task and its issue together. `rendered` is the task's description as it stands at the repository."""
    mine, theirs = _read_base(base, "task"), _read_base(base, "issue")
    local, remote = digest_task(task), _digest_issue(issue)
    here, there = _read_task(task), _read_issue(issue)
    arriving = {
        "title": to_title(issue.title),
        "text": to_text(issue.text),
        "state": issue.state.value,
        "assignee": _to_assignee(issue),
    }
    is_later = issue.updated_at >= task.updated_at
    is_whole = {
        "title": len(" ".join(issue.title.split())) <= MAX_TITLE_CHARS,
        "text": len(issue.text) <= MAX_TEXT_CHARS,
    }
    pulled: dict[str, str] = {}
    pushed: dict[str, str] = {}
    lost: list[LostValue] = []
    for field, value in arriving.items():
        is_mine, is_theirs = mine.get(field) != local[field], theirs.get(field) != remote[field]
        if here[field] == value or (field == "text" and rendered.strip() == issue.text.strip()):
            mine[field], theirs[field] = local[field], remote[field]
            continue
        can_go = goes_out and is_whole.get(field, True)
        if is_theirs and (is_later or not is_mine or not can_go):
            pulled[field] = value
            mine[field], theirs[field] = _digest(value), remote[field]
            lost += [LostValue(field, here[field])] if is_mine else []
        elif is_mine and can_go:
            pushed[field] = here[field]
            lost += [LostValue(field, there[field])] if is_theirs else []
    tags, labels = _merge_tags(mine, theirs, task, issue)
    is_pushing = goes_out and labels != issue.labels
    # Until they are written, tags that were added or taken away here stay changes.
    mine["tags"] = sorted(_settle_tags(mine, task, tags)) if is_pushing else list(tags)
    theirs["tags"] = list(to_tags(issue.labels))
    changed = replace(
        task,
        title=pulled.get("title", task.title),
        description=pulled.get("text", task.description),
        status=read_status(IssueState(pulled["state"]), task.status) if "state" in pulled else task.status,
        assignee=pulled.get("assignee", task.assignee),
        tags=tags,
        link=issue.url,
    )
    draft = IssueDraft(
        title=pushed.get("title"),
        text=pushed.get("text"),
        state=IssueState(pushed["state"]) if "state" in pushed else None,
        labels=labels if is_pushing else None,
        assignee=pushed.get("assignee"),
    )
    return IssueMerge(changed, draft, tuple(each for each in lost if each.value), {"task": mine, "issue": theirs})


def note_pushed(merge: IssueMerge, issue: Issue) -> JsonObject:
    """Returns the base once the issue was written, as it is now. What changed in it meanwhile is left to be seen."""
    mine, theirs = _read_base(merge.base, "task"), _read_base(merge.base, "issue")
    local, remote = digest_task(merge.task), _digest_issue(issue)
    for field in ("title", "text", "state", "assignee"):
        if getattr(merge.draft, field) is not None:
            mine[field], theirs[field] = local[field], remote[field]
    if merge.draft.labels is not None:
        mine["tags"], theirs["tags"] = local["tags"], remote["tags"]
    return {"task": mine, "issue": theirs}


def digest_text(text: str) -> str:
    """Returns what tells one text from another in a base."""
    return _digest(text)


def _merge_tags(
    mine: Mapping[str, Json], theirs: Mapping[str, Json], task: Task, issue: Issue
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns tags and labels: what was added and taken away on either side is so on both. Labels that are no tags, or
    too many to be, stay.
    """
    was_mine, was_theirs = _read_tags(mine), _read_tags(theirs)
    own, other = set(task.tags), set(to_tags(issue.labels))
    added, removed = own - was_mine, was_mine - own
    tags = (own | (other - was_theirs)) - (was_theirs - other)
    kept = [label for label in issue.labels if to_tag(label) not in removed]
    labels = (*kept, *sorted(added - {to_tag(label) for label in kept}))
    return tuple(sorted(tags)[:MAX_TAGS]), labels


def _settle_tags(mine: Mapping[str, Json], task: Task, tags: Sequence[str]) -> set[str]:
    """Returns the tags of a task without what was changed here."""
    was, own = _read_tags(mine), set(task.tags)
    return (set(tags) - (own - was)) | (was - own)


def _to_assignee(issue: Issue) -> str:
    return issue.assignees[0][:MAX_NAME_CHARS] if issue.assignees else ""


def _read_task(task: Task) -> dict[str, str]:
    return {
        "title": task.title,
        "text": task.description,
        "state": read_state(task.status).value,
        "assignee": task.assignee,
    }


def _read_issue(issue: Issue) -> dict[str, str]:
    assignee = issue.assignees[0] if issue.assignees else ""
    return {"title": issue.title, "text": issue.text, "state": issue.state.value, "assignee": assignee}


def _digest_issue(issue: Issue) -> JsonObject:
    fields: JsonObject = {name: _digest(value) for name, value in _read_issue(issue).items()}
    return fields | {"tags": list(to_tags(issue.labels))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]


def _read_base(base: JsonObject, side: str) -> dict[str, Json]:
    found = base.get(side)
    return dict(found) if isinstance(found, Mapping) else {}


def _read_tags(side: Mapping[str, Json]) -> set[str]:
    tags = side.get("tags")
    return {str(each) for each in tags} if isinstance(tags, Sequence) else set()
