"""Who callers are: sign-ins in browsers and API keys that were made here, by their tokens.

What was looked up is kept for a few seconds, so that a page that loads asks the store once; whatever is revoked in this
process ends at once, and in another process within `CACHE_S`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.user import SignIn, User, UserKey, digest_token, find_role, find_sign_in_end, make_token
from denizen.engine.users.admin_names import find_held, hold_names, is_any_free, select_listed
from denizen.ports.store import Store, UnitOfWork

CACHE_S = 2.0
MAX_CACHED = 1000
TOUCH_AFTER = timedelta(minutes=5)
"""When somebody was last seen is written down as seldom as that."""
MAX_AGENT_CHARS = 200


@record
class UserPolicy:
    """Who becomes a user, and who an admin. `admins` is the configured list in lower case
    (`domain.user.find_role`).
    """

    is_open: bool = False
    admins: frozenset[str] = frozenset()


@record
class Caller:
    """Somebody who has shown a token: the principal; the user, unless it is the key of a program; and the sign-in or
    the key.
    """

    principal: Principal
    user: User | None = None
    sign_in: SignIn | None = None
    key: UserKey | None = None


@record
class Browser:
    """Where a sign-in comes from: the browser's name for itself, and the address or its network."""

    agent: str = ""
    network: str = ""


class UserCredentials:
    """Opens, finds and ends sign-ins, and finds keys."""

    def __init__(self, store: Store, clock: Clock, policy: Callable[[], UserPolicy]) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._known: dict[str, tuple[float, Caller | None]] = {}
        self._any_user: tuple[float, bool] | None = None

    async def any_user(self) -> bool:
        """Tells whether anybody has an account. While the store does not answer, what was known last holds, and at
        first that somebody has.
        """
        now_s, known = self._clock.monotonic_s(), self._any_user
        if known is not None and known[0] > now_s:
            return known[1]
        try:
            async with self._store.work(write=False) as work:
                found = await work.users.any_exists()
        except (Unavailable, NeedsAttention):
            return known[1] if known else True
        self._any_user = (now_s + CACHE_S, found)
        return found

    async def open(self, user: User, browser: Browser, *, replaces: str = "") -> str:
        """Opens a sign-in and returns its token, for the cookie. The sign-in of the token `replaces` ends."""
        token, now = make_token(), self._clock.now()
        sign_in = SignIn(
            id=fresh("sign"),
            digest=digest_token(token),
            user_id=user.id,
            created_at=now,
            seen_at=now,
            expires_at=find_sign_in_end(now, now),
            agent=browser.agent[:MAX_AGENT_CHARS],
            network=browser.network,
        )
        async with self._store.work() as work:
            await work.sign_ins.remove_expired(now)
            await _end(work, replaces)
            await work.sign_ins.add(sign_in)
        self.forget()
        return token

    async def find_by_token(self, token: str) -> Caller | None:
        """Returns whoever the sign-in of that token belongs to, while it lasts."""
        return await self._find(digest_token(token), self._load_sign_in)

    async def find_by_key(self, text: str) -> Caller | None:
        """Returns whoever the API key of that text belongs to."""
        return await self._find(digest_token(text), self._load_key)

    async def close(self, token: str) -> None:
        """Ends the sign-in of that token."""
        async with self._store.work() as work:
            await _end(work, token)
        self.forget()

    async def list_sign_ins(self, user: User) -> Sequence[SignIn]:
        """Returns the sign-ins of a user that last, the newest first."""
        now = self._clock.now()
        async with self._store.work(write=False) as work:
            return [each for each in await work.sign_ins.list_for(user.id) if each.expires_at > now]

    async def revoke(self, user: User, sign_in_id: str) -> bool:
        """Ends one sign-in of a user. False when the user has none of that id."""
        async with self._store.work() as work:
            ended = await work.sign_ins.remove(sign_in_id, user_id=user.id)
        self.forget()
        return ended

    async def revoke_others(self, user: User, *, but: str) -> int:
        """Ends all sign-ins of a user except the one with that id. Returns how many there were."""
        async with self._store.work() as work:
            ended = await work.sign_ins.remove_all(user.id, but=but)
        self.forget()
        return ended

    def forget(self) -> None:
        """Has everybody looked up anew: something has changed."""
        self._known.clear()
        self._any_user = None

    async def _find(self, digest: str, load: Callable[[UnitOfWork, str], Awaitable[Caller | None]]) -> Caller | None:
        now_s = self._clock.monotonic_s()
        known = self._known.get(digest)
        if known is not None and known[0] > now_s:
            return known[1]
        async with self._store.work(write=False) as work:
            caller = await load(work, digest)
        if caller is not None:
            caller = await self._touch(await self._raise_listed(caller))
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        if caller is not None:  # wrong tokens are not kept: whoever tries many would push out the right ones
            self._known[digest] = (now_s + CACHE_S, caller)
        return caller

    async def _load_sign_in(self, work: UnitOfWork, digest: str) -> Caller | None:
        sign_in = await work.sign_ins.find(digest)
        if sign_in is None or sign_in.expires_at <= self._clock.now():
            return None
        user = await work.users.find(sign_in.user_id)
        return None if user is None else Caller(user.principal(user.role), user, sign_in=sign_in)

    async def _load_key(self, work: UnitOfWork, digest: str) -> Caller | None:
        key = await work.user_keys.find(digest)
        if key is None:
            return None
        if not key.user_id:
            return Caller(key.principal, key=key)
        user = await work.users.find(key.user_id)
        return None if user is None else Caller(user.principal(user.role), user, key=key)

    async def _raise_listed(self, caller: Caller) -> Caller:
        """Returns the caller as an admin, if the list of admins has them."""
        admins, user = self._policy().admins, caller.user
        if not admins or user is None:
            return caller
        async with self._store.work(write=False) as work:
            listed = select_listed(await work.identities.list_for(user.id), admins)
            is_free = await is_any_free(work, listed)
            held = frozenset[str]() if is_free else await find_held(work, listed)
        if is_free:
            async with self._store.work() as work:
                held = await hold_names(work, listed, now=self._clock.now())
        return replace(caller, principal=user.principal(find_role(user, held, admins)))

    async def _touch(self, caller: Caller) -> Caller:
        """Writes down that somebody was seen, if that was long ago."""
        now, sign_in, key = self._clock.now(), caller.sign_in, caller.key
        if sign_in is not None and now - sign_in.seen_at >= TOUCH_AFTER:
            seen = replace(sign_in, seen_at=now, expires_at=find_sign_in_end(sign_in.created_at, now))
            async with self._store.work() as work:
                await work.sign_ins.touch(sign_in.id, seen_at=now, expires_at=seen.expires_at)
            return replace(caller, sign_in=seen)
        if key is not None and (key.used_at is None or now - key.used_at >= TOUCH_AFTER):
            async with self._store.work() as work:
                await work.user_keys.touch(key.id, used_at=now)
            return replace(caller, key=replace(key, used_at=now))
        return caller


async def _end(work: UnitOfWork, token: str) -> None:
    sign_in = await work.sign_ins.find(digest_token(token)) if token else None
    if sign_in is not None:
        await work.sign_ins.remove(sign_in.id, user_id=sign_in.user_id)
