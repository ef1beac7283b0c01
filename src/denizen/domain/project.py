"""Projects with their tasks, comments and documents, who may read them, and the bounds of each. Pure.

A project has one audience, and so has everything in it: those who could read along where it was made. Made in a room,
it is for those who may read that room; made in private by an owner or admin, for owners and admins; made in private by
anybody else, for that person. Owners and admins may also make one for everybody. An audience never changes: what was
written for few is not shown to many.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from enum import StrEnum

from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.hook import NO_HOOKS, Hooks
from denizen.domain.ids import AgentName, derive
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.domain.schedule import ScheduleDelivery

MAX_NAME_CHARS = 100
MAX_TITLE_CHARS = 200
MAX_TEXT_CHARS = 10_000
"""The limit of a description and of a comment."""
MAX_DOCUMENT_CHARS = 100_000
MAX_TAGS = 10
MAX_PROJECTS = 200
"""The limit for one audience."""
MAX_PROJECTS_OF_PERSON = 50
"""The limit of what one person has made, who is no owner or admin, for whichever audience."""
MAX_TASKS = 5000
"""The limit for one project; comments and documents of one have limits of their own."""
MAX_COMMENTS = 500
MAX_DOCUMENTS = 200
MAX_PROJECT_CHARS = 5_000_000
"""The limit for all texts of one project: of tasks, comments and documents."""
HOURLY_LOOKS = 60
"""How often the task watcher looks in an hour, unless the configuration says otherwise."""
FOUND_TASKS = 20
"""How many tasks a search returns, unless it asks for another number."""
MAX_FOUND = 500
ID_CHARS = 14

OWNERS = "owners"
"""The audience of owners and admins."""
EVERYBODY = "everybody"
"""The audience of everybody who may use this server, and of every room."""
PERSON = "person:"
"""Begins the audience of one person."""
_ROOM = "room:"
_TAG = re.compile(r"[\w-]{1,40}")
_LABELS = {OWNERS: "owners and admins", EVERYBODY: "everybody"}


class TaskStatus(StrEnum):
    """How far a task is, in the order of the columns of a board."""

    BACKLOG = "backlog"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    IN_REVIEW = "in_review"
    DONE = "done"
    ARCHIVED = "archived"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ")


class ProjectStatus(StrEnum):
    """How far a project is."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ARCHIVED = "archived"


TASK_TOOLS = ("tasks", "task_query", "projects", "documents")
"""The tools that work on projects and tasks; the task watcher's agent has them whatever else it has."""
TASK_SKILL = "projects"
"""The skill that has them."""
WATCHER = Principal(PrincipalKind.TASK_WATCHER, "tasks", "task watcher")
"""The one on whose behalf the turns of the task watcher run. It has no role."""


class TaskAction(StrEnum):
    """The kind of a change of a task. A comment updates it."""

    CREATED = "created"
    UPDATED = "updated"


@record
class Editor:
    """Who wrote something: a principal's key, and the name to show."""

    author: str
    author_name: str


@record(kw_only=True)
class Project:
    """`author` may change and delete it, and so may owners and admins. `due_on` is the day on which it should be done.
    A `default` project holds the tasks of its audience that name none; there is one for each audience.
    """

    id: str
    name: str
    description: str = ""
    status: ProjectStatus = ProjectStatus.ACTIVE
    due_on: str = ""
    audience: str
    is_default: bool = False
    made_by: Editor
    created_at: datetime
    updated_at: datetime


@record(kw_only=True)
class Task:
    """Something to do. `tags` are sorted lower-case words, `due_on` is an ISO date or empty; `link` is the address of
    the issue that it mirrors, or empty.
    """

    id: str
    project_id: str
    title: str
    description: str = ""
    status: TaskStatus = TaskStatus.BACKLOG
    tags: tuple[str, ...] = ()
    assignee: str = ""
    due_on: str = ""
    link: str = ""
    made_by: Editor
    created_at: datetime
    updated_at: datetime


