"""Which repositories an account can read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

import anyio

from denizen.adapters.github.api import Api, Credentials
from denizen.adapters.github.client import PAGE, Call, Client, Payload, flag_of, items_of, text_of
from denizen.adapters.github.settings import AccountSettings
from denizen.adapters.github.threads import Thread, ThreadKind
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.message import Author
from denizen.domain.principal import Principal
from denizen.ports.hosting import HostedRepository

MAX_PAGES = 20
KNOWN_S = 60.0
"""How long a list is shown to those who ask. Anybody with a key may, and GitHub's limits count for the answers too."""


class Repositories:
    """Those of one account. One request is on its way at a time, and who waits for it is given what it brought."""

    def __init__(self, client: Client, credentials: Credentials, settings: AccountSettings, clock: Clock) -> None:
        self._client = client
        self._credentials = credentials
        self._settings = settings
        self._clock = clock
        self._lock = anyio.Lock()
        self._known: Sequence[HostedRepository] = ()
        self._known_until_s = float("-inf")

    async def load(self) -> Sequence[HostedRepository]:
        """As they are now."""
        found = await list_repositories(self._client, self._credentials, self._settings)
        self._known, self._known_until_s = found, self._clock.monotonic_s() + KNOWN_S
        return found

    async def show(self) -> Sequence[HostedRepository]:
        """As they were within the last minute."""
        async with self._lock:
            return self._known if self._clock.monotonic_s() < self._known_until_s else await self.load()


async def list_repositories(
    client: Client, credentials: Credentials, settings: AccountSettings
) -> Sequence[HostedRepository]:
    """Those in which it may answer, the most recently used first: of all installations of an App, of a user all."""
    path, key = ("/installation/repositories", "repositories") if settings.is_app else ("/user/repos", "")
    found: dict[str, HostedRepository] = {}
    for authorization in await credentials.list_all():
        call = Call("GET", path, "list repositories", params={"per_page": str(PAGE)})
        for _ in range(MAX_PAGES):
            answer = await client.send(call, authorization)
            found |= {text_of(row, "full_name"): _repository(row) for row in items_of(answer.body, key)}
            if not answer.next_url:
                break
            call = Call("GET", answer.next_url, call.doing)
    admitted = [each for name, each in found.items() if name and settings.admits(name)]
    return sorted(admitted, key=lambda each: each.updated_at, reverse=True)


def _repository(row: Payload) -> HostedRepository:
    return HostedRepository(
        text_of(row, "full_name"), text_of(row, "clone_url"), text_of(row, "default_branch"), flag_of(row, "private"),
        text_of(row, "description"), max(text_of(row, "pushed_at"), text_of(row, "updated_at")),
    )  # fmt: skip


MAX_KNOWN = 10_000
_WRITING = frozenset({"admin", "maintain", "write"})


class People:
    """For one account. Logins are remembered; permissions are asked for each time."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._logins: dict[str, str] = {}

    def meet(self, author: Author) -> None:
        if len(self._logins) >= MAX_KNOWN:
            self._logins.clear()
        self._logins[author.id] = author.name

    async def find_logins(self, user_ids: Collection[str], repository: str) -> Mapping[str, str]:
        """By id; those who cannot be found are missing."""
        found: dict[str, str] = {}
        for user_id in user_ids:
            try:
                found[user_id] = await self._login(user_id, repository)
            except DenizenError:
                continue
        return found

    async def is_public(self, repository: str) -> bool:
        """Raises the errors of `Api`."""
        answer = await self._api.send(Call("GET", f"/repos/{repository}", "look at a repository"), repository)
        return answer.body.get("private") is False

    async def may_write(self, thread: Thread, principal: Principal) -> bool:
        """Whoever can read may comment, but where talk is locked. Raises the errors of `Api`."""
        repository = thread.repository
        about = (await self._api.send(Call("GET", f"/repos/{repository}", "look at a repository"), repository)).body
        is_locked = False
        if thread.kind is not ThreadKind.DISCUSSION:
            path = f"/repos/{repository}/issues/{thread.number}"
            is_locked = flag_of((await self._api.send(Call("GET", path, "read an issue"), repository)).body, "locked")
        if not is_locked and not flag_of(about, "private"):
            return True
        permission = await self._permission(repository, principal)
        return permission in _WRITING or (permission in ("read", "triage") and not is_locked)

    async def _permission(self, repository: str, principal: Principal) -> str:
        try:
            login = await self._login(principal.id.rpartition(":")[2], repository)
            path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
            answer = await self._api.send(Call("GET", path, "look at a user's permission"), repository)
        except NotFound:
            return "none"
        return text_of(answer.body, "permission")

    async def _login(self, user_id: str, repository: str) -> str:
        known = self._logins.get(user_id)
        if known is None:
            answer = await self._api.send(Call("GET", f"/user/{quote(user_id, safe='')}", "find a user"), repository)
            known = self._logins[user_id] = text_of(answer.body, "login")
        return known
