"""An account whose posts a test holds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.testing.scripted_model import ReplyGate
from tests.memory_channel import MemoryChannel


@dataclass(frozen=True, slots=True)
class PostGate:
    """Holds up the posts whose content it `stops`."""

    stops: Callable[[MessageContent], bool]
    gate: ReplyGate = field(default_factory=ReplyGate)


class GatedChannel(MemoryChannel):
    """An account whose posts can be held up. With `hangs_after_post` nothing is heard of them any more, as after a
    crash.
    """

    gated: PostGate | None = None
    hangs_after_post = False

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
        is_preview: bool = False,
    ) -> str:
        if self.gated is not None and self.gated.stops(content):
            await self.gated.gate.pass_through()
        posted = await super().post(place, content, nonce=nonce, reply_to=reply_to, ticket=ticket, goes_on=goes_on)
        if self.hangs_after_post:
            await anyio.sleep_forever()
        return posted
