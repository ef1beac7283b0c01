"""The inbox of the owner at `/admin/questions`: what agents asked, to answer or to dismiss. Live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import DenizenError
from denizen.domain.question import MAX_ANSWER_CHARS, OwnerQuestion, QuestionStatus
from denizen.domain.record import record
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/questions"
ENDED = 20


@record(kw_only=True)
class QuestionsPage:
    """The context of `admin/questions.html`. `text` is the answer that was typed for `chosen` and refused. `names` are
    those of rooms, by id.
    """

    frame: Frame
    waiting: Sequence[OwnerQuestion]
    ended: Sequence[OwnerQuestion]
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    most_chars: int = MAX_ANSWER_CHARS
    chosen: str = ""
    text: str = ""
    problem: ProblemDetails | None = None


class QuestionPages:
    """The routes of the inbox."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._names = deps.engine.queries.names
        self._questions = deps.engine.turns.questions

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", PATH, self.show, Access.OWNER),
            SitePageRoute("POST", f"{PATH}/{{question_id}}", self.end, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def end(self, request: Request) -> Response:
        """Keeps the answer of the form, or dismisses the question."""
        form, key, by = await read_form(request), request.path_params["question_id"], get_principal(request)
        text = form.get("answer", "")
        try:
            if "dismiss" in form:
                await self._questions.dismiss(key, by)
            else:
                await self._questions.answer(key, by, text)
        except DenizenError as error:
            return await self._render(request, error, chosen=key, text=text)
        return RedirectResponse(PATH, status_code=303)

    async def _render(
        self, request: Request, error: DenizenError | None = None, *, chosen: str = "", text: str = ""
    ) -> Response:
        waiting = await self._questions.list_questions(status=QuestionStatus.OPEN)
        known = await self._questions.list_questions()
        problem = fill_in(describe_problem(error)) if error is not None else None
        page = QuestionsPage(
            frame=build_frame(request, self._deps, path=PATH),
            waiting=list(reversed(waiting)),
            ended=[each for each in known if each.status is not QuestionStatus.OPEN][:ENDED],
            names=await self._names.load_rooms(get_principal(request), [each.place for each in waiting]),
            chosen=chosen,
            text=text,
            problem=problem,
        )
        return render("admin/questions.html", page, status=problem.status if problem else 200)
