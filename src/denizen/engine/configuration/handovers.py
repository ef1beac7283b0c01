"""The stored hand-overs: which agent has a room for a while, at which account. They stand among the user settings, and
so outlive a restart.

`engine/outbox/handovers.py` begins and ends them; `choices.py` reads who answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from denizen.domain.conversation import Place
from denizen.domain.handover import HANDOVER_KEY, Handover, handover_from_json, handover_to_json
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.json import JsonObject
from denizen.domain.record import record
from denizen.ports.store import UnitOfWork


@record
class SessionHandover:
    """A hand-over in a session of one person, where no account answers. `own` is the agent that answers there
    otherwise.
    """

    own: AgentName
    handover: Handover


async def find_session_handover(work: UnitOfWork, conversation_id: ConversationId) -> SessionHandover | None:
    """Returns the hand-over of that session, also one that is over."""
    for own, value in (await work.user_settings.get(f"{HANDOVER_KEY}{conversation_id}")).items():
        if handover := handover_from_json(value):
            return SessionHandover(AgentName(own), handover)
    return None


async def find_handover(work: UnitOfWork, account: AgentName, conversation_id: ConversationId) -> Handover | None:
    """Returns the hand-over of that room, also one that is over and was not ended yet."""
    return handover_from_json((await work.user_settings.get(f"{HANDOVER_KEY}{conversation_id}")).get(account))


async def put_handover(
    work: UnitOfWork, account: AgentName, place: Place, handover: Handover | None, *, now: datetime
) -> None:
    """Keeps the hand-over; None ends it."""
    where: JsonObject = {"place": [place.platform, place.channel, place.thread]}
    value = None if handover is None else {**handover_to_json(handover), **where}
    await work.user_settings.put(f"{HANDOVER_KEY}{place.conversation_id}", account, value, now=now)


async def list_handovers(work: UnitOfWork, account: AgentName) -> Mapping[Place, Handover]:
    """Returns the hand-overs at an account, by the room."""
    found: dict[Place, Handover] = {}
    for key, value in (await work.user_settings.list_values(account)).items():
        handover = handover_from_json(value) if key.startswith(HANDOVER_KEY) else None
        if handover is not None and isinstance(value, dict) and isinstance(value["place"], list):
            found[Place(*map(str, value["place"]))] = handover
    return found
