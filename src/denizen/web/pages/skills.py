"""Skills at `/admin/skills`: what there is, on or off and why, and the review of what agents and people wrote.

Admins look, owners decide. What is reviewed may come from a model, so characters that do not show are made visible.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.ports.skill_configuration import SkillConfiguration, SkillReview, SkillState
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

SKILLS = "/admin/skills"
MAX_SHOWN_CHARS = 200_000
_WAITING = frozenset({"waiting", "changed"})
_NOTICES = {
    "on": "The skill is on. Agents have its tools from the next question on.",
    "off": "The skill is off.",
    "refused": "It is refused, and its text is kept under skill-history on the server.",
}


@record(kw_only=True)
class SkillsPage:
    """The context of `skills.html`. `waiting` are those of the owner's that need a decision."""

    frame: Frame
    may_edit: bool
    waiting: Sequence[SkillState]
    own: Sequence[SkillState]
    built_in: Sequence[SkillState]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ShownDiff:
    """The lines of a file's difference."""

    name: str
    lines: Sequence[str]


@record(kw_only=True)
class SkillPage:
    """The context of `skill.html`. With `is_cut` the differences are longer than what is shown of them, and
    nothing can be enabled here.
    """

    frame: Frame
    may_edit: bool
    review: SkillReview
    diffs: Sequence[ShownDiff]
    is_cut: bool
    problem: ProblemDetails | None = None


class SkillPages:
    """The routes of skills."""

    def __init__(self, deps: WebDependencies, skills: SkillConfiguration) -> None:
        self._deps = deps
        self._skills = skills

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{SKILLS}/{{name}}"
        return [
            SitePageRoute("GET", SKILLS, self.list, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            SitePageRoute("POST", f"{one}/switch", self.switch, Access.OWNER),
            SitePageRoute("POST", f"{one}/enable", self.enable, Access.OWNER),
            SitePageRoute("POST", f"{one}/refuse", self.refuse, Access.OWNER),
        ]

    async def list(self, request: Request) -> Response:
        return await self._list(request)

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def switch(self, request: Request) -> Response:
        form, name = await read_form(request), request.path_params["name"]
        try:
            await self._skills.switch(get_principal(request), name, is_on="on" in form)
        except DenizenError as error:
            return await self._list(request, error)
        return lead_to(SKILLS, done="on" if "on" in form else "off")

    async def enable(self, request: Request) -> Response:
        """Enables the content that was shown, and no other; none of which a part could not be shown."""
        form, name = await read_form(request), request.path_params["name"]
        try:
            review = await self._skills.review(name)
            if _is_cut(review):
                raise InvalidInput(
                    f"'{name}' is longer than what is shown of it.",
                    code="skill_too_long",
                    fix=f"Read its files in skills/{name} on the server, then: denizen skill enable {name}",
                )
            if review.hidden_files and form.get("hidden") != str(review.hidden_files):
                raise InvalidInput(
                    f"'{name}' has files that cannot be shown: {review.hidden_files}.",
                    code="skill_files_hidden",
                    fix="Compare their sha256 with files that you know, and say so below.",
                )
            await self._skills.enable(get_principal(request), name, form.get("sha256", ""))
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(SKILLS, done="on")

    async def refuse(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await self._skills.refuse(get_principal(request), request.path_params["name"], form.get("sha256", ""))
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(SKILLS, done="refused")

    async def _list(self, request: Request, error: DenizenError | None = None) -> Response:
        problem, found = find_problem(error), await self._skills.list_skills()
        own = [each for each in found if not each.is_built_in]
        page = SkillsPage(
            frame=build_frame(request, self._deps, path=SKILLS),
            may_edit=RoleName.OWNER in get_principal(request).roles,
            waiting=[each for each in own if each.state in _WAITING],
            own=[each for each in own if each.state not in _WAITING],
            built_in=[each for each in found if each.is_built_in],
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/skills.html", page, status=problem.status if problem else 200)

    async def _show(self, request: Request, error: DenizenError | None = None) -> Response:
        problem, review = find_problem(error), await self._skills.review(request.path_params["name"])
        left, diffs = MAX_SHOWN_CHARS, list[ShownDiff]()
        for change in review.changes:
            text = show_hidden(change.diff[:left])
            left -= len(change.diff)
            if text:
                diffs.append(ShownDiff(name=show_hidden(change.name), lines=text.split("\n")))
            if left <= 0:
                break
        page = SkillPage(
            frame=build_frame(request, self._deps, path=SKILLS),
            may_edit=RoleName.OWNER in get_principal(request).roles,
            review=review,
            diffs=diffs,
            is_cut=_is_cut(review),
            problem=problem,
        )
        return render("admin/skill.html", page, status=problem.status if problem else 200)


def _is_cut(review: SkillReview) -> bool:
    return sum(len(change.diff) for change in review.changes) > MAX_SHOWN_CHARS


def show_hidden(text: str) -> str:
    """Returns the text with the codes of characters that do not show, or that turn its direction, in their place."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text.rstrip("\n")
    )
