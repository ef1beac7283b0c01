"""Keeps an account connected when Discord sends what discord.py does not understand.

discord.py raises on a message or an event of unexpected form, which closes the connection or breaks off a page of the
history (its issues 2423 and 7501 are of that kind). Here such a message is read once more without the parts that it can
do without, and what cannot be read even then is left out. The log names each message once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import discord

_log = logging.getLogger("denizen.discord")

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, AssertionError, RuntimeError)
"""The errors of discord.py on something of unexpected form."""

_ESSENTIAL = frozenset(
    {
        *("id", "channel_id", "guild_id", "webhook_id", "author", "member", "type", "flags"),
        *("content", "timestamp", "edited_timestamp", "pinned", "tts"),
    }
)
_ADDRESSING = frozenset({"mentions", "mention_roles", "message_reference"})
_EMPTY: dict[str, list[Any]] = {key: [] for key in ("attachments", "embeds", "components", "mentions", "mention_roles")}
_VITAL = frozenset({"READY", "RESUMED"})
"""Without these there is no connection, so an error in them ends it."""
_REMEMBERED = 1000

Payload: TypeAlias = dict[str, Any]
Parse: TypeAlias = Callable[[Any], None]


class TolerantParsing:
    """Wraps the parsers of one client. `state` is the connection state of discord.py, which has no public name."""

    def __init__(self, state: Any) -> None:  # noqa: ANN401
        self._create_message = state.create_message
        self._told: dict[str, None] = {}
        state.create_message = self.create_message
        parsers: dict[str, Parse] = state.parsers
        for event, parse in parsers.items():
            if event not in _VITAL:
                parsers[event] = partial(self._parse_event, event, parse)

    def create_message(self, *, channel: Any, data: Payload) -> discord.Message | None:  # noqa: ANN401
        """Makes a message of an answer to a request; None when it cannot be read."""
        read: Callable[[Payload], discord.Message] = partial(self._make_message, channel)
        return self._read("a message", read, data, *_reduce(data))

    def _make_message(self, channel: Any, data: Payload) -> discord.Message:  # noqa: ANN401
        message: discord.Message = self._create_message(channel=channel, data=data)
        _ = message.author  # discord.py passes over a part that lacks a field
        return message

    def _parse_event(self, event: str, parse: Parse, data: Payload) -> None:
        is_message = event in ("MESSAGE_CREATE", "MESSAGE_UPDATE")
        self._read(event, parse, data, *(_reduce(data) if is_message else ()))

    def _read(self, what: str, read: Callable[[Payload], Any], data: Payload, *reduced: Payload) -> Any:  # noqa: ANN401
        try:
            return read(data)
        except UNREADABLE as error:
            first = error
        for attempt in reduced:
            with suppress(*UNREADABLE):
                done = read(attempt)
                self._tell(what, "whole; parts are missing", data, first)
                return done
        self._tell(what, "at all; it is left out", data, first)
        return None

    def _tell(self, what: str, outcome: str, data: Payload, error: Exception) -> None:
        """Logs once for each id: histories are read again and again."""
        found = str(data.get("id", ""))
        key = found or what
        if key in self._told:
            return
        self._told[key] = None
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        about = {"id": found, "why": f"{type(error).__name__}: {error}"}
        _log.warning("Discord sent %s that discord.py cannot read %s", what, outcome, extra=about)


def _reduce(data: Payload) -> tuple[Payload, Payload]:
    """Returns a message with its text and whom it addresses, and with its text alone."""
    bare = _EMPTY | {key: value for key, value in data.items() if key in _ESSENTIAL}
    return bare | {key: value for key, value in data.items() if key in _ADDRESSING}, bare