@record(kw_only=True)
class TaskComment:
    """Something that somebody said about a task."""

    id: str
    task_id: str
    text: str
    made_by: Editor
    created_at: datetime


@record
class TaskDetails:
    """A task with its project and what was said about it, oldest first."""

    task: Task
    project: Project
    comments: Sequence[TaskComment]


@record(kw_only=True)
class ProjectDocument:
    """A Markdown text of a project. Its name is unique there."""

    id: str
    project_id: str
    name: str
    text: str
    made_by: Editor
    created_at: datetime
    updated_at: datetime


@record(kw_only=True)
class ProjectDocumentEntry:
    """A document in a list: without its text, which may be long, but with the number of its characters."""

    id: str
    project_id: str
    name: str
    size_chars: int
    made_by: Editor
    created_at: datetime
    updated_at: datetime


@record(kw_only=True)
class TaskChange:
    """A change of a task that the task watcher has to look at. Changes that follow join it until `due_at`, those of the
    same maker until it `is_started`; a later one is another. The turn about it has an id that derives from its `id`.
    """

    id: str
    task_id: str
    project_id: str
    action: TaskAction
    due_at: datetime
    is_started: bool = False
    made_by: str = ""
    """A digest of who made it, by which the turns are shared out."""


@record(kw_only=True)
class TaskWatcherPolicy:
    """Which agent looks at changed tasks, what it is told, how long after the last change, and where its answer goes.
    Only the `triggers` count. `hooks` run around each turn. `per_hour` is how often it looks at most: whoever changes
    tasks must not cause any costs.
    """

    agent: AgentName
    prompt: str
    debounce_ms: int = 5000
    triggers: frozenset[TaskAction] = frozenset(TaskAction)
    delivery: ScheduleDelivery = ScheduleDelivery()
    hooks: Hooks = NO_HOOKS
    per_hour: int = HOURLY_LOOKS

    @property
    def per_maker(self) -> int:
        """How often it looks in an hour at what the same person changed: half of all, so that others get the rest."""
        return math.ceil(self.per_hour / 2)

    def watches(self, action: TaskAction, audience: str, by: Principal) -> bool:
        """Whether a change is looked at. What the watcher does itself is not, nor what only one person may read."""
        return action in self.triggers and by.kind is not PrincipalKind.TASK_WATCHER and not is_personal(audience)


@record(kw_only=True)
class ProjectDraft:
    """The fields that somebody wants a project to have. None stays as it is, or has its default."""

    name: str | None = None
    description: str | None = None
    status: ProjectStatus | None = None
    due_on: str | None = None


@record(kw_only=True)
class TaskDraft:
    """The fields that somebody wants a task to have. None stays as it is, or has its default."""

    title: str | None = None
    description: str | None = None
    status: TaskStatus | None = None
    tags: tuple[str, ...] | None = None
    assignee: str | None = None
    due_on: str | None = None

    @property
    def has_text(self) -> bool:
        """Whether it says something in words of its own, which could tell readers something."""
        return any((self.title, self.description, self.assignee, self.tags))

    @property
    def size_chars(self) -> int:
        return len(self.title or "") + len(self.description or "")


@record(kw_only=True)
class TaskQuery:
    """A search of tasks; what is empty is any. A task has one of the `statuses` and any of the `tags`; `author` is a
    name or a principal's key; all words of `text` are in its title or description. Without `statuses`, those that are
    archived are left out.
    """

    statuses: frozenset[TaskStatus] = frozenset()
    author: str = ""
    tags: tuple[str, ...] = ()
    updated_after: datetime | None = None
    text: str = ""
    project_id: str = ""
    limit: int = FOUND_TASKS
    skip: int = 0


@record
class AudienceFilter:
    """Which audiences somebody may read: the `named` ones, with `shared` all but those of single persons, and with
    `personal` these too.
    """

    named: frozenset[str] = frozenset()
    shared: bool = False
    personal: bool = False

    def allows(self, audience: str) -> bool:
        if audience in self.named:
            return True
        return self.personal if is_personal(audience) else self.shared


def person_audience(principal_key: str) -> str:
    """Returns the audience of one person."""
    return f"{PERSON}{principal_key}"


