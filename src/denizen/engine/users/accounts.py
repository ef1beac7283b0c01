"""Changes of accounts: profile, password, role, keys, and their end."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded, NotAllowed, NotFound
from denizen.domain.ids import TurnId, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, RoleName
from denizen.domain.rate_limit import RateLimit
from denizen.domain.user import (
    KEY_PREFIX,
    MAX_KEYS,
    LinkedIdentity,
    SignIn,
    User,
    UserKey,
    check_may_change,
    check_may_grant,
    check_not_last_owner,
    check_password,
    digest_token,
    is_confirmed,
    make_token,
    rank,
    read_email,
    read_name,
)
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.users.credentials import UserCredentials
from denizen.engine.users.passwords import PasswordHasher
from denizen.ports.store import Store, UnitOfWork

WRONG_PASSWORDS = RateLimit(calls=100, window_s=3600.0)
"""How many wrong passwords may come for one account from browsers that never signed in to it, wherever they are; after
that such browsers have to wait, even with the right one.
"""
OWN_WRONG_PASSWORDS = RateLimit(calls=20, window_s=900.0)
"""How many wrong passwords may come from one browser that is known, or in one sign-in."""


class PersonalChats(Protocol):
    """The chats and files of people. `denizen.engine.chats.chats.Chats` has them."""

    async def list_uploads(self, owner: str) -> Sequence[str]:
        """Returns the paths of all files of a principal."""
        ...

    async def forget_owner(self, owner: str, turn_ids: Sequence[TurnId]) -> None:
        """Ends the turns of a principal and removes the chats, the files, and what the durable log has of the turns."""
        ...


class UserAccounts:
    """Changes accounts. Whoever asks is checked here where it depends on the account, else by the caller."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        passwords: PasswordHasher,
        credentials: UserCredentials,
        limiter: RateLimiter,
        chats: PersonalChats,
    ) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._passwords = passwords
        self._credentials = credentials

    # --- the password -------------------------------------------------------------------------------------------------

    async def is_known_browser(self, email: str, browser: str) -> bool:
        """Tells whether somebody signed in to the account with that e-mail in the browser with that token. What others
        do to lock the account does not keep such a browser out.
        """
        if not browser:
            return False
        async with self._store.work(write=False) as work:
            user = await work.users.find_by_email(_fold(email))
        nonce = browser.partition(".")[0]
        expected = make_browser_token(user, nonce) if user is not None and user.password_hash else ""
        return hmac.compare_digest(expected.encode(), browser.encode(errors="surrogatepass"))

    async def check_sign_in(self, email: str, password: str, *, known_browser: str = "") -> User | None:
        """Returns the user with that e-mail and password. Takes as long if there is none with that e-mail. Raises
        LimitExceeded after `WRONG_PASSWORDS`, whether there is one or not; with the token of a known browser after
        `OWN_WRONG_PASSWORDS`.
        """
        email = _fold(email)
        tries = f"known browser\x00{email}\x00{known_browser}" if known_browser else f"password\x00{email}"
        await self._count_try(tries, OWN_WRONG_PASSWORDS if known_browser else WRONG_PASSWORDS)
        async with self._store.work(write=False) as work:
            user = await work.users.find_by_email(email)
        if not await self._passwords.check(user.password_hash if user else "", password) or user is None:
            return None
        await self._limiter.give_back(tries)
        if self._passwords.is_outdated(user.password_hash):
            user = replace(user, password_hash=await self._passwords.hash(password))
            async with self._store.work() as work:
                await work.users.update(user)
        return user

    async def confirm(self, user: User, sign_in: SignIn, password: str) -> None:
        """Writes down that the user is at the browser of the sign-in. Raises NotAllowed unless that is the password,
        and LimitExceeded after `OWN_WRONG_PASSWORDS`. Who has no password needs a sign-in of late.
        """
        if not user.password_hash:
            self.check_confirmed(sign_in)
            return
        tries = f"confirm\x00{sign_in.id}"
        await self._count_try(tries, OWN_WRONG_PASSWORDS)
        if not await self._passwords.check(user.password_hash, password):
            raise NotAllowed("This is not your password.", code="password_wrong", fix="Write the one you have now.")
        await self._limiter.give_back(tries)
        async with self._store.work() as work:
            await work.sign_ins.confirm(sign_in.id, confirmed_at=self._clock.now())
        self._credentials.forget()

    def is_confirmed(self, sign_in: SignIn) -> bool:
        """Tells whether the password was given in the sign-in, or it was made, of late."""
        return is_confirmed(sign_in, self._clock.now())

    def check_confirmed(self, sign_in: SignIn) -> None:
        """Raises NotAllowed unless the sign-in is confirmed."""
        if not self.is_confirmed(sign_in):
            raise NotAllowed(
                "Show first that it is you.",
                code="confirmation_needed",
                why="whoever finds a browser that is signed in must not be able to take the account over",
                fix="Write your password in your settings; without one, sign out and in again.",
            )

    async def _count_try(self, tries: str, limit: RateLimit) -> None:
        excess = await self._limiter.take(tries, (limit,))
        if excess is not None:
            raise LimitExceeded(
                f"Too many wrong passwords came for this account. Try again in {math.ceil(excess.wait_s / 60)} min.",
                code="sign_in_limited",
            )

    async def change_password(self, user: User, sign_in: SignIn, *, old: str, new: str) -> None:
        """Sets the password and ends all other sign-ins. Raises as `confirm` does, and InvalidInput for a new one that
        is too easy.
        """
        await self.confirm(user, sign_in, old)
        await self._set_password(user.principal(user.role), user, new, sign_in.id)

    async def reset_password(self, actor: Principal, user: User, new: str) -> None:
        """Sets the password of who has forgotten it or fears an intruder: ends all sign-ins, keys and links to other
        sites. Raises InvalidInput, and as `change_role` does.
        """
        check_may_change(actor, user)
        await self._set_password(actor, user, new)
        async with self._store.work() as work:
            for key in await work.user_keys.list_for(user.id):
                await work.user_keys.remove(key.id)
            for identity in await work.identities.list_for(user.id):
                await work.identities.remove(identity.provider, user_id=user.id)
        self._credentials.forget()

    async def _set_password(self, actor: Principal, user: User, new: str, keep_sign_in: str = "") -> None:
        check_password(new, email=user.email)
        password_hash = await self._passwords.hash(new)
        async with self._store.work() as work:
            await work.users.update(replace(await _get(work, user.id), password_hash=password_hash))
            await work.sign_ins.remove_all(user.id, but=keep_sign_in)
            await work.audit.add([_event(actor.key, user.id, self._clock.now(), {"act": "password"})])
        self._credentials.forget()

    # --- the profile --------------------------------------------------------------------------------------------------

    async def get(self, user_id: str) -> User:
        """Returns the user. Raises NotFound."""
        async with self._store.work(write=False) as work:
            return await _get(work, user_id)

    async def list_users(self) -> Sequence[User]:
        async with self._store.work(write=False) as work:
            return await work.users.list_users()

    async def change_profile(self, user: User, *, name: str | None = None, email: str | None = None) -> User:
        """Changes the name or the e-mail, which is not verified then. Raises InvalidInput, and Conflict for an e-mail
        that has an account.
        """
        async with self._store.work() as work:
            changed = await _get(work, user.id)
            if name is not None:
                changed = replace(changed, name=read_name(name))
            if email is not None and read_email(email) != changed.email:
                changed = replace(changed, email=read_email(email), is_verified=False)
            if not await work.users.update(changed):
                raise Conflict("There is an account with this e-mail already.", code="email_taken")
        self._credentials.forget()
        return changed

    async def list_identities(self, user: User) -> Sequence[LinkedIdentity]:
        async with self._store.work(write=False) as work:
            return await work.identities.list_for(user.id)

    async def unlink(self, user: User, provider: str) -> None:
        """Unlinks the identity. Raises NotFound, and Conflict if the user could not sign in any more."""
        async with self._store.work() as work:
            linked = await work.identities.list_for(user.id)
            if provider not in {each.provider for each in linked}:
                raise NotFound("No such account is linked.", code="identity_not_found")
            if len(linked) == 1 and not (await _get(work, user.id)).password_hash:
                raise Conflict(
                    "You could not sign in any more.", code="last_way_in", fix="Set a password first, then unlink it."
                )
            await work.identities.remove(provider, user_id=user.id)
        self._credentials.forget()

    # --- keys ---------------------------------------------------------------------------------------------------------

    async def list_keys(self, user: User | None) -> Sequence[UserKey]:
        """Returns the keys of a user, the oldest first; without one all that were made here."""
        async with self._store.work(write=False) as work:
            return await (work.user_keys.list_all() if user is None else work.user_keys.list_for(user.id))

    async def create_key(
        self, actor: Principal, name: str, *, user: User | None = None, role: RoleName = RoleName.MEMBER
    ) -> tuple[str, UserKey]:
        """Makes a key of a user, or without one a key with that role for a program. Returns its text, which cannot be
        told again. Raises NotAllowed for a role that the actor may not give, InvalidInput.
        """
        check_may_grant(actor.roles, role)
        text, now = make_token(KEY_PREFIX), self._clock.now()
        key = UserKey(
            id=fresh("key"),
            digest=digest_token(text),
            name=read_name(name),
            user_id=user.id if user else "",
            role=role,
            created_by=actor.key,
            created_at=now,
        )
        async with self._store.work() as work:
            if user is not None and len(await work.user_keys.list_for(user.id)) >= MAX_KEYS:
                raise InvalidInput(f"You have {MAX_KEYS} keys.", code="keys_full", fix="Revoke one that is not used.")
            await work.user_keys.add(key)
            await work.audit.add([_event(actor.key, key.id, now, {"act": "create key", "role": role})])
        return text, key

    async def revoke_key(self, actor: Principal, key_id: str, *, user: User | None = None) -> None:
        """Revokes a key; with a user only one of that user. Raises NotFound; NotAllowed for keys of owners unless it is
        an owner who does it.
        """
        async with self._store.work() as work:
            if user is None:
                for key in await work.user_keys.list_all():
                    if key.id == key_id:
                        owner = await work.users.find(key.user_id) if key.user_id else None
                        check_may_grant(actor.roles, owner.role if owner else key.role)
            if not await work.user_keys.remove(key_id, user_id=user.id if user else None):
                raise NotFound("There is no such key.", code="key_not_found")
            await work.audit.add([_event(actor.key, key_id, self._clock.now(), {"act": "revoke key"})])
        self._credentials.forget()

    # --- roles, and the end -------------------------------------------------------------------------------------------

    async def change_role(self, actor: Principal, user_id: str, role: RoleName) -> User:
        """Gives somebody a role. Raises NotFound; NotAllowed for oneself, and for owners unless an owner does it."""
        async with self._store.work() as work:
            owners = await work.users.lock_owners()
            target = await _get(work, user_id)
            check_may_change(actor, target)
            check_may_grant(actor.roles, role)
            if role is not RoleName.OWNER:
                check_not_last_owner(target, owners, others=True)
            changed = replace(target, role=role)
            await work.users.update(changed)
            if rank(role) < rank(target.role):  # what such a person may not give any more is not given later, either
                await work.invitations.remove_made_by(target.key)
                await _remove_program_keys(work, target, above=role)
            details: dict[str, Json] = {"act": "role", "from": target.role, "to": role}
            await work.audit.add([_event(actor.key, user_id, self._clock.now(), details)])
        self._credentials.forget()
        return changed

    async def delete(self, actor: Principal, user_id: str) -> None:
        """Deletes an account of somebody else, with everything. Raises as `change_role` does."""
        async with self._store.work(write=False) as work:
            check_may_change(actor, await _get(work, user_id))
        await self._delete(actor, user_id)

    async def delete_own(self, user: User, sign_in: SignIn, *, password: str) -> None:
        """Deletes the own account, with everything. Raises as `confirm` does, and Conflict for the last owner while
        there are others.
        """
        await self.confirm(user, sign_in, password)
        await self._delete(user.principal(user.role), user.id)

    async def _delete(self, actor: Principal, user_id: str) -> None:
        async with self._store.work() as work:
            target = await _get_deletable(work, user_id)
            # Nobody acts as this person any more while the rest goes.
            await work.sign_ins.remove_all(user_id)
            for key in await work.user_keys.list_for(user_id):
                await work.user_keys.remove(key.id)
            await _remove_program_keys(work, target)
            turn_ids = await work.personal_data.list_turns(user_id)
        self._credentials.forget()
        # Chats and files go before the account: while one is left, there has to be somebody who can delete it.
        await self._chats.forget_owner(target.key, turn_ids)
        async with self._store.work() as work:
            await _get_deletable(work, user_id)
            await work.personal_data.erase(user_id)
            await work.users.remove(user_id)
            await work.audit.add([_event(actor.key, user_id, self._clock.now(), {"act": "delete"})])
        self._credentials.forget()

    async def export(self, user: User) -> Mapping[str, Sequence[JsonObject]]:
        """Returns everything that is stored about a user, by table, and the paths of the uploads as `uploads`."""
        paths = await self._chats.list_uploads(user.key)
        async with self._store.work(write=False) as work:
            tables = await work.personal_data.export(user.id)
        return {**tables, "uploads": [{"path": path} for path in paths]}


