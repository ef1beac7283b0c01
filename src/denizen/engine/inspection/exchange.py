"""Earlier exchanges of a client that carries its history itself: what the agent did between question and answer.

A client sees the calls of its own tools and the answers; the agent's own calls, and what a provider wants back with
calls, are kept here. They are put back where the client tells which turn they are of, and only for whoever asked then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from denizen.domain.demands import read_call_id
from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.domain.message import Part, Role, ToolCallPart, ToolResultPart, list_calls, parts_from_json
from denizen.domain.principal import Principal, RoleName
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import to_prompt_messages
from denizen.domain.turn import Turn
from denizen.engine.intake.opening import ADMINISTRATION
from denizen.ports.store import Store, UnitOfWork

MAX_MESSAGES = 200
"""The limit of one turn's messages; more steps has none."""
MAX_RESTORED = 100
"""The newest calls of a history whose turns are looked at; each takes two reads of the store."""


async def restore_calls(store: Store, history: Sequence[PromptMessage], asker: Principal) -> list[PromptMessage]:
    """Returns the history with the ids of calls as models know them, and the agent's own steps in front of calls that
    its turns have left to the client.
    """
    restored: list[PromptMessage] = []
    calling = [place for place, message in enumerate(history) if list_calls(message.parts)]
    recent = set(calling[-MAX_RESTORED:])
    async with store.work(write=False) as work:
        for place, message in enumerate(history):
            turns = {read_call_id(call.id)[0] for call in list_calls(message.parts)}
            bare = replace(message, parts=restore_ids(message.parts))
            made = await _list_steps(work, next(iter(turns)), asker) if len(turns) == 1 and place in recent else []
            known = {call.id for each in made for call in list_calls(each.parts)}
            wanted = {call.id for call in list_calls(bare.parts)}
            restored += made if wanted and wanted <= known else [bare]
    return restored


def restore_ids(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Returns the parts with the ids of calls as models know them."""
    return tuple(_restore_id(part) for part in parts)


def _restore_id(part: Part) -> Part:
    match part:
        case ToolCallPart():
            return replace(part, id=read_call_id(part.id)[1])
        case ToolResultPart():
            return replace(part, call_id=read_call_id(part.call_id)[1])
        case _:
            return part


async def load_exchange(store: Store, turn_id: TurnId, asker: Principal) -> list[PromptMessage]:
    """Returns the conversation up to the end of a turn, with what the client sent along then. Raises NotFound."""
    async with store.work(write=False) as work:
        turn = await work.turns.get(turn_id)
        if not _may_go_on(turn, asker):
            raise NotFound("There is no such turn.", code="turn_not_found")
        try:
            trigger = await work.messages.get(turn.trigger_id)
        except NotFound as error:
            raise NotFound("What was asked then is forgotten.", code="turn_not_found") from error
        return [*_read_supplied(turn), *to_prompt_messages([trigger]), *await _list_steps(work, turn_id, asker)]


def _may_go_on(turn: Turn, asker: Principal) -> bool:
    """Tells whether the turn is the asker's, who has to be an admin still if it is about the administration."""
    is_closed = ADMINISTRATION in turn.options and not asker.roles & {RoleName.ADMIN, RoleName.OWNER}
    return turn.principal.key == asker.key and not is_closed


def _read_supplied(turn: Turn) -> list[PromptMessage]:
    rows = cast("Sequence[Mapping[str, Any]]", turn.options.get("supplied") or ())
    return [PromptMessage(Role(row["role"]), parts_from_json(row["parts"])) for row in rows]


async def _list_steps(work: UnitOfWork, turn_id: TurnId | None, asker: Principal) -> list[PromptMessage]:
    """Lists what the agent said and did in a turn; nothing of one from which the asker may not go on."""
    turn = await work.turns.find(turn_id) if turn_id is not None else None
    if turn is None or not _may_go_on(turn, asker):
        return []
    tail = await work.messages.list_tail(turn.session_id, limit=MAX_MESSAGES)
    return to_prompt_messages([each for each in tail if each.turn_id == turn.id and each.id != turn.trigger_id])
