"""The board at `/projects`: tasks in columns, which people move by dragging, by keys or by a form, and the pages of one
task, one project and one document.

Everybody with a sign-in has them, and sees what they may read (`engine/projects`). The board keeps itself up to date
by `/api/projects/events`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.issue_mirror import MirrorState
from denizen.domain.project import (
    MAX_FOUND,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectDraft,
    ProjectStatus,
    Task,
    TaskDetails,
    TaskDraft,
    TaskQuery,
    TaskStatus,
    describe_readers,
    group_by_status,
    pick_project,
    read_project_status,
    read_task_status,
)
from denizen.domain.record import record
from denizen.engine.projects.board import ProjectBoard, ProjectBoards
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/projects"
_TASK = f"{PATH}/tasks/{{task}}"
_PROJECT = f"{PATH}/{{project}}"
_DOCUMENT = f"{_PROJECT}/documents/{{document}}"
_CHOSEN = QueryParameter(name="project", max_chars=200)
_WORDS = QueryParameter(name="q", max_chars=200)
_ARCHIVED = QueryParameter(name="archived", choices=("", "yes"))
_NOTICES: Mapping[str, str] = MappingProxyType(
    {
        "made": "The task is on the board.",
        "project": "The project is there.",
        "saved": "Saved.",
        "said": "Your comment is there.",
        "deleted": "Deleted.",
    }
)


@record(kw_only=True)
class BoardColumn:
    """The tasks of one status."""

    status: TaskStatus
    tasks: Sequence[Task]


@record(kw_only=True)
class BoardPage:
    """The context of `projects.html`. `chosen` is the project whose tasks are shown, None for those of all; `names` has
    the projects by id. With `is_cut` there are more tasks. `draft` is what was typed for a new task or project.
    """

    frame: Frame
    projects: Sequence[Project]
    chosen: Project | None
    names: Mapping[str, str]
    columns: Sequence[BoardColumn]
    statuses: Sequence[TaskStatus]
    words: str
    archived: bool
    is_cut: bool
    may_share: bool
    draft: Mapping[str, str]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class TaskPage:
    """The context of `task.html`. `homes` are the projects that it may be moved to; `comment` is what was typed."""

    frame: Frame
    found: TaskDetails
    readers: str
    homes: Sequence[Project]
    statuses: Sequence[TaskStatus]
    comment: str
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ProjectPage:
    """The context of `project.html`. `draft` is what was typed for a new document; `mirror` tells how far the issues
    that the project mirrors were read.
    """

    frame: Frame
    project: Project
    mirror: MirrorState | None
    readers: str
    statuses: Sequence[ProjectStatus]
    documents: Sequence[ProjectDocumentEntry]
    draft: Mapping[str, str]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ProjectDocumentPage:
    """The context of `project_document.html`. `text` is what stands in the form."""

    frame: Frame
    project: Project
    document: ProjectDocument
    text: str
    notice: str = ""
    problem: ProblemDetails | None = None


class ProjectPages:
    """The routes of the board and of single tasks, projects and documents."""

    def __init__(self, deps: WebDependencies, boards: ProjectBoards) -> None:
        self._deps = deps
        self._boards = boards

    @property
    def routes(self) -> list[AccessRoute]:
        pages = {PATH: self.show_board, _TASK: self.show_task, _PROJECT: self.show_project}
        forms = {
            f"{PATH}/new-task": self.add_task,
            f"{PATH}/new-project": self.add_project,
            _TASK: self.change_task,
            f"{_TASK}/move": self.move_task,
            f"{_TASK}/comment": self.comment,
            f"{_TASK}/delete": self.delete_task,
            _PROJECT: self.change_project,
            f"{_PROJECT}/delete": self.delete_project,
            f"{_PROJECT}/documents": self.add_document,
            _DOCUMENT: self.change_document,
            f"{_DOCUMENT}/delete": self.delete_document,
        }
        pages[_DOCUMENT] = self.show_document
        return [
            *(SitePageRoute("GET", path, handler, Access.MEMBER) for path, handler in pages.items()),
            *(SitePageRoute("POST", path, handler, Access.MEMBER) for path, handler in forms.items()),
        ]

    # --- the board ---------------------------------------------------------------------------------------------------

    async def show_board(self, request: Request) -> Response:
        return await self._show_board(request)

    async def add_task(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            draft = TaskDraft(
                title=form.get("title", ""),
                status=read_task_status(form.get("status") or TaskStatus.BACKLOG),
                tags=_read_tags(form),
                assignee=form.get("assignee", ""),
                due_on=form.get("due_on", ""),
            )
            await self._board(request).create_task(draft, form.get("project", ""))
        except DenizenError as error:
            return await self._show_board(request, form, error)
        return lead_to(PATH, project=form.get("project", ""), done="made")

    async def add_project(self, request: Request) -> Response:
        form = await read_form(request)
        draft = ProjectDraft(name=form.get("name", ""), due_on=form.get("due_on", ""))
        try:
            made = await self._board(request).create_project(draft, for_everybody=bool(form.get("for_everybody")))
        except DenizenError as error:
            return await self._show_board(request, form, error)
        return lead_to(PATH, project=made.id, done="project")

    async def move_task(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            status = read_task_status(form.get("status", ""))
            await self._board(request).change_task(request.path_params["task"], TaskDraft(status=status))
        except DenizenError as error:
            return await self._show_board(request, form, error)
        return lead_to(PATH, project=form.get("project", ""))

    async def _show_board(
        self, request: Request, form: Mapping[str, str] | None = None, error: DenizenError | None = None
    ) -> Response:
        board, principal = self._board(request), get_principal(request)
        given = (form or {}).get("project", "") if form is not None else _CHOSEN.read_text(request)
        words, archived = _WORDS.read_text(request), bool(_ARCHIVED.read_text(request))
        projects = await board.list_projects()
        chosen = pick_project(projects, given) if given and error is None else None
        statuses = frozenset(TaskStatus) if archived else frozenset(TaskStatus) - {TaskStatus.ARCHIVED}
        wanted = TaskQuery(statuses=statuses, text=words, project_id=chosen.id if chosen else "", limit=MAX_FOUND)
        tasks = await board.find_tasks(wanted)
        columns = group_by_status(tasks, statuses)
        problem = find_problem(error)
        page = BoardPage(
            frame=build_frame(request, self._deps, path=PATH),
            projects=[each for each in projects if each.status is not ProjectStatus.ARCHIVED or each == chosen],
            chosen=chosen,
            names={each.id: each.name for each in projects},
            columns=[BoardColumn(status=status, tasks=column) for status, column in columns.items()],
            statuses=list(TaskStatus),
            words=words,
            archived=archived,
            is_cut=len(tasks) == MAX_FOUND,
            may_share=may_see_all(principal),
            draft=form or {},
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("projects.html", page, status=problem.status if problem else 200)

    # --- one task ----------------------------------------------------------------------------------------------------

    async def show_task(self, request: Request) -> Response:
        return await self._show_task(request)

    async def change_task(self, request: Request) -> Response:
        form = await read_form(request)

        async def change() -> None:
            draft = TaskDraft(
                title=form.get("title", ""),
                description=form.get("description", ""),
                status=read_task_status(form.get("status", "")),
                tags=_read_tags(form),
                assignee=form.get("assignee", ""),
                due_on=form.get("due_on", ""),
            )
            await self._board(request).change_task(request.path_params["task"], draft, form.get("project", ""))

        return await self._act_on_task(request, change, done="saved")

    async def comment(self, request: Request) -> Response:
        text = (await read_form(request)).get("text", "")

        async def say() -> None:
            await self._board(request).comment(request.path_params["task"], text)

        return await self._act_on_task(request, say, done="said", comment=text)

    async def delete_task(self, request: Request) -> Response:
        try:
            task = await self._board(request).delete_task(request.path_params["task"])
        except DenizenError as error:
            return await self._show_task(request, error=error)
        return lead_to(PATH, project=task.project_id, done="deleted")

    async def _act_on_task(
        self, request: Request, act: Callable[[], Awaitable[None]], *, done: str, comment: str = ""
    ) -> Response:
        try:
            await act()
        except DenizenError as error:
            return await self._show_task(request, comment=comment, error=error)
        return lead_to(f"{PATH}/tasks/{request.path_params['task']}", done=done)

    async def _show_task(self, request: Request, *, comment: str = "", error: DenizenError | None = None) -> Response:
        board, problem = self._board(request), find_problem(error)
        found = await board.get_task(request.path_params["task"])
        homes = [each for each in await board.list_projects() if each.audience == found.project.audience]
        page = TaskPage(
            frame=build_frame(request, self._deps, path=PATH),
            found=found,
            readers=describe_readers(found.project.audience),
            homes=homes,
            statuses=list(TaskStatus),
            comment=comment,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("task.html", page, status=problem.status if problem else 200)

    # --- one project and its documents -------------------------------------------------------------------------------

    async def show_project(self, request: Request) -> Response:
        return await self._show_project(request)

    async def change_project(self, request: Request) -> Response:
        form, which = await read_form(request), request.path_params["project"]
        try:
            draft = ProjectDraft(
                name=form.get("name", ""),
                description=form.get("description", ""),
                status=read_project_status(form.get("status", "")),
                due_on=form.get("due_on", ""),
            )
            await self._board(request).change_project(which, draft)
        except DenizenError as error:
            return await self._show_project(request, error=error)
        return lead_to(f"{PATH}/{which}", done="saved")

    async def delete_project(self, request: Request) -> Response:
        try:
            await self._board(request).delete_project(request.path_params["project"])
        except DenizenError as error:
            return await self._show_project(request, error=error)
        return lead_to(PATH, done="deleted")

    async def add_document(self, request: Request) -> Response:
        form, which = await read_form(request), request.path_params["project"]
        try:
            made = await self._board(request).create_document(
                form.get("document_name", ""), form.get("text", ""), which
            )
        except DenizenError as error:
            return await self._show_project(request, form, error=error)
        return lead_to(f"{PATH}/{which}/documents/{made.id}", done="saved")

    async def show_document(self, request: Request) -> Response:
        return await self._show_document(request)

    async def change_document(self, request: Request) -> Response:
        form, where = await read_form(request), request.path_params
        text = form.get("text", "")
        try:
            await self._board(request).change_document(
                where["document"], where["project"], text=text, new_name=form.get("name", "")
            )
        except DenizenError as error:
            return await self._show_document(request, text=text, error=error)
        return lead_to(f"{PATH}/{where['project']}/documents/{where['document']}", done="saved")

    async def delete_document(self, request: Request) -> Response:
        where = request.path_params
        try:
            await self._board(request).delete_document(where["document"], where["project"])
        except DenizenError as error:
            return await self._show_document(request, error=error)
        return lead_to(f"{PATH}/{where['project']}", done="deleted")

    async def _show_project(
        self, request: Request, form: Mapping[str, str] | None = None, *, error: DenizenError | None = None
    ) -> Response:
        board, problem = self._board(request), find_problem(error)
        project = await board.get_project(request.path_params["project"])
        mirror = await self._boards.find_mirror(project.id)
        page = ProjectPage(
            frame=build_frame(request, self._deps, path=PATH),
            project=project,
            mirror=mirror[1] if mirror else None,
            readers=describe_readers(project.audience),
            statuses=list(ProjectStatus),
            documents=await board.list_documents(project.id),
            draft=form or {},
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("project.html", page, status=problem.status if problem else 200)

    async def _show_document(
        self, request: Request, *, text: str | None = None, error: DenizenError | None = None
    ) -> Response:
        board, problem, where = self._board(request), find_problem(error), request.path_params
        project = await board.get_project(where["project"])
        document = await board.get_document(where["document"], project.id)
        page = ProjectDocumentPage(
            frame=build_frame(request, self._deps, path=PATH),
            project=project,
            document=document,
            text=document.text if text is None else text,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("project_document.html", page, status=problem.status if problem else 200)

    def _board(self, request: Request) -> ProjectBoard:
        return self._boards.open_for(get_principal(request))


def _read_tags(form: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(form.get("tags", "").replace(",", " ").split())
