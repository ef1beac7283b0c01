"""Signing in at another site: `/login/github`, `/login/discord`, and the way back.

The browser keeps what the way back needs in a cookie of its own for ten minutes: the state, which the site has to
return (against a code that somebody else slips in), the verifier of the code (PKCE), and where to go on.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict

from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import Conflict, DenizenError, NotAllowed, NotFound, Unavailable
from denizen.domain.record import record
from denizen.engine.users.registration import Admission
from denizen.ports.users import IdentityProvider
from denizen.web.http.auth import OPEN_LOOPBACK, find_caller, find_principal, get_sign_in, login_token, make_csrf_token
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.guard import check_origin
from denizen.web.http.problems import describe_problem
from denizen.web.http.routing import Access, AccessRoute
from denizen.web.pages.login_cookie import is_secure, read_next, start_sign_in
from denizen.web.pages.page import build_frame, render
from denizen.web.pages.setup import find_first_page
from denizen.web.pages.sign_in import LoginPage, list_provider_links

JOURNEY_COOKIE = "denizen_oauth"
JOURNEY_LIFETIME_S = 600
MAX_CODE_CHARS = 1000


@record(kw_only=True)
class _Journey:
    """A sign-in at another site that is under way. `sign_in` is set to link the site's account to the account that is
    signed in: it belongs to that very sign-in.
    """

    provider: str
    state: str
    verifier: str
    next: str = "/"
    invitation: str = ""
    sign_in: str = ""


class OAuthPages:
    """The routes of the sign-in at other sites."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            AccessRoute("GET", "/login/{provider}", self.leave, Access.PUBLIC),
            AccessRoute("GET", "/login/{provider}/callback", self.come_back, Access.PUBLIC),
        ]

    async def leave(self, request: Request) -> Response:
        """Leads to the site. With `link` the site's account is to be linked to the one that is signed in."""
        name, provider = self._get_provider(request)
        linked = ""
        if "link" in request.query_params:
            check_origin(request.headers, self._deps.access.exposure)
            self._deps.users.accounts.check_confirmed(get_sign_in(request)[1])
            linked = make_csrf_token(login_token(request.headers))
        begun = await provider.begin(redirect_uri=self._callback(request, name))
        journey = _Journey(
            provider=name,
            state=begun.state,
            verifier=begun.verifier,
            next="/settings" if linked else read_next(request.query_params),
            invitation=request.query_params.get("invite", "")[:200],
            sign_in=linked,
        )
        response = RedirectResponse(begun.url, status_code=303)
        response.set_cookie(
            JOURNEY_COOKIE,
            json.dumps(asdict(journey)).encode().hex(),
            max_age=JOURNEY_LIFETIME_S,
            path="/login",
            secure=is_secure(request, self._deps),
            httponly=True,
            samesite="lax",
        )
        return response

    async def come_back(self, request: Request) -> Response:
        name, provider = self._get_provider(request)
        try:
            response = await self._finish(request, name, provider)
        except (NotAllowed, Conflict, Unavailable) as error:
            response = self._refuse(request, error)
        response.delete_cookie(JOURNEY_COOKIE, path="/login", httponly=True, samesite="lax")
        return response

    async def _finish(self, request: Request, name: str, provider: IdentityProvider) -> Response:
        deps, query = self._deps, request.query_params
        journey = _read_journey(request)
        if (
            journey is None
            or journey.provider != name
            or not hmac.compare_digest(journey.state.encode(), query.get("state", "").encode())
        ):
            raise NotAllowed(
                "This sign-in did not begin here.",
                code="oauth_state",
                why="it took longer than ten minutes, or somebody else began it",
                fix="Sign in again.",
            )
        code = query.get("code", "")
        if not 0 < len(code) <= MAX_CODE_CHARS:
            raise NotAllowed(f"{provider.label} did not let you sign in.", code="oauth_refused", fix="Sign in again.")
        profile = await provider.complete(
            code=code, verifier=journey.verifier, redirect_uri=self._callback(request, name)
        )
        if journey.sign_in:
            if not hmac.compare_digest(journey.sign_in, make_csrf_token(login_token(request.headers))):
                raise NotAllowed("You signed in anew meanwhile.", code="oauth_state", fix="Link the account again.")
            user, sign_in = get_sign_in(request)
            deps.users.accounts.check_confirmed(sign_in)  # the cookie of the journey is what the browser says it is
            await deps.users.registration.link(profile, user)
            return RedirectResponse(journey.next, status_code=303)
        at_open_machine = find_principal(request) == OPEN_LOOPBACK and find_caller(request) is None
        admission = Admission(journey.invitation, at_open_machine=at_open_machine)
        user, is_new = await deps.users.registration.enter(profile, admission)
        path = read_next(asdict(journey))
        return await start_sign_in(request, deps, user, await find_first_page(deps, user, path) if is_new else path)

    def _get_provider(self, request: Request) -> tuple[str, IdentityProvider]:
        """Raises NotFound for a site that is not configured."""
        name = request.path_params["provider"]
        provider = self._deps.users.providers().get(name)
        if provider is None:
            raise NotFound(
                "Nobody signs in with that here.",
                code="provider_unknown",
                fix="Sign in another way. Operators: configure server.sign_in.",
            )
        return name, provider

    def _callback(self, request: Request, name: str) -> str:
        base = self._deps.users.public_url or str(request.base_url)
        return f"{base.rstrip('/')}/login/{name}/callback"

    def _refuse(self, request: Request, error: DenizenError) -> Response:
        page = LoginPage(
            frame=build_frame(request, self._deps),
            problem=" ".join(filter(None, (error.message, error.fix))),
            has_accounts=True,
            providers=list_provider_links(self._deps, ""),
        )
        return render("login.html", page, status=describe_problem(error).status)


def _read_journey(request: Request) -> _Journey | None:
    text = cookie_parser(request.headers.get("cookie", "")).get(JOURNEY_COOKIE, "")
    try:
        return _Journey(**json.loads(bytes.fromhex(text)))
    except (ValueError, TypeError):
        return None
