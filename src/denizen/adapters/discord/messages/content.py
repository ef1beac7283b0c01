"""Converts our content into Discord messages, and buttons into ids and back. Pure.

The value of a button is part of its id, so a press works after a restart and in another process; nothing is
registered.
"""

from __future__ import annotations

import io
import mimetypes
import re
from collections.abc import Mapping, Sequence
from typing import Any

import discord
from discord.http import MultipartParameters, handle_message_parameters

from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record
from denizen.domain.words import truncate

ID_LIMIT = 100
LABEL_LIMIT = 80

# Stored in posted messages: changing the form breaks the buttons of earlier versions.
_ID = re.compile(r"say:\d+:(?P<value>.+)|say#\d+", re.DOTALL)
_ACTION = re.compile(r"(?P<kind>do|why|answer):(?P<action>.+)", re.DOTALL)
WHY = "why"
"""The id of the form's field for the reason."""
WHY_CHARS = 500
ANSWER_CHARS = 2000
FORM_S = 900.0
"""The time for answering a form. Discord takes no answer to an interaction after that."""


def to_view(buttons: Sequence[MessageButton]) -> discord.ui.View:
    """Builds up to 25 buttons in rows of five. Needs a running event loop."""
    view = discord.ui.View(timeout=None)
    for position, button in enumerate(buttons):
        label = truncate(button.label, LABEL_LIMIT)
        if button.url:
            view.add_item(discord.ui.Button(label=label, url=button.url))
        else:
            view.add_item(discord.ui.Button(label=label, custom_id=to_custom_id(position, button)))
    return view


def to_custom_id(position: int, button: MessageButton) -> str:
    """Returns the id of a button. Its position keeps ids unique within a message; a value that is too long is given by
    its label. Actions have ids that no value can have.
    """
    if button.action:
        return f"{'why' if button.asks_why else 'answer' if button.asks_answer else 'do'}:{button.action}"
    custom_id = f"say:{position}:{button.value or button.label}"
    return custom_id if len(custom_id) <= ID_LIMIT else f"say#{position}"


@record
class ButtonAction:
    """The action of a pressed button. With `opens_form` a form opens first, whose answer has the same id."""

    action: str
    opens_form: bool


def find_action(custom_id: str) -> ButtonAction | None:
    """Returns the action of a button; None for a button that says a value, or is not ours."""
    found = _ACTION.fullmatch(custom_id)
    return ButtonAction(found["action"], found["kind"] != "do") if found else None


def to_form(custom_id: str) -> discord.ui.Modal:
    """Builds the form that asks why, or for an answer. Needs a running event loop."""
    is_answer = custom_id.startswith("answer:")
    title = "Answer" if is_answer else "Why not?"
    form = discord.ui.Modal(title=title, custom_id=custom_id, timeout=FORM_S)
    field: discord.ui.TextInput[discord.ui.View] = discord.ui.TextInput(
        style=discord.TextStyle.paragraph,
        custom_id=WHY,
        required=is_answer,
        max_length=ANSWER_CHARS if is_answer else WHY_CHARS,
        placeholder="The agent is told." if is_answer else "The agent is told. May stay empty.",
    )
    form.add_item(discord.ui.Label(text="Your answer" if is_answer else "Reason", component=field))
    return form


def read_form(components: Sequence[Mapping[str, Any]]) -> str:
    """Returns the text that was written into the form."""
    for component in components:
        fields: list[dict[str, Any]] = [component["component"]] if "component" in component else []
        for field in (*fields, *component.get("components", ())):
            if field.get("custom_id") == WHY:
                return str(field.get("value") or "")
    return ""


def find_value(custom_id: str, message: discord.Message | None) -> str | None:
    """Returns the value that a press says; None for a button that is not ours."""
    found = _ID.fullmatch(custom_id)
    if found is None:
        return None
    return found["value"] or _find_label(custom_id, message)


def _find_label(custom_id: str, message: discord.Message | None) -> str | None:
    for row in message.components if message is not None else ():
        for item in row.children if isinstance(row, discord.ActionRow) else ():
            if isinstance(item, discord.Button) and item.custom_id == custom_id:
                return item.label
    return None


# Discord's limits for messages and embeds; a message beyond them is rejected as a whole.
_TITLE_CHARS = 256
_TEXT_CHARS = 4096
_FIELD_CHARS = 1024
_MAX_EMBEDS = 10
_MAX_FILES = 10
_MAX_BUTTONS = 25
_MAX_FIELDS = 25
_MAX_PINGS = 100

_ATTACHED = "attachment://"
# Discord replaces other characters, and `attachment://` would no longer find the file.
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
# Discord rejects fields with an empty name or value.
_BLANK = "\N{ZERO WIDTH SPACE}"


def to_message(
    content: MessageContent, *, nonce: str = "", reference: Mapping[str, Any] | None = None, private: bool = False
) -> MultipartParameters:
    """Returns the parameters of a new message. For a repeated nonce Discord returns the earlier message
    (`enforce_nonce`). Only answers to commands can be private.
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
    """Returns the parameters of an edit that replaces everything: what the content lacks is removed."""
    _check(content)
    return handle_message_parameters(
        content=content.text,
        embeds=[to_embed(embed) for embed in content.embeds],
        attachments=[to_file(file) for file in content.files],
        view=to_view(content.buttons) if content.buttons else None,
        allowed_mentions=to_allowed_mentions(content),
    )


def to_allowed_mentions(content: MessageContent) -> discord.AllowedMentions:
    """Returns the allowed mentions; Discord takes at most a hundred of each kind."""
    return discord.AllowedMentions(
        everyone=False,
        users=[discord.Object(int(each)) for each in sorted(content.ping_users)[:_MAX_PINGS]],
        roles=[discord.Object(int(each)) for each in sorted(content.ping_roles)[:_MAX_PINGS]],
        replied_user=False,
    )


def to_embed(embed: EmbedCard) -> discord.Embed:
    """Returns an embed, with its texts cut to Discord's limits and its picture named as `to_file` names it."""
    made = discord.Embed(
        title=truncate(embed.title, _TITLE_CHARS) or None,
        description=truncate(embed.text, _TEXT_CHARS) or None,
        url=embed.url or None,
        colour=embed.colour,
    )
    if embed.image.startswith(_ATTACHED):
        made.set_image(url=_ATTACHED + _plain_name(embed.image.removeprefix(_ATTACHED)))
    elif embed.image:
        made.set_image(url=embed.image)
    for name, value in embed.fields[:_MAX_FIELDS]:
        made.add_field(
            name=truncate(name, _TITLE_CHARS) or _BLANK, value=truncate(value, _FIELD_CHARS) or _BLANK, inline=False
        )
    return made


def to_file(file: OutgoingFile) -> discord.File:
    """Returns a file under a plain name: Discord changes other characters, and tells the type by the ending."""
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
