"""The registry of actions by name, and the one function that performs them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
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
    voice,
)
from denizen.adapters.discord.actions.context import ActionContext, open_context
from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, translate_errors
from denizen.adapters.discord.client.http import ChangeAttempted, changing_nothing
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.json import JsonObject
from denizen.ports.channel import EnterRoom

ActionFunction: TypeAlias = Callable[..., Awaitable[JsonObject]]
"""Performs one action. It gets an `ActionContext` and the details by name; the tool gets the result."""

ACTIONS: dict[str, ActionFunction] = {
    action.__name__: action
    for action in (
        *(messages.send_message, messages.edit_message, messages.delete_message, messages.pin_message),
        *(messages.unpin_message, messages.crosspost_message),
        *(reactions.add_reaction, reactions.remove_reaction, reactions.read_reactions),
        *(messages.create_poll, messages.end_poll, messages.read_poll),
        *(threads.create_thread, threads.edit_thread, threads.add_to_thread, threads.create_forum_post),
        *(menus.post_choices, menus.post_role_menu),
        *(moderation.judge_member, moderation.warn_member, moderation.timeout_member, moderation.end_timeout),
        *(moderation.kick_member, moderation.ban_member, moderation.unban_member, moderation.list_bans),
        *(moderation.choose_messages, moderation.purge_messages, moderation.set_slow_mode),
        *(members.member_info, members.list_members, members.set_nickname, members.add_role, members.remove_role),
        members.send_direct_message,
        *(channels.list_channels, channels.create_channel, channels.edit_channel, channels.delete_channel),
        channels.set_channel_permission,
        *(roles.list_roles, roles.create_role, roles.edit_role, roles.delete_role),
        *(server.server_info, server.check_emoji, server.create_emoji, server.delete_emoji),
        *(invites_webhooks.create_invite, invites_webhooks.list_invites, invites_webhooks.delete_invite),
        *(invites_webhooks.create_webhook, invites_webhooks.list_webhooks, invites_webhooks.delete_webhook),
        *(server.create_event, server.list_events, server.cancel_event),
        *(voice.voice_channels, voice.voice_members, voice.voice_join, voice.voice_leave, voice.voice_status),
        *(voice.voice_speak, voice.voice_hush, voice.voice_transcribe, voice.voice_transcript),
        *(voice.voice_post_minutes, voice.voice_assist),
    )
}
"""The actions by the names of their functions."""


async def perform_action(
    client: discord.Client, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom
) -> JsonObject:
    """Performs the action. Raises the errors of a channel, and InvalidInput for unknown actions or details."""
    deed = ACTIONS.get(action.name)
    if deed is None:
        near = difflib.get_close_matches(action.name, ACTIONS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else "See the list of actions."
        raise InvalidInput(f"Discord has no action '{action.name}'.", code="discord_no_action", fix=hint)
    _check_details(deed, action)
    with translate_errors(action.name.replace("_", " ")), anyio.fail_after(RESPONSE_TIMEOUT_S):
        context: ActionContext = await open_context(client, warrant, key=_derive_key(action, warrant), enter=enter)
        return await cast("Any", deed)(context, **action.details)


async def check_action(client: discord.Client, action: PlatformAction, warrant: OnBehalfOf) -> None:
    """Performs the action up to its first request that would change something. Raises what it raised until then."""
    with changing_nothing(), suppress(ChangeAttempted):
        await perform_action(client, action, warrant, enter=lambda _: nullcontext())


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
