"""`denizen doctor` and Discord: what it says of accounts that work, that do not, and that are left out."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from anyio.from_thread import start_blocking_portal

from denizen.testing.discord import DiscordServer, GatewayIntent, SimApplication, open_discord
from denizen.testing.model_server import ModelAnswer
from tests.e2e.home import Home
from tests.e2e.process import ProcessResult
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

PRIVILEGED = GatewayIntent.GUILD_MEMBERS | GatewayIntent.MESSAGE_CONTENT

ACCOUNTS = """\
channels:
  discord:
    accounts: {denizen: "${TOKEN}"}
"""


@pytest.fixture
def discord() -> Generator[DiscordServer]:
    """In a thread; nothing happens there while a test looks at it."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_discord()) as server:
        yield server


def invite(discord: DiscordServer, *, intents: GatewayIntent = PRIVILEGED) -> SimApplication:
    """A bot in a guild with one channel."""
    ana = discord.world.add_person("Ana")
    guild = discord.world.add_guild("Harbour", owner=ana)
    guild.add_channel("general")
    bot = discord.world.add_application("Ada", intents=intents)
    guild.join(bot.user)
    return bot


def examine(home: Home, discord: DiscordServer, provider: Provider, token: str, *options: str) -> ProcessResult:
    home.configure(provider.server.openai_url, rest=ACCOUNTS)
    home.variables |= {
        "DENIZEN_DISCORD_API_URL": discord.api_url,
        "DENIZEN_DISCORD_GATEWAY_URL": discord.gateway_url,
        "TOKEN": token,
    }
    provider.script(ModelAnswer(text="OK"))
    return home.do("doctor", *options)


@pytest.mark.proves("C-inspect-commands")
def test_doctor_tells_whose_token_it_is_and_that_nothing_is_lacking(
    home: Home, discord: DiscordServer, provider: Provider
) -> None:
    bot = invite(discord)
    done = examine(home, discord, provider, bot.token)
    told = [line for line in done.out.splitlines() if "discord denizen" in line]
    assert told[:3] == [
        f"ok    discord denizen: The token belongs to Ada ({bot.user.id}).",
        "ok    discord denizen: Message Content Intent is on.",
        "ok    discord denizen: Server Members Intent is on.",
    ]
    assert "In Harbour" in told[3]
    assert not [line for line in told if line.startswith("FAIL")], done.out
    assert done.code == 0
    assert bot.token not in done.out + done.err


@pytest.mark.proves("C-inspect-commands")
def test_doctor_names_the_intent_that_is_off_and_the_page_where_it_is_switched_on(
    home: Home, discord: DiscordServer, provider: Provider
) -> None:
    bot = invite(discord, intents=GatewayIntent(0))
    done = examine(home, discord, provider, bot.token)
    lines = done.out.splitlines()
    at = lines.index("FAIL  discord denizen: Message Content Intent is off.")
    assert lines[at + 1].startswith("      fix: ")
    assert f"https://discord.com/developers/applications/{bot.id}/bot" in lines[at + 1]
    assert done.code == 2


@pytest.mark.proves("C-inspect-commands")
def test_doctor_tells_that_a_token_is_refused_and_never_repeats_it(
    home: Home, discord: DiscordServer, provider: Provider
) -> None:
    invite(discord)
    done = examine(home, discord, provider, "a-wrong-token")
    assert "FAIL  discord denizen: Discord refused the token." in done.out
    assert "channels.discord.accounts.denizen.token" in done.out
    assert "a-wrong-token" not in done.out + done.err
    assert done.code == 2


def test_doctor_tells_that_an_account_without_its_token_is_left_out_and_asks_nobody(
    home: Home, discord: DiscordServer, provider: Provider
) -> None:
    done = examine(home, discord, provider, "")
    (warning,) = [line for line in done.out.splitlines() if line.startswith("warn")]
    assert warning.endswith("the variable TOKEN is not set, so 'denizen' stays away from Discord.")
    assert f"      fix: Add a line TOKEN=... to {home.folder / 'secrets.env'}" in done.out
    assert (done.code, discord.requests) == (0, [])


def test_offline_nobody_is_asked(home: Home, discord: DiscordServer, provider: Provider) -> None:
    done = examine(home, discord, provider, invite(discord).token, "--offline")
    assert "discord denizen" not in done.out
    assert (done.code, discord.requests) == (0, [])
