"""Slash commands, completions and buttons as they are used: acknowledged at once, then heard in the order of the room.

Discord wants a sign within 3 s, so each is answered with "is thinking" before anybody is asked. `client` hands them in.
Whether the answer is private has to be said at that moment; a reply that is not what was said takes its place.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import anyio
import discord
from anyio.abc import TaskGroup
from discord import app_commands

from denizen.adapters.discord.acting.menus import find_choice
from denizen.adapters.discord.acting.role_menus import choose_roles, is_role_menu
from denizen.adapters.discord.buttons import find_action, find_value, read_form, to_form
from denizen.adapters.discord.commands import MOST, TEXT_CHARS, Given, read_given
from denizen.adapters.discord.content import to_edit, to_message
from denizen.adapters.discord.faults import ALREADY_ACKNOWLEDGED, VENDOR_ERRORS, fault_of
from denizen.adapters.discord.hearing import Unheard, hear
from denizen.adapters.discord.intake import roles_of, to_room
from denizen.adapters.discord.interaction_webhook import InteractionWebhook, Ticket
from denizen.adapters.discord.room_queues import RoomQueues
from denizen.domain.delivery import Content
from denizen.domain.errors import NotFound
from denizen.domain.room import Room
from denizen.domain.split import split
from denizen.ports.channel import ButtonPress, CommandCall, CommandReply, Listener

_log = logging.getLogger("denizen.discord")

SUGGESTION_TIMEOUT_S = 2.5
"""Discord waits 3 s for completions."""


@dataclass(frozen=True, slots=True)
class _Command:
    """A command that is acknowledged. `is_private` is what Discord was told."""

    given: CommandCall
    webhook: InteractionWebhook
    is_private: bool


class Interactions:
    """Of one login."""

    def __init__(self, client: discord.Client, listener: Listener, queues: RoomQueues, tasks: TaskGroup) -> None:
        self._client = client
        self._listener = listener
        self._queues = queues
        self._tasks = tasks

    def take(self, interaction: discord.Interaction) -> None:
        """Never waits."""
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
        self._tasks.start_soon(hear, "an interaction", lambda: take(interaction))

    async def _take_command(self, interaction: discord.Interaction) -> None:
        given = read_given(cast("dict[str, Any]", interaction.data))
        is_private = not any(spec.name == given.name and spec.public for spec in self._listener.commands)
        if not await _acknowledge(interaction, is_private=is_private):
            return
        ticket = Ticket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)
        room = find_room(interaction)
        if room is None:
            await hear(
                "answering a command", lambda: webhook.edit_original(to_edit(Content("I cannot see this room.")))
            )
            return
        command = _Command(_to_call(interaction, given, room, ticket=str(ticket)), webhook, is_private)
        self._queues.put(room.id, lambda: self._run(command))

    async def _run(self, command: _Command) -> None:
        reply = await hear(f"/{command.given.name}", lambda: self._listener.on_command(command.given))
        if isinstance(reply, Unheard):
            reply = CommandReply(reply.message, private=command.is_private)
        if not reply.is_pending:
            said = reply
            await hear("answering a command", lambda: _reply(command, said))

    async def _complete(self, interaction: discord.Interaction) -> None:
        """Nothing rather than something late."""
        given = read_given(cast("dict[str, Any]", interaction.data))
        room = find_room(interaction)
        found: Sequence[str] | Unheard = ()
        if room is not None:
            call = _to_call(interaction, given, room)
            with anyio.move_on_after(SUGGESTION_TIMEOUT_S):
                found = await hear(
                    "on_suggest",
                    lambda: self._listener.on_suggest(call, given.focused, given.options.get(given.focused, "")),
                )
        texts = () if isinstance(found, Unheard) else [each for each in found if 1 <= len(each) <= TEXT_CHARS][:MOST]
        try:
            await interaction.response.autocomplete([app_commands.Choice(name=each, value=each) for each in texts])
        except VENDOR_ERRORS as error:
            _log.info("completions came too late: %s", fault_of(error, "complete an option").why)

    async def _take_press(self, interaction: discord.Interaction) -> None:
        data = cast("dict[str, Any]", interaction.data)
        custom_id = data["custom_id"]
        doing = find_action(custom_id)
        if doing is not None and doing.asks_why:
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
        """The answer to a form that a button opened."""
        data = cast("dict[str, Any]", interaction.data)
        doing = find_action(data["custom_id"])
        if doing is None:
            _log.info("a form that is not known is left alone")
            return
        await self._hand_in(interaction, "", action=doing.action, why=read_form(data["components"]))

    async def _choose_roles(self, interaction: discord.Interaction, data: dict[str, Any]) -> None:
        """Nobody but the account has to do with it. In the order of the room, so that a second press sees the first."""
        room = find_room(interaction)
        if room is None or not await _acknowledge(interaction):
            return
        ticket = Ticket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)

        async def choose() -> None:
            done = await hear("a role menu", lambda: choose_roles(self._client, interaction, data))
            said = Content(done.message if isinstance(done, Unheard) else done)
            await hear("answering a press", lambda: webhook.follow_up(to_message(said, private=True)))

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
            roles=roles_of(interaction.user),
            created_at=interaction.created_at,
            action=action,
            why=why,
            about=about,
        )
        ticket = Ticket(str(interaction.application_id), interaction.token, interaction.created_at)
        webhook = InteractionWebhook(self._client, ticket)
        self._queues.put(room.id, lambda: self._press(press, webhook))

    async def _press(self, press: ButtonPress, webhook: InteractionWebhook) -> None:
        """Who may not, or asks too often, is told so, and nobody else."""
        heard = await hear("on_press", lambda: self._listener.on_press(press))
        said = heard.message if isinstance(heard, Unheard) else heard
        if said:
            await hear("answering a press", lambda: webhook.follow_up(to_message(Content(said), private=True)))


def find_room(interaction: discord.Interaction) -> Room | None:
    """Where it happened; None where the account cannot see the room. Such are the direct talks and groups of people who
    use its commands without it: who else reads there is not known, so nothing private may be said (promise 3).
    """
    channel = interaction.channel
    is_among_others = interaction.context.private_channel or isinstance(channel, discord.GroupChannel)
    return None if channel is None or is_among_others else to_room(channel)


def _to_call(interaction: discord.Interaction, given: Given, room: Room, *, ticket: str = "") -> CommandCall:
    return CommandCall(
        id=str(interaction.id),
        name=given.name,
        group=given.group,
        options=given.options,
        room=room,
        author_id=str(interaction.user.id),
        author_name=interaction.user.display_name,
        roles=roles_of(interaction.user),
        created_at=interaction.created_at,
        ticket=ticket,
    )


async def _open_form(interaction: discord.Interaction, custom_id: str) -> None:
    try:
        await interaction.response.send_modal(to_form(custom_id))
    except VENDOR_ERRORS as error:
        _log.warning("no form could be opened: %s", fault_of(error, "open a form").why)


async def _acknowledge(interaction: discord.Interaction, *, is_private: bool = False) -> bool:
    """False when somebody else has, or when it is too late: then nobody waits for an answer any more."""
    try:
        await interaction.response.defer(ephemeral=is_private)
    except VENDOR_ERRORS as error:
        if not (isinstance(error, discord.HTTPException) and error.code == ALREADY_ACKNOWLEDGED):
            fault = fault_of(error, "acknowledge a command")
            _log.warning("%s", fault.message, extra={"code": fault.code, "why": fault.why})
        return False
    return True


async def _reply(command: _Command, reply: CommandReply) -> None:
    """In pieces of Discord's size. Without a text the sign of thinking goes away."""
    pieces = split(reply.text)
    if pieces and reply.private == command.is_private:
        await command.webhook.edit_original(to_edit(Content(pieces.pop(0))))
    else:
        await _forget_original(command)
    for piece in pieces:
        await command.webhook.follow_up(to_message(Content(piece), private=reply.private))


async def _forget_original(command: _Command) -> None:
    """Discord keeps the privacy that it was told first, so what takes its place needs a message of its own."""
    try:
        await command.webhook.delete_original()
    except NotFound:
        return