def room_audience(platform: str, room: str) -> str:
    return f"{_ROOM}{platform}:{room}"


def find_room(audience: str) -> tuple[str, str] | None:
    """Returns platform and room of an audience; None for one that is not of a room."""
    if not audience.startswith(_ROOM):
        return None
    platform, _, room = audience.removeprefix(_ROOM).partition(":")
    return platform, room


def is_personal(audience: str) -> bool:
    return audience.startswith(PERSON)


def describe_readers(audience: str) -> str:
    """Returns who reads along, in words for people."""
    if is_personal(audience):
        return "one person"
    if room := find_room(audience):
        return f"whoever reads {room[0]} room {room[1]}"
    return _LABELS.get(audience, audience)


def project_key(audience: str) -> str:
    """Returns the id of the default project of an audience."""
    return make_id("prj", "default", audience)


def make_id(prefix: str, *parts: str) -> str:
    """Returns a short id, the same for the same parts: a call that runs again makes one thing."""
    return derive(prefix, *parts)[:ID_CHARS]


# --- checks -----------------------------------------------------------------------------------------------------------


def check_project(draft: ProjectDraft) -> ProjectDraft:
    """Returns the draft with texts trimmed. Raises InvalidInput that names the field."""
    return replace(
        draft,
        name=None if draft.name is None else _one_line("name", draft.name, MAX_NAME_CHARS),
        description=None if draft.description is None else _long("description", draft.description, MAX_TEXT_CHARS),
        due_on=None if draft.due_on is None else check_day(draft.due_on),
    )


