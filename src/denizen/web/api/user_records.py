"""Accounts, sign-ins, keys and invitations as clients get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from denizen.domain.principal import RoleName
from denizen.domain.user import Invitation, LinkedIdentity, SignIn, User, UserKey, rank
from denizen.web.http.auth import ApiKey
from denizen_sdk.users import AccountInfo, ApiKeyInfo, IdentityInfo, InvitationInfo, SignInInfo, UserInfo


def account_to_wire(user: User, role: str, identities: Iterable[LinkedIdentity]) -> AccountInfo:
    return AccountInfo(
        id=user.id,
        name=user.name,
        email=user.email,
        role=role,
        is_verified=user.is_verified,
        has_password=bool(user.password_hash),
        created_at=user.created_at.isoformat(),
        identities=tuple(IdentityInfo(each.provider, each.login, each.linked_at.isoformat()) for each in identities),
    )


def sign_in_to_wire(sign_in: SignIn, current: str) -> SignInInfo:
    return SignInInfo(
        id=sign_in.id,
        agent=sign_in.agent,
        network=sign_in.network,
        created_at=sign_in.created_at.isoformat(),
        seen_at=sign_in.seen_at.isoformat(),
        expires_at=sign_in.expires_at.isoformat(),
        is_current=sign_in.id == current,
    )


def key_to_wire(key: UserKey, owners: Mapping[str, User]) -> ApiKeyInfo:
    """Returns a key, with the name and the role of the person whose it is, if it is one of `owners`."""
    owner = owners.get(key.user_id)
    return ApiKeyInfo(
        id=key.id,
        name=key.name,
        role=owner.role if owner else key.role,
        owner=key.user_id,
        owner_name=owner.name if owner else "",
        created_at=key.created_at.isoformat(),
        used_at=key.used_at.isoformat() if key.used_at else "",
    )


def configured_key_to_wire(key: ApiKey) -> ApiKeyInfo:
    roles = sorted((RoleName(role) for role in key.roles), key=rank)
    return ApiKeyInfo(id="", name=key.name, role=roles[-1] if roles else "", is_configured=True)


def user_to_wire(user: User) -> UserInfo:
    return UserInfo(
        id=user.id,
        name=user.name,
        email=user.email,
        role=user.role,
        is_verified=user.is_verified,
        created_at=user.created_at.isoformat(),
    )


def invitation_to_wire(invitation: Invitation) -> InvitationInfo:
    return InvitationInfo(
        id=invitation.id,
        role=invitation.role,
        email=invitation.email,
        created_at=invitation.created_at.isoformat(),
        expires_at=invitation.expires_at.isoformat(),
    )
