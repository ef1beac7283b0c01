"""Our content as the parameters of a Discord message. Pure.

Pings are exactly those that the content names, for the text may hold `@everyone` or a mention that somebody else wrote
(inventory CW8). Called by `sending` and `tickets`.
"""

from __future__ import annotations

import io
import mimetypes
import re
from collections.abc import Mapping
from typing import Any

import discord
from discord.http import MultipartParameters, handle_message_parameters

from denizen.adapters.discord.buttons import to_view
from denizen.domain.delivery import EmbedCard, MessageContent, OutgoingFile
from denizen.domain.errors import InvalidInput

_TITLE_CHARS = 256
_TEXT_CHARS = 4096
_FIELD_CHARS = 1024
_MAX_EMBEDS = 10
_MAX_FILES = 10
_MAX_BUTTONS = 25
_MAX_FIELDS = 25
_MAX_PINGS = 100

_ATTACHED = "attachment://"
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_BLANK = "\N{ZERO WIDTH SPACE}"


def to_message(
    content: MessageContent, *, nonce: str = "", reference: Mapping[str, Any] | None = None, private: bool = False
) -> MultipartParameters:
    """A new message. With the same nonce soon after Discord gives the earlier message (`enforce_nonce`). Private is
    possible in answers to commands only.
    """
    _check(content)
    return handle_message_parameters(
        content=content.text or None,
        nonce=nonce or None,
        flags=discord.MessageFlags(ephemeral=True) if private else discord.utils.MISSING,
        embeds=[to_embed(embed) for embed in content.embeds],
        files=[to_file(file) for file in content.files],
        view=to_view(content.buttons) if content.buttons else discord.utils.MISSING,
        allowed_mentions=to_allowed_mentions(content),
        message_reference=reference or discord.utils.MISSING,  # pyright: ignore[reportArgumentType] - a plain mapping
    )


def to_edit(content: MessageContent) -> MultipartParameters:
    """Takes the place of all that a message holds: what the content lacks is taken away."""
    _check(content)
    return handle_message_parameters(
        content=content.text,
        embeds=[to_embed(embed) for embed in content.embeds],
        attachments=[to_file(file) for file in content.files],
        view=to_view(content.buttons) if content.buttons else None,
        allowed_mentions=to_allowed_mentions(content),
    )


def to_allowed_mentions(content: MessageContent) -> discord.AllowedMentions:
    """Discord takes a hundred of each at most."""
    return discord.AllowedMentions(
        everyone=False,
        users=[discord.Object(int(each)) for each in sorted(content.ping_users)[:_MAX_PINGS]],
        roles=[discord.Object(int(each)) for each in sorted(content.ping_roles)[:_MAX_PINGS]],
        replied_user=False,
    )


def to_embed(embed: EmbedCard) -> discord.Embed:
    """Texts are cut to Discord's limits; a file's name is that of `to_file`."""
    made = discord.Embed(
        title=_clip(embed.title, _TITLE_CHARS) or None,
        description=_clip(embed.text, _TEXT_CHARS) or None,
        url=embed.url or None,
        colour=embed.colour,
    )
    if embed.image.startswith(_ATTACHED):
        made.set_image(url=_ATTACHED + _plain_name(embed.image.removeprefix(_ATTACHED)))
    elif embed.image:
        made.set_image(url=embed.image)
    for name, value in embed.fields[:_MAX_FIELDS]:
        made.add_field(
            name=_clip(name, _TITLE_CHARS) or _BLANK, value=_clip(value, _FIELD_CHARS) or _BLANK, inline=False
        )
    return made


def to_file(file: OutgoingFile) -> discord.File:
    """Discord changes names with other characters in them, and goes by the ending of a name for what it is."""
    name = _plain_name(file.name)
    if "." not in name:
        name += mimetypes.guess_extension(file.media_type) or ""
    return discord.File(io.BytesIO(file.data), filename=name)


def _check(content: MessageContent) -> None:
    for what, given, most in (
        ("embeds", len(content.embeds), _MAX_EMBEDS),
        ("files", len(content.files), _MAX_FILES),
        ("buttons", len(content.buttons), _MAX_BUTTONS),
    ):
        if given > most:
            raise InvalidInput(
                f"A Discord message holds at most {most} {what}.", code="discord_rejected", why=f"There are {given}."
            )


def _plain_name(name: str) -> str:
    return _UNSAFE.sub("_", name).strip("_") or "file"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
