"""What the engine is built from, and what one turn works with: records that are made once and handed on."""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.domain.clock import Clock
from denizen.domain.ids import AgentName
from denizen.engine.gate.executor import Gate
from denizen.engine.gate.observer import Observer
from denizen.engine.knowledge.proof import Prover
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.prompt.room_transcript import BlockTexts
from denizen.engine.runtime.agent_settings import Assistant
from denizen.engine.runtime.generation import Generation
from denizen.engine.runtime.live_events import Live
from denizen.engine.tools.toolbox import Selections
from denizen.ports.durable import Durable
from denizen.ports.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """What the engine is built from; the same for every turn."""

    store: Store
    durable: Durable
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
