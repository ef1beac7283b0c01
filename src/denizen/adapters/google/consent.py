"""The consent of an account's owner, and access tokens from it: OAuth 2.0 for installed applications, with PKCE, by
Authlib. https://developers.google.com/identity/protocols/oauth2/native-app
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, Self, cast

from anyio import to_thread

from denizen.domain.errors import NeedsAttention, NotAllowed, Unavailable
from denizen.domain.record import record
from denizen.domain.user import make_token
from denizen.ports.google import GoogleLogin, GoogleService
from denizen.ports.users import AuthorizationRequest

AUTHORIZE_URL = "https://accounts.google.com/o/oauth2/v2/auth"
TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
TIMEOUT_S = 15.0
CONNECT = "Run `denizen connect google`."

_SCOPE = "https://www.googleapis.com/auth/"
SCOPES: Mapping[GoogleService, tuple[str, ...]] = {
    GoogleService.GMAIL: (f"{_SCOPE}gmail.readonly", f"{_SCOPE}gmail.compose"),
    GoogleService.CALENDAR: (f"{_SCOPE}calendar.calendarlist.readonly", f"{_SCOPE}calendar.events"),
    GoogleService.DRIVE: (f"{_SCOPE}drive.readonly", f"{_SCOPE}drive.file"),
}
"""The scopes that the account's owner is asked for, by service: no more than its tools do."""


class _OAuthClient(Protocol):
    """The part of Authlib's client that is used here; it has no types of its own."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *error: object) -> None: ...
    def create_authorization_url(self, url: str, **parameters: str) -> tuple[str, str]: ...
    async def fetch_token(self, url: str, *, code: str, code_verifier: str) -> Mapping[str, Any]: ...
    async def refresh_token(self, url: str, *, refresh_token: str) -> Mapping[str, Any]: ...


@record
class AccessToken:
    """A token for requests, and for how many seconds it is valid."""

    text: str
    valid_s: float


class HttpGoogleConsent:
    """Implements `ports.google.GoogleConsent`, and renews access tokens."""

    def __init__(self, login: GoogleLogin) -> None:
        self._login = login
        base = login.api_url.rstrip("/")
        self._authorize_url = f"{base}/o/oauth2/v2/auth" if base else AUTHORIZE_URL
        self._token_url = f"{base}/token" if base else TOKEN_URL

    async def begin(self, services: Collection[GoogleService], *, redirect_uri: str) -> AuthorizationRequest:
        verifier = make_token()
        scopes = [scope for service in GoogleService if service in services for scope in SCOPES[service]]
        async with await self._open(redirect_uri, " ".join(scopes)) as client:
            # `consent` is asked for each time: without it Google gives a token to keep the first time only.
            url, state = client.create_authorization_url(
                self._authorize_url, code_verifier=verifier, access_type="offline", prompt="consent"
            )
        return AuthorizationRequest(url, state, verifier)

    async def complete(self, *, code: str, verifier: str, redirect_uri: str) -> str:
        from authlib.integrations.base_client import OAuthError

        try:
            async with await self._open(redirect_uri) as client:
                token = await self._ask(client.fetch_token(self._token_url, code=code, code_verifier=verifier))
        except OAuthError as error:
            raise NotAllowed(
                "Google did not accept this consent.",
                code="google_refused",
                why=str(error),
                fix="Begin anew; check google.client_id and client_secret: those of a client of the type Desktop app.",
            ) from error
        kept = token.get("refresh_token")
        if not isinstance(kept, str) or not kept:
            raise NeedsAttention(
                "Google gave no token to keep.",
                code="google_refused",
                fix="Take Denizen's access away at myaccount.google.com/permissions, and begin anew.",
            )
        return kept

    async def renew(self) -> AccessToken:
        """Returns a new access token. Raises NeedsAttention where there is no consent, or no longer."""
        from authlib.integrations.base_client import OAuthError

        if not self._login.refresh_token:
            raise NeedsAttention("No Google account is connected.", code="google_not_connected", fix=CONNECT)
        try:
            async with await self._open("") as client:
                refresh = client.refresh_token(self._token_url, refresh_token=self._login.refresh_token)
                token = await self._ask(refresh)
            return AccessToken(str(token["access_token"]), float(token.get("expires_in", 0)))
        except OAuthError as error:
            raise NeedsAttention(
                "Google no longer lets Denizen use the account.",
                code="google_sign_in",
                why=str(error),
                fix=f"{CONNECT} Consents of an application that is in testing end after a week.",
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise _unavailable(error) from error

    async def _ask(self, asked: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a coroutine of an untyped library
        from httpx2 import HTTPError

        try:
            return cast("Mapping[str, Any]", await asked)
        except (HTTPError, ValueError, KeyError, TypeError) as error:
            raise _unavailable(error) from error

    async def _open(self, redirect_uri: str, scope: str = "") -> _OAuthClient:
        # In a thread, since the first import takes a tenth of a second.
        client_type = await to_thread.run_sync(_import_client)
        return client_type(
            client_id=self._login.client_id,
            client_secret=self._login.client_secret,
            token_endpoint_auth_method="client_secret_post",  # noqa: S106 - the name of a way
            scope=scope or None,
            redirect_uri=redirect_uri or None,
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
            headers={"Accept": "application/json", "User-Agent": "Denizen"},
        )


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(
        "Google does not answer as it should.",
        code="google_unavailable",
        why=type(error).__name__,
        fix="Check the network, and try again later.",
    )


def _import_client() -> Callable[..., _OAuthClient]:
    from authlib.integrations.httpx_client import AsyncOAuth2Client

    return cast("Callable[..., _OAuthClient]", AsyncOAuth2Client)
