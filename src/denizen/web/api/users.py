"""`/api/admin/users`, `/api/admin/invitations`, `/api/admin/api-keys`: who may come in. For admins and owners."""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.principal import RoleName
from denizen.engine.users.registration import read_role
from denizen.web.api.user_records import configured_key_to_wire, invitation_to_wire, key_to_wire, user_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.openapi import TEXT, ApiRoute, Operation, Schema, object_schema
from denizen.web.http.request import check_field_names, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.users import ApiKeyInfo, CreatedApiKey, CreatedInvitation, InvitationInfo, UserInfo

USERS = "/api/admin/users"
INVITATIONS = "/api/admin/invitations"
API_KEYS = "/api/admin/api-keys"
_ROLE: Schema = {"type": "string", "enum": list(RoleName)}


class UserRoutes:
    """The routes with which admins manage people, invitations and keys."""

    def __init__(self, deps: WebDependencies) -> None:
        self._users = deps.users
        self._configured = deps.access.keys

    @property
    def routes(self) -> list[ApiRoute]:
        admin = Access.ADMIN
        return [
            ApiRoute(
                "GET", USERS, self.list_users, admin, Operation("All people with an account", answer=list[UserInfo])
            ),
            ApiRoute(
                "GET", f"{USERS}/{{user}}", self.get_user, admin, Operation("A person with an account", answer=UserInfo)
            ),
            ApiRoute(
                "PATCH",
                f"{USERS}/{{user}}",
                self.change_role,
                admin,
                Operation("Give somebody else a role", object_schema("role", role=_ROLE), UserInfo),
            ),
            ApiRoute(
                "DELETE",
                f"{USERS}/{{user}}",
                self.delete_user,
                admin,
                Operation("Delete the account of somebody else, with everything that is stored about it", status=204),
            ),
            ApiRoute(
                "GET",
                INVITATIONS,
                self.list_invitations,
                admin,
                Operation("The invitations that are not used yet", answer=list[InvitationInfo]),
            ),
            ApiRoute(
                "POST",
                INVITATIONS,
                self.invite,
                admin,
                Operation(
                    "Make a link with which one person may sign up, told once",
                    object_schema(role=_ROLE, email=TEXT),
                    CreatedInvitation,
                ),
            ),
            ApiRoute(
                "DELETE",
                f"{INVITATIONS}/{{invitation}}",
                self.withdraw,
                admin,
                Operation("Withdraw an invitation", status=204),
            ),
            ApiRoute(
                "GET",
                API_KEYS,
                self.list_keys,
                admin,
                Operation("All API keys of people, programs and the configuration", answer=list[ApiKeyInfo]),
            ),
            ApiRoute(
                "POST",
                API_KEYS,
                self.create_key,
                admin,
                Operation(
                    "Make an API key for a program, whose text is told once",
                    object_schema("name", name=TEXT, role=_ROLE),
                    CreatedApiKey,
                ),
            ),
            ApiRoute(
                "DELETE", f"{API_KEYS}/{{key}}", self.revoke_key, admin, Operation("Revoke an API key", status=204)
            ),
        ]

    async def list_users(self, request: Request) -> Response:
        return JSONResponse([asdict(user_to_wire(each)) for each in await self._users.accounts.list_users()])

    async def get_user(self, request: Request) -> Response:
        return JSONResponse(asdict(user_to_wire(await self._users.accounts.get(request.path_params["user"]))))

    async def change_role(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("role",))
        role = read_role(read_text(body, "role"))
        user = await self._users.accounts.change_role(get_principal(request), request.path_params["user"], role)
        return JSONResponse(asdict(user_to_wire(user)))

    async def delete_user(self, request: Request) -> Response:
        await self._users.accounts.delete(get_principal(request), request.path_params["user"])
        return Response(status_code=204)

    async def list_invitations(self, request: Request) -> Response:
        found = await self._users.registration.list_invitations()
        return JSONResponse([asdict(invitation_to_wire(each)) for each in found])

    async def invite(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("role", "email"))
        role = read_role(read_text(body, "role", RoleName.MEMBER))
        text, invitation = await self._users.registration.invite(
            get_principal(request), role=role, email=read_text(body, "email")
        )
        return JSONResponse(asdict(CreatedInvitation(f"/sign-up?invite={text}", invitation_to_wire(invitation))))

    async def withdraw(self, request: Request) -> Response:
        await self._users.registration.withdraw(get_principal(request), request.path_params["invitation"])
        return Response(status_code=204)

    async def list_keys(self, request: Request) -> Response:
        owners = {user.id: user for user in await self._users.accounts.list_users()}
        made = [key_to_wire(each, owners) for each in await self._users.accounts.list_keys(None)]
        configured = [configured_key_to_wire(each) for each in self._configured()]
        return JSONResponse([asdict(each) for each in [*configured, *made]])

    async def create_key(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("name", "role"))
        role = read_role(read_text(body, "role", RoleName.MEMBER))
        text, key = await self._users.accounts.create_key(get_principal(request), read_text(body, "name"), role=role)
        return JSONResponse(asdict(CreatedApiKey(text, key_to_wire(key, {}))))

    async def revoke_key(self, request: Request) -> Response:
        await self._users.accounts.revoke_key(get_principal(request), request.path_params["key"])
        return Response(status_code=204)
