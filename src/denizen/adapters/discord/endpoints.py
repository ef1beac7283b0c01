"""Points discord.py at a server. It keeps the addresses in class attributes: one process has one pair at a time.

Called by `account` and `check` around everything they do. discord.py's `http._set_api_version` would overwrite the
REST address; nothing here calls it, and the version stands in the address.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from denizen.adapters.discord.settings import DiscordEndpoints
from denizen.domain.errors import InvalidInput

_GATEWAY = DiscordWebSocket.DEFAULT_GATEWAY
_ASSETS = discord.Asset.BASE


class _Use:
    """The pair in use, and by how many."""

    def __init__(self) -> None:
        self.endpoints = DiscordEndpoints()
        self.holders = 0


_use = _Use()


@contextmanager
def use_endpoints(endpoints: DiscordEndpoints) -> Generator[None]:
    """Everything inside talks to that server. Raises InvalidInput while another pair is in use."""
    if _use.holders and _use.endpoints != endpoints:
        raise InvalidInput(
            "Accounts on two different Discord servers cannot run in one process.",
            code="discord_two_servers",
            why=f"{_use.endpoints.api_url} is in use, and {endpoints.api_url} was asked for.",
            fix="Stop the other accounts first, or start a second process.",
        )
    if not _use.holders:
        _point_at(endpoints)
    _use.holders += 1
    try:
        yield
    finally:
        _use.holders -= 1


def set_gateway(url: str) -> None:
    """The websocket that the REST side named; used where none is configured for a server that is not Discord's.

    discord.py asks for it only at the first login, and falls back to its own address after a lost connection.
    """
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(url)


def _point_at(endpoints: DiscordEndpoints) -> None:
    _use.endpoints = endpoints
    Route.BASE = endpoints.api_url.rstrip("/")
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(endpoints.gateway_url) if endpoints.gateway_url else _GATEWAY
    assets = str(yarl.URL(endpoints.api_url).origin()) if endpoints.are_own else _ASSETS
    discord.Asset.BASE = assets  # pyright: ignore[reportAttributeAccessIssue] - typed as the one value that it has
