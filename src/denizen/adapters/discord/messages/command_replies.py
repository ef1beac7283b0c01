"""Answers to slash commands, exactly once: the first message replaces "is thinking", later ones follow it.

A ticket is the right to answer one command for fifteen minutes. It is text, so that it can wait in the store with
the answer. `sending` uses it for the answers of a turn, and `interactions` for immediate ones.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import discord
from discord.http import MultipartParameters, Route

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, VENDOR_ERRORS, translate_errors
from denizen.adapters.discord.messages.content import to_edit, to_message
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotFound
from denizen.domain.record import record

# Flags of messages by their documented bits.
EPHEMERAL = 1 << 6
LOADING = 1 << 7

_LIFETIME = timedelta(minutes=15)
# A request that starts just before the end could arrive after it.
_MARGIN = timedelta(seconds=10)

_ORIGINAL = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
_FOLLOW_UPS = "/webhooks/{webhook_id}/{webhook_token}"


@record
class CommandTicket:
    """The right to answer a command. `created_at` is when the command was given."""

    application_id: str
    token: str
    created_at: datetime

    def __str__(self) -> str:
        return f"{self.application_id}.{int(self.created_at.timestamp())}.{self.token}"

    def holds(self, now: datetime) -> bool:
        return now < self.created_at + _LIFETIME - _MARGIN


def parse_ticket(text: str) -> CommandTicket | None:
    """Parses a ticket; None for other text."""
    application_id, _, rest = text.partition(".")
    seconds, _, token = rest.partition(".")
    if not (application_id.isdecimal() and seconds.isdecimal() and token):
        return None
    return CommandTicket(application_id, token, datetime.fromtimestamp(int(seconds), UTC))


@record
class CommandAnswer:
    """A message that answers a command. `is_loading` means that it still shows "is thinking"."""

    id: str
    text: str
    channel: str
    is_loading: bool
    is_private: bool


class InteractionWebhook:
    """The webhook of one interaction. Raises NotFound for an expired ticket or a deleted answer, and other errors."""

    def __init__(self, client: discord.Client, ticket: CommandTicket) -> None:
        self._client = client
        self._ticket = ticket

    async def get_original(self) -> CommandAnswer:
        data = await self._request("GET", _ORIGINAL, "read the answer to a command")
        flags = int(data.get("flags", 0))
        return CommandAnswer(
            id=str(data["id"]),
            text=data["content"],
            channel=str(data["channel_id"]),
            is_loading=bool(flags & LOADING),
            is_private=bool(flags & EPHEMERAL),
        )

    async def edit_original(self, params: MultipartParameters) -> str:
        """Edits the first answer and returns its id."""
        return str((await self._request("PATCH", _ORIGINAL, "answer a command", params))["id"])

    async def delete_original(self) -> None:
        await self._request("DELETE", _ORIGINAL, "delete the answer to a command")

    async def follow_up(self, params: MultipartParameters) -> str:
        """Sends a further message and returns its id."""
        return str((await self._request("POST", _FOLLOW_UPS, "answer a command", params))["id"])

    async def _request(
        self, method: str, path: str, doing: str, params: MultipartParameters | None = None
    ) -> dict[str, Any]:
        route = Route(method, path, webhook_id=self._ticket.application_id, webhook_token=self._ticket.token)
        with translate_errors(doing), anyio.fail_after(RESPONSE_TIMEOUT_S):
            if params is None:
                return await self._client.http.request(route)
            with params:
                if params.files:
                    return await self._client.http.request(route, files=params.files, form=params.multipart)
                return await self._client.http.request(route, json=params.payload)


_REMEMBERED = 500
"""The number of tickets whose state is kept. Each is valid for 15 minutes."""

_BELOW = "-# My answer is below."

_LOOKED_AT = 50
"""The number of messages after the first answer among which an earlier try is searched."""


@dataclass(slots=True)
class _TicketState:
    """The known answers of one ticket. `sent` maps nonces to message ids; the id is empty while the outcome of a try is
    unknown.

    `is_unsure` means that another process may have answered before.
    """

    original: CommandAnswer | None
    is_unsure: bool
    sent: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_private(self) -> bool:
        return self.original is not None and self.original.is_private


class CommandReplies:
    """Sends the answers to commands of one account."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._told: OrderedDict[str, _TicketState] = OrderedDict()

    async def answer(self, ticket: CommandTicket, content: MessageContent, nonce: str, *, goes_on: bool = False) -> str:
        """Sends an answer and returns its id. Raises NotFound for an expired ticket, and the errors of `errors`.

        An answer that `goes_on` stands below what was said since the command, so that its messages stand together.
        """
        webhook = InteractionWebhook(self._client, ticket)
        told = await self._look(webhook, ticket)
        if goes_on and not told.sent:
            await self._step_down(webhook, told)
        if told.sent.get(nonce):
            return told.sent[nonce]
        if nonce not in told.sent and not told.is_unsure:
            sent = await self._send(webhook, told, content, nonce)
        else:
            sent = await self._find(told, content) or await self._send(webhook, told, content, nonce)
        told.sent[nonce] = sent
        return sent

    async def _look(self, webhook: InteractionWebhook, ticket: CommandTicket) -> _TicketState:
        """Returns the state of a ticket; asks Discord for the first answer only once."""
        key = str(ticket)
        if key not in self._told:
            try:
                original = await webhook.get_original()
            except NotFound:
                original = None
            self._told[key] = _TicketState(original, is_unsure=original is None or not original.is_loading)
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        self._told.move_to_end(key)
        return self._told[key]

    async def _step_down(self, webhook: InteractionWebhook, told: _TicketState) -> None:
        """Leaves the place of "is thinking" to a pointer, if others have written below it."""
        original = told.original
        if original is None or not original.is_loading or original.is_private:
            return
        channel = self._client.get_channel(int(original.channel))
        if (getattr(channel, "last_message_id", None) or 0) > int(original.id):
            await webhook.edit_original(to_edit(MessageContent(_BELOW)))
            told.original = replace(original, is_loading=False, text=_BELOW)

    async def _send(self, webhook: InteractionWebhook, told: _TicketState, content: MessageContent, nonce: str) -> str:
        """Sends the content. An edit can be repeated safely, so the try that began with it may end with it."""
        original = told.original
        if original is not None and original.is_loading and set(told.sent) <= {nonce}:
            told.sent[nonce] = ""
            return await webhook.edit_original(to_edit(content))
        told.sent[nonce] = ""
        return await webhook.follow_up(to_message(content, private=told.is_private))

    async def _find(self, told: _TicketState, content: MessageContent) -> str:
        """Returns the id of the message that already says this; empty when there is none or it cannot be known."""
        text, original, me = content.text.strip(), told.original, self._client.user
        if original is None or me is None or not text:
            return ""
        taken = set(told.sent.values())
        if not original.is_loading and original.text == text and original.id not in taken:
            return original.id
        if original.is_private:
            return ""
        try:
            rows = await self._client.http.logs_from(int(original.channel), _LOOKED_AT, after=int(original.id))
        except VENDOR_ERRORS:
            return ""
        for row in rows:
            if str(row["author"]["id"]) == str(me.id) and row["content"] == text and str(row["id"]) not in taken:
                return str(row["id"])
        return ""