def check_task(draft: TaskDraft) -> TaskDraft:
    """Returns the draft with texts trimmed and tags in order. Raises InvalidInput that names the field."""
    return replace(
        draft,
        title=None if draft.title is None else _one_line("title", draft.title, MAX_TITLE_CHARS),
        description=None if draft.description is None else _long("description", draft.description, MAX_TEXT_CHARS),
        tags=None if draft.tags is None else check_tags(draft.tags),
        assignee=None
        if draft.assignee is None
        else _one_line("assignee", draft.assignee, MAX_NAME_CHARS, is_needed=False),
        due_on=None if draft.due_on is None else check_day(draft.due_on),
    )


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Returns tags in lower case, sorted, each once. Raises InvalidInput."""
    clean = sorted({tag.strip().lstrip("#").lower() for tag in tags} - {""})
    wrong = next((tag for tag in clean if not _TAG.fullmatch(tag)), None)
    if wrong is not None:
        raise InvalidInput(
            f"'{wrong[:60]}' cannot be a tag.",
            code="task_tag",
            fix="Use up to 40 letters, digits, _ and - for each.",
            field="tags",
        )
    if len(clean) > MAX_TAGS:
        raise InvalidInput(f"A task has at most {MAX_TAGS} tags.", code="task_tags", field="tags")
    return tuple(clean)


def check_day(text: str) -> str:
    """Returns an ISO date; an empty text stays empty. Raises InvalidInput."""
    if not (day := text.strip()):
        return ""
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        raise InvalidInput(
            f"'{day[:40]}' is no date.", code="due_date", fix="Write it as 2026-12-24, or leave it empty.", field="due"
        ) from None


def check_comment(text: str) -> str:
    """Returns the text of a comment, trimmed. Raises InvalidInput."""
    return _long("comment", text, MAX_TEXT_CHARS, is_needed=True)


def check_document(name: str, text: str) -> tuple[str, str]:
    """Returns name and text of a document. Raises InvalidInput."""
    return _one_line("name", name, MAX_NAME_CHARS), _long("text", text, MAX_DOCUMENT_CHARS)


def read_task_status(text: str) -> TaskStatus:
    """Returns the status of that name, however it is spelled. Raises InvalidInput."""
    return TaskStatus(_read_choice("status", text, [each.value for each in TaskStatus]))


def read_project_status(text: str) -> ProjectStatus:
    """As `read_task_status`."""
    return ProjectStatus(_read_choice("status", text, [each.value for each in ProjectStatus]))


def _read_choice(field: str, text: str, known: Sequence[str]) -> str:
    name = re.sub(r"[\s-]+", "_", text.strip().lower())
    if name not in known:
        raise InvalidInput(
            f"'{text[:40]}' is no {field}.", code=f"task_{field}", fix=f"Use one of: {', '.join(known)}.", field=field
        )
    return name


def _one_line(field: str, text: str, limit: int, *, is_needed: bool = True) -> str:
    flat = " ".join(text.split())
    return _check_length(field, flat, limit, is_needed=is_needed)


def _long(field: str, text: str, limit: int, *, is_needed: bool = False) -> str:
    return _check_length(field, text.strip(), limit, is_needed=is_needed)


def _check_length(field: str, text: str, limit: int, *, is_needed: bool) -> str:
    if is_needed and not text:
        raise InvalidInput(f"The {field} is empty.", code="task_text", fix=f"Give a {field}.", field=field)
    if len(text) > limit:
        raise InvalidInput(
            f"The {field} has {len(text):,} characters.", code="task_text", fix=f"Give at most {limit:,}.", field=field
        )
    return text


# --- changes ----------------------------------------------------------------------------------------------------------


def change_project(project: Project, draft: ProjectDraft, *, now: datetime) -> Project:
    """Returns the project as the checked draft wants it; the same when nothing differs."""
    changed = replace(project, **_given(draft))
    return project if changed == project else replace(changed, updated_at=now)


def change_task(task: Task, draft: TaskDraft, *, now: datetime, project_id: str = "") -> Task:
    """As `change_project`. With `project_id` it moves there."""
    changed = replace(task, **_given(draft), project_id=project_id or task.project_id)
    return task if changed == task else replace(changed, updated_at=now)


def keeps_text(old: str, new: str | None) -> bool:
    """Whether the old text still stands in full, with at most something below it."""
    return new is None or new.startswith(old)


def _given(draft: ProjectDraft | TaskDraft) -> dict[str, object]:
    values = {field.name: getattr(draft, field.name) for field in fields(draft)}
    return {name: value for name, value in values.items() if value is not None}


def pick_project(projects: Sequence[Project], wanted: str) -> Project:
    """Returns the project with that id, or name in whatever case. Raises NotFound, and InvalidInput for a name that
    several have.
    """
    name = " ".join(wanted.split())
    found = [each for each in projects if each.id == name]
    found = found or [each for each in projects if each.name.casefold() == name.casefold()]
    if not found:
        raise project_not_found(name)
    if len(found) > 1:
        raise InvalidInput(
            f"There are {len(found)} projects '{name[:60]}'.",
            code="project_ambiguous",
            fix=f"Give the id: {', '.join(each.id for each in found[:5])}.",
            field="project",
        )
    return found[0]


def project_not_found(name: str) -> NotFound:
    """For a project that does not exist, and for one that may not be read here."""
    return NotFound(f"There is no project '{name[:60]}' here.", code="project_not_found", fix="List the projects.")


def task_not_found(key: str) -> NotFound:
    """For a task that does not exist, and for one that may not be read here."""
    return NotFound(f"There is no task '{key[:60]}' here.", code="task_not_found", fix="Look for it first.")


def comment_not_found(key: str) -> NotFound:
    return NotFound(f"This task has no comment '{key[:60]}'.", code="comment_not_found", fix="Read the task first.")


def document_not_found(name: str) -> NotFound:
    """For a document that does not exist, and for one that may not be read here."""
    return NotFound(f"There is no document '{name[:60]}' there.", code="document_not_found", fix="List them.")


def group_by_status(tasks: Iterable[Task], statuses: Collection[TaskStatus]) -> dict[TaskStatus, list[Task]]:
    """Returns the columns of a board, in order, also the empty ones."""
    columns: dict[TaskStatus, list[Task]] = {status: [] for status in TaskStatus if status in statuses}
    for task in tasks:
        if task.status in columns:
            columns[task.status].append(task)
    return columns
