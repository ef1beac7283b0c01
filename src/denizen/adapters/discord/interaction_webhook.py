"""The right to answer one command: what it is made of, and what can be done with it for fifteen minutes.

A ticket is text, so that it can wait in the store with the answer that is owed. Called by `tickets` for answers of a
turn, and by `interactions` for those that a command gives at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import discord
from discord.http import MultipartParameters, Route

from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, speaking

EPHEMERAL = 1 << 6
LOADING = 1 << 7

_LIFETIME = timedelta(minutes=15)
_MARGIN = timedelta(seconds=10)

_ORIGINAL = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
_FOLLOW_UPS = "/webhooks/{webhook_id}/{webhook_token}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """`created_at` is when the command was given."""

    application_id: str
    token: str
    created_at: datetime

    def __str__(self) -> str:
        return f"{self.application_id}.{int(self.created_at.timestamp())}.{self.token}"

    def holds(self, now: datetime) -> bool:
        return now < self.created_at + _LIFETIME - _MARGIN


def read_ticket(text: str) -> Ticket | None:
    """None for what is no ticket of ours."""
    application_id, _, rest = text.partition(".")
    seconds, _, token = rest.partition(".")
    if not (application_id.isdecimal() and seconds.isdecimal() and token):
        return None
    return Ticket(application_id, token, datetime.fromtimestamp(int(seconds), UTC))


@dataclass(frozen=True, slots=True)
class Answer:
    """A message that answers the command. `is_loading`: it says only that an answer is being thought about."""

    id: str
    text: str
    channel: str
    is_loading: bool
    is_private: bool


class InteractionWebhook:
    """Raises the errors of `faults`; NotFound for a ticket that has ended and for an answer that is gone."""

    def __init__(self, client: discord.Client, ticket: Ticket) -> None:
        self._client = client
        self._ticket = ticket

    async def get_original(self) -> Answer:
        data = await self._request("GET", _ORIGINAL, "read the answer to a command")
        flags = int(data.get("flags", 0))
        return Answer(
            id=str(data["id"]),
            text=data["content"],
            channel=str(data["channel_id"]),
            is_loading=bool(flags & LOADING),
            is_private=bool(flags & EPHEMERAL),
        )

    async def edit_original(self, params: MultipartParameters) -> str:
        """Returns the message's id."""
        return str((await self._request("PATCH", _ORIGINAL, "answer a command", params))["id"])

    async def delete_original(self) -> None:
        await self._request("DELETE", _ORIGINAL, "delete the answer to a command")

    async def follow_up(self, params: MultipartParameters) -> str:
        """One more message; returns its id."""
        return str((await self._request("POST", _FOLLOW_UPS, "answer a command", params))["id"])

    async def _request(
        self, method: str, path: str, doing: str, params: MultipartParameters | None = None
    ) -> dict[str, Any]:
        route = Route(method, path, webhook_id=self._ticket.application_id, webhook_token=self._ticket.token)
        with speaking(doing), anyio.fail_after(RESPONSE_TIMEOUT_S):
            if params is None:
                return await self._client.http.request(route)
            with params:
                if params.files:
                    return await self._client.http.request(route, files=params.files, form=params.multipart)
                return await self._client.http.request(route, json=params.payload)
