"""Which actions there are, by name, and the one place where they are done."""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable
from inspect import Parameter, signature
from typing import Any, TypeAlias, cast

import anyio
import discord

from denizen.adapters.discord.acting import messages
from denizen.adapters.discord.acting.hand import Hand, open_hand
from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, speaking
from denizen.domain.action import Action, Warrant
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import derive
from denizen.domain.json import JsonObject

Deed: TypeAlias = Callable[..., Awaitable[JsonObject]]
"""Gets a `Hand` and the details by name; what it returns goes to the tool."""

ACTIONS: dict[str, Deed] = {
    "pin_message": messages.pin_message,
    "unpin_message": messages.unpin_message,
}


async def perform(client: discord.Client, action: Action, warrant: Warrant) -> JsonObject:
    """Does the action. Raises the errors of a channel, and InvalidInput for an action or details that are unknown."""
    deed = ACTIONS.get(action.name)
    if deed is None:
        near = difflib.get_close_matches(action.name, ACTIONS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else "See the list of actions."
        raise InvalidInput(f"Discord has no action '{action.name}'.", code="discord_no_action", fix=hint)
    _check_details(deed, action)
    with speaking(action.name.replace("_", " ")), anyio.fail_after(RESPONSE_TIMEOUT_S):
        hand: Hand = await open_hand(client, warrant, _key_of(action, warrant))
        return await cast("Any", deed)(hand, **action.details)


def _key_of(action: Action, warrant: Warrant) -> str:
    """One call may do several things."""
    return derive("act", warrant.key, action.name, json.dumps(dict(action.details), sort_keys=True))


def _check_details(deed: Deed, action: Action) -> None:
    known = list(signature(deed).parameters.values())[1:]
    unknown = set(action.details) - {parameter.name for parameter in known}
    missing = {p.name for p in known if p.default is Parameter.empty} - set(action.details)
    if unknown or missing:
        wrong = f"does not know {', '.join(sorted(unknown))}" if unknown else f"needs {', '.join(sorted(missing))}"
        raise InvalidInput(f"The action '{action.name}' {wrong}.", code="discord_action_details")
