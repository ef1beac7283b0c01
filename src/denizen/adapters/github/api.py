"""GitHub's API in the name of an account: tokens, pages of lists, and GraphQL where REST has nothing.

A token of an installation is valid for an hour and is used for 50 minutes. An App's own requests carry a JWT that it
signs with its key.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

import anyio

from denizen.adapters.github.client import (
    PAGE,
    SECONDARY_PAUSE_S,
    GitHubClient,
    GitHubRequest,
    GitHubResponse,
    Payload,
    describe_errors,
    get_object,
    list_items,
    make_rate_limited,
)
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound
from denizen.domain.record import record

# A token is valid for an hour. It must not expire on its way.
TOKEN_LIFE_S = 50 * 60.0
JWT_LIFE_S = 9 * 60
"""The lifetime of a JWT. GitHub accepts ten minutes at most."""
# JWTs are dated back, since GitHub rejects one from its future.
CLOCK_SKEW_S = 60


@record
class GitHubIdentity:
    """The account's user on GitHub. `mention` is what people write behind the @; `about` describes it for people."""

    user_id: str
    login: str
    mention: str
    about: str


class GitHubCredentials(Protocol):
    """Provides the `authorization` header of requests. Raises the errors of `client`, and NeedsAttention."""

    async def identify(self) -> GitHubIdentity: ...

    async def for_repository(self, repository: str) -> str: ...

    async def list_all(self) -> Sequence[str]:
        """Returns a header for each installation; for an account that is no App, its only one."""
        ...

    def know_installation(self, repository: str, installation: int) -> None:
        """Notes the installation that a webhook named for a repository."""
        ...

    def forget(self, authorization: str) -> bool:
        """Drops a header that GitHub refused. Returns whether another one may be had."""
        ...


class TokenCredentials:
    """Credentials with a user's token, classic or fine-grained."""

    def __init__(self, client: GitHubClient, settings: GitHubAccountSettings) -> None:
        self._client = client
        self._authorization = f"Bearer {settings.token}"

    async def identify(self) -> GitHubIdentity:
        answer = await self._client.send(GitHubRequest("GET", "/user", "ask who it is"), self._authorization)
        login = str(answer.body["login"])
        return GitHubIdentity(str(answer.body["id"]), login, login, f"the user {login}")

    async def for_repository(self, repository: str) -> str:
        return self._authorization

    async def list_all(self) -> Sequence[str]:
        return (self._authorization,)

    def know_installation(self, repository: str, installation: int) -> None:
        """Does nothing: a user has no installations."""

    def forget(self, authorization: str) -> bool:
        return False


@record
class _InstallationToken:
    text: str
    taken_at_s: float


