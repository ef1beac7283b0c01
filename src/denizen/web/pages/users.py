"""The people at `/admin/users` with their roles and invitations, and the API keys at `/admin/keys`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.engine.users.registration import read_role
from denizen.web.api.user_records import configured_key_to_wire, invitation_to_wire, key_to_wire, user_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import ListPart, cut_list, find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.users import ApiKeyInfo, InvitationInfo, UserInfo

USERS = "/admin/users"
KEYS = "/admin/keys"
PAGE_SIZE = 25
ROLES = tuple(RoleName)


@record(kw_only=True)
class UsersPage:
    """The context of `admin/users.html`. `query` filters by name and e-mail; `viewer_id` is the reader's own account,
    whose role stays. `link` is an invitation that was just made.
    """

    frame: Frame
    people: ListPart[UserInfo]
    query: str
    viewer_id: str
    invitations: Sequence[InvitationInfo]
    roles: Sequence[str] = ROLES
    link: str = ""
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class KeysPage:
    """The context of `admin/keys.html`. `new_key` is the text of a key that was just made, which is shown only now."""

    frame: Frame
    keys: Sequence[ApiKeyInfo]
    roles: Sequence[str] = ROLES
    new_key: str = ""
    notice: str = ""
    problem: ProblemDetails | None = None


class UserPages:
    """The routes of both pages."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._accounts = deps.users.accounts
        self._registration = deps.users.registration

    @property
    def routes(self) -> list[AccessRoute]:
        def form(path: str, handler: Callable[[Request], Awaitable[Response]]) -> AccessRoute:
            return AccessRoute("POST", path, handler, Access.ADMIN)

        return [
            SitePageRoute("GET", USERS, self.show_users, Access.ADMIN),
            form(f"{USERS}/role", self.change_role),
            form(f"{USERS}/delete", self.delete_user),
            form(f"{USERS}/invite", self.invite),
            form(f"{USERS}/withdraw", self.withdraw),
            SitePageRoute("GET", KEYS, self.show_keys, Access.ADMIN),
            form(KEYS, self.create_key),
            form(f"{KEYS}/revoke", self.revoke_key),
        ]

    # --- people ------------------------------------------------------------------------------------------------------

    async def show_users(self, request: Request) -> Response:
        return await self._render_users(request)

    async def change_role(self, request: Request) -> Response:
        fields, actor = await read_form(request), get_principal(request)

        async def change() -> str:
            user = await self._accounts.change_role(actor, fields.get("id", ""), read_role(fields.get("role", "")))
            return f"{user.name} is {user.role} now."

        return await self._carry_out(request, change)

    async def delete_user(self, request: Request) -> Response:
        fields, actor = await read_form(request), get_principal(request)

        async def delete() -> str:
            await self._accounts.delete(actor, fields.get("id", ""))
            return "The account is deleted, with everything of it."

        return await self._carry_out(request, delete)

    async def invite(self, request: Request) -> Response:
        fields, link, problem = await read_form(request), "", None
        try:
            role, email = read_role(fields.get("role", "")), fields.get("email", "").strip()
            text, _ = await self._registration.invite(get_principal(request), role=role, email=email)
            link = str(request.base_url.replace(path="/sign-up", query=f"invite={text}"))
        except DenizenError as error:
            problem = error
        return await self._render_users(request, link=link, error=problem)

    async def withdraw(self, request: Request) -> Response:
        fields, actor = await read_form(request), get_principal(request)

        async def withdraw() -> str:
            await self._registration.withdraw(actor, fields.get("id", ""))
            return "The invitation is withdrawn."

        return await self._carry_out(request, withdraw)

    async def _carry_out(self, request: Request, act: Callable[[], Awaitable[str]]) -> Response:
        """Carries out a form about people, and leads back with what was done; or shows the page with the problem."""
        try:
            return lead_to(USERS, done=await act())
        except DenizenError as error:
            return await self._render_users(request, error=error)

    async def _render_users(self, request: Request, *, link: str = "", error: DenizenError | None = None) -> Response:
        query, viewer = request.query_params.get("q", "").strip()[:200], get_principal(request)
        words = query.casefold().split()
        people = [
            user_to_wire(each)
            for each in await self._accounts.list_users()
            if all(word in f"{each.name} {each.email}".casefold() for word in words)
        ]
        problem = find_problem(error)
        page = UsersPage(
            frame=build_frame(request, self._deps, path=USERS),
            people=cut_list(request, people, size=PAGE_SIZE),
            query=query,
            viewer_id=viewer.id,
            invitations=[invitation_to_wire(each) for each in await self._registration.list_invitations()],
            link=link,
            notice=request.query_params.get("done", "")[:200],
            problem=problem,
        )
        return render("admin/users.html", page, status=problem.status if problem else 200)

    # --- keys --------------------------------------------------------------------------------------------------------

    async def show_keys(self, request: Request) -> Response:
        return await self._render_keys(request)

    async def create_key(self, request: Request) -> Response:
        fields, text, problem = await read_form(request), "", None
        try:
            role, name = read_role(fields.get("role", "")), fields.get("name", "")
            text, _ = await self._accounts.create_key(get_principal(request), name, role=role)
        except DenizenError as error:
            problem = error
        return await self._render_keys(request, new_key=text, error=problem)

    async def revoke_key(self, request: Request) -> Response:
        fields = await read_form(request)
        try:
            await self._accounts.revoke_key(get_principal(request), fields.get("id", ""))
        except DenizenError as error:
            return await self._render_keys(request, error=error)
        return lead_to(KEYS, done="The key is revoked.")

    async def _render_keys(self, request: Request, *, new_key: str = "", error: DenizenError | None = None) -> Response:
        owners = {user.id: user for user in await self._accounts.list_users()}
        made = [key_to_wire(each, owners) for each in await self._accounts.list_keys(None)]
        problem = find_problem(error)
        page = KeysPage(
            frame=build_frame(request, self._deps, path=KEYS),
            keys=[*map(configured_key_to_wire, self._deps.access.keys()), *made],
            new_key=new_key,
            notice=request.query_params.get("done", "")[:200],
            problem=problem,
        )
        return render("admin/keys.html", page, status=problem.status if problem else 200)
