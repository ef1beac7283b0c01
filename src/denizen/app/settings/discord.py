"""The section `channels.discord`: the policy of agents in a server, their logins, and the accounts that they become.

Every key of the policy may stand at an account too, where it applies to that account alone; `load` fills in what an
account leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator

from denizen.adapters.discord.client.settings import API_URL, DiscordEndpoints
from denizen.app.home.environment import DISCORD_API_VARIABLE, DISCORD_GATEWAY_VARIABLE
from denizen.app.home.secrets import SECRETS_FILE, FileSecrets, SecretRef
from denizen.app.settings.fields import (
    AccountSection,
    HttpUrl,
    Number,
    Pattern,
    Secret,
    Section,
    SomeText,
    Text,
    WebSocketUrl,
    Whole,
    as_variable,
    at_most,
    default_section,
    is_url,
    keep_template,
    read_digits,
    read_short_account,
    refuse,
)
from denizen.app.settings.problem import ConfigProblem, KeyPath
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.attention import (
    AccountPolicy,
    AccountScope,
    AccountStaff,
    ConversationLimits,
    Reactions,
    ReplyStyle,
    ThreadMode,
    TriggerPolicy,
)
from denizen.domain.guild_settings import NARROWING, GuildField
from denizen.domain.ids import AgentName
from denizen.domain.record import record

MESSAGE_CHARS = 2000
"""Discord's limit for one message."""

_MANNERS = AccountPolicy()
_REACTIONS = Reactions()
_ID = re.compile(r"[0-9]{1,20}")
_OWN_EMOJI = re.compile(r"<a?:\w{2,32}:[0-9]{1,20}>", re.ASCII)
_EMOJI_CHARS = 32
_WEEK_MINUTES = 7 * 24 * 60


def _discord_id(value: str) -> str:
    if not _ID.fullmatch(value):
        fix = "Write the number that `Copy ID` gives; that entry is in Discord's menus once Developer Mode is on."
        raise refuse("this is not an id of Discord.", fix)
    return value


def _guild(value: str) -> str:
    return _discord_id(value) if value else value


def _emoji(value: str) -> str:
    is_emoji = not value.isascii() and len(value) <= _EMOJI_CHARS and not re.search(r"\s", value)
    if value and not is_emoji and not _OWN_EMOJI.fullmatch(value):
        fix = "Write the emoji itself, or <:name:id> for one of the server's own; empty for none."
        raise refuse("this is not an emoji.", fix)
    return value


def _keyword(value: str) -> str:
    if re.search(value, "") is not None:
        fix = "Ask for at least one character; to answer everything in a channel there is always_channels."
        raise refuse("this keyword is in every message.", fix)
    return value


DiscordId = Annotated[str, BeforeValidator(read_digits), AfterValidator(_discord_id), WrapValidator(keep_template)]
"""The id of a user, role, channel or guild; in the file with quotes or without."""
OneGuild = Annotated[str, BeforeValidator(read_digits), AfterValidator(_guild), WrapValidator(keep_template)]
"""A guild's id, or empty."""
Emoji = Annotated[str, AfterValidator(_emoji), WrapValidator(keep_template)]
Keyword = Annotated[Pattern, AfterValidator(_keyword)]
Ids = tuple[DiscordId, ...]


class ReactionsSection(Section):
    """The reactions that show the state of a question. Empty means none."""

    waiting: Emoji = Field(
        default=_REACTIONS.waiting, description="Put on a question that waits behind others; empty: none."
    )
    seen: Emoji = Field(default="👀", description="Put on a question while it is answered; empty: none.")
    done: Emoji = Field(default="👍", description="Put on a question that was answered; empty: none.")
    failed: Emoji = Field(
        default=_REACTIONS.failed, description="Put on a question that could not be answered; empty: none."
    )


