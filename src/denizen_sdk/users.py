"""Accounts of people: the own one with its sign-ins and API keys, and for admins all users, invitations and keys.

Times are ISO 8601 in UTC; a time that there is not is an empty text. A role is `member`, `admin` or `owner`.
"""

from __future__ import annotations

from collections.abc import Mapping

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import Json, from_json, record


@record
class IdentityInfo:
    """An account at another site (`github` or `discord`) that somebody signs in with. `login` is its name there."""

    provider: str
    login: str
    linked_at: str


@record(kw_only=True)
class AccountInfo:
    """The own account. `role` is what it may do now; `is_verified` tells that somebody vouches for the e-mail."""

    id: str
    name: str
    email: str
    role: str
    is_verified: bool
    has_password: bool
    created_at: str
    identities: tuple[IdentityInfo, ...] = ()


@record(kw_only=True)
class SignInInfo:
    """A sign-in in a browser. `agent` is the browser's name for itself, `network` the address that it came from;
    `is_current` tells that it is the one that asks.
    """

    id: str
    agent: str
    network: str
    created_at: str
    seen_at: str
    expires_at: str
    is_current: bool


@record(kw_only=True)
class ApiKeyInfo:
    """An API key without its text. `owner` is the id of the person whose it is, with the `owner_name`; a key for a
    program has none. `is_configured` tells that it stands in the configuration, where alone it can be revoked; it has
    no id.
    """

    id: str
    name: str
    role: str
    owner: str = ""
    owner_name: str = ""
    created_at: str = ""
    used_at: str = ""
    is_configured: bool = False


@record
class CreatedApiKey:
    """A new API key with its text, which nobody can tell again."""

    key: str
    info: ApiKeyInfo


@record(kw_only=True)
class UserInfo:
    """A person with an account, as admins see it."""

    id: str
    name: str
    email: str
    role: str
    is_verified: bool
    created_at: str


@record(kw_only=True)
class InvitationInfo:
    """An invitation that is not used yet. `email` is the only address that may use it, empty for any."""

    id: str
    role: str
    email: str
    created_at: str
    expires_at: str


@record
class CreatedInvitation:
    """A new invitation with the path of its link, such as `/sign-up?invite=...`, which nobody can tell again."""

    path: str
    info: InvitationInfo


class AccountCalls(ClientCalls):
    """The calls of `/api/account` and `/api/admin`. All raise NetworkError and ApiError: 403 for a key where a sign-in
    is needed, and for what needs a higher role; 404 for what there is not, or is not one's own.
    """

    async def get_account(self) -> AccountInfo:
        """Returns the account of whom the key belongs to."""
        return await self._get(AccountInfo, "/api/account")

    async def export_account(self) -> Json:
        """Returns everything that is stored about the own account, by table."""
        return await self._connection.request("GET", "/api/account/export")

    async def list_sign_ins(self) -> list[SignInInfo]:
        """Returns the sign-ins of the own account, the newest first."""
        return await self._list(SignInInfo, "/api/account/sessions")

    async def list_own_api_keys(self) -> list[ApiKeyInfo]:
        """Returns the API keys of the own account, the oldest first."""
        return await self._list(ApiKeyInfo, "/api/account/api-keys")

    async def list_users(self) -> list[UserInfo]:
        """Returns all people with an account, the oldest first. For admins."""
        return await self._list(UserInfo, "/api/admin/users")

    async def change_user_role(self, user: str, role: str) -> UserInfo:
        """Gives somebody else a role. For admins; only owners make and change owners."""
        row = await self._connection.request("PATCH", f"/api/admin/users/{quote_segment(user)}", body={"role": role})
        return from_json(UserInfo, row)

    async def delete_user(self, user: str) -> None:
        """Deletes the account of somebody else with everything that is stored about that person. For admins."""
        await self._connection.request("DELETE", f"/api/admin/users/{quote_segment(user)}")

    async def list_invitations(self) -> list[InvitationInfo]:
        """Returns the invitations that are not used yet, the newest first. For admins."""
        return await self._list(InvitationInfo, "/api/admin/invitations")

    async def invite(self, *, role: str = "member", email: str = "") -> CreatedInvitation:
        """Makes a link with which one person may sign up. For admins."""
        body: Mapping[str, str] = {"role": role, "email": email}
        return from_json(CreatedInvitation, await self._connection.request("POST", "/api/admin/invitations", body=body))

    async def list_api_keys(self) -> list[ApiKeyInfo]:
        """Returns all API keys, those of people, of programs and of the configuration. For admins."""
        return await self._list(ApiKeyInfo, "/api/admin/api-keys")

    async def create_api_key(self, name: str, *, role: str = "member") -> CreatedApiKey:
        """Makes an API key for a program. For admins."""
        row = await self._connection.request("POST", "/api/admin/api-keys", body={"name": name, "role": role})
        return from_json(CreatedApiKey, row)

    async def revoke_api_key(self, key: str) -> None:
        """Revokes an API key by its id: it is refused from then on. For admins."""
        await self._connection.request("DELETE", f"/api/admin/api-keys/{quote_segment(key)}")
