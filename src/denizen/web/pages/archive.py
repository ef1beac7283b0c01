"""The archive at `/admin/archive`: a search as one person would see it, how long posts are kept, forgetting a person.

For owners: whoever searches as somebody reads the rooms that this person reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.message import Author
from denizen.domain.period import parse_period
from denizen.domain.record import record
from denizen.engine.archive.browser import PersonSearch
from denizen.engine.archive.lookup import ArchiveQuery
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import CommunityServices, WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/archive"
SHOWN = 30
MAX_DAYS = 36_500
_PERSON = QueryParameter(name="person", max_chars=100)
_WORDS = QueryParameter(name="q", max_chars=500)
_ROOM = QueryParameter(name="room", max_chars=100)
_AUTHOR = QueryParameter(name="author", max_chars=100)
_SINCE = QueryParameter(name="since", max_chars=50)
_UNTIL = QueryParameter(name="until", max_chars=50)


@record(kw_only=True)
class ArchiveForm:
    """The form as it was written. `person` is whose eyes it is seen with."""

    person: str = ""
    words: str = ""
    room: str = ""
    author: str = ""
    since: str = ""
    until: str = ""


@record(kw_only=True)
class ArchivePage:
    """The context of `admin/archive.html`. `person` is who was meant, and `found` what they would find, or each None
    where nothing was asked for. `retention_days` 0 keeps for ever; `may_change` tells whether it can be set here.
    """

    frame: Frame
    form: ArchiveForm
    is_enabled: bool
    retention_days: int
    may_change: bool
    person: Author | None = None
    found: PersonSearch | None = None
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ForgetPage:
    """The context of `admin/archive_forget.html`: what is stored of a person, counted by what it is."""

    frame: Frame
    person: Author
    counts: Mapping[str, int]
    problem: ProblemDetails | None = None


class ArchivePages:
    """The routes of the archive."""

    def __init__(self, deps: WebDependencies, community: CommunityServices) -> None:
        self._deps = deps
        self._archive = community.archive
        self._policy = community.policy

    @property
    def routes(self) -> list[AccessRoute]:
        routes: Sequence[AccessRoute] = [
            SitePageRoute("GET", PATH, self.show, Access.OWNER),
            SitePageRoute("GET", f"{PATH}/forget", self.preview, Access.OWNER),
            AccessRoute("POST", f"{PATH}/forget", self.forget, Access.OWNER),
        ]
        if self._deps.configuration is None:
            return list(routes)
        return [*routes, AccessRoute("POST", f"{PATH}/retention", self.set_retention, Access.OWNER)]

    async def show(self, request: Request) -> Response:
        form = ArchiveForm(
            person=_PERSON.read_text(request).strip(),
            words=_WORDS.read_text(request).strip(),
            room=_ROOM.read_text(request),
            author=_AUTHOR.read_text(request),
            since=_SINCE.read_text(request),
            until=_UNTIL.read_text(request),
        )
        person, found = None, None
        try:
            if form.person:
                person = await self._archive.find_person(form.person)
                found = await self._archive.search_as(get_principal(request), person, self._read_query(form))
        except DenizenError as error:
            return self._render(request, form, person=person, error=error)
        return self._render(request, form, person=person, found=found)

    def _read_query(self, form: ArchiveForm) -> ArchiveQuery:
        period = parse_period(form.since, form.until, now=self._deps.clock.now(), zone=UTC)
        return ArchiveQuery(
            words=form.words, room=form.room, author=form.author, since=period.since, until=period.until, limit=SHOWN
        )

    def _render(
        self,
        request: Request,
        form: ArchiveForm,
        *,
        person: Author | None = None,
        found: PersonSearch | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        policy, problem = self._policy(), find_problem(error)
        page = ArchivePage(
            frame=build_frame(request, self._deps, path=PATH),
            form=form,
            is_enabled=policy.enabled,
            retention_days=policy.retention_days,
            may_change=self._deps.configuration is not None,
            person=person,
            found=found,
            notice=request.query_params.get("done", "")[:200],
            problem=problem,
        )
        return render("admin/archive.html", page, status=problem.status if problem else 200)

    async def set_retention(self, request: Request) -> Response:
        text, files = (await read_form(request)).get("days", "").strip(), self._deps.configuration
        try:
            if files is not None:
                await files.put_value(get_principal(request), "archive.retention_days", _read_days(text))
        except DenizenError as error:
            return self._render(request, ArchiveForm(), error=error)
        return lead_to(PATH, done=f"Posts are kept for {text} days." if text != "0" else "Posts are kept for ever.")

    async def preview(self, request: Request) -> Response:
        try:
            person = await self._archive.find_person(_PERSON.read_text(request))
        except DenizenError as error:
            return self._render(request, ArchiveForm(), error=error)
        return await self._render_preview(request, person)

    async def forget(self, request: Request) -> Response:
        form = await read_form(request)
        person = Author(form.get("id", ""), form.get("name", "")[:100])
        try:
            if form.get("confirm", "").strip() != person.id:
                raise InvalidInput(
                    "Nothing was deleted.",
                    code="forget_confirm",
                    why="What you wrote is not the id of this person.",
                    fix="Write the id as it stands there.",
                )
            posts = await self._archive.forget(get_principal(request), person.id)
        except DenizenError as error:
            return await self._render_preview(request, person, error)
        return lead_to(PATH, done=f"Forgotten: {person.id}, with {posts} posts.")

    async def _render_preview(self, request: Request, person: Author, error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        page = ForgetPage(
            frame=build_frame(request, self._deps, path=PATH),
            person=person,
            counts=await self._archive.count_stored(person.id),
            problem=problem,
        )
        return render("admin/archive_forget.html", page, status=problem.status if problem else 200)


def _read_days(text: str) -> int:
    """Raises InvalidInput."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_DAYS)) and int(text) <= MAX_DAYS):
        raise InvalidInput(
            f"'{text[:50]}' is no number of days.",
            code="retention_invalid",
            fix=f"Write a number from 1 to {MAX_DAYS}, or 0 to keep posts for ever.",
        )
    return int(text)
