"""Registration: how people get an account: the first one, by invitation, by open registration, or from another site.

Nobody gets the first account, the owner's, by being quick: whoever wants it sits at an open machine or has the
one-time link that the server prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.domain.user import (
    INVITATION_LIFETIME,
    IdentityProfile,
    Invitation,
    LinkedIdentity,
    User,
    check_may_grant,
    check_password,
    digest_token,
    find_role,
    make_token,
    read_email,
    read_name,
)
from denizen.engine.users.admin_names import hold_names, select_listed
from denizen.engine.users.credentials import UserCredentials, UserPolicy
from denizen.engine.users.passwords import PasswordHasher
from denizen.ports.store import Store, UnitOfWork

FOUNDER_LINK = Principal(PrincipalKind.LOCAL, "start", "start", frozenset({RoleName.OWNER}))
"""Makes the one-time link for the first account when the server starts."""


@record(kw_only=True)
class SignUpForm:
    """The form of somebody who wants an account."""

    email: str
    name: str
    password: str


@record
class Admission:
    """The reason to let a newcomer in: the text of an invitation, or that they sit at an open machine."""

    invitation: str = ""
    at_open_machine: bool = False


class Registration:
    """Makes accounts and invitations."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Callable[[], UserPolicy],
        *,
        passwords: PasswordHasher,
        credentials: UserCredentials,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._passwords = passwords
        self._credentials = credentials

    # --- newcomers ----------------------------------------------------------------------------------------------------

    async def check_may_sign_up(self, admission: Admission) -> Invitation | None:
        """Returns the invitation, if it takes one. Raises NotAllowed if a newcomer would not get an account."""
        async with self._store.work(write=False) as work:
            return await self._check_open(work, admission)

    async def sign_up(self, form: SignUpForm, admission: Admission) -> User:
        """Makes an account with a password. Raises NotAllowed, InvalidInput, and Conflict for an e-mail in use."""
        await self.check_may_sign_up(admission)  # before the work of hashing is done for anybody
        email, name = read_email(form.email), read_name(form.name)
        check_password(form.password, email=email)
        user = User(
            id=fresh("user"),
            email=email,
            name=name,
            role=RoleName.MEMBER,
            created_at=self._clock.now(),
            password_hash=await self._passwords.hash(form.password),
        )
        if not admission.invitation and email in self._policy().admins:
            raise NotAllowed(
                "This e-mail needs an invitation.",
                code="invitation_needed",
                why="nobody has shown yet that it is theirs",
                fix="Ask an admin to invite you, or sign in with GitHub or Discord.",
            )
        async with self._store.work() as work:
            user = await self._add(work, user, admission)
        self._credentials.forget()
        return user

    async def enter(self, profile: IdentityProfile, admission: Admission) -> tuple[User, bool]:
        """Returns the user with that identity of another site: a known one, one with the same verified e-mail, or a new
        one; and whether the account is new. Raises NotAllowed with what to do instead.
        """
        now = self._clock.now()
        async with self._store.work() as work:
            identity = await work.identities.find(profile.provider, profile.subject)
            user = await work.users.find(identity.user_id) if identity else None
            if user is not None:
                await work.identities.rename(profile.provider, profile.subject, profile.login)
                return user, False
            if not profile.email:
                raise NotAllowed(
                    f"{profile.site} knows no verified e-mail of yours.",
                    code="email_unverified",
                    fix=f"Verify your e-mail at {profile.site}, or sign in another way and link it in your settings.",
                )
            user = await work.users.find_by_email(profile.email)
            if user is not None and not user.is_verified:
                # Whoever made that account may not be whoever reads the letters to this address.
                raise NotAllowed(
                    "There is an account with this e-mail already.",
                    code="link_refused",
                    why="it was made with a password, and nobody has verified that the e-mail is its owner's",
                    fix=f"Sign in with the password and link {profile.site} in your settings.",
                )
            is_new = user is None
            user = user or await self._add_from(work, profile, admission, now)
            await _link(work, profile, user, now)
        self._credentials.forget()
        return user, is_new

    async def link(self, profile: IdentityProfile, user: User) -> None:
        """Links an identity of another site to an account. Raises Conflict if it is linked to another one."""
        async with self._store.work() as work:
            await _link(work, profile, user, self._clock.now())
            if profile.email == user.email and not user.is_verified:
                await work.users.update(replace(user, is_verified=True))
        self._credentials.forget()

    async def _add_from(self, work: UnitOfWork, profile: IdentityProfile, admission: Admission, now: datetime) -> User:
        user = User(
            id=fresh("user"),
            email=profile.email,
            name=read_name(profile.name[:64] or profile.login),
            role=RoleName.MEMBER,
            created_at=now,
            is_verified=True,
        )
        admins = self._policy().admins
        held = await hold_names(work, select_listed([_identity(profile, user, now)], admins), now=now)
        is_listed = find_role(user, held, admins) is not RoleName.MEMBER
        return await self._add(work, user, admission, is_listed=is_listed)

    async def _add(self, work: UnitOfWork, user: User, admission: Admission, *, is_listed: bool = False) -> User:
        """Adds a newcomer, who uses up the invitation, with the role that the admission gives."""
        now, is_first = self._clock.now(), not await work.users.any_exists()
        invitation = None
        if not (is_listed and not admission.invitation and not is_first):
            invitation = await self._check_open(work, admission)
        if invitation is not None:
            if await work.invitations.use(invitation.digest, now=now) is None:
                raise _invitation_unknown()
            if invitation.email and invitation.email != user.email:
                raise NotAllowed(
                    "This invitation is for another e-mail.",
                    code="invitation_other",
                    fix="Sign up with the e-mail that it was made for.",
                )
            user = replace(user, role=invitation.role, is_verified=user.is_verified or bool(invitation.email))
        if is_first:
            user = replace(user, role=RoleName.OWNER)
        if not await work.users.add(user, is_founder=is_first):
            raise Conflict(
                "There is an account with this e-mail already.",
                code="email_taken",
                fix="Sign in, or use another e-mail.",
            )
        await work.audit.add([_event(user.key, "sign-up", now, {"role": user.role})])
        return user

    async def _check_open(self, work: UnitOfWork, admission: Admission) -> Invitation | None:
        if admission.invitation:
            invitation = await work.invitations.find(digest_token(admission.invitation))
            if invitation is None or invitation.used_at is not None or invitation.expires_at <= self._clock.now():
                raise _invitation_unknown()
            return invitation
        if await work.users.any_exists():
            if self._policy().is_open:
                return None
            raise NotAllowed(
                "An account here needs an invitation.",
                code="registration_closed",
                fix="Ask an admin for a link. Operators: `server.registration: open` lets everybody in.",
            )
        if not admission.at_open_machine:
            raise NotAllowed(
                "The first account is the owner's.",
                code="founder_link_needed",
                why="on a public address, whoever is quickest would own this place",
                fix="Open the link that `denizen run` printed when it started.",
            )
        return None

    # --- invitations --------------------------------------------------------------------------------------------------

    async def invite(self, actor: Principal, *, role: RoleName, email: str = "") -> tuple[str, Invitation]:
        """Makes an invitation and returns its text, for the link. Raises NotAllowed for a role that the actor may not
        give, InvalidInput, and Conflict if the e-mail has an account.
        """
        check_may_grant(actor.roles, role)
        text, now = make_token(), self._clock.now()
        invitation = Invitation(
            id=fresh("inv"),
            digest=digest_token(text),
            role=role,
            email=read_email(email) if email.strip() else "",
            created_by=actor.key,
            created_at=now,
            expires_at=now + INVITATION_LIFETIME,
        )
        async with self._store.work() as work:
            if invitation.email and await work.users.find_by_email(invitation.email) is not None:
                raise Conflict("There is an account with this e-mail already.", code="email_taken")
            if not await work.users.any_exists():
                check_may_grant(actor.roles, RoleName.OWNER)  # the first account is an owner's, whatever is invited to
            await work.invitations.add(invitation)
            await work.audit.add([_event(actor.key, invitation.id, now, {"act": "invite", "role": role})])
        return text, invitation

    async def make_founder_link(self) -> str:
        """Returns the text of a new invitation for the first account, which replaces the one of an earlier start; empty
        if there are accounts.
        """
        async with self._store.work() as work:
            if await work.users.any_exists():
                return ""
            await work.invitations.remove_made_by(FOUNDER_LINK.key)
        text, _ = await self.invite(FOUNDER_LINK, role=RoleName.OWNER)
        return text

    async def list_invitations(self) -> Sequence[Invitation]:
        """Returns the invitations that can still be used, the newest first."""
        now = self._clock.now()
        async with self._store.work(write=False) as work:
            return [each for each in await work.invitations.list_all() if not each.used_at and each.expires_at > now]

    async def withdraw(self, actor: Principal, invitation_id: str) -> None:
        """Withdraws an invitation. Raises NotFound; NotAllowed for one of an owner, unless an owner does it."""
        async with self._store.work() as work:
            for invitation in await work.invitations.list_all():
                if invitation.id == invitation_id:
                    check_may_grant(actor.roles, invitation.role)
            if not await work.invitations.remove(invitation_id):
                raise NotFound("There is no such invitation.", code="invitation_not_found")
            await work.audit.add([_event(actor.key, invitation_id, self._clock.now(), {"act": "withdraw"})])


