"""Where discord.py looks for Discord."""

from __future__ import annotations

import discord
import pytest
from discord.gateway import DiscordWebSocket
from discord.http import Route

from denizen.adapters.discord.client.http import use_endpoints
from denizen.adapters.discord.client.settings import DiscordEndpoints
from denizen.domain.errors import InvalidInput

OWN = DiscordEndpoints("http://127.0.0.1:9/api/v10/", "ws://127.0.0.1:9/gateway")


def addresses() -> tuple[str, str, str]:
    return Route.BASE, str(DiscordWebSocket.DEFAULT_GATEWAY), discord.Asset.BASE


def test_without_own_addresses_it_is_discord() -> None:
    with use_endpoints(OWN):
        pass
    with use_endpoints(DiscordEndpoints()):
        assert addresses() == ("https://discord.com/api/v10", "wss://gateway.discord.gg/", "https://cdn.discordapp.com")


def test_own_addresses_count_for_everything() -> None:
    with use_endpoints(OWN):
        assert addresses() == ("http://127.0.0.1:9/api/v10", "ws://127.0.0.1:9/gateway", "http://127.0.0.1:9")
        with use_endpoints(OWN):
            pass
        assert Route("GET", "/users/@me").url == "http://127.0.0.1:9/api/v10/users/@me"


def test_two_servers_at_a_time_are_refused() -> None:
    with use_endpoints(OWN), pytest.raises(InvalidInput) as caught, use_endpoints(DiscordEndpoints()):
        pass
    assert caught.value.code == "discord_two_servers"
    with use_endpoints(DiscordEndpoints()):
        assert Route.BASE == "https://discord.com/api/v10"