class DiscordPolicySection(Section):
    """The policy of an agent in a server: whom it answers, when it speaks, what its answers look like."""

    owners: Ids = Field(default=(), description="Ids of users who may do everything.")
    admins: Ids = Field(default=(), description="Ids of users who may give administrative commands.")
    admin_roles: Ids = Field(default=(), description="Ids of roles whose members may, too.")
    guilds: Ids = Field(default=(), description="Ids of the servers in which it answers; empty: all.")
    channels: Ids = Field(
        default=(), description="Ids of the channels in which it answers, with their threads; empty: all."
    )
    users: Ids = Field(
        default=(), description="Ids of the users that it answers, beside those that `/allow` lists; empty: everybody."
    )
    roles: Ids = Field(default=(), description="Ids of roles whose members it answers, beside `users`.")
    direct_messages: bool = Field(
        default=_MANNERS.triggers.direct_messages, description="Whether it answers direct messages."
    )
    mentions: bool = Field(default=_MANNERS.triggers.mentions, description="Whether it answers when it is mentioned.")
    replies: bool = Field(default=_MANNERS.triggers.replies, description="Whether it answers replies to its messages.")
    mention_roles: Ids = Field(default=(), description="Ids of roles whose mention counts as a mention of the agent.")
    keywords: tuple[Keyword, ...] = Field(
        default=(), description="Regular expressions; a message in which one is found is answered. Case does not count."
    )
    always_channels: Ids = Field(default=(), description="Ids of channels in which it answers every message of people.")
    threads: ThreadMode = Field(
        default=_MANNERS.triggers.threads,
        description="`follow` a thread in which it was mentioned, without further mentions; `open` a thread for every "
        "mention in a channel, and follow it; or `none`.",
    )
    max_exchanges: Whole = Field(
        default=_MANNERS.limits.max_exchanges,
        ge=0,
        le=100,
        description="Messages of agents in a row in a channel, until a person writes; 0: agents do not answer agents.",
    )
    max_exchange_usd: Decimal | None = Field(
        default=_MANNERS.limits.max_exchange_usd,
        ge=0,
        le=10_000,
        description="US dollars that the agents of a channel may spend together within an hour on answering each "
        "other; then they stay silent towards each other. Unset: no limit.",
    )
    eagerness: Whole = Field(
        default=_MANNERS.eagerness,
        ge=0,
        le=100,
        description="Where several agents could join in unasked (`always_channels`, `keywords`, followed threads), one "
        "does: who is named in the text, else who last answered this person, else the most eager. 0: not by eagerness.",
    )
    missed_limit_minutes: Number = Field(
        default=_MANNERS.limits.missed_limit_s / 60,
        ge=0,
        le=_WEEK_MINUTES,
        description="Messages that came while Denizen was away and are older get one reply together.",
    )
    edit_window_s: Number = Field(
        default=_MANNERS.limits.edit_window_s,
        ge=0,
        le=3600,
        description="A question that is edited within so many seconds is answered anew; 0: never.",
    )
    message_limit: Whole = Field(
        default=_MANNERS.style.message_limit,
        ge=50,
        le=MESSAGE_CHARS,
        description="Characters at which answers are split.",
    )
    keep_blank_lines: bool = Field(
        default=_MANNERS.style.keep_blank_lines, description="Whether runs of blank lines stay; else they become one."
    )
    preview: bool = Field(
        default=_MANNERS.style.preview, description="Whether a status message shows what it is doing, until the answer."
    )
    reactions: ReactionsSection = default_section()
    error_message: Annotated[Text, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.style.error_message,
        description="Told after a failure in place of the reason; a reference is added to it. Empty: the reason.",
    )
    failure_text: bool = Field(
        default=_MANNERS.style.failure_text, description="Whether a failure is told in words, beside the reaction."
    )
    greeting: Annotated[SomeText, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.style.greeting, description="Answers a mention that says nothing."
    )
    switchable: tuple[Text, ...] = Field(
        default=(), description="Agents to which everybody may switch a talk with `/agent`."
    )
    commands_guild: OneGuild = Field(
        default="",
        description="Id of the only server in which slash commands are registered, for testing; empty: in all.",
    )


class _Login(Section):
    token: Secret = Field(
        default=None,
        description="The bot's token, or empty: then the agent is left out. Any key of `channels.discord` from "
        "`owners` to `commands_guild` may stand beside it, for this account alone. `NAME: ${TOKEN}` is the short form.",
    )


