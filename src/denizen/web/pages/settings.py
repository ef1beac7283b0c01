"""The settings of a person at `/settings`: profile, password, linked accounts, sign-ins, API keys, export, deletion.

Each form posts to a path of its own and comes back here; all of it works without scripts.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import Conflict, DenizenError, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.record import record
from denizen.web.api.user_records import account_to_wire, key_to_wire, sign_in_to_wire
from denizen.web.http.auth import LOGIN_COOKIE, LOGIN_PATH, OPEN_LOOPBACK, find_caller, get_principal, get_sign_in
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.sign_in import ProviderLink, list_provider_links
from denizen_sdk.users import AccountInfo, ApiKeyInfo, SignInInfo

SETTINGS_PATH = "/settings"


@record(kw_only=True)
class SettingsPage:
    """The context of `settings.html`. Without an `account` there is nothing to set; `may_found` tells that whoever
    reads it may make the first account. `new_key` is the text of a key that was just made. `unlinked` are the sites
    that could be linked, as soon as the sign-in `is_confirmed`. `problem` is a sentence, or empty.
    """

    frame: Frame
    account: AccountInfo | None = None
    sign_ins: Sequence[SignInInfo] = ()
    keys: Sequence[ApiKeyInfo] = ()
    unlinked: Sequence[ProviderLink] = ()
    is_confirmed: bool = False
    new_key: str = ""
    problem: str = ""
    may_found: bool = False


class SettingsPages:
    """The routes of the settings."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._accounts = deps.users.accounts
        self._credentials = deps.users.credentials

    @property
    def routes(self) -> list[AccessRoute]:
        member = Access.MEMBER
        return [
            SitePageRoute("GET", SETTINGS_PATH, self.show, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/profile", self.change_profile, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/password", self.change_password, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/sessions/revoke", self.revoke_sign_in, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/api-keys", self.create_key, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/api-keys/revoke", self.revoke_key, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/confirm", self.confirm, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/identities/unlink", self.unlink, member),
            AccessRoute("POST", f"{SETTINGS_PATH}/delete", self.delete, member),
        ]

    async def show(self, request: Request) -> Response:
        return await self._render(request)

    async def change_profile(self, request: Request) -> Response:
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        try:
            email = fields.get("email", user.email)
            if email.strip().lower() != user.email:
                await self._accounts.confirm(user, sign_in, fields.get("password", ""))
            await self._accounts.change_profile(user, name=fields.get("name", user.name), email=email)
        except (InvalidInput, Conflict, NotAllowed, LimitExceeded) as error:
            return await self._render(request, error=error)
        return _done()

    async def change_password(self, request: Request) -> Response:
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        try:
            await self._accounts.change_password(user, sign_in, old=fields.get("old", ""), new=fields.get("new", ""))
        except (InvalidInput, NotAllowed, LimitExceeded) as error:
            return await self._render(request, error=error)
        return _done()

    async def revoke_sign_in(self, request: Request) -> Response:
        """Ends one sign-in, or without an id all others."""
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        chosen = fields.get("id", "")
        if not chosen:
            await self._credentials.revoke_others(user, but=sign_in.id)
        else:
            await self._credentials.revoke(user, chosen)
        return _done()

    async def create_key(self, request: Request) -> Response:
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        try:
            await self._accounts.confirm(user, sign_in, fields.get("password", ""))
            text, _ = await self._accounts.create_key(get_principal(request), fields.get("name", ""), user=user)
        except (InvalidInput, NotAllowed, LimitExceeded) as error:
            return await self._render(request, error=error)
        return await self._render(request, new_key=text)

    async def revoke_key(self, request: Request) -> Response:
        (user, _), fields = get_sign_in(request), await read_form(request)
        try:
            await self._accounts.revoke_key(get_principal(request), fields.get("id", ""), user=user)
        except NotFound as error:
            return await self._render(request, error=error)
        return _done()

    async def confirm(self, request: Request) -> Response:
        """Takes the password, after which another site may be linked."""
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        try:
            await self._accounts.confirm(user, sign_in, fields.get("password", ""))
        except (NotAllowed, LimitExceeded) as error:
            return await self._render(request, error=error)
        return RedirectResponse(f"{SETTINGS_PATH}#linked", status_code=303)

    async def unlink(self, request: Request) -> Response:
        (user, _), fields = get_sign_in(request), await read_form(request)
        try:
            await self._accounts.unlink(user, fields.get("provider", ""))
        except (NotFound, Conflict) as error:
            return await self._render(request, error=error)
        return _done()

    async def delete(self, request: Request) -> Response:
        (user, sign_in), fields = get_sign_in(request), await read_form(request)
        try:
            if fields.get("confirm", "").strip().lower() != user.email:
                raise InvalidInput("Nothing was deleted.", code="confirm", fix="Write your e-mail to confirm.")
            await self._accounts.delete_own(user, sign_in, password=fields.get("password", ""))
        except (InvalidInput, Conflict, NotAllowed, LimitExceeded) as error:
            return await self._render(request, error=error)
        response = RedirectResponse(LOGIN_PATH, status_code=303)
        response.delete_cookie(LOGIN_COOKIE, httponly=True, samesite="lax")
        return response

    async def _render(self, request: Request, *, new_key: str = "", error: DenizenError | None = None) -> Response:
        deps, caller = self._deps, find_caller(request)
        problem = " ".join(filter(None, (error.message, error.fix))) if error else ""
        status = describe_problem(error).status if error else 200
        frame = build_frame(request, deps)
        if caller is None or caller.user is None:
            may_found = get_principal(request) == OPEN_LOOPBACK
            return render(
                "settings.html", SettingsPage(frame=frame, problem=problem, may_found=may_found), status=status
            )
        user = caller.user
        identities = await self._accounts.list_identities(user)
        linked = {f"/login/{each.provider}?link=1" for each in identities}
        current = caller.sign_in.id if caller.sign_in else ""
        page = SettingsPage(
            frame=frame,
            account=account_to_wire(user, next(iter(caller.principal.roles), ""), identities),
            sign_ins=[sign_in_to_wire(each, current) for each in await self._credentials.list_sign_ins(user)],
            keys=[key_to_wire(each, {user.id: user}) for each in await self._accounts.list_keys(user)],
            unlinked=[each for each in list_provider_links(deps, "?link=1") if each.href not in linked],
            is_confirmed=caller.sign_in is not None and self._accounts.is_confirmed(caller.sign_in),
            new_key=new_key,
            problem=problem,
        )
        return render("settings.html", page, status=status)


def _done() -> Response:
    return RedirectResponse(SETTINGS_PATH, status_code=303)
