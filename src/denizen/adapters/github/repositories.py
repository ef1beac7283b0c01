"""Which repositories an account can read."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from denizen.adapters.github.credentials import Credentials
from denizen.adapters.github.payload import Payload, flag_of, text_of
from denizen.adapters.github.requests import PAGE, Call, Client, items_of
from denizen.adapters.github.settings import AccountSettings
from denizen.domain.clock import Clock
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
        text_of(row, "full_name"),
        text_of(row, "clone_url"),
        text_of(row, "default_branch"),
        flag_of(row, "private"),
        text_of(row, "description"),
        max(text_of(row, "pushed_at"), text_of(row, "updated_at")),
    )