class DiscordAccountSection(AccountSection, DiscordPolicySection, _Login):
    """One agent's login. What it leaves open of the policy is that of `channels.discord`."""

    POLICY = DiscordPolicySection


class _Access(Section):
    enabled: bool = Field(default=True, description="Whether the accounts log in.")
    accounts: dict[str, Annotated[DiscordAccountSection, BeforeValidator(read_short_account)]] = Field(
        default_factory=dict[str, DiscordAccountSection]
    )


class DiscordSection(DiscordPolicySection, _Access):
    """Discord. Without accounts nothing happens. The addresses are for another server that speaks its protocol."""

    server_owners: tuple[GuildField, ...] = Field(
        default=NARROWING,
        description="What owners and managers of a server set for it on the page `/guilds`, never beyond what is "
        "configured here. `persona` adds their words to the prompt of agents there; empty: nothing.",
    )

    api_url: HttpUrl = Field(
        default="", description="REST address of another server; the variable DENIZEN_DISCORD_API_URL goes before it."
    )
    gateway_url: WebSocketUrl = Field(
        default="", description="Websocket of another server; the variable DENIZEN_DISCORD_GATEWAY_URL goes before it."
    )


ACCOUNTS: KeyPath = ("channels", "discord", "accounts")


@record
class DiscordLogin:
    """One agent's account. `commands_guild` is the only guild in which its commands are registered; empty: all."""

    agent: AgentName
    token: str = field(repr=False)
    account_policy: AccountPolicy
    commands_guild: str = ""


def build_logins(section: DiscordSection, secrets: FileSecrets) -> tuple[DiscordLogin, ...]:
    """Returns the accounts in the order of the file, once `load` has filled in the shared keys. Accounts without a
    token are left out; all of them are when Discord is switched off.
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
    """Returns the addresses of Discord: the variables take precedence over the file, the file over discord.com."""
    return DiscordEndpoints(
        api_url=secrets.find(DISCORD_API_VARIABLE) or section.api_url or API_URL,
        gateway_url=secrets.find(DISCORD_GATEWAY_VARIABLE) or section.gateway_url,
    )


def build_manners(section: DiscordPolicySection) -> AccountPolicy:
    """Returns the policy in the form that the engine works with."""
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
            reactions=Reactions(
                waiting=section.reactions.waiting,
                seen=section.reactions.seen,
                done=section.reactions.done,
                failed=section.reactions.failed,
            ),
            error_message=section.error_message,
            failure_text=section.failure_text,
            greeting=section.greeting,
        ),
        switchable=frozenset(AgentName(name) for name in section.switchable),
    )


def is_account_token(path: KeyPath) -> bool:
    """Returns whether a token stands at this key path, in the short form or in the long one."""
    return path[:3] == ACCOUNTS and path[4:] in ((), ("token",)) and len(path) > len(ACCOUNTS)


def find_account_problems(
    document: ConfigDocument, section: DiscordSection, secrets: FileSecrets
) -> Iterator[ConfigProblem]:
    """Yields a problem for a token that two agents share, and for an invalid address in a variable."""
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


def find_left_out(document: ConfigDocument, section: DiscordSection, secrets: FileSecrets) -> Iterator[ConfigProblem]:
    """Yields a notice for each account that has no token. An unset variable without a default is reported elsewhere."""
    for name, account in section.accounts.items() if section.enabled else ():
        ref = account.token
        if ref is None or (ref.optional and not secrets.find(ref.name)):
            variable = discord_variable(name) if ref is None else ref.name
            file = document.file.parent / SECRETS_FILE
            fix = f"Write token: ${{{variable}}} here, and the token of its bot into {file}, or take the account out."
            yield document.problem((*ACCOUNTS, name), f"there is no token, so '{name}' stays away from Discord.", fix)


def _find_token(ref: SecretRef | None, secrets: FileSecrets) -> str:
    return (secrets.find(ref.name) or "") if ref else ""


def discord_variable(agent: str) -> str:
    """Returns the usual variable for the token of an agent's account."""
    return as_variable(f"discord_token_{agent}")
