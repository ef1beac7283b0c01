"""Answering a command, exactly once: the first piece takes the place of "is thinking", others follow it.

Discord has no nonce here. What this process has sent it remembers; what an earlier process may have sent is looked for
on Discord before anything is sent again. Called by `sending`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import discord

from denizen.adapters.discord.content import to_edit, to_message
from denizen.adapters.discord.faults import VENDOR_ERRORS
from denizen.adapters.discord.interaction_webhook import Answer, InteractionWebhook, Ticket
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotFound

_REMEMBERED = 500
"""Tickets; each holds for 15 minutes."""

_LOOKED_AT = 50
"""Messages after the first answer, in which another is looked for."""


@dataclass(slots=True)
class _Told:
    """What is known of one ticket. `sent` is nonce to message id, empty for a try whose end is not known.

    `is_unsure`: another process may have answered before this one looked.
    """

    original: Answer | None
    is_unsure: bool
    sent: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_private(self) -> bool:
        return self.original is not None and self.original.is_private


class Tickets:
    """Of one account."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._told: OrderedDict[str, _Told] = OrderedDict()

    async def answer(self, ticket: Ticket, content: MessageContent, nonce: str) -> str:
        """Returns the message's id. Raises NotFound when the ticket has ended, and the other errors of `faults`."""
        webhook = InteractionWebhook(self._client, ticket)
        told = await self._look(webhook, ticket)
        if told.sent.get(nonce):
            return told.sent[nonce]
        if nonce not in told.sent and not told.is_unsure:
            sent = await self._send(webhook, told, content, nonce)
        else:
            sent = await self._find(told, content) or await self._send(webhook, told, content, nonce)
        told.sent[nonce] = sent
        return sent

    async def _look(self, webhook: InteractionWebhook, ticket: Ticket) -> _Told:
        """What stands there, asked once."""
        key = str(ticket)
        if key not in self._told:
            try:
                original = await webhook.get_original()
            except NotFound:
                original = None
            self._told[key] = _Told(original, is_unsure=original is None or not original.is_loading)
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        self._told.move_to_end(key)
        return self._told[key]

    async def _send(self, webhook: InteractionWebhook, told: _Told, content: MessageContent, nonce: str) -> str:
        """The edit is repeatable, so the try that began it may end it again."""
        original = told.original
        if original is not None and original.is_loading and set(told.sent) <= {nonce}:
            told.sent[nonce] = ""
            return await webhook.edit_original(to_edit(content))
        told.sent[nonce] = ""
        return await webhook.follow_up(to_message(content, private=told.is_private))

    async def _find(self, told: _Told, content: MessageContent) -> str:
        """The id of the message that says this already; empty when there is none, or when one cannot look."""
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
