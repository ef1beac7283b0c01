"""The ports of people with accounts: users, their sign-ins, linked identities and keys, and invitations. Part of a unit
of work; and the port of sites that people sign in with.

Removing a user removes the sign-ins, identities and keys of that user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.ids import TurnId
from denizen.domain.json import JsonObject
from denizen.domain.record import record
from denizen.domain.user import IdentityProfile, Invitation, LinkedIdentity, SignIn, User, UserKey


class UserRepository(Protocol):
    """The people with an account."""

    async def add(self, user: User, *, is_founder: bool = False) -> bool:
        """Adds the user. False when the id or the e-mail is taken. There is at most one founder: of several that are
        added at once, one gets True.
        """
        ...

    async def find(self, user_id: str) -> User | None: ...

    async def find_by_email(self, email: str) -> User | None: ...

    async def list_users(self) -> Sequence[User]:
        """Returns all, the oldest first."""
        ...

    async def lock_owners(self) -> Sequence[User]:
        """Returns the owners. Until the unit of work ends nobody else makes or unmakes one of them."""
        ...

    async def any_exists(self) -> bool: ...

    async def update(self, user: User) -> bool:
        """Writes all but the id and the creation time. False when the e-mail is taken or the user is gone."""
        ...

    async def remove(self, user_id: str) -> bool:
        """Removes the user. False when there is none."""
        ...


class SignInRepository(Protocol):
    """The sign-ins of people."""

    async def add(self, sign_in: SignIn) -> None: ...

    async def find(self, digest: str) -> SignIn | None: ...

    async def list_for(self, user_id: str) -> Sequence[SignIn]:
        """Returns the sign-ins of a user, the newest first."""
        ...

    async def touch(self, sign_in_id: str, *, seen_at: datetime, expires_at: datetime) -> None: ...

    async def confirm(self, sign_in_id: str, *, confirmed_at: datetime) -> None:
        """Writes down that the password was given in the sign-in."""
        ...

    async def remove(self, sign_in_id: str, *, user_id: str) -> bool:
        """Ends the sign-in. False when there is none, or it is somebody else's."""
        ...

    async def remove_all(self, user_id: str, *, but: str = "") -> int:
        """Ends all sign-ins of a user, except the one with that id. Returns how many there were."""
        ...

    async def remove_expired(self, now: datetime) -> None: ...


class IdentityRepository(Protocol):
    """The linked identities."""

    async def add(self, identity: LinkedIdentity) -> bool:
        """Links the identity. False when it is linked already, to whomever, or the user has one of that site."""
        ...

    async def find(self, provider: str, subject: str) -> LinkedIdentity | None: ...

    async def list_for(self, user_id: str) -> Sequence[LinkedIdentity]: ...

    async def rename(self, provider: str, subject: str, login: str) -> None:
        """Writes the name that the identity has by now."""
        ...

    async def remove(self, provider: str, *, user_id: str) -> bool: ...


class AdminNameRepository(Protocol):
    """Who holds the names on the list of admins: the account at the other site that was first known here by a name."""

    async def find_holder(self, name: str) -> str | None: ...

    async def hold(self, name: str, holder: str, *, now: datetime) -> str:
        """Lets the holder hold the name, unless there is one. Returns who holds it."""
        ...


class UserKeyRepository(Protocol):
    """The API keys that were made here."""

    async def add(self, key: UserKey) -> None: ...

    async def find(self, digest: str) -> UserKey | None: ...

    async def list_for(self, user_id: str) -> Sequence[UserKey]:
        """Returns the keys of a user, the oldest first; with an empty id those for programs."""
        ...

    async def list_all(self) -> Sequence[UserKey]: ...

    async def touch(self, key_id: str, *, used_at: datetime) -> None: ...

    async def remove(self, key_id: str, *, user_id: str | None = None) -> bool:
        """Removes the key. False when there is none, or it is not that user's."""
        ...


class InvitationRepository(Protocol):
    """The invitations."""

    async def add(self, invitation: Invitation) -> None: ...

    async def find(self, digest: str) -> Invitation | None: ...

    async def list_all(self) -> Sequence[Invitation]:
        """Returns all, the newest first."""
        ...

    async def use(self, digest: str, *, now: datetime) -> Invitation | None:
        """Uses the invitation up, once. None when there is none that is open. Of several units of work that use it at
        once, one gets it.
        """
        ...

    async def remove(self, invitation_id: str) -> bool: ...

    async def remove_made_by(self, created_by: str) -> None:
        """Removes the invitations of a principal that are not used yet."""
        ...


class PersonalDataRepository(Protocol):
    """Everything that the store holds of one person of the web, whichever table it is in; and how much it holds of one
    member of a platform.
    """

    async def export(self, user_id: str) -> Mapping[str, Sequence[JsonObject]]:
        """Returns the rows by the name of their table, without secrets and what only the database needs."""
        ...

    async def list_turns(self, user_id: str) -> Sequence[TurnId]:
        """Returns the ids of all turns of the person."""
        ...

    async def count_member(self, principal: str) -> Mapping[str, int]:
        """Returns how many rows name the member of a platform with that principal key, by what they are, without posts
        and messages.
        """
        ...

    async def erase(self, user_id: str) -> None:
        """Removes the rows, and the name of the person from rows that stay for others."""
        ...


@record
class AuthorizationRequest:
    """The beginning of a sign-in at another site: where the browser goes, and what to keep until it comes back."""

    url: str
    state: str
    verifier: str


class IdentityProvider(Protocol):
    """A site that people sign in with. `label` is its name for people."""

    @property
    def label(self) -> str: ...

    async def begin(self, *, redirect_uri: str) -> AuthorizationRequest:
        """Returns the address of the site's sign-in, with a new state and a challenge."""
        ...

    async def complete(self, *, code: str, verifier: str, redirect_uri: str) -> IdentityProfile:
        """Returns who has signed in there. Raises NotAllowed when the site refuses the code, Unavailable when it does
        not answer.
        """
        ...
