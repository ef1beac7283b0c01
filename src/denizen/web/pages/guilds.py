"""The Discord servers of whoever reads it, at `/guilds`, and one of them: what happens there, and what is set for it.

Everybody with an account may ask; who manages a server is asked of Discord at each request, and other servers are not
found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import InvalidInput
from denizen.domain.guild_settings import MAX_PERSONA_CHARS, GuildField, write_settings
from denizen.domain.record import record
from denizen.engine.users.managed_guilds import GuildReport, ManagedGuilds
from denizen.ports.channel import Membership
from denizen.web.http.auth import get_principal, get_sign_in
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/guilds"
_CHANNEL = "channel-"


@record(kw_only=True)
class GuildsPage:
    """The context of `guilds.html`. `can_link` tells whether Discord can be linked here at all."""

    frame: Frame
    managed: Sequence[Membership]
    is_complete: bool
    is_linked: bool
    can_link: bool


@record(kw_only=True)
class GuildPage:
    """The context of `guild.html`. `typed` are the values in the form, and `chosen` the channels."""

    frame: Frame
    report: GuildReport
    typed: Mapping[str, str]
    chosen: frozenset[str]
    allowed: frozenset[str]
    max_persona: int = MAX_PERSONA_CHARS
    notice: str = ""
    problem: ProblemDetails | None = None


class GuildPages:
    """The routes of both pages."""

    def __init__(self, deps: WebDependencies, guilds: ManagedGuilds) -> None:
        self._deps = deps
        self._guilds = guilds

    @property
    def routes(self) -> list[AccessRoute]:
        one = f"{PATH}/{{guild}}"
        return [
            SitePageRoute("GET", PATH, self.show_list, Access.MEMBER),
            SitePageRoute("GET", one, self.show, Access.MEMBER),
            AccessRoute("POST", one, self.save, Access.MEMBER),
        ]

    async def show_list(self, request: Request) -> Response:
        managed, is_complete, is_linked = await self._guilds.list_for(get_principal(request))
        page = GuildsPage(
            frame=build_frame(request, self._deps),
            managed=managed,
            is_complete=is_complete,
            is_linked=is_linked,
            can_link="discord" in self._deps.users.providers(),
        )
        return render("guilds.html", page)

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def save(self, request: Request) -> Response:
        get_sign_in(request)  # whoever finds a key of this person sets nothing
        form, guild = await read_form(request), request.path_params["guild"]
        chosen = [name.removeprefix(_CHANNEL) for name in form if name.startswith(_CHANNEL)]
        given = {each: form.get(each, "") for each in GuildField} | {GuildField.CHANNELS: " ".join(chosen)}
        try:
            await self._guilds.save(get_principal(request), guild, given)
        except InvalidInput as error:
            return await self._render(request, typed=given, error=error)
        return lead_to(f"{PATH}/{guild}", done="saved")

    async def _render(
        self, request: Request, *, typed: Mapping[GuildField, str] | None = None, error: InvalidInput | None = None
    ) -> Response:
        report = await self._guilds.load_report(get_principal(request), request.path_params["guild"])
        values, problem = typed or write_settings(report.settings), find_problem(error)
        page = GuildPage(
            frame=build_frame(request, self._deps, path=PATH),
            report=report,
            typed={each.value: text for each, text in values.items()},
            chosen=frozenset(values[GuildField.CHANNELS].split()),
            allowed=frozenset(each.value for each in report.allowed),
            notice="It is set, and holds from now on." if request.query_params.get("done") == "saved" else "",
            problem=problem,
        )
        return render("guild.html", page, status=problem.status if problem else 200)
