"""Renders messages as text: for the archive, and for the question that an agent is asked.

Pure; nothing is fetched here. Previews of links are left out: Discord adds them later, in an edit that nobody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import discord

from denizen.adapters.discord.guild.visibility import may_be_named
from denizen.domain.names import format_name, quote_name
from denizen.domain.pings import name_mentions, remove_mention
from denizen.domain.room import Attachment
from denizen.domain.words import truncate

EMPTY = "[no text]"
"""Stands for a message without content, since models reject empty ones."""

_MAX_EMBED_CHARS = 2000
_MAX_QUOTE_CHARS = 300
# The account remembers what it said, so a hint suffices.
_MAX_OWN_QUOTE_CHARS = 100
_IDS = re.compile(r"<(@[!&]?|#)(\d+)>")
_SPOKEN = frozenset(
    {
        discord.MessageType.default,
        discord.MessageType.reply,
        discord.MessageType.chat_input_command,
        discord.MessageType.context_menu_command,
    }
)
_LEADING_MENTIONS = re.compile(r"\A(?:\s*<@[!&]?\d+>)+\s*", re.ASCII)


def is_conversation(message: discord.Message) -> bool:
    """Whether a person or a bot said it for all to read.

    Discord's notices (joins, pins, boosts, threads), answers that are still thinking, and messages that a single
    user sees do not count. Such a message is never a question, and is not archived.
    """
    return message.type in _SPOKEN and not message.flags.loading and not message.flags.ephemeral


def render_text(message: discord.Message) -> str:
    """Returns all that people read: mentions as names; stickers, polls, forwarded messages and embeds in words."""
    pieces = list(_pieces(message, message.content))
    return "\n".join(pieces) or ("" if convert_attachments(message) else EMPTY)


def extract_question(message: discord.Message, me: discord.ClientUser) -> str:
    """Returns the text without the account's own mentions; empty when somebody only mentions it, which the agent takes
    as a greeting. The message it replies to is quoted only when the whole question is loaded.
    """
    asked = "\n".join(_pieces(message, remove_mention(message.content, list_own_ids(message, me))))
    if not asked and convert_attachments(message):
        asked = EMPTY
    return asked


def extract_command(message: discord.Message) -> str:
    """Returns the text behind the mentions at its start when that begins with a slash: several agents may be given one
    command. Empty for any other text.
    """
    text = _LEADING_MENTIONS.sub("", message.content, count=1)
    return text if text.startswith("/") else ""


def quote_replied_message(message: discord.Message, me: discord.ClientUser) -> str:
    """Returns `[in reply to Bob: "..."]`; empty for no reply, or when the original is not known."""
    reference = find_reply_reference(message)
    if reference is not None and isinstance(reference.resolved, discord.DeletedReferencedMessage):
        return "[in reply to a message that was deleted]"
    original = find_replied_message(message)
    return quote_message(original, me) if original is not None else ""


def quote_message(original: discord.Message, me: discord.ClientUser) -> str:
    """Returns the line that quotes a message. The account's own messages get a shorter one, since it remembers them."""
    limit = _MAX_OWN_QUOTE_CHARS if original.author.id == me.id else _MAX_QUOTE_CHARS
    words = " ".join(render_text(original).split()) or describe_attachments(convert_attachments(original))
    return f'[in reply to {format_name(original.author.display_name)}: "{truncate(words, limit)}"]'


def find_reply_reference(message: discord.Message) -> discord.MessageReference | None:
    """Returns the reference to the message that this one replies to; None for forwards and for starts of threads."""
    return message.reference if message.type is discord.MessageType.reply else None


def find_replied_message(message: discord.Message) -> discord.Message | None:
    """Returns the message that this one replies to, when Discord sent it along."""
    reference = find_reply_reference(message)
    found = None if reference is None else reference.resolved or reference.cached_message
    return found if isinstance(found, discord.Message) else None


def list_own_ids(message: discord.Message, me: discord.ClientUser) -> frozenset[str]:
    """Returns the ids that call the account there: its own, and those of its roles."""
    myself = message.guild.get_member(me.id) if message.guild is not None else None
    roles = myself.roles if myself is not None else ()
    return frozenset({str(me.id), *(str(role.id) for role in roles if not role.is_default())})


def convert_attachments(message: discord.Message) -> tuple[Attachment, ...]:
    """Returns the files of a message, including those of forwarded messages."""
    return tuple(
        Attachment(each.filename, get_media_type(each), each.size, each.url) for each in list_attachments(message)
    )


