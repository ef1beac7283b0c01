"""The OAuth dialogue with a site, by Authlib: it makes the addresses and trades the code for a token. The token is used
once, to ask who it belongs to, and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, Self, cast

from anyio import to_thread

from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.record import record
from denizen.domain.user import IdentityProfile, make_token
from denizen.ports.users import AuthorizationRequest

GITHUB_NAME, DISCORD_NAME = "github", "discord"
"""The names in configuration and addresses."""
TIMEOUT_S = 15.0

Answers = Sequence[Any]


class _Answer(Protocol):
    def raise_for_status(self) -> _Answer: ...
    def json(self) -> Any: ...  # noqa: ANN401 - any JSON value


class _OAuthClient(Protocol):
    """The part of Authlib's client that is used here; it has no types of its own."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *error: object) -> None: ...
    def create_authorization_url(self, url: str, *, code_verifier: str) -> tuple[str, str]: ...
    async def fetch_token(self, url: str, *, code: str, code_verifier: str) -> object: ...
    async def get(self, url: str) -> _Answer: ...


@record(kw_only=True)
class OAuthSite:
    """A site: its name for people, and its addresses. `profile_urls` are asked in their order, and `read` makes a
    profile of their answers.
    """

    label: str
    authorize_url: str
    token_url: str
    profile_urls: Sequence[str]
    scope: str
    read: Callable[[Answers], IdentityProfile]


@record
class OAuthApplication:
    """The application of this server at a site. Implements `denizen.ports.users.IdentityProvider`."""

    site: OAuthSite
    client_id: str
    client_secret: str = field(repr=False)

    @property
    def label(self) -> str:
        return self.site.label

    async def begin(self, *, redirect_uri: str) -> AuthorizationRequest:
        verifier = make_token()
        async with await self._open(redirect_uri) as client:
            url, state = client.create_authorization_url(self.site.authorize_url, code_verifier=verifier)
        return AuthorizationRequest(url, state, verifier)

    async def complete(self, *, code: str, verifier: str, redirect_uri: str) -> IdentityProfile:
        from authlib.integrations.base_client import OAuthError
        from httpx2 import HTTPError

        try:
            async with await self._open(redirect_uri) as client:
                await client.fetch_token(self.site.token_url, code=code, code_verifier=verifier)
                answers = [(await client.get(url)).raise_for_status().json() for url in self.site.profile_urls]
            return self.site.read(answers)
        except OAuthError as error:
            raise NotAllowed(
                f"{self.label} did not let you sign in.",
                code="oauth_refused",
                fix="Sign in again. Operators: the log says what the site answered.",
                answer=str(error),
            ) from error
        except (HTTPError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                f"{self.label} does not answer as it should.", code="oauth_unavailable", fix="Try again later."
            ) from error

    async def _open(self, redirect_uri: str) -> _OAuthClient:
        # In a thread, since the first import takes a tenth of a second.
        client_type = await to_thread.run_sync(_import_client)
        return client_type(
            client_id=self.client_id,
            client_secret=self.client_secret,
            scope=self.site.scope,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
            headers={"Accept": "application/json", "User-Agent": "Denizen"},
        )


def _import_client() -> Callable[..., _OAuthClient]:
    from authlib.integrations.httpx_client import AsyncOAuth2Client

    return cast("Callable[..., _OAuthClient]", AsyncOAuth2Client)


def _read_github(answers: Answers) -> IdentityProfile:
    user, emails = cast("Mapping[str, Any]", answers[0]), cast("Sequence[Mapping[str, Any]]", answers[1])
    primary = next((str(each["email"]) for each in emails if each["primary"] is True and each["verified"] is True), "")
    login = str(user["login"])
    return IdentityProfile(
        provider=GITHUB_NAME,
        site=GITHUB.label,
        subject=str(int(user["id"])),
        login=login,
        name=str(user.get("name") or login),
        email=primary.lower(),
    )


def _read_discord(answers: Answers) -> IdentityProfile:
    user = cast("Mapping[str, Any]", answers[0])
    login = str(user["username"])
    return IdentityProfile(
        provider=DISCORD_NAME,
        site=DISCORD.label,
        subject=str(int(user["id"])),
        login=login,
        name=str(user.get("global_name") or login),
        email=str(user.get("email") or "").lower() if user.get("verified") is True else "",
    )


GITHUB = OAuthSite(
    label="GitHub",
    authorize_url="https://github.com/login/oauth/authorize",
    token_url="https://github.com/login/oauth/access_token",  # noqa: S106 - an address
    profile_urls=("https://api.github.com/user", "https://api.github.com/user/emails"),
    scope="read:user user:email",
    read=_read_github,
)
DISCORD = OAuthSite(
    label="Discord",
    authorize_url="https://discord.com/oauth2/authorize",
    token_url="https://discord.com/api/oauth2/token",  # noqa: S106 - an address
    profile_urls=("https://discord.com/api/users/@me",),
    scope="identify email",
    read=_read_discord,
)
