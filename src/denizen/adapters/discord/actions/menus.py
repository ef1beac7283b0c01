"""Buttons and menus from which people choose: posting them, and reading what was pressed.

A choice says its label to the agent: people see what they say, so nobody can put other words into their mouths. A
role menu assigns roles without a model. The offered values are part of the message that Discord keeps: a press works
after a restart and in every process, and never offers more than the message does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import anyio
import discord

from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_role, load_channel
from denizen.adapters.discord.actions.posting import OutgoingMessage, post_message, require_rules
from denizen.adapters.discord.actions.reactions import read_emoji
from denizen.adapters.discord.client.application import menu_name
from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, translate_errors
from denizen.adapters.discord.messages.content import LABEL_LIMIT
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record

Style = Literal["buttons", "menu"]

MAX_CHOICES = 25
OPTION_CHARS = 100

_PICK = re.compile(r"pick#(\d+)")
# These ids are stored in posted messages: changing them breaks the menus of earlier versions.
_PICK_MENU = "pick"
_ABOUT_CHARS = 300


@record
class DiscordMenuOption:
    """One option of a menu. `description` appears in menus only, not on buttons."""

    label: str
    emoji: discord.PartialEmoji | None = None
    description: str = ""


@record
class DiscordMenuChoice:
    """The labels that somebody chose, and the beginning of the message that offered them."""

    value: str
    about: str


async def post_choices(
    context: ActionContext,
    text: str,
    choices: Sequence[Json],
    style: str = "buttons",
    *,
    several: bool = False,
    channel: str = "",
) -> JsonObject:
    """Posts buttons or a menu. A choice is a label, or has `label`, `emoji`, `description`. `several` is for menus."""
    where = await load_channel(context, channel)
    options = [await _read_option(context, each) for each in choices]
    if several and style == "buttons":
        raise InvalidInput("Of buttons one is pressed.", code="discord_bad_menu", fix="Take the style `menu`.")
    labels = [each.label for each in options]
    view = build_menu_view(
        options,
        labels if style == "menu" else [f"pick#{n}" for n in range(len(labels))],
        style,
        (_PICK_MENU, 1, len(options) if several else 1),
    )
    return await post_message(context, where, OutgoingMessage(text, view=view))


def build_menu_view(
    options: Sequence[DiscordMenuOption], values: Sequence[str], style: str, menu: tuple[str, int, int]
) -> discord.ui.View:
    """Builds buttons whose ids are `values`, or a menu of these values; `menu` is its id and the range of choices.
    Raises InvalidInput for what Discord would reject. Needs a running event loop.
    """
    limit, labels = LABEL_LIMIT if style == "buttons" else OPTION_CHARS, [each.label for each in options]
    require_rules(
        "menu",
        (
            (style in ("buttons", "menu"), "its style is `buttons` or `menu`"),
            (1 <= len(options) <= MAX_CHOICES, f"it has 1 to {MAX_CHOICES} choices"),
            (len(set(labels)) == len(labels), "no two choices have the same label"),
            (all(1 <= len(each) <= limit for each in labels), f"each label has 1 to {limit} characters"),
            (
                all(len(each.description) <= OPTION_CHARS for each in options),
                f"a description has at most {OPTION_CHARS} characters",
            ),
        ),
    )
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


def find_choice(data: Mapping[str, Any], message: discord.Message | None) -> DiscordMenuChoice | None:
    """Returns the choice that a press made; None when it is no choice, or the message does not offer it."""
    custom_id = str(data["custom_id"])
    if message is None or not (custom_id == _PICK_MENU or _PICK.fullmatch(custom_id)):
        return None
    if custom_id == _PICK_MENU:
        labels = [each for each in data.get("values", ()) if each in list_offered(message, custom_id)]
    else:
        labels = [each.label or "" for each in list_buttons(message) if each.custom_id == custom_id]
    about = " ".join(message.content.split())
    return DiscordMenuChoice(", ".join(labels), about[:_ABOUT_CHARS]) if labels else None


def list_offered(message: discord.Message, custom_id: str) -> list[str]:
    """Returns the values of that menu."""
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


async def _read_option(context: ActionContext, given: Json) -> DiscordMenuOption:
    if isinstance(given, str):
        return DiscordMenuOption(" ".join(given.split()))
    if not isinstance(given, Mapping):
        raise InvalidInput("A choice is a label, or an object that has one.", code="discord_bad_menu")
    label, emoji, description = (
        " ".join(str(given.get(each) or "").split()) for each in ("label", "emoji", "description")
    )
    return DiscordMenuOption(label, await read_emoji(context, emoji) if emoji else None, description)


_BUTTON = re.compile(r"(?P<kind>role|only):(?P<role>\d+)")
_MENU = "roles"
# A role with one of these would let members promote themselves, so no menu may offer it.
_POWERFUL_PERMISSIONS = (
    "administrator",
    "ban_members",
    "kick_members",
    "manage_channels",
    "manage_emojis_and_stickers",
    "manage_events",
    "manage_guild",
    "manage_messages",
    "manage_nicknames",
    "manage_roles",
    "manage_threads",
    "manage_webhooks",
    "mention_everyone",
    "moderate_members",
    "move_members",
    "mute_members",
    "deafen_members",
    "view_audit_log",
    "view_guild_insights",
)


async def post_role_menu(
    context: ActionContext,
    roles: Sequence[str],
    text: str,
    channel: str = "",
    style: str = "buttons",
    *,
    only_one: bool = False,
) -> JsonObject:
    """Posts a menu by which members give themselves roles. With `only_one` a member holds at most one of them."""
    where = await load_channel(context, channel)
    context.require("manage_roles")
    found = list(dict.fromkeys(find_role(context, each) for each in roles))
    for role in found:
        context.require_below(role)
        _require_powerless(role)
    kind = "only" if only_one else "role"
    values = [str(role.id) if style == "menu" else f"{kind}:{role.id}" for role in found]
    view = build_menu_view(
        [DiscordMenuOption(role.name) for role in found], values, style, (_MENU, 0, 1 if only_one else len(found))
    )
    return await post_message(context, where, OutgoingMessage(text, view=view))


def is_role_menu(custom_id: str) -> bool:
    return custom_id == _MENU or _BUTTON.fullmatch(custom_id) is not None


async def choose_roles(client: discord.Client, interaction: discord.Interaction, data: Mapping[str, Any]) -> str:
    """Assigns and removes the roles of a press, and returns the text for the member. Raises NotAllowed and NotFound."""
    message, member = interaction.message, interaction.user
    guild = interaction.guild
    is_mine = message is not None and client.user is not None and message.author.id == client.user.id
    if message is None or guild is None or not is_mine or not isinstance(member, discord.Member):
        raise NotFound("This menu is of no use any more.", code="discord_menu_gone")
    listed, wanted, is_toggle = _read(message, data)
    held = {role.id for role in member.roles}
    if is_toggle:
        wanted -= held
    taken = (held & listed) - wanted
    if not guild.me.guild_permissions.manage_roles:
        raise NotAllowed("I may not give roles any more.", code="discord_not_permitted", fix="Tell a moderator.")
    given = [_get_role(guild, each) for each in sorted(wanted - held)]
    with translate_errors("give that role"), anyio.fail_after(RESPONSE_TIMEOUT_S):
        for role in given:
            await member.add_roles(role, reason="Chosen in a role menu")
        for each in sorted(taken):
            if (old := guild.get_role(each)) is not None:
                await member.remove_roles(old, reason="Chosen in a role menu")
    names = {True: [role.name for role in given], False: [r.name for r in map(guild.get_role, sorted(taken)) if r]}
    told = [f"You have now: {', '.join(names[True])}."] if names[True] else []
    told += [f"You no longer have: {', '.join(names[False])}."] if names[False] else []
    return " ".join(told) or "Nothing changes."


def _read(message: discord.Message, data: Mapping[str, Any]) -> tuple[set[int], set[int], bool]:
    """Returns the roles of the menu, the chosen ones, and whether choosing a role that one has removes it."""
    custom_id = str(data["custom_id"])
    if custom_id == _MENU:
        listed = {int(each) for each in list_offered(message, custom_id)}
        return listed, {int(each) for each in data.get("values", ())} & listed, False
    buttons = [found for each in list_buttons(message) if (found := _BUTTON.fullmatch(each.custom_id or ""))]
    pressed = next((each for each in buttons if each.group() == custom_id), None)
    if pressed is None:
        raise NotFound("This menu is of no use any more.", code="discord_menu_gone")
    chosen = int(pressed["role"])
    listed = {int(each["role"]) for each in buttons} if pressed["kind"] == "only" else {chosen}
    return listed, {chosen}, True


def _get_role(guild: discord.Guild, role_id: int) -> discord.Role:
    role = guild.get_role(role_id)
    if role is None or role.is_default() or role.managed or role >= guild.me.top_role:
        raise NotAllowed("I cannot give that role any more.", code="discord_rank", fix="Tell a moderator.")
    _require_powerless(role)
    return role


def _require_powerless(role: discord.Role) -> None:
    power = next((each for each in _POWERFUL_PERMISSIONS if getattr(role.permissions, each)), None)
    if power is not None:
        raise NotAllowed(
            f"The role {role.mention} has power over others ('{menu_name(power)}'), so it is not for the taking.",
            code="discord_powerful_role",
        )
