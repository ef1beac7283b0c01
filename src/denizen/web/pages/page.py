"""The frame around every page, and rendering."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.web.http.auth import find_principal, login_token, make_csrf_token, may_see_all
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.guard import SECURITY_HEADERS
from denizen.web.pages.navigation import NavigationGroup, find_link, list_navigation
from denizen.web.pages.static_files import load_static_files
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
    cast("dict[str, object]", environment.globals)["static"] = load_static_files().address
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
