"""The configuration at `/admin/config`: the file with its comments, what is wrong with it by line, and what was
accepted before. Admins read it, owners change it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import DenizenError
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.ports.configuration import ConfigurationChange, ConfigurationFault, ConfigurationFiles, KeptGeneration
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.config_sections import CONFIG, SECTIONS, find_page
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

CHECKED = "checked"
_SECTION = re.compile(r"^([A-Za-z_]\w*):", re.MULTILINE)
_GENERATION = QueryParameter(name="generation", default="0", low=0, high=99_999_999)
_PATH = QueryParameter(name="path", max_chars=500)
_AT = QueryParameter(name="at", max_chars=500)
_NOTICES = {
    "saved": "The configuration is saved, and holds now.",
    "restart": "The configuration is saved. What was changed about {sections} holds from the next start of the server.",
    "same": "Nothing was changed.",
    CHECKED: "Nothing is wrong with this text. It is not saved yet.",
}


@record(kw_only=True)
class ConfigPage:
    """The context of `config.html`. `text` is what stands in the editor, made on the text with this `digest`. `outline`
    has the sections of the file with their lines. `generation` is the one that is compared, and `diff` what bringing it
    back would change. `sections` have forms of their own, and `line` is where the editor begins, 0 for its first.
    """

    frame: Frame
    text: str
    digest: str
    may_edit: bool
    is_masked: bool
    faults: Sequence[ConfigurationFault]
    outline: Sequence[tuple[str, int]]
    line: int
    sections: Sequence[tuple[str, str]]
    current: int
    generations: Sequence[KeptGeneration]
    generation: int
    diff: str
    notice: str = ""
    problem: ProblemDetails | None = None


class ConfigPages:
    """The routes of the configuration's page."""

    def __init__(self, deps: WebDependencies, files: ConfigurationFiles) -> None:
        self._deps = deps
        self._files = files

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", CONFIG, self.show, Access.ADMIN),
            SitePageRoute("GET", f"{CONFIG}/keys", self.list_keys, Access.ADMIN),
            SitePageRoute("POST", CONFIG, self.save, Access.OWNER),
            SitePageRoute("POST", f"{CONFIG}/restore", self.restore, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def save(self, request: Request) -> Response:
        """Saves the text, or only checks it. What is wrong is told by line, and what was typed stays."""
        form = await read_form(request)
        text, digest = form.get("text", "").replace("\r\n", "\n"), form.get("digest", "")
        try:
            faults = await self._files.find_faults(text)
            if faults or "check" in form:
                return await self._render(request, text, digest, faults=faults, notice="" if faults else CHECKED)
            return _lead_back(await self._files.replace(get_principal(request), text, expected=digest))
        except DenizenError as error:
            return await self._render(request, text, digest, error=error)

    async def list_keys(self, request: Request) -> Response:
        """Answers with the keys that may stand at a path, for the editor."""
        return JSONResponse([asdict(each) for each in self._files.list_keys(_PATH.read_text(request))])

    async def restore(self, request: Request) -> Response:
        form = await read_form(request)
        given = form.get("generation", "")
        number = int(given) if given.isascii() and given.isdecimal() and len(given) <= 8 else 0
        try:
            text = await self._files.read_kept(number)
            return _lead_back(await self._files.replace(get_principal(request), text, expected=form.get("digest", "")))
        except DenizenError as error:
            return await self._render(request, error=error)

    async def _render(
        self,
        request: Request,
        typed: str | None = None,
        digest: str = "",
        *,
        faults: Sequence[ConfigurationFault] = (),
        notice: str = "",
        error: DenizenError | None = None,
    ) -> Response:
        problem, found = find_problem(error), await self._files.read()
        at = _AT.read_text(request)
        wanted = _GENERATION.read_number(request)
        text = found.text if typed is None else typed
        notice = notice or request.query_params.get("done", "")
        sections = request.query_params.get("sections", "")
        page = ConfigPage(
            frame=build_frame(request, self._deps),
            text=text,
            digest=digest or found.digest,
            may_edit=RoleName.OWNER in get_principal(request).roles and not found.is_masked,
            is_masked=found.is_masked,
            faults=faults,
            outline=[(match[1], text.count("\n", 0, match.start()) + 1) for match in _SECTION.finditer(text)],
            line=(await self._files.describe(at)).line if at else 0,
            sections=[(find_page(path), name) for path, name in SECTIONS.items()],
            current=self._deps.engine.runtime.current.number,
            generations=await self._files.list_generations(),
            generation=wanted,
            diff=await self._files.diff_kept(wanted) if wanted else "",
            notice=_NOTICES.get(notice, "").format(sections=sections[:200]),
            problem=problem,
        )
        return render("admin/config.html", page, status=problem.status if problem else 400 if faults else 200)


def _lead_back(change: ConfigurationChange) -> Response:
    if not change.changed:
        return lead_to(CONFIG, done="same")
    if change.needs_restart:
        return lead_to(CONFIG, done="restart", sections=", ".join(change.needs_restart))
    return lead_to(CONFIG, done="saved")
