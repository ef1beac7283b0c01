"""The Google account of the configuration: opened for tools and checks, and connected by its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from denizen.app.settings import Settings
from denizen.domain.clock import Clock
from denizen.ports.google import GoogleService

if TYPE_CHECKING:
    from denizen.ports.google import GoogleAccount


def open_google_account(settings: Settings, clock: Clock) -> GoogleAccount | None:
    """Returns the account; None where no client is configured. Raises NeedsAttention for a secret that is missing."""
    login = settings.google_login
    if login is None:
        return None
    from denizen.adapters.google import HttpGoogleAccount

    return HttpGoogleAccount(login, clock)


def list_google_services(settings: Settings) -> list[GoogleService]:
    """Returns the services whose tools are switched on."""
    return [each for each in GoogleService if each in settings.tools and settings.tools[each].enabled]
