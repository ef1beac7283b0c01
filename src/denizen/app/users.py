"""Builds the services for people with accounts. They follow the configuration as it is at each call."""

from __future__ import annotations

from collections.abc import Mapping

from denizen.app.build import Denizen
from denizen.domain.user import LoginProvider
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.users.accounts import UserAccounts
from denizen.engine.users.credentials import UserCredentials, UserPolicy
from denizen.engine.users.passwords import PasswordHasher
from denizen.engine.users.registration import Registration
from denizen.ports.users import IdentityProvider
from denizen.web.http.dependencies import UserServices


def build_users(denizen: Denizen) -> UserServices:
    store, clock = denizen.services.store, denizen.services.clock

    def policy() -> UserPolicy:
        server = denizen.settings.server
        return UserPolicy(is_open=server.registration == "open", admins=frozenset(server.admins))

    passwords = PasswordHasher()
    credentials = UserCredentials(store, clock, policy)
    return UserServices(
        accounts=UserAccounts(
            store, clock, passwords=passwords, credentials=credentials, limiter=RateLimiter(store, clock)
        ),
        registration=Registration(store, clock, policy, passwords=passwords, credentials=credentials),
        credentials=credentials,
        providers=lambda: _read_providers(denizen),
        is_registration_open=lambda: policy().is_open,
        public_url=denizen.settings.server.public_url,
    )


def _read_providers(denizen: Denizen) -> Mapping[LoginProvider, IdentityProvider]:
    """Returns the sites of the configuration that people may sign in with."""
    section, secrets = denizen.settings.server.sign_in, denizen.settings.secrets
    if section.github is None and section.discord is None:
        return {}
    from denizen.adapters.sign_in import DISCORD, GITHUB, OAuthApplication

    return {
        site.provider: OAuthApplication(site, chosen.client_id, secrets.resolve(chosen.client_secret))
        for site, chosen in ((GITHUB, section.github), (DISCORD, section.discord))
        if chosen is not None
    }
