"""Posting the message of an action: its text, the pings that the asker has a right to, and its embed, exactly once.

The message pings only people that the text names, and roles and everybody only if the asker and the account may both
ping them there. A retry within some minutes yields the first message (`ActionContext.nonce`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, cast

import discord
from discord.http import handle_message_parameters

from denizen.adapters.discord.actions.context import ActionContext, GuildPlace
from denizen.adapters.discord.client.settings import PLATFORM, POST_LINK
from denizen.adapters.discord.guild.members import find_names
from denizen.adapters.discord.messages.content import to_embed
from denizen.adapters.discord.messages.conversion import to_room
from denizen.domain.conversation import Place
from denizen.domain.delivery import EmbedCard
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject
from denizen.domain.pings import link_pings
from denizen.domain.record import record

TEXT_CHARS = 2000

_USER = re.compile(r"<@!?(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")
# `link_pings` puts a zero-width space behind the @ of @everyone and @here; a permitted one is restored.
_DEFUSED = re.compile("@\u200b(?=everyone|here)", re.IGNORECASE)
# Discord rejects allowed mentions with more users or roles.
_MAX_PINGS = 100


@record
class PreparedText:
    """A text as it is sent, and whom it may ping."""

    text: str
    pings: discord.AllowedMentions


@record
class OutgoingMessage:
    """The content of one message."""

    text: str = ""
    embed: Mapping[str, Json] = field(default_factory=dict[str, Json])
    reply_to: str = ""
    view: discord.ui.View | None = None
    poll: discord.Poll | None = None


async def prepare_text(context: ActionContext, where: GuildPlace, text: str) -> PreparedText:
    """Resolves the pings of a text. Raises InvalidInput for a text that is too long for a message."""
    if len(text) > TEXT_CHARS:
        raise InvalidInput(
            f"A message has at most {TEXT_CHARS} characters; this has {len(text)}.",
            code="discord_too_long",
            fix="Say it shorter, or put it into an embed (4096).",
        )
    is_loud = context.both_may("mention_everyone", where)
    names = await find_names(context.client, Place(PLATFORM, str(where.id)), text)
    linked = link_pings(text, names.users, roles=names.roles)
    shown = _DEFUSED.sub("@", linked.text) if is_loud else linked.text
    roles = [role for each in _ROLE.findall(shown) if (role := context.guild.get_role(int(each))) is not None]
    pings = discord.AllowedMentions(
        everyone=is_loud,
        users=[discord.Object(int(each)) for each in sorted(set(_USER.findall(shown)))[:_MAX_PINGS]],
        roles=[role for role in dict.fromkeys(roles) if is_loud or role.mentionable][:_MAX_PINGS],
        replied_user=False,
    )
    return PreparedText(shown, pings)


async def post_message(context: ActionContext, where: GuildPlace, written: OutgoingMessage) -> JsonObject:
    """Posts one message. Raises NotAllowed unless both may post this content, and InvalidInput for an empty one."""
    if not (written.text.strip() or any(written.embed.values()) or written.poll):
        raise InvalidInput("An empty message cannot be sent.", code="discord_empty", fix="Give a text or an embed.")
    more = ["embed_links"] if written.embed else []
    more += ["send_polls"] if written.poll else []
    more += ["read_message_history"] if written.reply_to else []
    context.require_writing(where, *more)
    worded = await prepare_text(context, where, written.text)
    reference: Any = {"message_id": written.reply_to, "channel_id": str(where.id)} if written.reply_to else None
    params = handle_message_parameters(
        content=worded.text or None,
        nonce=context.nonce,
        embeds=read_embeds(written.embed),
        view=written.view or discord.utils.MISSING,
        poll=written.poll or discord.utils.MISSING,
        message_reference=reference or discord.utils.MISSING,
        allowed_mentions=worded.pings,
    )
    async with context.enter(to_room(where).place):
        with params:
            sent = cast("Mapping[str, Any]", await context.client.http.send_message(where.id, params=params))
    return describe_message(context, where.id, int(sent["id"]))


def require_rules(kind: str, rules: Iterable[tuple[bool, str]]) -> None:
    """Raises InvalidInput with the first rule of Discord's that does not hold. `kind` is "menu" or "poll"."""
    broken = next((rule for holds, rule in rules if not holds), None)
    if broken is not None:
        raise InvalidInput(f"That cannot be a {kind}: {broken}.", code=f"discord_bad_{kind}")


def read_embeds(embed: Mapping[str, Json]) -> list[discord.Embed]:
    """Parses an embed with `title`, `text`, `url`, `image` (both https) and `fields`; returns one or none."""
    if not embed:
        return []
    fields = embed.get("fields")
    pairs = tuple((name, str(value)) for name, value in fields.items()) if isinstance(fields, Mapping) else ()
    title, text, url, image = (str(embed.get(name) or "") for name in ("title", "text", "url", "image"))
    if not all(each.startswith("https://") for each in (url, image) if each):
        raise InvalidInput("The embed's `url` and `image` are https addresses.", code="discord_bad_embed")
    return [to_embed(EmbedCard(title, text, url, image, pairs))]


def describe_message(context: ActionContext, channel_id: int, message_id: int) -> JsonObject:
    """Returns the result that a tool gets about a message."""
    link = POST_LINK.format(guild=context.guild.id, room=channel_id, post=message_id)
    return {"message": str(message_id), "channel": str(channel_id), "link": link}
