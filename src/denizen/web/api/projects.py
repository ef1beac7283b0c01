"""`/api/projects` and `/api/tasks`: projects, tasks, comments and documents of whoever asks.

Everybody with a key or a sign-in may call them; the board (`engine/projects`) lets each caller read and change what is
theirs to read and change, and answers 404 for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.clock import Clock
from denizen.domain.ids import derive
from denizen.domain.period import parse_period
from denizen.domain.project import (
    FOUND_TASKS,
    MAX_FOUND,
    AudienceFilter,
    Editor,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectDraft,
    ProjectStatus,
    Task,
    TaskComment,
    TaskDetails,
    TaskDraft,
    TaskQuery,
    TaskStatus,
    describe_readers,
    read_project_status,
    read_task_status,
)
from denizen.engine.projects.board import ProjectBoard, ProjectBoards
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, encode_sse
from denizen.web.http.openapi import FLAG, TEXT, ApiRoute, Operation, Schema, list_schema, object_schema
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    JsonBody,
    QueryParameter,
    check_field_names,
    read_flag,
    read_object,
    read_text,
    read_texts,
)
from denizen.web.http.routing import Access, Handler
from denizen_sdk.projects import (
    BoardChanged,
    ProjectDocumentEntryInfo,
    ProjectDocumentInfo,
    ProjectInfo,
    TaskCommentInfo,
    TaskDetailsInfo,
    TaskInfo,
)

LOOK_INTERVAL_S = 2.0
"""How often a stream looks for what another process changed."""

_PROJECT_FIELDS = ("name", "description", "status", "due_on")
_TASK_FIELDS = ("title", "description", "status", "tags", "assignee", "due_on", "project")
_PROJECT_STATUS: Schema = {"type": "string", "enum": [*ProjectStatus]}
_TASK_STATUS: Schema = {"type": "string", "enum": [*TaskStatus]}
_LINE: Schema = {"type": "string", "pattern": r"\S"}
"""A text that is not blank."""
_DAY: Schema = {"type": "string", "pattern": r"^(\d{4}-\d{2}-\d{2})?$"}
"""A day such as 2026-12-24, or nothing."""
_TAGS_BODY: Schema = {**list_schema({"type": "string", "pattern": "^[a-z0-9_-]{1,40}$"}), "maxItems": 10}
_PROJECT_BODY: Mapping[str, Schema] = {"name": _LINE, "description": TEXT, "status": _PROJECT_STATUS, "due_on": _DAY}
_TASK_BODY: Mapping[str, Schema] = {
    "title": _LINE,
    "description": TEXT,
    "status": _TASK_STATUS,
    "tags": _TAGS_BODY,
    "assignee": TEXT,
    "due_on": _DAY,
    "project": TEXT,
}
_STATUS = QueryParameter(
    name="status", description="One status; empty for all but archived ones.", choices=("", *TaskStatus)
)
_AUTHOR = QueryParameter(name="author", description="Name or key of the author.", max_chars=200)
_TAGS = QueryParameter(name="tags", description="Tags divided by commas, any of which a task has.", max_chars=500)
_AFTER = QueryParameter(
    name="updated_after", description="As ISO 8601, or in words such as `3 days ago`.", max_chars=60
)
_SEARCH = QueryParameter(name="search", description="Words in title or description.", max_chars=200)
_PROJECT = QueryParameter(name="project", description="Id or name of a project.", max_chars=200)
_LIMIT = QueryParameter(name="limit", default=str(FOUND_TASKS), low=1, high=MAX_FOUND)
_SKIP = QueryParameter(name="skip", description="How many of the newest to pass over.", default="0", high=1_000_000)

_ONE_PROJECT = "/api/projects/{project}"
_DOCUMENTS = f"{_ONE_PROJECT}/documents"
_ONE_DOCUMENT = f"{_DOCUMENTS}/{{document}}"
_ONE_TASK = "/api/tasks/{task}"
_COMMENTS = f"{_ONE_TASK}/comments"
_ONE_COMMENT = f"{_COMMENTS}/{{comment}}"
_ONCE = ("Idempotency-Key",)


class ProjectRoutes:
    """The routes of projects, tasks, comments and documents."""

    def __init__(self, boards: ProjectBoards, clock: Clock, timing: WebTiming) -> None:
        self._boards = boards
        self._clock = clock
        self._timing = timing

    @property
    def routes(self) -> list[ApiRoute]:
        return [*self._project_routes, *self._document_routes, *self._task_routes]

    @property
    def _project_routes(self) -> list[ApiRoute]:
        create = object_schema("name", **_PROJECT_BODY, for_everybody=FLAG)
        return [
            _route("GET", "/api/projects", self.list_projects, Operation("Projects", answer=list[ProjectInfo])),
            _route(
                "POST",
                "/api/projects",
                self.create_project,
                Operation("Make a project", create, ProjectInfo, 201, headers=_ONCE),
            ),
            _route(
                "GET",
                "/api/projects/events",
                self.watch,
                Operation(
                    "Watch for changes of projects and tasks",
                    stream="`changed` at once, and whenever something may have changed.",
                    events=(BoardChanged,),
                ),
            ),
            _route("GET", _ONE_PROJECT, self.get_project, Operation("One project", answer=ProjectInfo)),
            _route(
                "PATCH",
                _ONE_PROJECT,
                self.change_project,
                Operation("Change a project", object_schema(**_PROJECT_BODY), ProjectInfo),
            ),
            _route(
                "DELETE",
                _ONE_PROJECT,
                self.delete_project,
                Operation("Delete a project with everything in it", status=204),
            ),
        ]

    @property
    def _document_routes(self) -> list[ApiRoute]:
        return [
            _route(
                "GET",
                _DOCUMENTS,
                self.list_documents,
                Operation("The documents of a project", answer=list[ProjectDocumentEntryInfo]),
            ),
            _route(
                "POST",
                _DOCUMENTS,
                self.create_document,
                Operation(
                    "Write a document",
                    object_schema("name", name=_LINE, text=TEXT),
                    ProjectDocumentInfo,
                    201,
                    headers=_ONCE,
                ),
            ),
            _route("GET", _ONE_DOCUMENT, self.get_document, Operation("One document", answer=ProjectDocumentInfo)),
            _route(
                "PATCH",
                _ONE_DOCUMENT,
                self.change_document,
                Operation("Change a document", object_schema(name=TEXT, text=TEXT), ProjectDocumentInfo),
            ),
            _route("DELETE", _ONE_DOCUMENT, self.delete_document, Operation("Delete a document", status=204)),
        ]

    @property
    def _task_routes(self) -> list[ApiRoute]:
        query = (_STATUS, _AUTHOR, _TAGS, _AFTER, _SEARCH, _PROJECT, _LIMIT, _SKIP)
        return [
            _route(
                "GET",
                "/api/tasks",
                self.find_tasks,
                Operation("Tasks, the one that changed last first", answer=list[TaskInfo], query=query),
            ),
            _route(
                "POST",
                "/api/tasks",
                self.create_task,
                Operation("Make a task", object_schema("title", **_TASK_BODY), TaskInfo, 201, headers=_ONCE),
            ),
            _route(
                "GET",
                _ONE_TASK,
                self.get_task,
                Operation("One task, and what was said about it", answer=TaskDetailsInfo),
            ),
            _route(
                "PATCH", _ONE_TASK, self.change_task, Operation("Change a task", object_schema(**_TASK_BODY), TaskInfo)
            ),
            _route("DELETE", _ONE_TASK, self.delete_task, Operation("Delete a task with its comments", status=204)),
            _route(
                "POST",
                _COMMENTS,
                self.comment,
                Operation(
                    "Say something about a task", object_schema("text", text=_LINE), TaskCommentInfo, 201, headers=_ONCE
                ),
            ),
            _route(
                "PATCH",
                _ONE_COMMENT,
                self.change_comment,
                Operation("Change a comment", object_schema("text", text=_LINE), TaskCommentInfo),
            ),
            _route("DELETE", _ONE_COMMENT, self.delete_comment, Operation("Delete a comment", status=204)),
        ]

    # --- projects ----------------------------------------------------------------------------------------------------

    async def list_projects(self, request: Request) -> Response:
        found = await self._board(request).list_projects()
        return JSONResponse([asdict(project_to_wire(project)) for project in found])

    async def create_project(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, (*_PROJECT_FIELDS, "for_everybody"))
        draft = _read_project(body)
        made = await self._board(request).create_project(draft, for_everybody=read_flag(body, "for_everybody"))
        return JSONResponse(asdict(project_to_wire(made)), status_code=201)

    async def get_project(self, request: Request) -> Response:
        found = await self._board(request).get_project(request.path_params["project"])
        return JSONResponse(asdict(project_to_wire(found)))

    async def change_project(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, _PROJECT_FIELDS)
        changed = await self._board(request).change_project(request.path_params["project"], _read_project(body))
        return JSONResponse(asdict(project_to_wire(changed)))

    async def delete_project(self, request: Request) -> Response:
        await self._board(request).delete_project(request.path_params["project"])
        return Response(status_code=204)

    async def watch(self, request: Request) -> Response:
        """Streams `changed` whenever something may have changed that the caller may read. Tells nothing of what, which
        readers look up.
        """
        readers = await self._board(request).find_readers()
        options = StreamOptions(
            on_error=lambda error: encode_sse("error", asdict(fill_in(describe_problem(error)))),
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(self._stream(readers), options, {})

    async def _stream(self, readers: AudienceFilter) -> Chunks:
        told = ""
        with self._boards.watch(readers) as watch:
            while True:
                changed = watch.changed.next
                version = await self._boards.load_version(readers)
                if version != told:
                    told = version
                    yield encode_sse("changed", asdict(BoardChanged(version)))
                with anyio.move_on_after(LOOK_INTERVAL_S):
                    await changed.wait()

    # --- documents ---------------------------------------------------------------------------------------------------

    async def list_documents(self, request: Request) -> Response:
        found = await self._board(request).list_documents(request.path_params["project"])
        return JSONResponse([asdict(entry_to_wire(entry)) for entry in found])

    async def create_document(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("name", "text"))
        name, text, project = read_text(body, "name"), read_text(body, "text"), request.path_params["project"]
        made = await self._board(request).create_document(name, text, project)
        return JSONResponse(asdict(document_to_wire(made)), status_code=201)

    async def get_document(self, request: Request) -> Response:
        found = await self._board(request).get_document(request.path_params["document"], request.path_params["project"])
        return JSONResponse(asdict(document_to_wire(found)))

    async def change_document(self, request: Request) -> Response:
        body, where = await read_object(request), request.path_params
        check_field_names(body, ("name", "text"))
        text = read_text(body, "text") if "text" in body else None
        changed = await self._board(request).change_document(
            where["document"], where["project"], text=text, new_name=read_text(body, "name")
        )
        return JSONResponse(asdict(document_to_wire(changed)))

    async def delete_document(self, request: Request) -> Response:
        await self._board(request).delete_document(request.path_params["document"], request.path_params["project"])
        return Response(status_code=204)

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def find_tasks(self, request: Request) -> Response:
        status, now = _STATUS.read_text(request), self._clock.now()
        wanted = TaskQuery(
            statuses=frozenset({TaskStatus(status)} if status else ()),
            author=_AUTHOR.read_text(request),
            tags=tuple(tag.strip().lower() for tag in _TAGS.read_text(request).split(",") if tag.strip()),
            updated_after=parse_period(_AFTER.read_text(request), "", now=now, zone=UTC).since,
            text=_SEARCH.read_text(request),
            project_id=_PROJECT.read_text(request),
            limit=_LIMIT.read_number(request),
            skip=_SKIP.read_number(request),
        )
        return JSONResponse([asdict(task_to_wire(task)) for task in await self._board(request).find_tasks(wanted)])

    async def create_task(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, _TASK_FIELDS)
        made = await self._board(request).create_task(_read_task(body), read_text(body, "project"))
        return JSONResponse(asdict(task_to_wire(made)), status_code=201)

    async def get_task(self, request: Request) -> Response:
        found = await self._board(request).get_task(request.path_params["task"])
        return JSONResponse(asdict(details_to_wire(found)))

    async def change_task(self, request: Request) -> Response:
        body, which = await read_object(request), request.path_params["task"]
        check_field_names(body, _TASK_FIELDS)
        changed = await self._board(request).change_task(which, _read_task(body), read_text(body, "project"))
        return JSONResponse(asdict(task_to_wire(changed)))

    async def delete_task(self, request: Request) -> Response:
        await self._board(request).delete_task(request.path_params["task"])
        return Response(status_code=204)

    async def comment(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("text",))
        said = await self._board(request).comment(request.path_params["task"], read_text(body, "text"))
        return JSONResponse(asdict(comment_to_wire(said)), status_code=201)

    async def change_comment(self, request: Request) -> Response:
        body, where = await read_object(request), request.path_params
        check_field_names(body, ("text",))
        changed = await self._board(request).change_comment(where["task"], where["comment"], read_text(body, "text"))
        return JSONResponse(asdict(comment_to_wire(changed)))

    async def delete_comment(self, request: Request) -> Response:
        await self._board(request).delete_comment(request.path_params["task"], request.path_params["comment"])
        return Response(status_code=204)

    def _board(self, request: Request) -> ProjectBoard:
        principal = get_principal(request)
        given = request.headers.get(IDEMPOTENCY_HEADER, "")
        return self._boards.open_for(principal, key=derive("http", principal.key, given) if given else "")


def _route(method: str, path: str, handler: Handler, operation: Operation) -> ApiRoute:
    return ApiRoute(method, path, handler, Access.MEMBER, operation)


def _read_project(body: JsonBody) -> ProjectDraft:
    return ProjectDraft(
        name=_read(body, "name"),
        description=_read(body, "description"),
        status=read_project_status(read_text(body, "status")) if "status" in body else None,
        due_on=_read(body, "due_on"),
    )


def _read_task(body: JsonBody) -> TaskDraft:
    return TaskDraft(
        title=_read(body, "title"),
        description=_read(body, "description"),
        status=read_task_status(read_text(body, "status")) if "status" in body else None,
        tags=tuple(read_texts(body, "tags")) if "tags" in body else None,
        assignee=_read(body, "assignee"),
        due_on=_read(body, "due_on"),
    )


def _read(body: JsonBody, name: str) -> str | None:
    return read_text(body, name) if name in body else None


def project_to_wire(project: Project) -> ProjectInfo:
    return ProjectInfo(
        id=project.id,
        name=project.name,
        description=project.description,
        status=project.status.value,
        due_on=project.due_on,
        readers=describe_readers(project.audience),
        is_default=project.is_default,
        created_at=project.created_at.isoformat(),
        updated_at=project.updated_at.isoformat(),
        **_authors(project.made_by),
    )


def task_to_wire(task: Task) -> TaskInfo:
    return TaskInfo(
        id=task.id,
        project_id=task.project_id,
        title=task.title,
        description=task.description,
        status=task.status.value,
        tags=task.tags,
        assignee=task.assignee,
        due_on=task.due_on,
        created_at=task.created_at.isoformat(),
        updated_at=task.updated_at.isoformat(),
        **_authors(task.made_by),
    )


def details_to_wire(found: TaskDetails) -> TaskDetailsInfo:
    comments = tuple(map(comment_to_wire, found.comments))
    return TaskDetailsInfo(task_to_wire(found.task), project_to_wire(found.project), comments, found.task.link)


def comment_to_wire(comment: TaskComment) -> TaskCommentInfo:
    return TaskCommentInfo(
        id=comment.id,
        task_id=comment.task_id,
        text=comment.text,
        created_at=comment.created_at.isoformat(),
        **_authors(comment.made_by),
    )


def document_to_wire(document: ProjectDocument) -> ProjectDocumentInfo:
    return ProjectDocumentInfo(
        id=document.id,
        project_id=document.project_id,
        name=document.name,
        text=document.text,
        created_at=document.created_at.isoformat(),
        updated_at=document.updated_at.isoformat(),
        **_authors(document.made_by),
    )


def entry_to_wire(entry: ProjectDocumentEntry) -> ProjectDocumentEntryInfo:
    return ProjectDocumentEntryInfo(
        id=entry.id,
        project_id=entry.project_id,
        name=entry.name,
        size_chars=entry.size_chars,
        created_at=entry.created_at.isoformat(),
        updated_at=entry.updated_at.isoformat(),
        **_authors(entry.made_by),
    )


def _authors(editor: Editor) -> dict[str, str]:
    return {"author": editor.author, "author_name": editor.author_name}
