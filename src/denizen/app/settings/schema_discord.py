"""The shape of `channels.discord` and of `archive`: how agents behave in a server, and what of it is kept.

Every key of the conduct may stand at an account too, where it counts for that account alone; `implied` fills in what an
account leaves open. What an account is to the rest of the program is in `discord`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WrapValidator

from denizen.app.settings.fields import (
    HttpUrl,
    Number,
    Pattern,
    Secret,
    Section,
    SomeText,
    Text,
    WebSocketUrl,
    Whole,
    at_most,
    keep_template,
    read_digits,
    refuse,
)
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.attention import Manners, Reactions, ThreadHabit

MESSAGE_CHARS = 2000
"""Of one Discord message at most."""

_MANNERS = Manners()
_REACTIONS = Reactions()
_POLICY = ArchivePolicy()
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
"""Of a user, role, channel or guild; in the file with quotes or without."""
OneGuild = Annotated[str, BeforeValidator(read_digits), AfterValidator(_guild), WrapValidator(keep_template)]
"""A guild's id, or empty."""
Emoji = Annotated[str, AfterValidator(_emoji), WrapValidator(keep_template)]
Keyword = Annotated[Pattern, AfterValidator(_keyword)]
Ids = tuple[DiscordId, ...]


class ReactionsSection(Section):
    """What shows the state of a question. Empty means none."""

    seen: Emoji = Field(default=_REACTIONS.seen, description="Put on a question while it is answered; empty: none.")
    done: Emoji = Field(default=_REACTIONS.done, description="Put on a question that was answered; empty: none.")
    failed: Emoji = Field(
        default=_REACTIONS.failed, description="Put on a question that could not be answered; empty: none."
    )


class ConductSection(Section):
    """How an agent behaves in a server: whom it hears, when it speaks, what its answers look like."""

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
    direct_messages: bool = Field(default=_MANNERS.direct_messages, description="Whether it answers direct messages.")
    mentions: bool = Field(default=_MANNERS.mentions, description="Whether it answers when it is mentioned.")
    replies: bool = Field(default=_MANNERS.replies, description="Whether it answers replies to its messages.")
    mention_roles: Ids = Field(default=(), description="Ids of roles whose mention counts as a mention of the agent.")
    keywords: tuple[Keyword, ...] = Field(
        default=(), description="Regular expressions; a message in which one is found is answered. Case does not count."
    )
    always_channels: Ids = Field(default=(), description="Ids of channels in which it answers every message of people.")
    threads: ThreadHabit = Field(
        default=_MANNERS.threads,
        description="`follow` a thread in which it was mentioned, without further mentions; `open` a thread for every "
        "mention in a channel, and follow it; or `none`.",
    )
    max_exchanges: Whole = Field(
        default=_MANNERS.max_exchanges,
        ge=0,
        le=100,
        description="Messages of agents in a row in a channel, until a person writes; 0: agents do not answer agents.",
    )
    max_exchange_usd: Decimal | None = Field(
        default=_MANNERS.max_exchange_usd,
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
        default=_MANNERS.missed_limit_s / 60,
        ge=0,
        le=_WEEK_MINUTES,
        description="Messages that came while Denizen was away and are older get one reply together.",
    )
    edit_window_s: Number = Field(
        default=_MANNERS.edit_window_s,
        ge=0,
        le=3600,
        description="A question that is edited within so many seconds is answered anew; 0: never.",
    )
    message_limit: Whole = Field(
        default=_MANNERS.message_limit,
        ge=50,
        le=MESSAGE_CHARS,
        description="Characters at which answers are split.",
    )
    keep_blank_lines: bool = Field(
        default=_MANNERS.keep_blank_lines, description="Whether runs of blank lines stay; else they become one."
    )
    preview: bool = Field(
        default=_MANNERS.preview, description="Whether a status message shows what it is doing, until the answer."
    )
    reactions: ReactionsSection = Field(default_factory=ReactionsSection)
    error_message: Annotated[Text, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.error_message,
        description="Told after a failure in place of the reason; a reference is added to it. Empty: the reason.",
    )
    failure_text: bool = Field(
        default=_MANNERS.failure_text, description="Whether a failure is told in words, beside the reaction."
    )
    greeting: Annotated[SomeText, at_most(MESSAGE_CHARS)] = Field(
        default=_MANNERS.greeting, description="Answers a mention that says nothing."
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


def _conduct_is_told_once(schema: dict[str, Any]) -> None:
    """In the reference an account shows its token only; the conduct stands at `channels.discord`."""
    schema["properties"] = {name: schema["properties"][name] for name in _Login.model_fields}


class AccountSection(ConductSection, _Login):
    """One agent's login. What it leaves open of the conduct is that of `channels.discord`."""

    model_config = ConfigDict(json_schema_extra=_conduct_is_told_once)

    @property
    def foreign_keys(self) -> frozenset[str]:
        """What it shares with the other accounts stands there and is not repeated."""
        return frozenset(ConductSection.model_fields) - self.model_fields_set


def _short_account(value: object) -> object:
    return {"token": value} if isinstance(value, str) else value


class _Access(Section):
    enabled: bool = Field(default=True, description="Whether the accounts log in.")
    accounts: dict[str, Annotated[AccountSection, BeforeValidator(_short_account)]] = Field(
        default_factory=dict[str, AccountSection]
    )


class DiscordSection(ConductSection, _Access):
    """Discord. Without accounts nothing happens. The addresses are for another server that speaks its protocol."""

    api_url: HttpUrl = Field(
        default="", description="REST address of another server; the variable DENIZEN_DISCORD_API_URL goes before it."
    )
    gateway_url: WebSocketUrl = Field(
        default="", description="Websocket of another server; the variable DENIZEN_DISCORD_GATEWAY_URL goes before it."
    )


class ArchiveSection(Section):
    """The mirror of what is said on platforms."""

    enabled: bool = Field(default=True, description="Whether messages are kept, so that agents can look them up.")
    channels: Ids = Field(default=(), description="Ids of the channels that are kept, with their threads; empty: all.")
    backfill: bool = Field(
        default=_POLICY.backfill, description="Whether older messages are fetched in the background."
    )
    backfill_per_room: Whole = Field(
        default=_POLICY.backfill_limit_per_room,
        ge=0,
        le=10_000_000,
        description="How many older messages of one channel or thread are fetched at most; 0: all.",
    )
    retention_days: Whole = Field(
        default=_POLICY.retention_days, ge=0, le=36_500, description="Older messages are forgotten; 0: none are."
    )
    by_meaning: bool = Field(
        default=_POLICY.by_meaning,
        description=(
            "Whether messages are found by meaning too, where there is an embedder (`embeddings`). It costs about 20 ms"
            " of a processor a message with the small local model, or what the provider takes for it."
        ),
    )
    opt_out_channels: Ids = Field(default=(), description="Ids of channels that are not kept, nor their threads.")
    opt_out_roles: Ids = Field(default=(), description="Ids of roles whose members' messages are not kept.")
    opt_out_users: Ids = Field(default=(), description="Ids of users whose messages are not kept.")
