"""People with an account of their own: who they are, how they sign in, and who may change whom. Pure.

Secrets (the tokens of sign-ins, keys and invitations) are kept as their sha256: they are random and long, so nothing
slower is needed. Passwords are chosen by people and need argon2 (`engine.users.passwords`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from denizen.domain.errors import Conflict, InvalidInput, NotAllowed
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record

SIGN_IN_IDLE = timedelta(days=7)
"""A sign-in ends when it was not used for so long."""
SIGN_IN_LIFETIME = timedelta(days=30)
"""A sign-in ends after so long even if it is used."""
CONFIRMED_FOR = timedelta(minutes=15)
"""So long after the password was given, or the sign-in, it counts as the person's own hand."""
INVITATION_LIFETIME = timedelta(days=7)
KEY_PREFIX = "dz_"
MIN_PASSWORD_CHARS = 10
MAX_PASSWORD_CHARS = 200
MAX_NAME_CHARS = 64
MAX_EMAIL_CHARS = 254
MAX_KEYS = 50
"""The keys that one person may have."""

_EMAIL = re.compile(
    r"[^@\s\x00-\x1f<>,;:\"()\[\]\\]+@[^@\s\x00-\x1f<>,;:\"()\[\]\\]+\.[^@\s.\x00-\x1f<>,;:\"()\[\]\\]+"
)
_RANK = {RoleName.MEMBER: 0, RoleName.ADMIN: 1, RoleName.OWNER: 2}


@record(kw_only=True)
class User:
    """A person with an account. `email` is in lower case. `password_hash` is empty for who signs in at another site
    only. `is_verified` tells that somebody vouches for the e-mail: a site that sent a letter there, or the invitation.
    """

    id: str
    email: str
    name: str
    role: RoleName
    created_at: datetime
    password_hash: str = ""
    is_verified: bool = False

    def principal(self, role: RoleName) -> Principal:
        """Returns the principal of this person with that role."""
        return Principal(PrincipalKind.WEB_USER, self.id, self.name, frozenset({role}))

    @property
    def key(self) -> str:
        """The key of the principal."""
        return self.principal(self.role).key


@record(kw_only=True)
class SignIn:
    """One sign-in in one browser. `digest` is that of its token, `agent` the browser's name for itself, `network` the
    address (or the network of it) that it came from. `confirmed_at` is when the password was last given in it.
    """

    id: str
    digest: str
    user_id: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    agent: str = ""
    network: str = ""
    confirmed_at: datetime | None = None


@record(kw_only=True)
class LinkedIdentity:
    """The account of a person at another site, the `provider`. `subject` is its id there, which never changes; `login`
    its name.
    """

    provider: str
    subject: str
    user_id: str
    login: str
    linked_at: datetime

    @property
    def name(self) -> str:
        """The name that stands for it on the list of admins."""
        return f"{self.provider}:{self.login}".lower()

    @property
    def holder(self) -> str:
        """The digest of its id, which tells it from another account that has the name later."""
        return digest_token(f"{self.provider}:{self.subject}")


@record(kw_only=True)
class UserKey:
    """An API key that was made here. One of a person has the `user_id` and acts as that person, with whatever role the
    person has by then; one for a program has no `user_id`, and its own `role`. `created_by` is the key of a principal.
    """

    id: str
    digest: str
    name: str
    user_id: str
    role: RoleName
    created_by: str
    created_at: datetime
    used_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        """The principal of a key for a program."""
        return Principal(PrincipalKind.API_KEY, self.id, self.name, frozenset({self.role}))


@record(kw_only=True)
class Invitation:
    """A link with which one person may make an account, with that role. With `email` only for that address, which
    counts as verified then. `created_by` is the key of a principal.
    """

    id: str
    digest: str
    role: RoleName
    email: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


@record(kw_only=True)
class IdentityProfile:
    """A person as another site tells, whose name for people is `site`. `email` is empty unless it is verified there."""

    provider: str
    site: str
    subject: str
    login: str
    name: str
    email: str


