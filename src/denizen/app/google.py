"""The Google account of the configuration: opened for tools and checks, and connected by its owner."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio import to_thread

from denizen.app.home.environment import read_environment
from denizen.app.settings import Settings, set_secret, set_value
from denizen.app.settings.google import GoogleSection
from denizen.builtin_skills import BUILTIN
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.ports.google import GoogleLogin, GoogleService

if TYPE_CHECKING:
    from denizen.ports.google import GoogleAccount

WAIT_S = 900.0
"""How long the owner has for Google's page."""
CLIENT_SECRET, REFRESH_TOKEN = "GOOGLE_CLIENT_SECRET", "GOOGLE_REFRESH_TOKEN"
PASTED_URI = "http://127.0.0.1:1"
"""The way back where nothing listens: the browser shows its address, which the owner copies."""

ReadAddress = Callable[[], str]


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


def read_client_file(file: Path) -> tuple[str, str]:
    """Returns id and secret of a client from the file that Google Cloud makes of it. Raises InvalidInput."""
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
        client = cast("dict[str, Any]", found["installed"])
        return str(client["client_id"]), str(client["client_secret"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{file} is not the file of an OAuth client of the type Desktop app.",
            code="google_client",
            why=type(error).__name__,
            fix="Make one in the Google Cloud console under APIs & Services, Credentials, and download its JSON.",
        ) from error


def keep_client(home: Path, client: tuple[str, str]) -> Settings:
    """Writes id and secret of a client into the configuration of the home folder. Raises InvalidInput."""
    environment = read_environment()
    set_value(home, environment, ("google", "client_id"), client[0], known_tools=BUILTIN)
    return set_secret(home, environment, ("google", "client_secret"), (CLIENT_SECRET, client[1]), known_tools=BUILTIN)


async def ask_consent(
    login: GoogleLogin, services: Collection[GoogleService], show: Callable[[str], None], paste: ReadAddress | None
) -> GoogleLogin:
    """Lets `show` tell the owner the address of Google's page, waits for their consent to these services, and returns
    the login with the token that it brings. With `paste` the owner gives the address at which the browser ended.

    Raises NotAllowed for a refusal, NeedsAttention where nobody answers, and Unavailable.
    """
    from denizen.adapters.google import HttpGoogleConsent
    from denizen.adapters.google.loopback import open_loopback, read_code

    consent = HttpGoogleConsent(login)
    if paste is not None:
        begun = await consent.begin(services, redirect_uri=PASTED_URI)
        show(begun.url)
        code, redirect_uri = read_code(await to_thread.run_sync(paste), begun.state), PASTED_URI
    else:
        async with open_loopback() as loopback:
            redirect_uri = loopback.redirect_uri
            begun = await consent.begin(services, redirect_uri=redirect_uri)
            show(begun.url)
            try:
                with anyio.fail_after(WAIT_S):
                    code = await loopback.wait_for_code(begun.state)
            except TimeoutError as error:
                raise NeedsAttention(
                    "Nobody came back from Google's page in time.",
                    code="google_refused",
                    fix="Begin anew; with --paste where the browser runs on another machine.",
                ) from error
    token = await consent.complete(code=code, verifier=begun.verifier, redirect_uri=redirect_uri)
    return replace(login, refresh_token=token)


async def keep_consent(home: Path, section: GoogleSection, login: GoogleLogin) -> None:
    """Writes the token into the secrets of the home folder, in place of an earlier one. Raises InvalidInput."""
    name = section.refresh_token.name if section.refresh_token is not None else REFRESH_TOKEN
    path, secret = ("google", "refresh_token"), (name, login.refresh_token)
    await to_thread.run_sync(partial(set_secret, home, read_environment(), path, secret, known_tools=BUILTIN))
