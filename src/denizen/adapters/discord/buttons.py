"""Buttons that say something: the id that Discord keeps for each, and what it means when one is pressed. Pure.

The value stands in the id itself, so a press works after a restart and in another process; nothing is registered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import discord

from denizen.domain.delivery import Button

ID_LIMIT = 100
LABEL_LIMIT = 80

_ID = re.compile(r"say:\d+:(?P<value>.+)|say#\d+", re.DOTALL)


def to_view(buttons: Sequence[Button]) -> discord.ui.View:
    """Up to 25 buttons in rows of five. Needs a running event loop."""
    view = discord.ui.View(timeout=None)
    for position, button in enumerate(buttons):
        label = _clip(button.label)
        if button.url:
            view.add_item(discord.ui.Button(label=label, url=button.url))
        else:
            view.add_item(discord.ui.Button(label=label, custom_id=to_custom_id(position, button)))
    return view


def to_custom_id(position: int, button: Button) -> str:
    """The position keeps ids apart within a message. A value that is too long is said by its label."""
    custom_id = f"say:{position}:{button.value or button.label}"
    return custom_id if len(custom_id) <= ID_LIMIT else f"say#{position}"


def find_value(custom_id: str, message: discord.Message | None) -> str | None:
    """What a press says; None for a button that is not ours."""
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


def _clip(label: str) -> str:
    return label if len(label) <= LABEL_LIMIT else label[: LABEL_LIMIT - 1] + "…"
