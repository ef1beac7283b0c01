"""`/api/account`: the own account of a person, with its sign-ins, API keys and linked identities.

What would let somebody take the account over needs a sign-in, not a key, and where there is a password the password,
else a sign-in of late.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import NotFound
from denizen.domain.principal import RoleName
from denizen.domain.user import User
from denizen.web.api.user_records import account_to_wire, key_to_wire, sign_in_to_wire
from denizen.web.http.auth import find_caller, get_principal, get_sign_in, get_user
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.openapi import ANY_OBJECT, TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import check_field_names, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.users import AccountInfo, ApiKeyInfo, CreatedApiKey, IdentityInfo, SignInInfo

ACCOUNT = "/api/account"
_PASSWORD = object_schema(password=TEXT)


class AccountRoutes:
    """The routes with which people manage their own account."""

    def __init__(self, deps: WebDependencies) -> None:
        self._users = deps.users
        self._clock = deps.clock

    @property
    def routes(self) -> list[ApiRoute]:
        return [*self._account_routes, *self._key_routes]

    @property
    def _account_routes(self) -> list[ApiRoute]:
        member = Access.MEMBER
        return [
            ApiRoute("GET", ACCOUNT, self.show, member, Operation("The own account", answer=AccountInfo)),
            ApiRoute(
                "PATCH",
                ACCOUNT,
                self.change,
                member,
                Operation(
                    "Change the own name or e-mail; the e-mail needs the password",
                    object_schema(name=TEXT, email=TEXT, password=TEXT),
                    AccountInfo,
                ),
            ),
            ApiRoute(
                "DELETE",
                ACCOUNT,
                self.delete,
                member,
                Operation("Delete the own account with everything that is stored about it", _PASSWORD, status=204),
            ),
            ApiRoute(
                "PUT",
                f"{ACCOUNT}/password",
                self.change_password,
                member,
                Operation(
                    "Set the own password, which ends all other sign-ins",
                    object_schema("new", old=TEXT, new=TEXT),
                    status=204,
                ),
            ),
            ApiRoute(
                "GET",
                f"{ACCOUNT}/export",
                self.export,
                member,
                Operation("Everything that is stored about the own account, by table", answer=ANY_OBJECT),
            ),
            ApiRoute(
                "GET",
                f"{ACCOUNT}/sessions",
                self.list_sign_ins,
                member,
                Operation("The own sign-ins, the newest first", answer=list[SignInInfo]),
            ),
            ApiRoute(
                "DELETE",
                f"{ACCOUNT}/sessions",
                self.revoke_others,
                member,
                Operation("End all own sign-ins but this one", status=204),
            ),
            ApiRoute(
                "DELETE",
                f"{ACCOUNT}/sessions/{{sign_in}}",
                self.revoke_sign_in,
                member,
                Operation("End an own sign-in", status=204),
            ),
        ]

    @property
    def _key_routes(self) -> list[ApiRoute]:
        member = Access.MEMBER
        return [
            ApiRoute(
                "GET",
                f"{ACCOUNT}/api-keys",
                self.list_keys,
                member,
                Operation("The own API keys, without their texts", answer=list[ApiKeyInfo]),
            ),
            ApiRoute(
                "POST",
                f"{ACCOUNT}/api-keys",
                self.create_key,
                member,
                Operation(
                    "Make an own API key, whose text is told once",
                    object_schema("name", name=TEXT, password=TEXT),
                    CreatedApiKey,
                ),
            ),
            ApiRoute(
                "DELETE",
                f"{ACCOUNT}/api-keys/{{key}}",
                self.revoke_key,
                member,
                Operation("Revoke an own API key", status=204),
            ),
            ApiRoute(
                "GET",
                f"{ACCOUNT}/identities",
                self.list_identities,
                member,
                Operation("The linked accounts at other sites", answer=list[IdentityInfo]),
            ),
            ApiRoute(
                "DELETE",
                f"{ACCOUNT}/identities/{{provider}}",
                self.unlink,
                member,
                Operation("Unlink the account at another site", status=204),
            ),
        ]

    # --- the account --------------------------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        return await self._show(request, get_user(request))

    async def change(self, request: Request) -> Response:
        user, body = get_user(request), await read_object(request)
        check_field_names(body, ("name", "email", "password"))
        name = read_text(body, "name") if body.get("name") is not None else None
        email = read_text(body, "email") if body.get("email") is not None else None
        if email is not None:
            user, sign_in = get_sign_in(request)
            await self._users.accounts.confirm(user, sign_in, read_text(body, "password"))
        return await self._show(request, await self._users.accounts.change_profile(user, name=name, email=email))

    async def delete(self, request: Request) -> Response:
        user, sign_in = get_sign_in(request)
        password = read_text(await read_object(request), "password") if user.password_hash else ""
        await self._users.accounts.delete_own(user, sign_in, password=password)
        return Response(status_code=204)

    async def change_password(self, request: Request) -> Response:
        user, sign_in = get_sign_in(request)
        body = await read_object(request)
        await self._users.accounts.change_password(
            user, sign_in, old=read_text(body, "old"), new=read_text(body, "new")
        )
        return Response(status_code=204)

    async def export(self, request: Request) -> Response:
        tables = await self._users.accounts.export(get_user(request))
        return JSONResponse(
            {"exported_at": self._clock.now().isoformat(), "tables": tables},
            headers={"Content-Disposition": 'attachment; filename="denizen-account.json"'},
        )

    async def _show(self, request: Request, user: User) -> Response:
        identities = await self._users.accounts.list_identities(user)
        role = next(iter(get_principal(request).roles), "")
        return JSONResponse(asdict(account_to_wire(user, role, identities)))

    # --- sign-ins -----------------------------------------------------------------------------------------------------

    async def list_sign_ins(self, request: Request) -> Response:
        user, caller = get_user(request), find_caller(request)
        current = caller.sign_in.id if caller and caller.sign_in else ""
        found = await self._users.credentials.list_sign_ins(user)
        return JSONResponse([asdict(sign_in_to_wire(each, current)) for each in found])

    async def revoke_sign_in(self, request: Request) -> Response:
        if not await self._users.credentials.revoke(get_user(request), request.path_params["sign_in"]):
            raise NotFound("There is no such sign-in.", code="sign_in_not_found", fix=f"GET {ACCOUNT}/sessions.")
        return Response(status_code=204)

    async def revoke_others(self, request: Request) -> Response:
        user, sign_in = get_sign_in(request)
        await self._users.credentials.revoke_others(user, but=sign_in.id)
        return Response(status_code=204)

    # --- keys and identities ------------------------------------------------------------------------------------------

    async def list_keys(self, request: Request) -> Response:
        user = get_user(request)
        found = await self._users.accounts.list_keys(user)
        return JSONResponse([asdict(key_to_wire(each, {user.id: user})) for each in found])

    async def create_key(self, request: Request) -> Response:
        user, sign_in = get_sign_in(request)
        body = await read_object(request)
        check_field_names(body, ("name", "password"))
        await self._users.accounts.confirm(user, sign_in, read_text(body, "password"))
        text, key = await self._users.accounts.create_key(
            get_principal(request), read_text(body, "name"), user=user, role=RoleName.MEMBER
        )
        return JSONResponse(asdict(CreatedApiKey(text, key_to_wire(key, {user.id: user}))))

    async def revoke_key(self, request: Request) -> Response:
        user = get_user(request)
        await self._users.accounts.revoke_key(get_principal(request), request.path_params["key"], user=user)
        return Response(status_code=204)

    async def list_identities(self, request: Request) -> Response:
        user = get_user(request)
        identities = await self._users.accounts.list_identities(user)
        return JSONResponse([asdict(each) for each in account_to_wire(user, "", identities).identities])

    async def unlink(self, request: Request) -> Response:
        user, _ = get_sign_in(request)
        await self._users.accounts.unlink(user, request.path_params["provider"])
        return Response(status_code=204)
