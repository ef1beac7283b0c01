"""The registry of actions by name, and the one function that performs them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable
from inspect import Parameter, signature
from typing import Any, TypeAlias, cast

import anyio
import discord

from denizen.adapters.discord.actions import (
    channels,
    invites_webhooks,
    members,
    menus,
    messages,
    moderation,
    reactions,
    roles,
    server,
    threads,
)
from denizen.adapters.discord.actions.context import ActionContext, open_context
from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, translate_errors
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.json import JsonObject

ActionFunction: TypeAlias = Callable[..., Awaitable[JsonObject]]
"""Performs one action. It gets an `ActionContext` and the details by name; the tool gets the result."""

ACTIONS: dict[str, ActionFunction] = {
    "send_message": messages.send_message,
    "edit_message": messages.edit_message,
    "delete_message": messages.delete_message,
    "pin_message": messages.pin_message,
    "unpin_message": messages.unpin_message,
    "crosspost_message": messages.crosspost_message,
    "add_reaction": reactions.add_reaction,
    "remove_reaction": reactions.remove_reaction,
    "read_reactions": reactions.read_reactions,
    "create_poll": messages.create_poll,
    "end_poll": messages.end_poll,
    "read_poll": messages.read_poll,
    "create_thread": threads.create_thread,
    "edit_thread": threads.edit_thread,
    "add_to_thread": threads.add_to_thread,
    "create_forum_post": threads.create_forum_post,
    "post_choices": menus.post_choices,
    "post_role_menu": menus.post_role_menu,
    "judge_member": moderation.judge_member,
    "warn_member": moderation.warn_member,
    "timeout_member": moderation.timeout_member,
    "end_timeout": moderation.end_timeout,
    "kick_member": moderation.kick_member,
    "ban_member": moderation.ban_member,
    "unban_member": moderation.unban_member,
    "list_bans": moderation.list_bans,
    "choose_messages": moderation.choose_messages,
    "purge_messages": moderation.purge_messages,
    "set_slow_mode": moderation.set_slow_mode,
    "member_info": members.member_info,
    "list_members": members.list_members,
    "set_nickname": members.set_nickname,
    "add_role": members.add_role,
    "remove_role": members.remove_role,
    "send_direct_message": members.send_direct_message,
    "list_channels": channels.list_channels,
    "create_channel": channels.create_channel,
    "edit_channel": channels.edit_channel,
    "delete_channel": channels.delete_channel,
    "set_channel_permission": channels.set_channel_permission,
    "list_roles": roles.list_roles,
    "create_role": roles.create_role,
    "edit_role": roles.edit_role,
    "delete_role": roles.delete_role,
    "server_info": server.server_info,
    "create_emoji": server.create_emoji,
    "delete_emoji": server.delete_emoji,
    "create_invite": invites_webhooks.create_invite,
    "list_invites": invites_webhooks.list_invites,
    "delete_invite": invites_webhooks.delete_invite,
    "create_webhook": invites_webhooks.create_webhook,
    "list_webhooks": invites_webhooks.list_webhooks,
    "delete_webhook": invites_webhooks.delete_webhook,
    "create_event": server.create_event,
    "list_events": server.list_events,
    "cancel_event": server.cancel_event,
}


async def perform_action(client: discord.Client, action: PlatformAction, warrant: OnBehalfOf) -> JsonObject:
    """Performs the action. Raises the errors of a channel, and InvalidInput for unknown actions or details."""
    deed = ACTIONS.get(action.name)
    if deed is None:
        near = difflib.get_close_matches(action.name, ACTIONS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else "See the list of actions."
        raise InvalidInput(f"Discord has no action '{action.name}'.", code="discord_no_action", fix=hint)
    _check_details(deed, action)
    with translate_errors(action.name.replace("_", " ")), anyio.fail_after(RESPONSE_TIMEOUT_S):
        context: ActionContext = await open_context(client, warrant, _derive_key(action, warrant))
        return await cast("Any", deed)(context, **action.details)


def _derive_key(action: PlatformAction, warrant: OnBehalfOf) -> str:
    """Derives a key from the whole action, since one tool call may ask for several."""
    return derive("act", warrant.key, action.name, json.dumps(dict(action.details), sort_keys=True))


def _check_details(deed: ActionFunction, action: PlatformAction) -> None:
    known = list(signature(deed).parameters.values())[1:]
    unknown = set(action.details) - {parameter.name for parameter in known}
    missing = {p.name for p in known if p.default is Parameter.empty} - set(action.details)
    if unknown or missing:
        wrong = f"does not know {', '.join(sorted(unknown))}" if unknown else f"needs {', '.join(sorted(missing))}"
        raise InvalidInput(f"The action '{action.name}' {wrong}.", code="discord_action_details")
