"""The frame around every page, rendering, and the files that pages load."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.web.http.auth import find_principal, login_token, make_csrf_token, may_see_all
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.guard import SECURITY_HEADERS
from denizen.web.pages.navigation import NavigationGroup, find_link, list_navigation
from denizen_sdk.errors import ProblemDetails

if TYPE_CHECKING:
    from jinja2 import Environment

_WEB = Path(__file__).parents[1]


@record(kw_only=True)
class Frame:
    """The frame that `base.html` shows around a page, whose address is `path`.

    `viewer` is the name of whoever reads it, empty for an unknown one. `can_sign_out` tells that the viewer signed in,
    and `csrf_token` is what their forms and scripts send. `simulator` is the address of the simulator's page, or empty.
    """

    version: str
    path: str
    navigation: Sequence[NavigationGroup] = ()
    viewer: str = ""
    can_sign_out: bool = False
    csrf_token: str = ""
    simulator: str = ""


def build_frame(request: HTTPConnection, deps: WebDependencies, *, path: str = "") -> Frame:
    """Returns the frame of a page for whoever asks for it. `path` is the link of the sidebar that it belongs to, where
    that is not its own address.
    """
    principal, token = find_principal(request), login_token(request.headers)
    has_signed_in, path = principal is not None and bool(token), path or request.url.path
    navigation: Sequence[NavigationGroup] = ()
    if principal is not None:
        is_owner = RoleName.OWNER in principal.roles
        navigation = list_navigation(path, may_administrate=may_see_all(principal), is_owner=is_owner)
    return Frame(
        version=deps.version,
        path=find_link(navigation, path),
        navigation=navigation,
        viewer=principal.name if principal else "",
        can_sign_out=has_signed_in,
        csrf_token=make_csrf_token(token) if has_signed_in else "",
        simulator=deps.simulator,
    )


@record
class ProblemPage:
    """The context of `problem.html`."""

    frame: Frame
    problem: ProblemDetails


def render_problem(deps: WebDependencies, connection: HTTPConnection, problem: ProblemDetails) -> Response:
    """Returns the page that tells what went wrong. The caller may be unknown: the guard may be what refused."""
    is_known = "principal" in connection.scope.get("state", {})
    frame = build_frame(connection, deps) if is_known else Frame(version=deps.version, path=connection.url.path)
    return render("problem.html", ProblemPage(frame, problem), status=problem.status)


def render(template: str, page: object, *, status: int = 200) -> Response:
    """Returns the page as HTML. `page` is the record that the template declares."""
    # People and programs may have written halves of surrogate pairs, which cannot be encoded.
    html = render_text(template, page).encode("utf-8", "replace")
    return HTMLResponse(html, status, {"Cache-Control": "no-store", "Content-Security-Policy": _page_policy()})


def render_text(template: str, page: object) -> str:
    return _environment().get_template(template).render(page=page)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # Imported with the first page, so that servers which only programs use never pay for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([_WEB / "templates", _WEB]),  # pages include style sheets as "static/NAME"
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # it would look at every file of a page on disk
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # so that a style sheet stands in a page as it is
    )
    # Jinja's own raises for halves of surrogate pairs: one such question would take a whole page away.
    environment.filters["urlencode"] = partial(quote, errors="replace")
    return environment


STYLES = ("denizen.css", "admin.css", "board.css", "chat.css", "vendor/uplot.css")
"""The style sheets, which stand in the pages: a browser paints nothing while it fetches one. The policy of pages allows
the texts of these and no other.
"""


@cache
def _page_policy() -> str:
    texts = (_environment().get_template(f"static/{name}").render() for name in STYLES)
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    allowed = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return f"{SECURITY_HEADERS['Content-Security-Policy']}; style-src 'self' {allowed}"


class StaticPageFiles(StaticFiles):
    """The files of the pages, in memory once they were asked for: a page needs twenty. Browsers check each time whether
    they changed, so an upgrade never mixes old and new.
    """

    def __init__(self) -> None:
        super().__init__(directory=_WEB / "static")
        self._places: dict[str, str] = {}

    async def get_response(self, path: str, scope: Scope) -> Response:
        known = self._find_known(path) if scope["method"] in ("GET", "HEAD") else None
        return self.file_response(*known, scope) if known else await super().get_response(path, scope)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        place, found = super().lookup_path(path)
        if found is not None and stat.S_ISREG(found.st_mode):
            self._places[path] = place
        return place, found

    def _find_known(self, path: str) -> tuple[str, os.stat_result] | None:
        """Returns a file that was looked up before. Looking it up again would resolve its links, in a thread."""
        place = self._places.get(path)
        if place is None:
            return None
        try:
            return place, Path(place).stat()
        except OSError:
            return None

    def file_response(
        self, full_path: str | PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        file = _load_static_file(str(full_path), stat_result.st_mtime_ns)
        headers = {"Cache-Control": "no-cache", "ETag": file.tag}
        if self.is_not_modified(Headers(headers), Headers(scope=scope)):
            return NotModifiedResponse(Headers(headers))
        return Response(file.content, status_code, headers, file.media_type)


@record
class _StaticFile:
    content: bytes
    media_type: str
    tag: str


@lru_cache(maxsize=100)
def _load_static_file(path: str, changed_at_ns: int) -> _StaticFile:
    """Returns the file as it is since that time."""
    del changed_at_ns
    content = Path(path).read_bytes()
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return _StaticFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
