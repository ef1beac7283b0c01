"""Everything that is recorded of a turn, for people who ask why (promise 4). Reads only; called by `queries` and
`replay`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from denizen.domain.citation import Citation
from denizen.domain.errors import NotFound
from denizen.domain.ids import TurnId
from denizen.domain.memory import Memory
from denizen.domain.message import text_of
from denizen.domain.trace import PromptUse, SegmentUse, sha256_of
from denizen.domain.turn import CallRecord, Step, Turn
from denizen.engine.prompt.marks import date_line
from denizen.ports.store import Store, UnitOfWork


@dataclass(frozen=True, slots=True)
class Trace:
    """A turn with its question, prompts, steps and calls. `question` is what is left of it: it may be forgotten."""

    turn: Turn
    question: str
    prompts: Sequence[PromptUse]
    steps: Sequence[Step]
    calls: Sequence[CallRecord]
    memories: Sequence[Memory] = ()
    """Those that came up unasked, as far as they are not forgotten; the prompts have the ids of all."""
    citations: Sequence[Citation] = ()
    """What the reply cites of documents, and what was taken out of it since it was not proved."""

    @property
    def taken(self) -> Sequence[Step]:
        """The steps without the request to the router, which comes before them."""
        return [step for step in self.steps if step.number > 0]


async def load_trace(store: Store, turn_id: TurnId) -> Trace:
    """Raises NotFound."""
    async with store.work(write=False) as work:
        turn = await work.turns.get(turn_id)
        prompts = await work.turns.list_prompts(turn_id)
        return Trace(
            turn,
            await _question(work, turn),
            _with_texts(prompts, turn),
            await work.turns.list_steps(turn_id),
            await work.turns.list_calls(turn_id),
            await _memories(work, prompts),
            await work.citations.list_for(turn_id),
        )


async def _memories(work: UnitOfWork, prompts: Sequence[PromptUse]) -> list[Memory]:
    ids = dict.fromkeys(key for prompt in prompts for key in prompt.memories)
    found = [await work.memories.find(key) for key in ids]
    return [memory for memory in found if memory is not None]


async def _question(work: UnitOfWork, turn: Turn) -> str:
    try:
        return text_of((await work.messages.get(turn.trigger_id)).parts)
    except NotFound:
        return ""


def _with_texts(prompts: Sequence[PromptUse], turn: Turn) -> list[PromptUse]:
    """Segments whose text is not kept with the prompt: what the turn itself knows of them, when it is the same."""
    instructions = str(turn.options.get("instructions", ""))
    told = (instructions, instructions.strip(), date_line(turn.opened_at))
    known = {sha256_of(text): text for text in told}
    return [replace(prompt, segments=tuple(_with_text(s, known) for s in prompt.segments)) for prompt in prompts]


def _with_text(segment: SegmentUse, known: Mapping[str, str]) -> SegmentUse:
    return replace(segment, text=known.get(segment.sha256)) if segment.text is None else segment
