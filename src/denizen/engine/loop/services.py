"""The services of the engine, made once and handed on."""

from __future__ import annotations

from dataclasses import dataclass, field

from denizen.domain.clock import Clock
from denizen.domain.ids import AgentName
from denizen.engine.gate.executor import ToolExecutor
from denizen.engine.gate.observer import Observer
from denizen.engine.knowledge.proof import AnswerProver
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.prompt.room_transcript import BlockTextCache
from denizen.engine.runtime.agent_settings import AgentSettingsOverlay
from denizen.engine.runtime.generation import Generation
from denizen.engine.runtime.live_events import LiveEvents
from denizen.engine.tools.toolbox import SessionSelections
from denizen.ports.durable import DurableExecution
from denizen.ports.store import Store


@dataclass(frozen=True, slots=True)
class EngineServices:
    """The services that every turn uses."""

    store: Store
    durable: DurableExecution
    live: LiveEvents
    gate: ToolExecutor
    clock: Clock
    texts: BlockTextCache = field(default_factory=BlockTextCache)
    selections: SessionSelections = field(default_factory=SessionSelections)
    memories: MemoryKeeper | None = None
    observer: Observer | None = None
    prover: AnswerProver | None = None
    """Proves citations; None where there are no documents."""
    assistant: AgentSettingsOverlay | None = None

    async def configured(self, generation: Generation, agent: AgentName) -> Generation:
        """The generation in which the agent is as its owner has set it besides the configuration."""
        return generation if self.assistant is None else await self.assistant.apply(generation, agent)
