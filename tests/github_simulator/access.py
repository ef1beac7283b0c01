"""Who asks the simulated GitHub, and what they may: an App by its JWT, an installation, a user, or nobody."""

from __future__ import annotations

from dataclasses import dataclass

import jwt

from denizen.domain.clock import Clock
from tests.github_simulator.state import App, Installation, Repository, User
from tests.github_simulator.world import GitHubWorld

MAX_JWT_S = 600
_SKEW_S = 60


class RefusedError(Exception):
    """An answer that is none."""

    def __init__(self, status: int, message: str, errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors


@dataclass(frozen=True, slots=True)
class ExternalCaller:
    """One of `app` (by JWT), `installation`, or `user`; none of them for a request without credentials."""

    app: App | None = None
    installation: Installation | None = None
    user: User | None = None

    @property
    def writes_as(self) -> User:
        """Raises RefusedError where nobody could."""
        if self.installation is not None:
            return self.installation.app.user
        if self.user is None:
            raise RefusedError(401, "Requires authentication")
        return self.user

    def sees(self, repository: Repository) -> bool:
        if self.installation is not None:
            return repository in self.installation.repositories
        if self.user is not None and repository.association(self.user) in ("OWNER", "MEMBER", "COLLABORATOR"):
            return True
        return not repository.private

    def check_may(self, permission: str) -> None:
        """Raises RefusedError when the App was not given it."""
        if self.installation is None:
            return
        if self.installation.app.permissions.get(permission) != "write":
            raise RefusedError(403, "Resource not accessible by integration")


def find_caller(world: GitHubWorld, authorization: str) -> ExternalCaller:
    """Raises RefusedError for credentials that are none."""
    scheme, _, text = authorization.partition(" ")
    if not authorization:
        return ExternalCaller()
    if scheme.lower() not in ("bearer", "token"):
        raise RefusedError(401, "Bad credentials")
    token = world.tokens.get(text)
    if token is not None:
        if token.expires_at <= world.clock.now():
            raise RefusedError(401, "Bad credentials")
        return ExternalCaller(installation=token.installation)
    for user in world.users.values():
        if user.token == text:
            return ExternalCaller(user=user)
    if text.count(".") == 2:
        return ExternalCaller(app=_find_app(world, text))
    raise RefusedError(401, "Bad credentials")


def _find_app(world: GitHubWorld, text: str) -> App:
    """By the signature, and within the times that GitHub allows."""
    for app in world.apps:
        try:
            claims = jwt.decode(
                text,
                app.public_key,
                algorithms=["RS256"],
                issuer=str(app.id),
                options={"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]},
            )
        except jwt.PyJWTError:
            continue
        _check_times(int(claims["iat"]), int(claims["exp"]), world.clock)
        return app
    raise RefusedError(401, "A JSON web token could not be decoded")


def _check_times(issued: int, ends: int, clock: Clock) -> None:
    now = clock.now().timestamp()
    if ends <= now:
        raise RefusedError(401, "'Expiration time' claim ('exp') must be a numeric value representing the future time")
    if ends > now + MAX_JWT_S + _SKEW_S:
        raise RefusedError(401, "'Expiration time' claim ('exp') is too far in the future")
    if issued > now + 1:
        raise RefusedError(401, "'Issued at' claim ('iat') must be an Integer representing the past")
