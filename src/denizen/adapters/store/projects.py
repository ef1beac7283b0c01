"""Projects with tasks, comments and documents, and the changes that wait for the task watcher."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EARLIEST,
    EnumValue,
    EscapedText,
    JsonTuple,
    UtcTime,
    escape,
    id_columns,
    metadata,
    texts,
    times,
)
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import SqlRepository, read_record, upsert, write_record
from denizen.domain.project import (
    MAX_FOUND,
    PERSON,
    AudienceFilter,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectStatus,
    Task,
    TaskAction,
    TaskChange,
    TaskComment,
    TaskQuery,
    TaskStatus,
    person_audience,
)
from denizen.domain.statistics import FORGOTTEN

projects = sa.Table(
    "projects",
    metadata,
    *id_columns(),
    *texts("name", "description"),
    sa.Column("status", EnumValue(ProjectStatus), nullable=False),
    sa.Column("due_on", sa.Text(), nullable=False),
    *texts("audience"),
    sa.Column("is_default", sa.Boolean(), nullable=False),
    *texts("author", "author_name"),
    *times("created_at", "updated_at"),
    sa.Index("ix_projects_audience", "audience"),
)

tasks = sa.Table(
    "tasks",
    metadata,
    *id_columns(),
    sa.Column("project_id", sa.Text(), sa.ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    *texts("title", "description"),
    sa.Column("status", EnumValue(TaskStatus), nullable=False),
    sa.Column("tags", JsonTuple(), nullable=False),
    *texts("assignee"),
    sa.Column("due_on", sa.Text(), nullable=False),
    *texts("author", "author_name"),
    *times("created_at", "updated_at"),
    *texts("words"),
    sa.Column("link", sa.Text(), nullable=False, server_default=""),
    sa.Index("ix_tasks_project_id_updated_at", "project_id", "updated_at"),
)
"""`words` is what a search looks into: title and description, in one case."""

task_comments = sa.Table(
    "task_comments",
    metadata,
    *id_columns(),
    sa.Column("task_id", sa.Text(), sa.ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    *texts("text", "author", "author_name"),
    *times("created_at"),
    sa.Index("ix_task_comments_task_id", "task_id"),
)

project_documents = sa.Table(
    "project_documents",
    metadata,
    *id_columns(),
    sa.Column("project_id", sa.Text(), sa.ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    *texts("name", "text", "author", "author_name"),
    *times("created_at", "updated_at"),
    sa.UniqueConstraint("project_id", "name"),
)

task_changes = sa.Table(
    "task_changes",
    metadata,
    *id_columns(),
    sa.Column("task_id", sa.Text(), sa.ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("project_id", sa.Text(), nullable=False),
    sa.Column("action", EnumValue(TaskAction), nullable=False),
    *times("due_at"),
    sa.Column("is_started", sa.Boolean(), nullable=False),
    sa.Column("made_by", sa.Text(), nullable=False, server_default=""),
    sa.Index("ix_task_changes_task_id", "task_id"),
)
"""Waiting changes, and the one that is started; a change that was seen to its end is gone."""

sa.Index(
    "uq_task_changes_is_started",
    task_changes.c.is_started,
    unique=True,
    sqlite_where=task_changes.c.is_started,
    postgresql_where=task_changes.c.is_started,
)

_WHICH = sa.bindparam("which", type_=sa.Text())
_MOST: sa.BindParameter[int] = sa.bindparam("most", type_=sa.Integer())

_PROJECT = sa.select(projects).where(projects.c.id == _WHICH)
_COUNT = (
    sa.select(sa.func.count())
    .select_from(projects)
    .where(projects.c.audience == sa.bindparam("of", type_=EscapedText()))
)
_COUNT_MADE = (
    sa.select(sa.func.count())
    .select_from(projects)
    .where(projects.c.author == sa.bindparam("by", type_=EscapedText()), ~projects.c.is_default)
)
_SIZES = [
    sa.select(sa.func.coalesce(sa.func.sum(size), 0)).select_from(source).where(where)
    for size, source, where in (
        (sa.func.length(tasks.c.title) + sa.func.length(tasks.c.description), tasks, tasks.c.project_id == _WHICH),
        (sa.func.length(task_comments.c.text), task_comments.join(tasks), tasks.c.project_id == _WHICH),
        (sa.func.length(project_documents.c.text), project_documents, project_documents.c.project_id == _WHICH),
    )
]
_REMOVE_PROJECT = sa.delete(projects).where(projects.c.id == _WHICH)
_TASK = sa.select(tasks).where(tasks.c.id == _WHICH)
_COUNT_TASKS = sa.select(sa.func.count()).select_from(tasks).where(tasks.c.project_id == _WHICH)
_REMOVE_TASK = sa.delete(tasks).where(tasks.c.id == _WHICH)
_COMMENTS = sa.select(task_comments).where(task_comments.c.task_id == _WHICH).order_by(task_comments.c.position)
_COUNT_COMMENTS = sa.select(sa.func.count()).select_from(task_comments).where(task_comments.c.task_id == _WHICH)
_REMOVE_COMMENT = sa.delete(task_comments).where(task_comments.c.id == _WHICH)
_DOCUMENTS = (
    sa.select(
        *(each for each in project_documents.c if each.name != "text"),
        sa.func.length(project_documents.c.text).label("size_chars"),
    )
    .where(project_documents.c.project_id == _WHICH)
    .order_by(project_documents.c.name)
)
_DOCUMENT = sa.select(project_documents).where(project_documents.c.id == _WHICH)
_REMOVE_DOCUMENT = sa.delete(project_documents).where(project_documents.c.id == _WHICH)

_WAITING = sa.and_(
    task_changes.c.task_id == sa.bindparam("of_task", type_=sa.Text()),
    ~task_changes.c.is_started,
    sa.or_(
        task_changes.c.due_at > sa.bindparam("now", type_=UtcTime()),
        task_changes.c.made_by == sa.bindparam("maker", type_=sa.Text()),
    ),
)
_DELAY = sa.update(task_changes).where(_WAITING).values(due_at=sa.bindparam("later", type_=UtcTime()))
_NEXT = sa.select(task_changes).order_by(
    task_changes.c.is_started.desc(), task_changes.c.due_at, task_changes.c.position
)
_RANKED = (
    sa.select(
        task_changes,
        sa.func.row_number()
        .over(partition_by=task_changes.c.made_by, order_by=(task_changes.c.due_at, task_changes.c.position))
        .label("rank"),
    )
    .where(~task_changes.c.is_started, task_changes.c.due_at <= sa.bindparam("now", type_=UtcTime()))
    .subquery()
)
_FIRST_OF_EACH = (
    sa.select(*(_RANKED.c[column.name] for column in task_changes.c))
    .where(_RANKED.c.rank == 1)
    .order_by(_RANKED.c.due_at, _RANKED.c.position)
)
_OTHERS = sa.select(task_changes).alias("others")
_START = (
    sa.update(task_changes)
    .where(
        task_changes.c.id == _WHICH,
        ~task_changes.c.is_started,
        task_changes.c.due_at <= sa.bindparam("now", type_=UtcTime()),
        ~sa.exists(sa.select(_OTHERS.c.id).where(_OTHERS.c.is_started)),
    )
    .values(is_started=True)
)
_FINISH = sa.delete(task_changes).where(task_changes.c.id == _WHICH)
_LOCK_CHANGES = sa.select(task_changes.c.id).order_by(task_changes.c.position).with_for_update()

_WHOSE = sa.bindparam("whose", type_=EscapedText())
_REMOVE_OF_PERSON = sa.delete(projects).where(projects.c.audience == _WHOSE)
_FORGET = [
    sa.update(table).where(table.c.author == _WHOSE).values(author=FORGOTTEN, author_name="")
    for table in (projects, tasks, task_comments, project_documents)
]

_read_project = partial(read_record, Project)
_read_task = partial(read_record, Task)
_read_comment = partial(read_record, TaskComment)
_read_document = partial(read_record, ProjectDocument)
_read_entry = partial(read_record, ProjectDocumentEntry)
_read_change = partial(read_record, TaskChange)


def _is_readable(dialect: SqlDialect, *, shared: bool, personal: bool) -> sa.ColumnElement[bool]:
    is_personal = projects.c.audience.startswith(PERSON)
    readable = [dialect.among(projects.c.audience, "named")]
    if shared:
        readable.append(~is_personal)
    if personal:
        readable.append(is_personal)
    return sa.or_(*readable)


@cache
def _list_readable(dialect: SqlDialect, *, shared: bool, personal: bool) -> sa.Select[Any]:
    readable = _is_readable(dialect, shared=shared, personal=personal)
    return sa.select(projects).where(readable).order_by(projects.c.position).limit(_MOST)


@cache
def _list_versions(dialect: SqlDialect, *, shared: bool, personal: bool) -> Sequence[sa.Select[int, Any]]:
    readable = _is_readable(dialect, shared=shared, personal=personal)
    return [
        sa.select(sa.func.count(), sa.func.max(newest)).select_from(source).where(readable)
        for newest, source in (
            (projects.c.updated_at, projects),
            (tasks.c.updated_at, projects.join(tasks)),
            (task_comments.c.position, projects.join(tasks).join(task_comments)),
            (project_documents.c.updated_at, projects.join(project_documents)),
        )
    ]


class SqlProjects(SqlRepository):
    """Implements `denizen.ports.projects.ProjectRepository`."""

    async def add(self, project: Project) -> bool:
        return await self._add(projects, write_record(project))

    async def find(self, project_id: str) -> Project | None:
        return await self._find(_read_project, _PROJECT, {"which": project_id})

    async def list_projects(self, readers: AudienceFilter, *, limit: int = 200) -> Sequence[Project]:
        statement = _list_readable(self._dialect, shared=readers.shared, personal=readers.personal)
        return await self._list(_read_project, statement, {"named": self._name(readers), "most": max(limit, 0)})

    async def count(self, audience: str) -> int:
        return await self._count(_COUNT, {"of": audience})

    async def count_made(self, author: str) -> int:
        return await self._count(_COUNT_MADE, {"by": author})

    async def measure(self, project_id: str) -> int:
        return sum([await self._count(each, {"which": project_id}) for each in _SIZES])

    async def replace(self, project: Project) -> bool:
        return await self._replace(projects, write_record(project))

    async def remove(self, project_id: str) -> bool:
        return await self._change(_REMOVE_PROJECT, {"which": project_id}) > 0

    async def add_task(self, task: Task) -> bool:
        return await self._add(tasks, _write_task(task))

    async def find_task(self, task_id: str) -> Task | None:
        return await self._find(_read_task, _TASK, {"which": task_id})

    async def search_tasks(self, wanted: TaskQuery, projects: Collection[str]) -> Sequence[Task]:
        chosen = sorted(set(projects) & {wanted.project_id} if wanted.project_id else set(projects))
        statuses = wanted.statuses or frozenset(TaskStatus) - {TaskStatus.ARCHIVED}
        statement = sa.select(tasks).where(
            self._dialect.among(tasks.c.project_id, "chosen"),
            tasks.c.status.in_(sorted(statuses)),
            tasks.c.updated_at > (wanted.updated_after or EARLIEST),
            *(tasks.c.words.contains(word, autoescape=True) for word in wanted.text.casefold().split()),
        )
        if wanted.author:
            statement = statement.where(
                sa.or_(tasks.c.author == wanted.author, sa.func.lower(tasks.c.author_name) == wanted.author.lower())
            )
        if wanted.tags:
            stored = sa.type_coerce(tasks.c.tags, sa.Text())
            statement = statement.where(sa.or_(*(stored.contains(f'"{tag}"', autoescape=True) for tag in wanted.tags)))
        statement = (
            statement.order_by(tasks.c.updated_at.desc(), tasks.c.position.desc())
            .limit(min(max(wanted.limit, 0), MAX_FOUND))
            .offset(max(wanted.skip, 0))
        )
        return await self._list(_read_task, statement, {"chosen": self._dialect.bind_list(chosen)})

    async def count_tasks(self, project_id: str) -> int:
        return await self._count(_COUNT_TASKS, {"which": project_id})

    async def replace_task(self, task: Task) -> bool:
        return await self._replace(tasks, _write_task(task))

    async def remove_task(self, task_id: str) -> bool:
        return await self._change(_REMOVE_TASK, {"which": task_id}) > 0

    async def add_comment(self, comment: TaskComment) -> bool:
        return await self._add(task_comments, write_record(comment))

    async def count_comments(self, task_id: str) -> int:
        return await self._count(_COUNT_COMMENTS, {"which": task_id})

    async def list_comments(self, task_id: str) -> Sequence[TaskComment]:
        return await self._list(_read_comment, _COMMENTS, {"which": task_id})

    async def replace_comment(self, comment: TaskComment) -> bool:
        return await self._replace(task_comments, write_record(comment))

    async def remove_comment(self, comment_id: str) -> bool:
        return await self._change(_REMOVE_COMMENT, {"which": comment_id}) > 0

    async def put_document(self, document: ProjectDocument) -> None:
        put = upsert(self._dialect.insert, project_documents, "name", "text", "updated_at")
        await self._execute(put, write_record(document))

    async def list_documents(self, project_id: str) -> Sequence[ProjectDocumentEntry]:
        return await self._list(_read_entry, _DOCUMENTS, {"which": project_id})

    async def find_document(self, document_id: str) -> ProjectDocument | None:
        return await self._find(_read_document, _DOCUMENT, {"which": document_id})

    async def remove_document(self, document_id: str) -> bool:
        return await self._change(_REMOVE_DOCUMENT, {"which": document_id}) > 0

    async def forget_author(self, author: str) -> None:
        def job(connection: sa.Connection) -> None:
            connection.execute(_REMOVE_OF_PERSON, {"whose": person_audience(author)})
            for statement in _FORGET:
                connection.execute(statement, {"whose": author})

        await self._transaction.write(job)

    async def load_version(self, readers: AudienceFilter) -> str:
        statements = _list_versions(self._dialect, shared=readers.shared, personal=readers.personal)
        named = {"named": self._name(readers)}

        def job(connection: sa.Connection) -> str:
            found = [tuple(connection.execute(each, named).one()) for each in statements]
            return " ".join("/".join(map(str, row)) for row in found)

        return await self._transaction.read(job)

    def _name(self, readers: AudienceFilter) -> object:
        return self._dialect.bind_list([escape(each) for each in sorted(readers.named)])

    async def _count(self, statement: sa.Executable, bounds: dict[str, str]) -> int:
        return await self._transaction.read(lambda connection: connection.execute(statement, bounds).scalar_one())

    async def _replace(self, table: sa.Table, row: dict[str, Any]) -> bool:
        kept = {"id", "author", "author_name", "created_at"}
        statement = sa.update(table).where(table.c.id == _WHICH)
        values = {name: value for name, value in row.items() if name not in kept}
        return await self._change(statement.values(values), {"which": row["id"]}) > 0


class SqlTaskChanges(SqlRepository):
    """Implements `denizen.ports.projects.TaskChangeRepository`."""

    async def note(self, change: TaskChange, *, now: datetime) -> None:
        """Where writers run side by side, it takes the task's row first."""
        delay = {"of_task": change.task_id, "later": change.due_at, "maker": change.made_by, "now": now}
        add, take = sa.insert(task_changes).inline(), _TASK.with_for_update()
        locks_rows = self._dialect.locks_rows

        def job(connection: sa.Connection) -> None:
            if locks_rows:
                connection.execute(take, {"which": change.task_id}).first()
            if connection.execute(_DELAY, delay).rowcount == 0:
                connection.execute(add, write_record(change))

        await self._transaction.write(job)

    async def find_next(self) -> TaskChange | None:
        return await self._find(_read_change, _NEXT.limit(1), {})

    async def list_due(self, *, now: datetime) -> Sequence[TaskChange]:
        return await self._list(_read_change, _FIRST_OF_EACH, {"now": now})

    async def start(self, change_id: str, *, now: datetime) -> bool:
        locks_rows = self._dialect.locks_rows

        def job(connection: sa.Connection) -> bool:
            if locks_rows:
                connection.execute(_LOCK_CHANGES).all()
            return connection.execute(_START, {"which": change_id, "now": now}).rowcount > 0

        return await self._transaction.write(job)

    async def finish(self, change_id: str) -> bool:
        return await self._change(_FINISH, {"which": change_id}) > 0


def _write_task(task: Task) -> dict[str, Any]:
    return write_record(task) | {"words": f"{task.title}\n{task.description}".casefold()}
