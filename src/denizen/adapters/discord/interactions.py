"""Slash commands, autocompletion, buttons and forms: acknowledged at once, then handled in the order of the room.

Discord wants an answer within 3 s, so each interaction shows "is thinking" before the listener is called. The
acknowledgement has to say whether the answer will be private; a reply that turns out otherwise replaces it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import discord
from anyio.abc import TaskGroup
from discord import app_commands

from denizen.adapters.discord.actions.menus import choose_roles, find_choice, is_role_menu
from denizen.adapters.discord.client.errors import ALREADY_ACKNOWLEDGED, VENDOR_ERRORS, translate_error
from denizen.adapters.discord.commands import MOST, TEXT_CHARS, CommandInvocation, parse_invocation
from denizen.adapters.discord.gateway.events import ListenerError, call_listener
from denizen.adapters.discord.gateway.room_queues import RoomQueues
from denizen.adapters.discord.messages.command_replies import CommandTicket, InteractionWebhook
from denizen.adapters.discord.messages.content import find_action, find_value, read_form, to_edit, to_form, to_message
from denizen.adapters.discord.messages.conversion import list_role_ids, to_room
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotFound
from denizen.domain.record import record
from denizen.domain.room import Room
from denizen.domain.split import split_text
from denizen.ports.channel import ButtonPress, ChannelListener, CommandCall, CommandReply

_log = logging.getLogger("denizen.discord")

SUGGESTION_TIMEOUT_S = 2.5
"""Discord waits 3 s for completions, so ours must take less."""


@record
class _AcknowledgedCommand:
    """An acknowledged command. `is_private` is what Discord was told."""

    given: CommandCall
    webhook: InteractionWebhook
    is_private: bool


class DiscordInteractions:
    """Handles the interactions of one login."""

    def __init__(self, client: discord.Client, listener: ChannelListener, queues: RoomQueues, tasks: TaskGroup) -> None:
        self._client = client
        self._listener = listener
        self._queues = queues
        self._tasks = tasks

    def take(self, interaction: discord.Interaction) -> None:
        """Starts handling an interaction, without waiting."""
        match interaction.type:
            case discord.InteractionType.application_command:
                take = self._take_command
            case discord.InteractionType.autocomplete:
                take = self._complete
            case discord.InteractionType.component:
                take = self._take_press
            case discord.InteractionType.modal_submit:
                take = self._take_form
            case _:
                return
        self._tasks.start_soon(call_listener, "an interaction", lambda: take(interaction))

    async def _take_command(self, interaction: discord.Interaction) -> None:
        given = parse_invocation(cast("dict[str, Any]", interaction.data))
        is_private = not any(spec.name == given.name and spec.public for spec in self._listener.commands)
        if not await _acknowledge(interaction, is_private=is_private):
            return
        ticket = CommandTicket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)
        room = find_room(interaction)
        if room is None:
            await call_listener(
                "answering a command", lambda: webhook.edit_original(to_edit(MessageContent("I cannot see this room.")))
            )
            return
        command = _AcknowledgedCommand(_to_call(interaction, given, room, ticket=str(ticket)), webhook, is_private)
        self._queues.put(room.id, lambda: self._run(command))

    async def _run(self, command: _AcknowledgedCommand) -> None:
        reply = await call_listener(f"/{command.given.name}", lambda: self._listener.on_command(command.given))
        if isinstance(reply, ListenerError):
            reply = CommandReply(reply.message, private=command.is_private)
        if not reply.is_pending:
            said = reply
            await call_listener("answering a command", lambda: _reply(command, said))
            updates = said.updates
            if updates is not None:  # not in the room's queue, where others wait
                self._tasks.start_soon(call_listener, "updating an answer", lambda: _update(command, updates))

    async def _complete(self, interaction: discord.Interaction) -> None:
        """Answers an autocompletion; nothing at all when the answer would be late."""
        given = parse_invocation(cast("dict[str, Any]", interaction.data))
        room = find_room(interaction)
        found: Sequence[str] | ListenerError = ()
        if room is not None:
            call = _to_call(interaction, given, room)
            with anyio.move_on_after(SUGGESTION_TIMEOUT_S):
                found = await call_listener(
                    "on_suggest",
                    lambda: self._listener.on_suggest(call, given.focused, given.options.get(given.focused, "")),
                )
        texts = (
            () if isinstance(found, ListenerError) else [each for each in found if 1 <= len(each) <= TEXT_CHARS][:MOST]
        )
        try:
            await interaction.response.autocomplete([app_commands.Choice(name=each, value=each) for each in texts])
        except VENDOR_ERRORS as error:
            _log.info("completions came too late: %s", translate_error(error, "complete an option").why)

    async def _take_press(self, interaction: discord.Interaction) -> None:
        data = cast("dict[str, Any]", interaction.data)
        custom_id = data["custom_id"]
        doing = find_action(custom_id)
        if doing is not None and doing.opens_form:
            await _open_form(interaction, custom_id)
        elif doing is not None:
            await self._hand_in(interaction, "", action=doing.action)
        elif is_role_menu(custom_id):
            await self._choose_roles(interaction, data)
        elif (choice := find_choice(data, interaction.message)) is not None:
            await self._hand_in(interaction, choice.value, about=choice.about)
        else:
            value = find_value(custom_id, interaction.message)
            if value is None:
                _log.info("a button that is not known is left alone")
            else:
                await self._hand_in(interaction, value)

    async def _take_form(self, interaction: discord.Interaction) -> None:
        """Handles the answer to a form that a button opened."""
        data = cast("dict[str, Any]", interaction.data)
        doing = find_action(data["custom_id"])
        if doing is None:
            _log.info("a form that is not known is left alone")
            return
        await self._hand_in(interaction, "", action=doing.action, why=read_form(data["components"]))

    async def _choose_roles(self, interaction: discord.Interaction, data: dict[str, Any]) -> None:
        """Handles a role menu without the listener, in the room's queue, so that a second press sees the first."""
        room = find_room(interaction)
        if room is None or not await _acknowledge(interaction):
            return
        ticket = CommandTicket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)

        async def choose() -> None:
            done = await call_listener("a role menu", lambda: choose_roles(self._client, interaction, data))
            said = MessageContent(done.message if isinstance(done, ListenerError) else done)
            await call_listener("answering a press", lambda: webhook.follow_up(to_message(said, private=True)))

        self._queues.put(room.id, choose)

    async def _hand_in(
        self, interaction: discord.Interaction, value: str, *, action: str = "", why: str = "", about: str = ""
    ) -> None:
        room = find_room(interaction)
        if interaction.message is None or room is None or not await _acknowledge(interaction):
            return
        press = ButtonPress(
            id=str(interaction.id),
            message_id=str(interaction.message.id),
            value=value,
            room=room,
            author_id=str(interaction.user.id),
            author_name=interaction.user.display_name,
            roles=list_role_ids(interaction.user),
            created_at=interaction.created_at,
            action=action,
            why=why,
            about=about,
        )
        ticket = CommandTicket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)
        self._queues.put(room.id, lambda: self._press(press, webhook))

    async def _press(self, press: ButtonPress, webhook: InteractionWebhook) -> None:
        """Passes a press to the listener. People who may not press, or press too often, are told so privately."""
        heard = await call_listener("on_press", lambda: self._listener.on_press(press))
        said = heard.message if isinstance(heard, ListenerError) else heard
        if said:
            await call_listener(
                "answering a press", lambda: webhook.follow_up(to_message(MessageContent(said), private=True))
            )