async def _link(work: UnitOfWork, profile: IdentityProfile, user: User, now: datetime) -> None:
    if await work.identities.add(_identity(profile, user, now)):
        return
    known = await work.identities.find(profile.provider, profile.subject)
    if known is not None and known.user_id == user.id:
        return
    raise Conflict(
        f"This {profile.site} account belongs to another account here."
        if known
        else f"Another {profile.site} account is linked.",
        code="identity_taken",
        fix=f"Sign in with {profile.site} to use that one." if known else "Unlink it first.",
    )


def _identity(profile: IdentityProfile, user: User, now: datetime) -> LinkedIdentity:
    return LinkedIdentity(
        provider=profile.provider, subject=profile.subject, user_id=user.id, login=profile.login, linked_at=now
    )


def _event(actor: str, subject: str, now: datetime, details: dict[str, Json]) -> AuditEvent:
    return AuditEvent(AuditKind.ACCOUNT, now, actor, subject, details)


def _invitation_unknown() -> NotAllowed:
    return NotAllowed(
        "This invitation cannot be used.",
        code="invitation_unknown",
        why="it was used already, withdrawn, or is too old",
        fix="Ask for a new one.",
    )


def read_role(text: str) -> RoleName:
    """Returns the role of that name. Raises InvalidInput."""
    try:
        return RoleName(text)
    except ValueError:
        raise InvalidInput(
            "There is no such role.", code="role_unknown", fix=f"One of {', '.join(RoleName)}."
        ) from None