def list_attachments(message: discord.Message) -> list[discord.Attachment]:
    """Returns the same files as discord.py's objects, so that they can be read."""
    return [*message.attachments, *(each for snapshot in message.message_snapshots for each in snapshot.attachments)]


def get_media_type(attachment: discord.Attachment) -> str:
    """Returns the media type as Discord says or by the name; in lower case, without parameters."""
    if attachment.content_type:
        return attachment.content_type.partition(";")[0].strip().lower()
    from mimetypes import guess_type

    return guess_type(attachment.filename)[0] or "application/octet-stream"


def describe_attachment(attachment: Attachment) -> str:
    """Returns the name, type and size."""
    return f"{attachment.name} ({attachment.media_type}, {format_size(attachment.size_bytes)})"


def describe_attachments(attachments: Iterable[Attachment]) -> str:
    return ", ".join(describe_attachment(each) for each in attachments)


def format_size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    if size_bytes < 1024 * 1024:
        return f"{size_bytes / 1024:.0f} KB"
    return f"{size_bytes / 1024 / 1024:.1f} MB"


def _pieces(message: discord.Message, content: str) -> Iterator[str]:
    if text := _named(content, message).strip():
        yield text
    for snapshot in message.message_snapshots:
        words = [_named(snapshot.content, message).strip(), *_extras(snapshot, has_embeds=True)]
        files = describe_attachments(
            Attachment(each.filename, get_media_type(each), each.size, each.url) for each in snapshot.attachments
        )
        yield f"[forwarded message: {' '.join(filter(None, (*words, files))) or EMPTY}]"
    yield from _extras(message, has_embeds=message.author.bot or message.webhook_id is not None)
    if message.poll is not None:
        yield _poll_in_words(message.poll)


def _extras(message: discord.Message | discord.MessageSnapshot, *, has_embeds: bool) -> Iterator[str]:
    for sticker in message.stickers:
        yield f"[sticker: {quote_name(sticker.name) or sticker.id}]"
    for attachment in message.attachments:
        if attachment.is_voice_message():
            yield f"[voice message, {round(attachment.duration or 0)} s, which cannot be heard]"
    if has_embeds and (embeds := "\n".join(filter(None, map(_embed_in_words, message.embeds)))):
        yield truncate(embeds, _MAX_EMBED_CHARS)


def _embed_in_words(embed: discord.Embed) -> str:
    """Renders an embed that somebody composed; previews of links have other types."""
    if embed.type != "rich":
        return ""
    fields = (f"{field.name}: {field.value}" for field in embed.fields)
    said = "\n".join(filter(None, (embed.title, embed.description, *fields)))
    return f"[embed: {said}]" if said else ""


def _poll_in_words(poll: discord.Poll) -> str:
    answers = (f"{number}. {answer.text or answer.emoji or ''}" for number, answer in enumerate(poll.answers, 1))
    return f"[poll: {' / '.join((poll.question, *answers))}]"


def _named(content: str, message: discord.Message) -> str:
    """Replaces mentions by names, as far as readers of the room may know them."""
    users = {str(user.id): user.display_name for user in message.mentions}
    guild = message.guild
    found = {(sigil.rstrip("!"), int(number)) for sigil, number in _IDS.findall(content)}
    if guild is None:
        named = filter(None, (_find_for_author(message, number) for sigil, number in found if sigil == "#"))
        return name_mentions(content, users, channels={str(each.id): each.name for each in named})
    members = filter(None, (guild.get_member(number) for sigil, number in found if sigil == "@"))
    roles = filter(None, (guild.get_role(number) for sigil, number in found if sigil == "@&"))
    channels = filter(None, (guild.get_channel_or_thread(number) for sigil, number in found if sigil == "#"))
    return name_mentions(
        content,
        {str(member.id): member.display_name for member in members} | users,
        {str(role.id): role.name.removeprefix("@") for role in roles},
        {str(each.id): each.name for each in channels if may_be_named(each, message.channel)},
    )


def _find_for_author(message: discord.Message, channel_id: int) -> discord.abc.GuildChannel | None:
    """Finds a channel that a direct message mentions, if its author may see it."""
    for guild in message.author.mutual_guilds:
        channel, member = guild.get_channel(channel_id), guild.get_member(message.author.id)
        if channel is not None and member is not None and channel.permissions_for(member).view_channel:
            return channel
    return None
