"""Things to do on a platform in somebody's name: pin a message, make a channel, take a role away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from denizen.domain.conversation import Place
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.record import record


@record
class PlatformAction:
    """`name` says what is done, such as `pin_message`; `details` what to and how, as the action's own fields."""

    name: str
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record
class OnBehalfOf:
    """On whose behalf an action is done: nothing that `asker` may not do is done for them, wherever it is. `place` is
    where they asked. `key` is the same when an interrupted action is done again. With a `guild` nobody asked: the
    operator has written down what is done there for an event, and the account itself counts as the asker.
    """

    asker: Principal
    place: Place
    key: str
    guild: str = ""
