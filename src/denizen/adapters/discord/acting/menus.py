"""Buttons and menus from which people choose: posting them, and reading what was pressed.

A choice says its label to the agent: what people read is what they say, so nothing else can be put into their mouths.
A role menu gives and takes roles without a model (`role_menus`). What a menu offers stands in the message itself, which
Discord keeps: a press works after a restart, in every process, and offers nothing that the message does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import discord

from denizen.adapters.discord.acting.hand import Hand
from denizen.adapters.discord.acting.lookup import load_channel
from denizen.adapters.discord.acting.marks import read_emoji
from denizen.adapters.discord.acting.writing import Written, post
from denizen.adapters.discord.buttons import LABEL_LIMIT
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

Style = Literal["buttons", "menu"]

MOST = 25
OPTION_CHARS = 100

_PICK = re.compile(r"pick#(\d+)")
_PICK_MENU = "pick"
_ABOUT_CHARS = 300


@dataclass(frozen=True, slots=True)
class Option:
    """One that can be chosen. `description` is shown in menus only."""

    label: str
    emoji: discord.PartialEmoji | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody chose: the labels, and the beginning of the message that offered them."""

    value: str
    about: str


async def post_choices(
    hand: Hand, text: str, choices: Sequence[Json], style: str = "buttons", *, several: bool = False, channel: str = ""
) -> JsonObject:
    """Each choice is a label, or an object with `label`, `emoji` and `description`. `several` is for menus."""
    where = await load_channel(hand, channel)
    options = [await _read_option(hand, each) for each in choices]
    if several and style == "buttons":
        raise InvalidInput("Of buttons one is pressed.", code="discord_bad_menu", fix="Take the style `menu`.")
    labels = [each.label for each in options]
    view = to_view(
        options,
        labels if style == "menu" else [f"pick#{n}" for n in range(len(labels))],
        style,
        (_PICK_MENU, 1, len(options) if several else 1),
    )
    return await post(hand, where, Written(text, view=view))


def to_view(
    options: Sequence[Option], values: Sequence[str], style: str, menu: tuple[str, int, int]
) -> discord.ui.View:
    """Buttons whose ids are `values`, or a menu of these values: `menu` is its id, and how many are chosen. Raises
    InvalidInput for what Discord would not take. Needs a running event loop.
    """
    _check(options, style)
    view = discord.ui.View(timeout=None)
    if style == "buttons":
        for option, value in zip(options, values, strict=True):
            view.add_item(discord.ui.Button(label=option.label, emoji=option.emoji, custom_id=value))
        return view
    custom_id, least, most = menu
    select: discord.ui.Select[discord.ui.View] = discord.ui.Select(
        custom_id=custom_id,
        min_values=least,
        max_values=most,
        placeholder="Choose",
        options=[
            discord.SelectOption(
                label=option.label, value=value, emoji=option.emoji, description=option.description or None
            )
            for option, value in zip(options, values, strict=True)
        ],
    )
    view.add_item(select)
    return view


def find_choice(data: Mapping[str, Any], message: discord.Message | None) -> Choice | None:
    """None for what is no choice, or not offered by the message."""
    custom_id = str(data["custom_id"])
    if message is None or not (custom_id == _PICK_MENU or _PICK.fullmatch(custom_id)):
        return None
    if custom_id == _PICK_MENU:
        labels = [each for each in data.get("values", ()) if each in offered(message, custom_id)]
    else:
        labels = [each.label or "" for each in list_buttons(message) if each.custom_id == custom_id]
    about = " ".join(message.content.split())
    return Choice(", ".join(labels), about[:_ABOUT_CHARS]) if labels else None


def offered(message: discord.Message, custom_id: str) -> list[str]:
    """The values of that menu."""
    menus = [each for each in _items(message) if each.custom_id == custom_id]
    return [option.value for each in menus if isinstance(each, discord.SelectMenu) for option in each.options]


def list_buttons(message: discord.Message) -> list[discord.Button]:
    return [each for each in _items(message) if isinstance(each, discord.Button)]


def _items(message: discord.Message) -> list[discord.Button | discord.SelectMenu]:
    return [
        item
        for row in message.components
        if isinstance(row, discord.ActionRow)
        for item in row.children
        if isinstance(item, (discord.Button, discord.SelectMenu))
    ]


async def _read_option(hand: Hand, given: Json) -> Option:
    if isinstance(given, str):
        return Option(" ".join(given.split()))
    if not isinstance(given, Mapping):
        raise InvalidInput("A choice is a label, or an object that has one.", code="discord_bad_menu")
    label, emoji, description = (
        " ".join(str(given.get(each) or "").split()) for each in ("label", "emoji", "description")
    )
    return Option(label, await read_emoji(hand, emoji) if emoji else None, description)


def _check(options: Sequence[Option], style: str) -> None:
    limit = LABEL_LIMIT if style == "buttons" else OPTION_CHARS
    labels = [each.label for each in options]
    wrong = ""
    if style not in ("buttons", "menu"):
        wrong = "its style is `buttons` or `menu`"
    elif not 1 <= len(options) <= MOST:
        wrong = f"it has 1 to {MOST} choices"
    elif len(set(labels)) < len(labels):
        wrong = "no two choices have the same label"
    elif not all(1 <= len(each) <= limit for each in labels):
        wrong = f"each label has 1 to {limit} characters"
    elif any(len(each.description) > OPTION_CHARS for each in options):
        wrong = f"a description has at most {OPTION_CHARS} characters"
    if wrong:
        raise InvalidInput(f"That cannot be a menu: {wrong}.", code="discord_bad_menu")
