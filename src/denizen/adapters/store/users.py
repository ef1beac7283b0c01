"""People with accounts: users, sign-ins, linked identities, names of admins, keys made here, and invitations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, EscapedText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.domain.principal import RoleName
from denizen.domain.user import Invitation, LinkedIdentity, SignIn, User, UserKey

users = sa.Table(
    "users",
    metadata,
    *id_columns(),
    sa.Column("email", EscapedText(), nullable=False, unique=True),
    *texts("name", "password_hash"),
    sa.Column("role", EnumValue(RoleName), nullable=False),
    sa.Column("is_verified", sa.Boolean(), nullable=False),
    sa.Column("is_founder", sa.Boolean(), nullable=False),
    *times("created_at"),
)
"""The founder is the one who came when there was nobody: the index lets only one be that."""

sa.Index(
    "uq_users_founder",
    users.c.is_founder,
    unique=True,
    sqlite_where=users.c.is_founder,
    postgresql_where=users.c.is_founder,
)


def _user_column(*, nullable: bool = False) -> sa.Column[str]:
    return sa.Column("user_id", sa.Text(), sa.ForeignKey(users.c.id), nullable=nullable)


sign_ins = sa.Table(
    "sign_ins",
    metadata,
    *id_columns(),
    sa.Column("digest", sa.Text(), nullable=False, unique=True),
    _user_column(),
    *texts("agent", "network"),
    *times("created_at", "seen_at", "expires_at"),
    sa.Column("confirmed_at", UtcTime()),
    sa.Index("ix_sign_ins_user_id", "user_id"),
    sa.Index("ix_sign_ins_expires_at", "expires_at"),
)

linked_identities = sa.Table(
    "linked_identities",
    metadata,
    sa.Column("provider", sa.Text(), primary_key=True),
    sa.Column("subject", EscapedText(), primary_key=True),
    _user_column(),
    *texts("login"),
    *times("linked_at"),
    sa.Index("uq_linked_identities_user_id_provider", "user_id", "provider", unique=True),
)

admin_names = sa.Table(
    "admin_names", metadata, sa.Column("name", EscapedText(), primary_key=True), *texts("holder"), *times("held_since")
)

user_keys = sa.Table(
    "user_keys",
    metadata,
    *id_columns(),
    sa.Column("digest", sa.Text(), nullable=False, unique=True),
    *texts("name"),
    _user_column(nullable=True),
    sa.Column("role", EnumValue(RoleName), nullable=False),
    *texts("created_by"),
    *times("created_at"),
    sa.Column("used_at", UtcTime()),
    sa.Index("ix_user_keys_user_id", "user_id"),
)

invitations = sa.Table(
    "invitations",
    metadata,
    *id_columns(),
    sa.Column("digest", sa.Text(), nullable=False, unique=True),
    sa.Column("role", EnumValue(RoleName), nullable=False),
    *texts("email", "created_by"),
    *times("created_at", "expires_at"),
    sa.Column("used_at", UtcTime()),
)

_WHICH = sa.bindparam("which", type_=sa.Text())
_WHOSE = sa.bindparam("whose", type_=sa.Text())
_NOW = sa.bindparam("now", type_=UtcTime())

_ALL_USERS = sa.select(users).order_by(users.c.position)
_USER = sa.select(users).where(users.c.id == _WHICH)
_USER_BY_EMAIL = sa.select(users).where(users.c.email == sa.bindparam("which", type_=EscapedText()))
_OWNERS = _ALL_USERS.where(users.c.role == RoleName.OWNER).with_for_update()
_ANY_USER = sa.select(sa.literal(1)).select_from(users).limit(1)
_EMAIL_OF_OTHER = sa.select(users.c.id).where(
    users.c.email == sa.bindparam("email", type_=EscapedText()), users.c.id != _WHICH
)
_REMOVE_USER = sa.delete(users).where(users.c.id == _WHICH)
_OF_USER = [sa.delete(table).where(table.c.user_id == _WHICH) for table in (sign_ins, linked_identities, user_keys)]

_read_user = partial(read_record, User)


class SqlUsers(SqlRepository):
    """Implements `denizen.ports.users.UserRepository`."""

    async def add(self, user: User, *, is_founder: bool = False) -> bool:
        return await self._add(users, write_record(user) | {"is_founder": is_founder})

    async def find(self, user_id: str) -> User | None:
        return await self._find(_read_user, _USER, {"which": user_id})

    async def find_by_email(self, email: str) -> User | None:
        return await self._find(_read_user, _USER_BY_EMAIL, {"which": email})

    async def list_users(self) -> Sequence[User]:
        return await self._list(_read_user, _ALL_USERS)

    async def lock_owners(self) -> Sequence[User]:
        return await self._list(_read_user, _OWNERS)

    async def any_exists(self) -> bool:
        return await self._transaction.read(lambda connection: connection.execute(_ANY_USER).first() is not None)

    async def update(self, user: User) -> bool:
        values = write_record(user, "id", "created_at")
        statement = sa.update(users).where(users.c.id == _WHICH).values(values)
        which = {"which": user.id}

        def job(connection: sa.Connection) -> bool:
            # Looked up first: a statement that the unique index refuses would end the whole unit of work on Postgres.
            taken = connection.execute(_EMAIL_OF_OTHER, which | {"email": user.email}).first()
            return taken is None and connection.execute(statement, which).rowcount == 1

        return await self._transaction.write(job)

    async def remove(self, user_id: str) -> bool:
        which = {"which": user_id}

        def job(connection: sa.Connection) -> bool:
            for statement in _OF_USER:
                connection.execute(statement, which)
            return connection.execute(_REMOVE_USER, which).rowcount == 1

        return await self._transaction.write(job)


_SIGN_IN = sa.select(sign_ins).where(sign_ins.c.digest == _WHICH)
_SIGN_INS = sa.select(sign_ins).where(sign_ins.c.user_id == _WHOSE).order_by(sign_ins.c.position.desc())
_TOUCH_SIGN_IN = (
    sa.update(sign_ins)
    .where(sign_ins.c.id == _WHICH)
    .values(seen_at=sa.bindparam("seen", type_=UtcTime()), expires_at=sa.bindparam("until", type_=UtcTime()))
)
_CONFIRM = sa.update(sign_ins).where(sign_ins.c.id == _WHICH).values(confirmed_at=_NOW)
_REMOVE_SIGN_IN = sa.delete(sign_ins).where(sign_ins.c.id == _WHICH, sign_ins.c.user_id == _WHOSE)
_REMOVE_SIGN_INS = sa.delete(sign_ins).where(sign_ins.c.user_id == _WHOSE, sign_ins.c.id != _WHICH)
_REMOVE_EXPIRED = sa.delete(sign_ins).where(sign_ins.c.expires_at <= _NOW)

_read_sign_in = partial(read_record, SignIn)


class SqlSignIns(SqlRepository):
    """Implements `denizen.ports.users.SignInRepository`."""

    async def add(self, sign_in: SignIn) -> None:
        await self._add(sign_ins, write_record(sign_in))

    async def find(self, digest: str) -> SignIn | None:
        return await self._find(_read_sign_in, _SIGN_IN, {"which": digest})

    async def list_for(self, user_id: str) -> Sequence[SignIn]:
        return await self._list(_read_sign_in, _SIGN_INS, {"whose": user_id})

    async def touch(self, sign_in_id: str, *, seen_at: datetime, expires_at: datetime) -> None:
        await self._change(_TOUCH_SIGN_IN, {"which": sign_in_id, "seen": seen_at, "until": expires_at})

    async def confirm(self, sign_in_id: str, *, confirmed_at: datetime) -> None:
        await self._change(_CONFIRM, {"which": sign_in_id, "now": confirmed_at})

    async def remove(self, sign_in_id: str, *, user_id: str) -> bool:
        return await self._change(_REMOVE_SIGN_IN, {"which": sign_in_id, "whose": user_id}) == 1

    async def remove_all(self, user_id: str, *, but: str = "") -> int:
        return await self._change(_REMOVE_SIGN_INS, {"whose": user_id, "which": but})

    async def remove_expired(self, now: datetime) -> None:
        await self._change(_REMOVE_EXPIRED, {"now": now})


_PROVIDER = sa.bindparam("site", type_=sa.Text())
_SUBJECT = sa.bindparam("subject_id", type_=EscapedText())
_IDENTITY = sa.select(linked_identities).where(
    linked_identities.c.provider == _PROVIDER, linked_identities.c.subject == _SUBJECT
)
_IDENTITIES = (
    sa.select(linked_identities).where(linked_identities.c.user_id == _WHOSE).order_by(linked_identities.c.provider)
)
_RENAME = (
    sa.update(linked_identities)
    .where(linked_identities.c.provider == _PROVIDER, linked_identities.c.subject == _SUBJECT)
    .values(login=sa.bindparam("name", type_=EscapedText()))
)
_UNLINK = sa.delete(linked_identities).where(
    linked_identities.c.provider == _PROVIDER, linked_identities.c.user_id == _WHOSE
)

_read_identity = partial(read_record, LinkedIdentity)


class SqlIdentities(SqlRepository):
    """Implements `denizen.ports.users.IdentityRepository`."""

    async def add(self, identity: LinkedIdentity) -> bool:
        return await self._add(linked_identities, write_record(identity))

    async def find(self, provider: str, subject: str) -> LinkedIdentity | None:
        return await self._find(_read_identity, _IDENTITY, {"site": provider, "subject_id": subject})

    async def list_for(self, user_id: str) -> Sequence[LinkedIdentity]:
        return await self._list(_read_identity, _IDENTITIES, {"whose": user_id})

    async def rename(self, provider: str, subject: str, login: str) -> None:
        await self._change(_RENAME, {"site": provider, "subject_id": subject, "name": login})

    async def remove(self, provider: str, *, user_id: str) -> bool:
        return await self._change(_UNLINK, {"site": provider, "whose": user_id}) == 1


_HOLDER = sa.select(admin_names.c.holder).where(admin_names.c.name == sa.bindparam("which", type_=EscapedText()))


class SqlAdminNames(SqlRepository):
    """Implements `denizen.ports.users.AdminNameRepository`."""

    async def find_holder(self, name: str) -> str | None:
        return await self._find(lambda row: str(row.holder), _HOLDER, {"which": name})

    async def hold(self, name: str, holder: str, *, now: datetime) -> str:
        await self._add(admin_names, {"name": name, "holder": holder, "held_since": now})
        return await self.find_holder(name) or holder


_ALL_KEYS = sa.select(user_keys).order_by(user_keys.c.position)
_KEY = sa.select(user_keys).where(user_keys.c.digest == _WHICH)
_KEYS_OF_USER = _ALL_KEYS.where(user_keys.c.user_id == _WHOSE)
_KEYS_OF_NOBODY = _ALL_KEYS.where(user_keys.c.user_id.is_(None))
_TOUCH_KEY = sa.update(user_keys).where(user_keys.c.id == _WHICH).values(used_at=_NOW)
_REMOVE_KEY = sa.delete(user_keys).where(user_keys.c.id == _WHICH)
_REMOVE_OWN_KEY = _REMOVE_KEY.where(user_keys.c.user_id == _WHOSE)


def _read_key(row: sa.Row[Any]) -> UserKey:
    return read_record(UserKey, row, user_id=row.user_id or "")


class SqlUserKeys(SqlRepository):
    """Implements `denizen.ports.users.UserKeyRepository`."""

    async def add(self, key: UserKey) -> None:
        await self._add(user_keys, write_record(key, "user_id") | {"user_id": key.user_id or None})

    async def find(self, digest: str) -> UserKey | None:
        return await self._find(_read_key, _KEY, {"which": digest})

    async def list_for(self, user_id: str) -> Sequence[UserKey]:
        if not user_id:
            return await self._list(_read_key, _KEYS_OF_NOBODY)
        return await self._list(_read_key, _KEYS_OF_USER, {"whose": user_id})

    async def list_all(self) -> Sequence[UserKey]:
        return await self._list(_read_key, _ALL_KEYS)

    async def touch(self, key_id: str, *, used_at: datetime) -> None:
        await self._change(_TOUCH_KEY, {"which": key_id, "now": used_at})

    async def remove(self, key_id: str, *, user_id: str | None = None) -> bool:
        if user_id is None:
            return await self._change(_REMOVE_KEY, {"which": key_id}) == 1
        return await self._change(_REMOVE_OWN_KEY, {"which": key_id, "whose": user_id}) == 1


_INVITATION = sa.select(invitations).where(invitations.c.digest == _WHICH)
_ALL_INVITATIONS = sa.select(invitations).order_by(invitations.c.position.desc())
_USE = (
    sa.update(invitations)
    .where(invitations.c.digest == _WHICH, invitations.c.used_at.is_(None), invitations.c.expires_at > _NOW)
    .values(used_at=_NOW)
)
_REMOVE_INVITATION = sa.delete(invitations).where(invitations.c.id == _WHICH)
_REMOVE_MADE_BY = sa.delete(invitations).where(
    invitations.c.created_by == sa.bindparam("whose", type_=EscapedText()), invitations.c.used_at.is_(None)
)

_read_invitation = partial(read_record, Invitation)


class SqlInvitations(SqlRepository):
    """Implements `denizen.ports.users.InvitationRepository`."""

    async def add(self, invitation: Invitation) -> None:
        await self._add(invitations, write_record(invitation))

    async def find(self, digest: str) -> Invitation | None:
        return await self._find(_read_invitation, _INVITATION, {"which": digest})

    async def list_all(self) -> Sequence[Invitation]:
        return await self._list(_read_invitation, _ALL_INVITATIONS)

    async def use(self, digest: str, *, now: datetime) -> Invitation | None:
        if await self._change(_USE, {"which": digest, "now": now}) != 1:
            return None
        return await self.find(digest)

    async def remove(self, invitation_id: str) -> bool:
        return await self._change(_REMOVE_INVITATION, {"which": invitation_id}) == 1

    async def remove_made_by(self, created_by: str) -> None:
        await self._change(_REMOVE_MADE_BY, {"whose": created_by})
