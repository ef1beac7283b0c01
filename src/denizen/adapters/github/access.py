"""The repositories that an account can read, and what users may do there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

import anyio

from denizen.adapters.github.api import GitHubApi, GitHubCredentials
from denizen.adapters.github.client import PAGE, GitHubClient, GitHubRequest, Payload, get_flag, get_text, list_items
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.adapters.github.threads import GitHubThread, ThreadKind
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.message import Author
from denizen.domain.principal import Principal
from denizen.ports.hosting import HostedRepository

# Bounds the requests for an account with thousands of repositories.
MAX_PAGES = 20
KNOWN_S = 60.0
"""The lifetime of a cached list. Anybody with a key may ask for it, and each load counts towards GitHub's limits."""


class RepositoryList:
    """The repositories of one account. One request runs at a time, and everybody who waits gets its result."""

    def __init__(
        self, client: GitHubClient, credentials: GitHubCredentials, settings: GitHubAccountSettings, clock: Clock
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._settings = settings
        self._clock = clock
        self._lock = anyio.Lock()
        self._known: Sequence[HostedRepository] = ()
        self._known_until_s = float("-inf")

    async def load(self) -> Sequence[HostedRepository]:
        """Returns the current repositories."""
        found = await list_repositories(self._client, self._credentials, self._settings)
        self._known, self._known_until_s = found, self._clock.monotonic_s() + KNOWN_S
        return found

    async def show(self) -> Sequence[HostedRepository]:
        """Returns the repositories as they were within the last minute."""
        async with self._lock:
            return self._known if self._clock.monotonic_s() < self._known_until_s else await self.load()


async def list_repositories(
    client: GitHubClient, credentials: GitHubCredentials, settings: GitHubAccountSettings
) -> Sequence[HostedRepository]:
    """Returns the repositories in which the account may answer, the most recently used first: those of all
    installations of an App, or all that a user can read.
    """
    path, key = ("/installation/repositories", "repositories") if settings.is_app else ("/user/repos", "")
    found: dict[str, HostedRepository] = {}
    for authorization in await credentials.list_all():
        call = GitHubRequest("GET", path, "list repositories", params={"per_page": str(PAGE)})
        for _ in range(MAX_PAGES):
            answer = await client.send(call, authorization)
            for row in list_items(answer.body, key):
                name = get_text(row, "full_name")
                found[name] = HostedRepository(
                    name=name,
                    address=get_text(row, "clone_url"),
                    branch=get_text(row, "default_branch"),
                    is_private=get_flag(row, "private"),
                    description=get_text(row, "description"),
                    updated_at=max(get_text(row, "pushed_at"), get_text(row, "updated_at")),
                )
            if not answer.next_url:
                break
            call = GitHubRequest("GET", answer.next_url, call.doing)
    admitted = [each for name, each in found.items() if name and settings.admits(name)]
    return sorted(admitted, key=lambda each: each.updated_at, reverse=True)


# Bounds the memory of the login cache.
MAX_KNOWN = 10_000
_WRITING = frozenset({"admin", "maintain", "write"})


class GitHubUsers:
    """The users that one account deals with. Logins are cached; permissions are asked for each time."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api
        self._logins: dict[str, str] = {}

    def meet(self, author: Author) -> None:
        if len(self._logins) >= MAX_KNOWN:
            self._logins.clear()
        self._logins[author.id] = author.name

    async def find_logins(self, user_ids: Collection[str], repository: str) -> Mapping[str, str]:
        """Returns logins by user id; users that cannot be found are missing."""
        found: dict[str, str] = {}
        for user_id in user_ids:
            try:
                found[user_id] = await self._login(user_id, repository)
            except DenizenError:
                continue
        return found

    async def is_public(self, repository: str) -> bool:
        """Whether the repository is public. Raises the errors of `GitHubApi`."""
        return (await self._load_repository(repository)).get("private") is False

    async def may_write(self, thread: GitHubThread, principal: Principal) -> bool:
        """Whether the principal may comment: all who can read may, unless the thread is locked."""
        repository = thread.repository
        about = await self._load_repository(repository)
        is_locked = False
        if thread.kind is not ThreadKind.DISCUSSION:
            issue = await self._api.send(GitHubRequest("GET", thread.issue_path, "read an issue"), repository)
            is_locked = get_flag(issue.body, "locked")
        if not is_locked and not get_flag(about, "private"):
            return True
        permission = await self._permission(repository, principal)
        return permission in _WRITING or (permission in ("read", "triage") and not is_locked)

    async def _load_repository(self, repository: str) -> Payload:
        call = GitHubRequest("GET", f"/repos/{repository}", "look at a repository")
        return (await self._api.send(call, repository)).body

    async def _permission(self, repository: str, principal: Principal) -> str:
        try:
            login = await self._login(principal.id.rpartition(":")[2], repository)
            path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
            answer = await self._api.send(GitHubRequest("GET", path, "look at a user's permission"), repository)
        except NotFound:
            return "none"
        return get_text(answer.body, "permission")

    async def _login(self, user_id: str, repository: str) -> str:
        known = self._logins.get(user_id)
        if known is None:
            call = GitHubRequest("GET", f"/user/{quote(user_id, safe='')}", "find a user")
            known = self._logins[user_id] = get_text((await self._api.send(call, repository)).body, "login")
        return known
