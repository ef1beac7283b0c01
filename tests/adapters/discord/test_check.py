"""What `denizen doctor` finds out about an account."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import discord as discord_py
import pytest

from denizen.adapters.discord.check import check_account, describe_missing
from denizen.adapters.discord.client.application import NEEDED_PERMISSIONS, DiscordApplication, invite_url
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.testing.discord import DiscordPermission, GatewayIntent
from tests.adapters.discord.account_fixture import AccountFixture, running, settings_for

pytestmark = pytest.mark.anyio


async def check(sim: AccountFixture, *, token: str = "") -> tuple[list[Diagnosis], list[Diagnosis]]:
    """What is right, and what is not."""
    findings = (await check_account(settings_for(sim, token=token or sim.ada.token))).findings
    return (
        [each for each in findings if each.severity is Severity.OK],
        [each for each in findings if each.severity is not Severity.OK],
    )


async def test_an_account_with_everything_has_nothing_to_complain_of(sim: AccountFixture) -> None:
    right, wrong = await check(sim)
    assert wrong == []
    assert right[0].what == f"The token belongs to Ada ({sim.ada.user.id})."
    assert "In Harbour: 1 of 1 channels have all permissions." in [each.what for each in right]
    assert sim.discord.sessions.identified == 0


async def test_it_may_look_while_the_account_runs(sim: AccountFixture) -> None:
    async with running(sim):
        _, wrong = await check(sim)
    assert wrong == []


async def test_a_refused_token_is_found(sim: AccountFixture) -> None:
    right, wrong = await check(sim, token="bad")
    assert right == []
    assert wrong[0].severity is Severity.ERROR
    assert "channels.discord.accounts.ada.token" in wrong[0].fix


async def test_missing_intents_are_found(sim: AccountFixture) -> None:
    sim.ada.intents = GatewayIntent(0)
    _, wrong = await check(sim)
    assert [(each.severity, each.what.split(" is off")[0]) for each in wrong] == [
        (Severity.ERROR, "Message Content Intent"),
        (Severity.WARNING, "Server Members Intent"),
    ]
    assert all(f"{sim.ada.id}/bot > Privileged Gateway Intents" in each.fix for each in wrong)


async def test_an_account_in_no_server_gets_an_invitation(sim: AccountFixture) -> None:
    sim.guild.leave(sim.ada.user)
    _, wrong = await check(sim)
    assert wrong[0].what == "The account is in no server."
    assert invite_url(str(sim.ada.id)) in wrong[0].fix


async def test_missing_permissions_are_told_for_each_channel(sim: AccountFixture) -> None:
    sim.guild.everyone.permissions &= ~(DiscordPermission.ATTACH_FILES | DiscordPermission.CREATE_PUBLIC_THREADS)
    sim.guild.add_channel("help", kind="forum")
    sim.guild.add_channel("stage door", kind="voice")
    sim.guild.add_channel("secret", private_to=[sim.ben])
    sim.guild.add_channel("corner", kind="category")
    _, wrong = await check(sim)
    assert sorted(each.what for each in wrong) == [
        "In Harbour the account lacks Attach Files in #help, #stage door.",
        "In Harbour the account lacks Attach Files, Create Public Threads in #general.",
    ]


async def test_channels_that_are_not_seen_are_mentioned_and_not_complained_of(sim: AccountFixture) -> None:
    application = DiscordApplication("1", "1", "Ada", content=True, members=True)
    names = [f"#room-{number}" for number in range(12)]
    finding = describe_missing("Harbour", ("View Channel", "Send Messages"), names, application)
    assert finding.severity is Severity.WARNING
    assert finding.what.startswith("In Harbour the account does not see #room-0, ")
    assert finding.what.endswith("#room-9 and 2 more.")


async def test_an_unreachable_discord_is_found(sim: AccountFixture) -> None:
    sim.discord.faults.fail("GET", "/users/@me", status=503)
    _, wrong = await check(sim)
    assert wrong[0].severity is Severity.ERROR
    assert "discordstatus" in wrong[0].fix


async def test_the_invitation_asks_for_what_is_needed_and_nothing_else() -> None:
    query = parse_qs(urlsplit(invite_url("1234")).query)
    assert query["client_id"] == ["1234"]
    assert query["scope"] == ["bot applications.commands"]
    asked = {name for name, given in discord_py.Permissions(int(query["permissions"][0])) if given}
    assert asked - {"read_messages"} == set(NEEDED_PERMISSIONS) - {"view_channel"}
    assert "administrator" not in asked