def make_token(prefix: str = "") -> str:
    """Returns a new secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def digest_token(token: str) -> str:
    """Returns what is stored of a secret."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def find_sign_in_end(created_at: datetime, seen_at: datetime) -> datetime:
    """Returns when a sign-in ends that was last seen then."""
    return min(seen_at + SIGN_IN_IDLE, created_at + SIGN_IN_LIFETIME)


def is_confirmed(sign_in: SignIn, now: datetime) -> bool:
    """Tells whether the password was given, or the sign-in made, so lately that the person is at the browser."""
    return now - (sign_in.confirmed_at or sign_in.created_at) <= CONFIRMED_FOR


def read_email(text: str) -> str:
    """Returns the address in lower case. Raises InvalidInput."""
    email = text.strip().lower()
    if len(email) > MAX_EMAIL_CHARS or not _EMAIL.fullmatch(email) or not email.isprintable():
        raise InvalidInput("This is no e-mail address.", code="email_invalid", fix="Write it like ann@example.org.")
    return email


def read_name(text: str) -> str:
    """Returns the name on one line. Raises InvalidInput."""
    name = " ".join(text.split())
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(f"A name has 1 to {MAX_NAME_CHARS} printable characters.", code="name_invalid")
    return name


def check_password(text: str, *, email: str = "") -> None:
    """Raises InvalidInput for a new password that is too easy to guess or too long to hash."""
    if not MIN_PASSWORD_CHARS <= len(text) <= MAX_PASSWORD_CHARS:
        raise InvalidInput(
            f"A password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters.",
            code="password_invalid",
            fix="Take a sentence, or let a password manager make one.",
        )
    if len(set(text)) < 4 or (email and text.strip().lower() in (email, email.partition("@")[0])):
        raise InvalidInput("This password is easy to guess.", code="password_invalid", fix="Choose another.")


def find_role(user: User, held: Collection[str], admins: Collection[str]) -> RoleName:
    """Returns the role that somebody has: the own one, or admin for who is on the list of admins.

    The list has e-mails, which count for who has verified them, and names at other sites as `PROVIDER:LOGIN`, of which
    the person has those that are `held`; all in lower case. A name or an address that nobody vouches for does not
    count: everybody may call themselves anything.
    """
    if user.role is not RoleName.MEMBER:
        return user.role
    names = {*held, user.email} if user.is_verified else set(held)
    return user.role if names.isdisjoint(admins) else RoleName.ADMIN


def check_may_grant(actor: Collection[str], role: RoleName) -> None:
    """Raises NotAllowed unless somebody with these roles may give that role: owners any, admins all but owner."""
    if role is RoleName.OWNER and RoleName.OWNER not in actor:
        raise NotAllowed("Only owners make owners.", code="owner_only", fix="Ask an owner to do it.")


def check_may_change(actor: Principal, target: User) -> None:
    """Raises NotAllowed unless somebody may change the role of that person or delete the account."""
    if actor.kind is PrincipalKind.WEB_USER and actor.id == target.id:
        raise NotAllowed(
            "Nobody changes the own role or deletes oneself here.",
            code="own_account",
            why="a place without an admin could not be run any more",
            fix="Ask another admin; you may delete your account in your settings.",
        )
    if target.role is RoleName.OWNER and RoleName.OWNER not in actor.roles:
        raise NotAllowed("Only owners change owners.", code="owner_only", fix="Ask an owner to do it.")


def check_not_last_owner(target: User, owners: Collection[User], *, others: bool) -> None:
    """Raises Conflict if that person is the last owner while there are other people."""
    if target.role is RoleName.OWNER and others and {each.id for each in owners} <= {target.id}:
        raise Conflict(
            "The last owner stays while there are other accounts.",
            code="last_owner",
            fix="Make somebody else an owner first.",
        )


def rank(role: RoleName) -> int:
    """Returns how much a role may, as a number to compare."""
    return _RANK[role]
