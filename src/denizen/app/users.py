"""Builds the services for people with accounts. They follow the configuration as it is at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from denizen.app.build import Denizen
from denizen.domain.clock import Clock
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.users.accounts import PersonalChats, UserAccounts
from denizen.engine.users.credentials import UserCredentials, UserPolicy
from denizen.engine.users.passwords import PasswordHasher
from denizen.engine.users.registration import Registration
from denizen.ports.store import Store
from denizen.ports.users import IdentityProvider
from denizen.web.http.dependencies import UserServices

FindProviders = Callable[[], Mapping[str, IdentityProvider]]


def build_users(denizen: Denizen) -> UserServices:
    """Returns the services of a server."""

    def policy() -> UserPolicy:
        server = denizen.settings.server
        return UserPolicy(is_open=server.registration == "open", admins=read_admins(server.admins))

    return assemble_users(
        denizen.services.store,
        denizen.services.clock,
        policy,
        chats=denizen.chats,
        providers=lambda: _read_providers(denizen),
        public_url=denizen.settings.server.public_url,
    )


def assemble_users(
    store: Store,
    clock: Clock,
    policy: Callable[[], UserPolicy],
    *,
    chats: PersonalChats,
    passwords: PasswordHasher | None = None,
    providers: FindProviders = dict[str, IdentityProvider],
    public_url: str = "",
) -> UserServices:
    """Puts the services together."""
    passwords = passwords or PasswordHasher()
    credentials = UserCredentials(store, clock, policy)
    return UserServices(
        accounts=UserAccounts(
            store, clock, passwords=passwords, credentials=credentials, limiter=RateLimiter(store, clock), chats=chats
        ),
        registration=Registration(store, clock, policy, passwords=passwords, credentials=credentials),
        credentials=credentials,
        providers=providers,
        is_registration_open=lambda: policy().is_open,
        public_url=public_url,
    )


def _read_providers(denizen: Denizen) -> Mapping[str, IdentityProvider]:
    """Returns the sites of the configuration that people may sign in with."""
    section, secrets = denizen.settings.server.sign_in, denizen.settings.secrets
    if section.github is None and section.discord is None:
        return {}
    from denizen.adapters.sign_in import DISCORD, DISCORD_NAME, GITHUB, GITHUB_NAME, OAuthApplication

    sites = (GITHUB_NAME, GITHUB, section.github), (DISCORD_NAME, DISCORD, section.discord)
    return {
        name: OAuthApplication(site, chosen.client_id, secrets.resolve(chosen.client_secret))
        for name, site, chosen in sites
        if chosen is not None
    }


def read_admins(names: Iterable[str]) -> frozenset[str]:
    """Returns the list of admins as the engine knows it: a name without a site is one of GitHub."""
    lower = (name.strip().lower() for name in names)
    return frozenset(name if "@" in name or ":" in name else f"github:{name}" for name in lower)
