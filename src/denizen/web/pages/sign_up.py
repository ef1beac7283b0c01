"""The sign-up at `/sign-up`: the first account, an invitation's, or anybody's where registration is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import Conflict, InvalidInput, NotAllowed
from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.engine.users.registration import Admission, SignUpForm
from denizen.web.http.auth import OPEN_LOOPBACK, find_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute
from denizen.web.pages.login_cookie import find_network, start_sign_in
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setup import find_first_page
from denizen.web.pages.sign_in import MAX_LOGIN_BYTES, ProviderLink, list_provider_links

SIGN_UP_PATH = "/sign-up"
SIGN_UPS = RateLimit(calls=20, window_s=3600.0)
"""How many forms one address may send."""


@record(kw_only=True)
class SignUpPage:
    """The context of `sign_up.html`. `problem` is what is wrong, with `fix` if somebody can do something about it;
    `invitation` is the text of the link's. `may_sign_up` is false for who gets no account here.
    """

    frame: Frame
    problem: str = ""
    fix: str = ""
    invitation: str = ""
    email: str = ""
    name: str = ""
    may_sign_up: bool = True
    providers: Sequence[ProviderLink] = ()


class SignUpPages:
    """The routes for making an account."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            AccessRoute("GET", SIGN_UP_PATH, self.show, Access.PUBLIC),
            AccessRoute("POST", SIGN_UP_PATH, self.sign_up, Access.PUBLIC),
        ]

    async def show(self, request: Request) -> Response:
        fields = {"invite": request.query_params.get("invite", "")}
        try:
            invitation = await self._deps.users.registration.check_may_sign_up(self._admission(request, fields))
        except NotAllowed as error:
            return self._refuse(request, fields, error)
        return self._render(request, fields | {"email": invitation.email if invitation else ""})

    async def sign_up(self, request: Request) -> Response:
        deps, fields = self._deps, await read_form(request, limit=MAX_LOGIN_BYTES)
        excess = await deps.engine.limiter.take(f"sign-up\x00{find_network(request)}", (SIGN_UPS,))
        if excess is not None:
            problem = f"Too many sign-ups came from your address. Try again in {excess.wait_s / 60:.0f} min."
            return self._render(request, fields, problem, status=429)
        form = SignUpForm(
            email=fields.get("email", ""), name=fields.get("name", ""), password=fields.get("password", "")
        )
        try:
            user = await deps.users.registration.sign_up(form, self._admission(request, fields))
        except (InvalidInput, Conflict) as error:
            return self._render(request, fields, error.message, error.fix, status=describe_problem(error).status)
        except NotAllowed as error:
            return self._refuse(request, fields, error)
        return await start_sign_in(request, deps, user, await find_first_page(deps, user))

    @staticmethod
    def _admission(request: Request, fields: Mapping[str, str]) -> Admission:
        return Admission(fields.get("invite", ""), at_open_machine=find_principal(request) == OPEN_LOOPBACK)

    def _refuse(self, request: Request, fields: Mapping[str, str], error: NotAllowed) -> Response:
        page = SignUpPage(
            frame=build_frame(request, self._deps), problem=error.message, fix=error.fix, may_sign_up=False
        )
        return render("sign_up.html", page, status=403)

    def _render(
        self, request: Request, fields: Mapping[str, str], problem: str = "", fix: str = "", *, status: int = 200
    ) -> Response:
        invitation = fields.get("invite", "")
        page = SignUpPage(
            frame=build_frame(request, self._deps),
            problem=problem,
            fix=fix,
            invitation=invitation,
            email=fields.get("email", "")[:254],
            name=fields.get("name", "")[:64],
            providers=list_provider_links(self._deps, f"?invite={quote(invitation)}"),
        )
        return render("sign_up.html", page, status=status)
