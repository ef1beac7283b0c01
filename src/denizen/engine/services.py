"""What the engine is built from, and what one turn works with: records that are made once and handed on."""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.domain.agent import Agent, Sampling
from denizen.domain.clock import Clock
from denizen.domain.guard import Voice
from denizen.domain.ids import AgentName
from denizen.domain.prompt import PromptMessage, Segment
from denizen.domain.turn import Turn
from denizen.engine.assistant import Assistant
from denizen.engine.gate.door import Gate
from denizen.engine.gate.observer import Observer
from denizen.engine.knowledge.proof import Prover
from denizen.engine.live import Live
from denizen.engine.memory import MemoryKeeper
from denizen.engine.prompt.rhythm import SHORT_S
from denizen.engine.prompt.transcript.blocks import BlockTexts
from denizen.engine.runtime import Generation
from denizen.engine.selection import Selections
from denizen.ports.durable import DurableExecution
from denizen.ports.model import Model
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a turn works with, fixed when it begins: one generation, one agent, one model."""

    turn: Turn
    generation: Generation
    agent: Agent
    model: Model
    scope: CallScope
    segments: tuple[Segment, ...]
    question: str
    max_output_tokens: int
    sampling: Sampling
    voice: Voice | None = None
    """Of a participant; it is kept from speaking for others."""
    notes: tuple[PromptMessage, ...] = ()
    """What only this turn shows (`prompt/notes`); those of a participant stand in its transcript already."""
    keep_s: float = SHORT_S
    """How long its conversation is worth keeping in a provider's cache (`prompt/rhythm`)."""
    overdue: tuple[int, int] | None = None
    """The stretch of its session that should be summed up when it is over (`summaries.py`)."""
    memories: tuple[str, ...] = ()
    """Ids of those that came up unasked; they stand in the notes."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the engine is built from; the same for every turn."""

    store: Store
    durable: DurableExecution
    live: Live
    gate: Gate
    clock: Clock
    texts: BlockTexts = field(default_factory=BlockTexts)
    selections: Selections = field(default_factory=Selections)
    memories: MemoryKeeper | None = None
    observer: Observer | None = None
    prover: Prover | None = None
    """Of what answers cite; None where there are no documents."""
    assistant: Assistant | None = None

    async def configured(self, generation: Generation, agent: AgentName) -> Generation:
        """The generation in which the agent is as its owner has set it besides the configuration."""
        return generation if self.assistant is None else await self.assistant.apply(generation, agent)
