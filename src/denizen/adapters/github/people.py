"""People of GitHub: their logins, and what they may do in a repository at this moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import quote

from denizen.adapters.github.api import Api
from denizen.adapters.github.payload import flag_of, text_of
from denizen.adapters.github.requests import Call
from denizen.adapters.github.threads import Thread, ThreadKind
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.message import Author
from denizen.domain.principal import Principal

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
