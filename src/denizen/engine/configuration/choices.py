"""Choices that people made with commands: who answers in a conversation, with which model, and from when on the agent
knows it. Stored among the user settings.

Set by `engine/commands`; read where turns are opened and where earlier talk is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum

from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId
from denizen.engine.configuration.handovers import find_handover
from denizen.ports.model import Models
from denizen.ports.store import UnitOfWork

MODEL, MODE = "model", "mode"
"""Keys among the settings of a principal."""


class ModelMode(StrEnum):
    """Presets: each is the model alias of the same name."""

    FAST = "fast"
    CHEAP = "cheap"
    BALANCED = "balanced"
    QUALITY = "quality"


async def find_agent_choice(
    work: UnitOfWork, account: AgentName, conversation_id: ConversationId, *, known: Collection[str], now: datetime
) -> AgentName:
    """Who answers what is said to an account in a conversation: the agent that the room was handed to, else the chosen
    one, else the account's own. One that is switched off, or not configured any more (not `known`), does not count.
    """
    handover = await find_handover(work, account, conversation_id)
    if handover is not None and handover.agent in known and not handover.is_over(now):
        return handover.agent
    chosen = (await work.user_settings.get(f"agent:{conversation_id}")).get(account)
    return AgentName(str(chosen)) if chosen in known else account


async def put_agent(
    work: UnitOfWork, account: AgentName, conversation_id: ConversationId, agent: AgentName, *, now: datetime
) -> None:
    """The account's own agent is what holds when nothing is kept."""
    value = None if agent == account else str(agent)
    await work.user_settings.put(f"agent:{conversation_id}", account, value, now=now)


async def find_model_choice(work: UnitOfWork, principal: str, models: Models) -> str:
    """The model that a principal (by its key) chose, empty when none: a named model goes before a mode.

    Raises NotFound when what was chosen is not configured any more, and says how to choose again.
    """
    settings = await work.user_settings.get(principal)
    model, mode = str(settings.get(MODEL) or ""), str(settings.get(MODE) or "")
    chosen = model or mode
    try:
        if chosen:
            models.get(chosen)
    except NotFound as error:
        what, fix = ("model", "/model remove") if model else ("mode", "/mode clear")
        raise NotFound(
            f"The {what} that you chose, '{chosen}', is not there any more.",
            code="model_choice_gone",
            fix=f"Give {fix}, or choose another.",
        ) from error
    return chosen


_RESET = "reset:"


async def put_reset(work: UnitOfWork, agent: AgentName, conversation_id: ConversationId, *, now: datetime) -> None:
    await work.user_settings.put(f"{_RESET}{conversation_id}", agent, now.isoformat(), now=now)


async def find_reset_time(work: UnitOfWork, agent: AgentName, conversation_id: ConversationId) -> datetime | None:
    """The agent knows nothing of what was said there before that time; None when it was never reset."""
    value = (await work.user_settings.get(f"{_RESET}{conversation_id}")).get(agent)
    return datetime.fromisoformat(str(value)) if value else None


async def load_reset_times(work: UnitOfWork, agent: AgentName) -> Mapping[ConversationId, datetime]:
    """Loads the times of all conversations in which the agent was reset."""
    kept = await work.user_settings.list_values(agent)
    return {
        ConversationId(key.removeprefix(_RESET)): datetime.fromisoformat(str(value))
        for key, value in kept.items()
        if key.startswith(_RESET)
    }


def list_aliases(models: Models) -> list[str]:
    """The names under which models are offered to everybody."""
    return sorted({alias for info in models.list_models() for alias in info.aliases})