def find_room(interaction: discord.Interaction) -> Room | None:
    """Returns the room of the interaction; None where the account cannot see it.

    Such rooms are direct messages and groups of people who use the commands without the account: its other readers
    are unknown, so nothing private may be said.
    """
    channel = interaction.channel
    is_among_others = interaction.context.private_channel or isinstance(channel, discord.GroupChannel)
    return None if channel is None or is_among_others else to_room(channel)


def _to_call(
    interaction: discord.Interaction, given: CommandInvocation, room: Room, *, ticket: str = ""
) -> CommandCall:
    return CommandCall(
        id=str(interaction.id),
        name=given.name,
        group=given.group,
        options=given.options,
        room=room,
        author_id=str(interaction.user.id),
        author_name=interaction.user.display_name,
        roles=list_role_ids(interaction.user),
        created_at=interaction.created_at,
        ticket=ticket,
    )


async def _open_form(interaction: discord.Interaction, custom_id: str) -> None:
    try:
        await interaction.response.send_modal(to_form(custom_id))
    except VENDOR_ERRORS as error:
        _log.warning("no form could be opened: %s", translate_error(error, "open a form").why)


async def _acknowledge(interaction: discord.Interaction, *, is_private: bool = False) -> bool:
    """Shows "is thinking". Returns False when somebody else has answered, or it is too late: then nobody waits."""
    try:
        await interaction.response.defer(ephemeral=is_private)
    except VENDOR_ERRORS as error:
        if not (isinstance(error, discord.HTTPException) and error.code == ALREADY_ACKNOWLEDGED):
            fault = translate_error(error, "acknowledge a command")
            _log.warning("%s", fault.message, extra=fault.fields)
        return False
    return True


async def _reply(command: _AcknowledgedCommand, reply: CommandReply) -> None:
    """Sends the reply in pieces of Discord's size. Without a text it removes "is thinking"."""
    pieces = split_text(reply.text)
    if pieces and reply.private == command.is_private:
        await command.webhook.edit_original(to_edit(MessageContent(pieces.pop(0))))
    else:
        await _forget_original(command)
    for piece in pieces:
        await command.webhook.follow_up(to_message(MessageContent(piece), private=reply.private))


async def _update(command: _AcknowledgedCommand, texts: AsyncGenerator[str]) -> None:
    """Edits the reply in place. Discord allows that for fifteen minutes; what comes later is not shown."""
    async with aclosing(texts) as each:
        async for text in each:
            await command.webhook.edit_original(to_edit(MessageContent(text)))


async def _forget_original(command: _AcknowledgedCommand) -> None:
    """Deletes the acknowledgement. Its privacy cannot change, so a reply that differs needs a message of its own."""
    try:
        await command.webhook.delete_original()
    except NotFound:
        return