class AppCredentials:
    """Credentials of a GitHub App."""

    def __init__(self, client: GitHubClient, settings: GitHubAccountSettings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._installations: dict[str, int] = {}
        self._tokens: dict[int, _InstallationToken] = {}
        self._locks: defaultdict[int, anyio.Lock] = defaultdict(anyio.Lock)

    async def identify(self) -> GitHubIdentity:
        """Returns the identity of the user that the App writes as: `slug[bot]`."""
        app = await self.load_app()
        slug = str(app["slug"])
        login = f"{slug}[bot]"
        authorizations = await self.list_all()
        first = authorizations[0] if authorizations else ""
        answer = await self._client.send(GitHubRequest("GET", f"/users/{slug}%5Bbot%5D", "ask who it is"), first)
        return GitHubIdentity(str(answer.body["id"]), login, slug, f"the App {app.get('name') or slug}")

    async def load_app(self) -> dict[str, Any]:
        """Returns the App as GitHub describes it, with its permissions and events."""
        return (await self._client.send(GitHubRequest("GET", "/app", "ask who it is"), self._own())).body

    async def load_hook(self) -> dict[str, Any]:
        """Returns where and how GitHub sends the App's webhooks."""
        call = GitHubRequest("GET", "/app/hook/config", "look at its webhook")
        return (await self._client.send(call, self._own())).body

    async def for_repository(self, repository: str) -> str:
        key = repository.lower()
        installation = self._installations.get(key)
        if installation is None:
            call = GitHubRequest("GET", f"/repos/{repository}/installation", "find its installation")
            installation = int((await self._client.send(call, self._own())).body["id"])
            self._installations[key] = installation
        return await self._token(installation)

    async def list_all(self) -> Sequence[str]:
        call = GitHubRequest("GET", "/app/installations", "list its installations", params={"per_page": str(PAGE)})
        rows = list_items((await self._client.send(call, self._own())).body)
        return [await self._token(int(row["id"])) for row in rows if not row.get("suspended_at")]

    def know_installation(self, repository: str, installation: int) -> None:
        self._installations[repository.lower()] = installation

    def forget(self, authorization: str) -> bool:
        for installation, token in list(self._tokens.items()):
            if authorization == f"Bearer {token.text}":
                del self._tokens[installation]
                self._installations = {k: v for k, v in self._installations.items() if v != installation}
                return True
        return False

    async def _token(self, installation: int) -> str:
        async with self._locks[installation]:
            known, now_s = self._tokens.get(installation), self._clock.monotonic_s()
            if known is None or now_s - known.taken_at_s >= TOKEN_LIFE_S:
                call = GitHubRequest("POST", f"/app/installations/{installation}/access_tokens", "get a token")
                body = (await self._client.send(call, self._own())).body
                known = self._tokens[installation] = _InstallationToken(str(body["token"]), now_s)
        return f"Bearer {known.text}"

    def _own(self) -> str:
        import jwt

        now = int(self._clock.now().timestamp())
        claims = {"iat": now - CLOCK_SKEW_S, "exp": now + JWT_LIFE_S, "iss": self._settings.app_id}
        try:
            return f"Bearer {jwt.encode(claims, self._settings.private_key, algorithm='RS256')}"
        except (ValueError, TypeError, jwt.PyJWTError):
            raise NeedsAttention(
                "The private key of the GitHub App cannot be used.",
                code="github_key_unusable",
                why=self._settings.key_problem or "It is no RSA key in PEM form.",
                fix=f"Generate one on the App's page, and name its file in {self._settings.setting}.private_key_file.",
            ) from None


def build_credentials(client: GitHubClient, settings: GitHubAccountSettings, clock: Clock) -> GitHubCredentials:
    """Builds the credentials that the settings call for."""
    return AppCredentials(client, settings, clock) if settings.is_app else TokenCredentials(client, settings)


MAX_PAGES = 10
_PAGE_NUMBER = re.compile(r"[?&]page=(?P<number>\d+)")
# GitHub Enterprise Server has REST below this path, and GraphQL beside it.
_ENTERPRISE = "/api/v3"


@record
class GitHubApi:
    """Requests of one account. Raises the errors of `client`. `repository` is `owner/name` everywhere."""

    client: GitHubClient
    credentials: GitHubCredentials

    async def send(self, call: GitHubRequest, repository: str) -> GitHubResponse:
        """Sends a request. A token that was revoked before its time is replaced once."""
        authorization = await self.credentials.for_repository(repository)
        try:
            return await self.client.send(call, authorization)
        except NeedsAttention:
            if not self.credentials.forget(authorization):
                raise
        return await self.client.send(call, await self.credentials.for_repository(repository))

    async def forward(self, call: GitHubRequest, repository: str) -> AsyncGenerator[dict[str, Any]]:
        """Yields the items of a list from its first page on, of at most `MAX_PAGES` pages."""
        call = replace(call, params={"per_page": str(PAGE), **(call.params or {})})
        for _ in range(MAX_PAGES):
            answer = await self.send(call, repository)
            for item in list_items(answer.body):
                yield item
            if not answer.next_url:
                return
            call = GitHubRequest("GET", answer.next_url, call.doing)

    async def list_all(self, call: GitHubRequest, repository: str) -> list[dict[str, Any]]:
        """Returns the same items as a list."""
        async with aclosing(self.forward(call, repository)) as items:
            return [item async for item in items]

    async def list_last(self, call: GitHubRequest, repository: str, limit: int) -> list[dict[str, Any]]:
        """Returns at most `limit` items from the end of a list that grows there, in its order."""
        params = {"per_page": str(PAGE), **(call.params or {})}
        first = await self.send(replace(call, params=params), repository)
        number = _PAGE_NUMBER.search(first.last_url)
        if number is None:
            return list_items(first.body)[-limit:]
        found: list[dict[str, Any]] = []
        last = int(number["number"])
        for page in range(last, max(last - MAX_PAGES, 0), -1):
            answer = await self.send(replace(call, params={**params, "page": str(page)}), repository)
            found = list_items(answer.body) + found
            if len(found) >= limit:
                break
        return found[-limit:]

    async def query(self, text: str, variables: Mapping[str, Any], repository: str, doing: str) -> Payload:
        """Returns the data of a GraphQL request. It is never retried like a read, since it may write."""
        call = GitHubRequest("POST", self._graphql_url, doing, json={"query": text, "variables": dict(variables)})
        body = (await self.send(call, repository)).body
        errors = list_items(body, "errors")
        if errors:
            raise _translate_graphql_errors(errors[0], describe_errors(body), doing)
        return get_object(body or {}, "data")

    @property
    def _graphql_url(self) -> str:
        base = self.client.api_url
        return base.removesuffix(_ENTERPRISE) + "/api/graphql" if base.endswith(_ENTERPRISE) else f"{base}/graphql"


def _translate_graphql_errors(error: Mapping[str, Any], said: str, doing: str) -> DenizenError:
    match error.get("type"):
        case "NOT_FOUND":
            return NotFound(f"What the account wanted to {doing} is not on GitHub.", code="github_gone", why=said)
        case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
            return NotAllowed(f"The account may not {doing}.", code="github_forbidden", why=said)
        case "RATE_LIMITED":
            return make_rate_limited(doing, said, SECONDARY_PAUSE_S)
        case _:
            return InvalidInput(f"GitHub would not let the account {doing}.", code="github_rejected", why=said)
