"""The Discord servers of whoever reads it, at `/guilds`, and one of them: what happens there, what is set for it, and
the sources that it alone has.

Everybody with an account may ask; who manages a server is asked of Discord at each request, and other servers are not
found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import Conflict, DenizenError, InvalidInput, LimitExceeded
from denizen.domain.guild_settings import MAX_PERSONA_CHARS, GuildField, write_settings
from denizen.domain.record import record
from denizen.domain.source import GuildSourceLimits, SourceChange
from denizen.engine.knowledge.guild_sources import KINDS, GuildSource, GuildSources
from denizen.engine.users.managed_guilds import GuildReport
from denizen.ports.channel import Membership
from denizen.web.http.auth import get_principal, get_sign_in
from denizen.web.http.dependencies import CommunityServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.sources import KIND_LABELS, read_kind
from denizen_sdk.errors import ProblemDetails

PATH = "/guilds"
_CHANNEL = "channel-"
_SOURCE_FIELDS = ("kind", "location", "content_path", "label")
_NOTICES = {
    "saved": "It is set, and holds from now on.",
    "added": "The source was added, and is read now.",
    "started": "The source is read now.",
    "removed": "The source was removed, with everything that was read of it.",
}


@record(kw_only=True)
class GuildsPage:
    """The context of `guilds.html`. `can_link` tells whether Discord can be linked here at all."""

    frame: Frame
    managed: Sequence[Membership]
    is_complete: bool
    is_linked: bool
    can_link: bool


@record(kw_only=True)
class GuildSourceList:
    """The sources of a community, what it may have of them, and what was typed for a new one."""

    rows: Sequence[GuildSource]
    limits: GuildSourceLimits
    kinds: Sequence[tuple[str, str]]
    typed: Mapping[str, str]

    @property
    def own(self) -> int:
        return sum(row.source.is_made_by_guild for row in self.rows)

    @property
    def is_reading(self) -> bool:
        return any(row.progress is not None for row in self.rows)

    @property
    def used_bytes(self) -> int:
        return sum(row.size_bytes for row in self.rows if row.source.is_made_by_guild)


@record(kw_only=True)
class GuildPage:
    """The context of `guild.html`. `typed` are the values in the form, and `chosen` the channels. `sources` is None
    where there is no knowledge.
    """

    frame: Frame
    report: GuildReport
    typed: Mapping[str, str]
    chosen: frozenset[str]
    allowed: frozenset[str]
    sources: GuildSourceList | None
    max_persona: int = MAX_PERSONA_CHARS
    notice: str = ""
    problem: ProblemDetails | None = None


class GuildPages:
    """The routes of both pages. Each asks anew whether the person manages the server."""

    def __init__(self, deps: WebDependencies, community: CommunityServices) -> None:
        self._deps = deps
        self._guilds = community.guilds
        self._sources = community.guild_sources

    @property
    def routes(self) -> list[AccessRoute]:
        one = f"{PATH}/{{guild}}"
        source = f"{one}/sources/{{source}}"
        return [
            SitePageRoute("GET", PATH, self.show_list, Access.MEMBER),
            SitePageRoute("GET", one, self.show, Access.MEMBER),
            AccessRoute("POST", one, self.save, Access.MEMBER),
            *(
                (
                    AccessRoute("POST", f"{one}/sources", self.add_source, Access.MEMBER),
                    AccessRoute("POST", f"{source}/read", self.read_source, Access.MEMBER),
                    AccessRoute("POST", f"{source}/remove", self.remove_source, Access.MEMBER),
                )
                if self._sources is not None
                else ()
            ),
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

    async def add_source(self, request: Request) -> Response:
        sources, membership, form = *await self._open_sources(request), await read_form(request)
        try:
            await sources.add(get_principal(request), membership, _read_source(form))
        except (InvalidInput, LimitExceeded, Conflict) as error:
            return await self._render(request, source=form, error=error)
        return lead_to(f"{PATH}/{membership.community}", done="added")

    async def read_source(self, request: Request) -> Response:
        sources, membership = await self._open_sources(request)
        try:
            await sources.read(membership.community, request.path_params["source"])
        except LimitExceeded as error:
            return await self._render(request, error=error)
        return lead_to(f"{PATH}/{membership.community}", done="started")

    async def remove_source(self, request: Request) -> Response:
        sources, membership = await self._open_sources(request)
        try:
            await sources.remove(get_principal(request), membership.community, request.path_params["source"])
        except LimitExceeded as error:
            return await self._render(request, error=error)
        return lead_to(f"{PATH}/{membership.community}", done="removed")

    async def _open_sources(self, request: Request) -> tuple[GuildSources, Membership]:
        """Raises NotFound unless the person manages the server."""
        get_sign_in(request)  # whoever finds a key of this person changes nothing
        assert self._sources is not None, "only then there are these routes"
        return self._sources, await self._guilds.get(get_principal(request), request.path_params["guild"])

    async def _list_sources(self, guild: str, typed: Mapping[str, str]) -> GuildSourceList | None:
        if self._sources is None:
            return None
        return GuildSourceList(
            rows=await self._sources.list_for(guild),
            limits=self._sources.limits,
            kinds=[(each.value, KIND_LABELS[each]) for each in KINDS],
            typed={**dict.fromkeys(_SOURCE_FIELDS, ""), **typed},
        )

    async def _render(
        self,
        request: Request,
        *,
        typed: Mapping[GuildField, str] | None = None,
        source: Mapping[str, str] | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        report = await self._guilds.load_report(get_principal(request), request.path_params["guild"])
        values, problem = typed or write_settings(report.settings), find_problem(error)
        page = GuildPage(
            frame=build_frame(request, self._deps, path=PATH),
            report=report,
            typed={each.value: text for each, text in values.items()},
            chosen=frozenset(values[GuildField.CHANNELS].split()),
            allowed=frozenset(each.value for each in report.allowed),
            sources=await self._list_sources(report.membership.community, source or {}),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("guild.html", page, status=problem.status if problem else 200)


def _read_source(form: Mapping[str, str]) -> SourceChange:
    return SourceChange(
        kind=read_kind(form.get("kind", "")),
        location=form.get("location", "").strip(),
        label=form.get("label", ""),
        content_path=form.get("content_path", "").strip(),
    )
