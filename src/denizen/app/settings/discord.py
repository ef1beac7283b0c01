"""From `channels.discord` to the accounts that log in, each with its token and its manners."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from denizen.adapters.discord.settings import API_URL, DiscordEndpoints
from denizen.app.environment import DISCORD_API_VARIABLE, DISCORD_GATEWAY_VARIABLE
from denizen.app.secrets import SECRETS_FILE, FileSecrets, SecretRef
from denizen.app.settings.document import Document
from denizen.app.settings.explain import discord_variable
from denizen.app.settings.fields import is_url
from denizen.app.settings.problem import KeyPath, Problem
from denizen.app.settings.schema_discord import ConductSection, DiscordSection
from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    AccountStaff,
    ConversationLimits,
    Reactions,
    ReplyStyle,
    TriggerPolicy,
)
from denizen.domain.ids import AgentName

ACCOUNTS: KeyPath = ("channels", "discord", "accounts")


@dataclass(frozen=True, slots=True)
class DiscordLogin:
    """One agent's account. `commands_guild` is the only guild in which its commands are registered; empty: all."""

    agent: AgentName
    token: str = field(repr=False)
    account_policy: AccountPolicy
    commands_guild: str = ""


def build_logins(section: DiscordSection, secrets: FileSecrets) -> tuple[DiscordLogin, ...]:
    """The accounts in the order of the file; those without a token are left out (inventory C1), all of them when
    Discord is switched off. The accounts are those that `implied` filled in.
    """
    if not section.enabled:
        return ()
    tokens = ((name, account, _find_token(account.token, secrets)) for name, account in section.accounts.items())
    return tuple(
        DiscordLogin(AgentName(name), token, build_manners(account), account.commands_guild)
        for name, account, token in tokens
        if token
    )


def build_endpoints(section: DiscordSection, secrets: FileSecrets) -> DiscordEndpoints:
    """Where Discord is: the variables go before the file, the file before discord.com."""
    return DiscordEndpoints(
        api_url=secrets.find(DISCORD_API_VARIABLE) or section.api_url or API_URL,
        gateway_url=secrets.find(DISCORD_GATEWAY_VARIABLE) or section.gateway_url,
    )


def build_manners(section: ConductSection) -> AccountPolicy:
    """The conduct as the engine works with it."""
    return AccountPolicy(
        staff=AccountStaff(
            owners=frozenset(section.owners),
            admins=frozenset(section.admins),
            admin_roles=frozenset(section.admin_roles),
        ),
        scope=AccountScope(
            guilds=frozenset(section.guilds),
            channels=frozenset(section.channels),
            users=frozenset(section.users),
            roles=frozenset(section.roles),
        ),
        triggers=TriggerPolicy(
            direct_messages=section.direct_messages,
            mentions=section.mentions,
            replies=section.replies,
            mention_roles=frozenset(section.mention_roles),
            keywords=tuple(re.compile(keyword, re.IGNORECASE) for keyword in section.keywords),
            always_channels=frozenset(section.always_channels),
            threads=section.threads,
        ),
        limits=ConversationLimits(
            max_exchanges=section.max_exchanges,
            max_exchange_usd=section.max_exchange_usd,
            missed_limit_s=section.missed_limit_minutes * 60,
            edit_window_s=section.edit_window_s,
        ),
        eagerness=section.eagerness,
        style=ReplyStyle(
            message_limit=section.message_limit,
            keep_blank_lines=section.keep_blank_lines,
            preview=section.preview,
            reactions=Reactions(section.reactions.seen, section.reactions.done, section.reactions.failed),
            error_message=section.error_message,
            failure_text=section.failure_text,
            greeting=section.greeting,
        ),
        switchable=frozenset(AgentName(name) for name in section.switchable),
    )


def is_account_token(path: KeyPath) -> bool:
    """Whether a token stands at this key path, in the short form or in the long one."""
    return path[:3] == ACCOUNTS and path[4:] in ((), ("token",)) and len(path) > len(ACCOUNTS)


def find_account_problems(document: Document, section: DiscordSection, secrets: FileSecrets) -> Iterator[Problem]:
    """What cannot work: one token for two agents, an address in a variable that is none."""
    if not section.enabled:
        return
    owners: dict[str, str] = {}
    for name, account in section.accounts.items():
        token = _find_token(account.token, secrets)
        if token in owners:
            message = f"this is the token of '{owners[token]}' too."
            fix = "Give each agent a bot of its own: one token can be used by one agent only."
            yield document.problem((*ACCOUNTS, name), message, fix)
        elif token:
            owners[token] = name
    for variable, schemes, example in (
        (DISCORD_API_VARIABLE, ("http", "https"), "http://127.0.0.1:9200/api/v10"),
        (DISCORD_GATEWAY_VARIABLE, ("ws", "wss"), "ws://127.0.0.1:9200/gateway"),
    ):
        address = secrets.find(variable)
        if address and not is_url(address, schemes):
            message = f"the variable {variable} must be an address that begins with {schemes[0]}:// or {schemes[1]}://."
            yield document.problem(("channels", "discord"), message, f"Write it in full, such as {example}.")


def find_left_out(document: Document, section: DiscordSection, secrets: FileSecrets) -> Iterator[Problem]:
    """A notice for each account that has no token. Those whose variable is needed and unset are told elsewhere."""
    for name, account in section.accounts.items() if section.enabled else ():
        ref = account.token
        if ref is None or (ref.optional and not secrets.find(ref.name)):
            variable = discord_variable(name) if ref is None else ref.name
            file = document.file.parent / SECRETS_FILE
            fix = f"Write token: ${{{variable}}} here, and the token of its bot into {file}, or take the account out."
            yield document.problem((*ACCOUNTS, name), f"there is no token, so '{name}' stays away from Discord.", fix)


def _find_token(ref: SecretRef | None, secrets: FileSecrets) -> str:
    return (secrets.find(ref.name) or "") if ref else ""
