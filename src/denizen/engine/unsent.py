"""What would be sent for a message, without sending it (C-inspect-payload). Called by `denizen prompt`.

The real steps of a turn are taken up to the first answer that they need, on a model that gives none. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal

from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.ids import ConversationId
from denizen.domain.room import RoomKind
from denizen.domain.routing import FALLBACK
from denizen.domain.turn import Inbound, Owed
from denizen.engine.gather import gather
from denizen.engine.history import Past
from denizen.engine.live import Live
from denizen.engine.opening import plan_turn
from denizen.engine.replay import FreeSteps
from denizen.engine.routing import Router
from denizen.engine.runtime import Runtime
from denizen.engine.services import Services
from denizen.engine.turn import find_answer
from denizen.ports.model import Capabilities, Model, ModelEvent, ModelInfo, ModelRequest, Models
from denizen.ports.store import Store

NOT_SENT = "not_sent"
NEWEST = "9" * 20
"""Stands for the id of a post that is newer than any other."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """A request and the model that it is for."""

    model: str
    request: ModelRequest


async def plan_requests(
    runtime: Runtime, services: Services, inbound: Inbound, conversation: ConversationId | None = None
) -> list[Unsent]:
    """The first request of the turn; where tools are planned, also that for an answer without any; where the model is
    chosen for the question, before them the request that sorts it, as if that had no answer. With a `conversation` as
    if it were asked there. Raises what would keep the turn from being opened.
    """
    if not inbound.parts:
        raise InvalidInput("The message is empty.", code="message_empty", fix="Write something to answer.")
    async with runtime.lease() as leased:
        generation = await services.configured(leased, leased.agent(inbound.agent).name)
        agent = generation.agent(inbound.agent)
        inbound, now = replace(inbound, agent=agent.name), services.clock.now()
        if conversation is not None:
            inbound = await _moved(services.store, inbound, conversation)
        opened = await plan_turn(services.store, agent, inbound, now=now)
        silent = _Silent(generation.models)
        sorting = await Router(services).plan_request(opened, generation)
        if sorting is not None:
            silent.unsent.append(Unsent(sorting[0].name, sorting[1]))
            opened = replace(opened, turn=replace(opened.turn, route=FALLBACK))
        past = Past(opened.trigger.sequence, now)
        context, history = await gather(
            services.store, opened, replace(generation, models=silent), past, keeper=services.memories
        )
        with suppress(_NotSent):
            await find_answer(context, FreeSteps(context, replace(services, live=Live())), history)
    return silent.unsent


async def _moved(store: Store, inbound: Inbound, conversation: ConversationId) -> Inbound:
    """As if said there; where a room of a platform is mirrored, with what was said in it. Raises NotFound."""
    async with store.work(write=False) as work:
        place = (await work.conversations.get(conversation)).place
        room = await work.archive.find_room(place.platform, place.thread or place.channel)
    if room is None:
        return replace(inbound, place=place)
    shared = room.kind is not RoomKind.DIRECT
    owed = Owed(inbound.agent, reply_to=NEWEST)
    return replace(inbound, place=place, shared=shared, owed=owed, platform_id=NEWEST)


class _NotSent(Unavailable):
    """What the model that sends nothing raises."""


@dataclass(slots=True)
class _Silent:
    """`denizen.ports.model.Models` whose models keep what they should send."""

    models: Models
    unsent: list[Unsent] = field(default_factory=list[Unsent])

    def get(self, name: str) -> Model:
        return _SilentModel(self.models.get(name), self.unsent)

    def list_models(self) -> Sequence[ModelInfo]:
        return self.models.list_models()

    async def warm(self) -> None:
        """Nothing is sent."""

    async def aclose(self) -> None:
        """The generation's own models stay open."""


@dataclass(frozen=True, slots=True)
class _SilentModel:
    model: Model
    unsent: list[Unsent]

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.unsent.append(Unsent(self.name, request))
        raise _NotSent("Nothing was sent.", code=NOT_SENT)
        yield  # what makes it a generator

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        return await self.model.estimate_cost_usd(input_tokens, output_tokens)
