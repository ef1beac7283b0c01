"""Checks an account for `denizen doctor` and for set-up: token, intents, and permissions in each channel.

It uses REST only and never connects to the gateway, so it can run while the account is online. As a program it checks
the account that its input describes (`check_process`).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence

import anyio
import discord

from denizen.adapters.discord.check_process import decode_settings, encode_checklist
from denizen.adapters.discord.client.application import (
    MESSAGE_CONTENT,
    NEEDED_PERMISSIONS,
    SERVER_MEMBERS,
    DiscordApplication,
    explain_missing_content,
    find_missing_permissions,
    intents_page_url,
    invite_url,
    log_in,
    read_application,
)
from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, TOKEN_REFUSED, translate_errors
from denizen.adapters.discord.client.http import use_endpoints
from denizen.adapters.discord.client.settings import PORTAL_URL, DiscordAccountSettings
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import DenizenError
from denizen.ports.setup import DiscordChecklist, TokenState

# Each guild takes several requests, and nobody reads a report about more.
_MOST_GUILDS = 100
_SHOWN_CHANNELS = 10


async def check_account(settings: DiscordAccountSettings) -> DiscordChecklist:
    """Returns what Discord says about the account. Raises only InvalidInput, while another server is in use."""
    findings: list[Diagnosis] = []
    token, invitation = TokenState.UNKNOWN, ""
    with use_endpoints(settings.endpoints):
        try:
            async with log_in(settings) as client:
                application = read_application(client)
                token, invitation = TokenState.GOOD, invite_url(application.id)
                findings += check_application(application)
                findings += await _check_guilds(client, application)
        except DenizenError as error:
            if error.code == TOKEN_REFUSED:
                token = TokenState.REFUSED
            findings.append(Diagnosis(Severity.ERROR, f"{error.message} {error.why}".strip(), error.fix, error.code))
    return DiscordChecklist(token=token, findings=findings, invite_url=invitation)


def check_application(application: DiscordApplication) -> list[Diagnosis]:
    """Returns whose token it is, and which intents the portal grants."""
    findings = [Diagnosis(Severity.OK, f"The token belongs to {application.user_name} ({application.user_id}).")]
    if application.content:
        findings.append(Diagnosis(Severity.OK, f"{MESSAGE_CONTENT} is on."))
    else:
        findings.append(
            Diagnosis(
                Severity.ERROR,
                f"{MESSAGE_CONTENT} is off.",
                explain_missing_content(application),
                "discord_content_off",
            )
        )
    if application.members:
        findings.append(Diagnosis(Severity.OK, f"{SERVER_MEMBERS} is on."))
    else:
        findings.append(
            Diagnosis(
                Severity.WARNING,
                f"{SERVER_MEMBERS} is off: who reads a room is known less exactly, so less of other rooms is told.",
                f"Switch it on at {intents_page_url(application)}.",
                "discord_members_off",
            )
        )
    if application.diverts_commands:
        findings.append(
            Diagnosis(
                Severity.ERROR,
                "Slash commands and buttons go to an Interactions Endpoint URL, and never reach this account.",
                f"Empty that field at {PORTAL_URL}/{application.id}/information.",
                "discord_commands_diverted",
            )
        )
    return findings


async def _check_guilds(client: discord.Client, application: DiscordApplication) -> list[Diagnosis]:
    with translate_errors("list its servers"), anyio.fail_after(RESPONSE_TIMEOUT_S):
        guilds = [guild async for guild in client.fetch_guilds(limit=_MOST_GUILDS)]
    if not guilds:
        url = invite_url(application.id)
        fix = f"Open this link as a server's owner: {url}"
        return [Diagnosis(Severity.ERROR, "The account is in no server.", fix, "discord_no_server")]
    findings: list[Diagnosis] = []
    for listed in guilds:
        with translate_errors("look at a server"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            guild = await client.fetch_guild(listed.id, with_counts=False)  # the list holds no roles
            me = await guild.fetch_member(int(application.user_id))
            channels = await guild.fetch_channels()
        lacking: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for channel in channels:
            if not isinstance(channel, discord.CategoryChannel):
                missing = find_missing_permissions(channel.permissions_for(me), _needed_in(channel))
                lacking[missing].append(f"#{channel.name}")
        complete = f"{len(lacking.pop((), ()))} of {len(channels)} channels have all permissions"
        findings.append(Diagnosis(Severity.OK, f"In {guild.name}: {complete}."))
        findings += [describe_missing(guild.name, *each, application) for each in sorted(lacking.items())]
    return findings


def _needed_in(channel: discord.abc.GuildChannel) -> list[str]:
    """Returns the permissions that the account needs in this channel. Only text and announcement channels and forums
    have threads; in forums people write in threads alone.
    """
    if isinstance(channel, discord.ForumChannel):
        return [name for name in NEEDED_PERMISSIONS if name != "create_public_threads"]
    if isinstance(channel, discord.TextChannel):
        return list(NEEDED_PERMISSIONS)
    return [name for name in NEEDED_PERMISSIONS if "thread" not in name]


def describe_missing(
    guild: str, missing: tuple[str, ...], channels: Sequence[str], application: DiscordApplication
) -> Diagnosis:
    """Describes channels that lack permissions. One that the account cannot see is often meant to be hidden."""
    shown = ", ".join(channels[:_SHOWN_CHANNELS])
    more = len(channels) - _SHOWN_CHANNELS
    where = f"{shown} and {more} more" if more > 0 else shown
    if NEEDED_PERMISSIONS["view_channel"] in missing:
        return Diagnosis(
            Severity.WARNING,
            f"In {guild} the account does not see {where}.",
            f"If it should: give its role {NEEDED_PERMISSIONS['view_channel']} there.",
            "discord_channels_hidden",
        )
    names = ", ".join(missing)
    return Diagnosis(
        Severity.ERROR,
        f"In {guild} the account lacks {names} in {where}.",
        f"Give its role these permissions there, or invite it again: {invite_url(application.id)}",
        "discord_permissions_missing",
    )


if __name__ == "__main__":
    found = anyio.run(check_account, decode_settings(json.load(sys.stdin)))
    json.dump(encode_checklist(found), sys.stdout)
