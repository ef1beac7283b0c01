"""Posting, editing, deleting, reacting, typing and opening threads, over REST: it works whatever the gateway does."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import discord
from anyio.abc import TaskGroup

from denizen.adapters.discord.client.application import list_missing_permissions
from denizen.adapters.discord.client.errors import (
    REPLY_NEEDS_HISTORY,
    RESPONSE_TIMEOUT_S,
    THREAD_EXISTS,
    ListMissing,
    translate_errors,
)
from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.discord.messages.command_replies import CommandReplies, parse_ticket
from denizen.adapters.discord.messages.content import to_edit, to_message
from denizen.adapters.discord.messages.conversion import get_channel, get_text_channel, to_room
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.room import Room
from denizen.domain.words import truncate

_log = logging.getLogger("denizen.discord")

# Discord lets "is typing" fade after 10 s.
RENEWED_AFTER_S = 8.0


@asynccontextmanager
async def show_typing(
    tasks: TaskGroup, show: Callable[[], Awaitable[None]], *, renewed_after_s: float = RENEWED_AFTER_S
) -> AsyncGenerator[None]:
    """Shows "is typing" while the block runs. `show` tells Discord once; a fault is logged once, and does not disturb
    the block.

    The renewal runs in the account's task group and is cancelled at the end of the block, whatever ends it.
    """
    scope = anyio.CancelScope()
    tasks.start_soon(_renew, scope, show, renewed_after_s)
    try:
        yield
    finally:
        scope.cancel()


async def _renew(scope: anyio.CancelScope, show: Callable[[], Awaitable[None]], renewed_after_s: float) -> None:
    failed = False
    with scope:
        while True:
            try:
                await show()
            except DenizenError as error:
                if not failed:
                    _log.warning("typing cannot be shown: %s", error.message, extra=error.fields)
                failed = True
            await anyio.sleep(renewed_after_s)


_TITLE_CHARS = 100
_OWN_EMOJI = re.compile(r"<a?:(\w+:\d+)>", re.ASCII)


class MessageSender:
    """Sends the messages of one login. Raises the errors of `ports.channel`."""

    def __init__(self, client: discord.Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tickets = CommandReplies(client)

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
    ) -> str:
        """Posts a message, as the answer to a command if the ticket still holds, and otherwise as a plain one.

        Without the permission to read the history Discord refuses a reply, and the message is sent without reference.
        """
        held = parse_ticket(ticket)
        if held is not None and held.holds(self._clock.now()):
            try:
                return await self._tickets.answer(held, content, nonce, goes_on=goes_on)
            except NotFound:
                pass
        room = _room_id(place)
        missing = self._missing(room, _needed(place, content))
        with translate_errors("post there", missing=missing), anyio.fail_after(RESPONSE_TIMEOUT_S):
            try:
                return await self._send(room, content, nonce, reply_to)
            except discord.HTTPException as error:
                if not reply_to or error.code != REPLY_NEEDS_HISTORY:
                    raise
                return await self._send(room, content, nonce)

    async def _send(self, room: int, content: MessageContent, nonce: str, reply_to: str = "") -> str:
        reference = {"message_id": reply_to, "channel_id": str(room), "fail_if_not_exists": False} if reply_to else None
        with to_message(content, nonce=nonce, reference=reference) as params:
            return str((await self._client.http.send_message(room, params=params))["id"])

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None:
        room, params = _room_id(place), to_edit(content)
        with params, translate_errors("edit that message", missing=self._missing(room, ("view_channel",))):
            with anyio.fail_after(RESPONSE_TIMEOUT_S):
                await self._client.http.edit_message(room, _id(message_id), params=params)

    async def delete(self, place: Place, message_id: str) -> None:
        """Deletes a message. One that is gone already is no error."""
        try:
            with translate_errors("delete that message"), anyio.fail_after(RESPONSE_TIMEOUT_S):
                await self._client.http.delete_message(_room_id(place), _id(message_id))
        except NotFound:
            return

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        """Adds or removes a reaction. An emoji of the guild is written as in a message: `<:name:id>`."""
        own = _OWN_EMOJI.fullmatch(emoji)
        name, room, message = own[1] if own else emoji, _room_id(place), _id(message_id)
        missing = self._missing(room, ("view_channel", "read_message_history", "add_reactions"))
        with translate_errors("react there", missing=missing), anyio.fail_after(RESPONSE_TIMEOUT_S):
            if on:
                await self._client.http.add_reaction(room, message, name)
            else:
                await self._client.http.remove_own_reaction(room, message, name)

    async def show_typing(self, place: Place) -> None:
        with translate_errors("show typing"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            await self._client.http.send_typing(_room_id(place))

    async def open_direct(self, user_id: str) -> Place:
        """Opens the direct messages with a user. Discord answers with the same channel each time."""
        with translate_errors("write to that user"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            opened = await self._client.http.start_private_message(_id(user_id))
        return Place(PLATFORM, str(opened["id"]))

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        """Opens a thread under a message. Threads cannot be nested: a message in a thread yields that thread."""
        if place.thread:
            return to_room(await get_channel(self._client, int(place.thread)))
        channel = await get_text_channel(self._client, _id(place.channel))
        missing = self._missing(channel.id, ("view_channel", "read_message_history", "create_public_threads"))
        with translate_errors("open a thread there", missing=missing), anyio.fail_after(RESPONSE_TIMEOUT_S):
            try:
                thread = await channel.get_partial_message(_id(message_id)).create_thread(name=_title(title))
            except discord.HTTPException as error:
                if error.code != THREAD_EXISTS:
                    raise
            except ValueError:
                raise InvalidInput("There are no threads in a direct talk.", code="discord_no_threads") from None
            else:
                return to_room(thread)
        return to_room(await get_channel(self._client, _id(message_id)))

    def _missing(self, room: int, needed: Sequence[str]) -> ListMissing:
        return lambda: list_missing_permissions(self._client, room, needed)


def _needed(place: Place, content: MessageContent) -> list[str]:
    needed = ["view_channel", "send_messages_in_threads" if place.thread else "send_messages"]
    needed += ["embed_links"] if content.embeds else []
    return needed + (["attach_files"] if content.files else [])


def _room_id(place: Place) -> int:
    return _id(place.thread or place.channel)


def _id(text: str) -> int:
    if not text.isdecimal():
        raise InvalidInput(f"'{text}' is not an id of Discord.", code="discord_bad_id")
    return int(text)


def _title(text: str) -> str:
    return truncate(" ".join(text.split()) or "Thread", _TITLE_CHARS)
