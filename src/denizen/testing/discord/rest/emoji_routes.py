"""Routes of a guild's emojis."""

from __future__ import annotations

import re

from denizen.testing.discord.payloads.guilds import emoji_payload
from denizen.testing.discord.rest.call import Call, Created, Route
from denizen.testing.discord.state.messages import Emoji
from denizen.testing.discord.state.refusals import unknown

_EMOJIS = "/guilds/{guild_id}/emojis"
_EMOJI = f"{_EMOJIS}/{{emoji_id}}"
_NAME = re.compile(r"\w{2,32}", re.ASCII)
_PICTURE = re.compile(r"data:image/(png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]+=*")
_MAX_PICTURE_CHARS = 256 * 1024 * 4 // 3 + 64


def list_emojis(call: Call) -> object:
    return [emoji_payload(each) for each in call.guild().emojis.values()]


def read_emoji(call: Call) -> object:
    return emoji_payload(_emoji(call))


def create_emoji(call: Call) -> object:
    guild, form = call.guild(), call.form
    name, picture = form.text("name", 32, required=True) or "", form.text("image", required=True) or ""
    kind = _PICTURE.fullmatch(picture)
    if not _NAME.fullmatch(name):
        form.fault("name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
    if kind is None:
        form.fault("image", "IMAGE_INVALID", "Invalid image data")
    if len(picture) > _MAX_PICTURE_CHARS:
        form.fault("image", "BINARY_TYPE_MAX_SIZE", "File cannot be larger than 256.0 kb.")
    form.check()
    animated = kind is not None and kind[1] == "gif"
    return Created(emoji_payload(call.acts.guilds.create_emoji(call.bot, guild, name, animated=animated)))


def delete_emoji(call: Call) -> object:
    call.acts.guilds.delete_emoji(call.bot, call.guild(), _emoji(call))
    return None


def _emoji(call: Call) -> Emoji:
    emoji = call.guild().emojis.get(call.id("emoji_id"))
    if emoji is None:
        raise unknown("Emoji")
    return emoji


EMOJI_ROUTES = (
    Route("GET", _EMOJIS, list_emojis),
    Route("POST", _EMOJIS, create_emoji),
    Route("GET", _EMOJI, read_emoji),
    Route("DELETE", _EMOJI, delete_emoji),
)