def make_browser_token(user: User, nonce: str = "") -> str:
    """Returns a token for a browser in which the user has signed in with the password. It ends with that password."""
    nonce = nonce or secrets.token_urlsafe(16)
    mac = hmac.new(user.password_hash.encode(), f"{user.id} {nonce}".encode(errors="surrogatepass"), hashlib.sha256)
    return f"{nonce}.{mac.hexdigest()}"


def _fold(email: str) -> str:
    return email.strip().lower()


async def _remove_program_keys(work: UnitOfWork, maker: User, *, above: RoleName | None = None) -> None:
    """Removes the keys for programs that somebody made, whose text is known to that person; with a role only those that
    may do more.
    """
    for key in await work.user_keys.list_for(""):
        if key.created_by == maker.key and (above is None or rank(key.role) > rank(above)):
            await work.user_keys.remove(key.id)


async def _get(work: UnitOfWork, user_id: str) -> User:
    user = await work.users.find(user_id)
    if user is None:
        raise NotFound("There is no such user.", code="user_not_found", fix="GET /api/admin/users lists them.")
    return user


async def _get_deletable(work: UnitOfWork, user_id: str) -> User:
    """Returns the user. Raises NotFound, and Conflict for the last owner while there are others."""
    owners, target = await work.users.lock_owners(), await _get(work, user_id)
    check_not_last_owner(target, owners, others=len(await work.users.list_users()) > 1)
    return target


def _event(actor: str, subject: str, now: datetime, details: dict[str, Json]) -> AuditEvent:
    return AuditEvent(AuditKind.ACCOUNT, now, actor, subject, details)
