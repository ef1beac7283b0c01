"""The prompt of a participant: the room as it was said, up to the question. Called by `gather`.

Budgets are of the agents as configured now: the largest decides when blocks close and which are kept, an agent's own
what it sees of them (inventory C10).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.conversation import Place
from denizen.domain.guard import Voice
from denizen.domain.ids import AgentName
from denizen.domain.message import ImagePart, Message, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.transcript import Budget, Line
from denizen.domain.turn import Owed, Turn
from denizen.engine.choices import reset_at
from denizen.engine.prompt.pictures import pictures_of
from denizen.engine.prompt.rhythm import pauses_between
from denizen.engine.prompt.session import IMAGE_LIFE_S
from denizen.engine.prompt.transcript.blocks import BlockTexts
from denizen.engine.prompt.transcript.messages import Manner, make_messages
from denizen.engine.prompt.transcript.room import Asked, Talk, load_talk, load_talk_then
from denizen.engine.prompt.transcript.session import began_anew_at, line_of_message, load_session
from denizen.ports.model import Capabilities
from denizen.ports.store import Store, UnitOfWork

PICTURES_WITHIN = 100
"""Among so many of the newest posts pictures are looked for."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A turn that a participant is to take. `owed` is None away from platforms, `is_archived` says whether what is said
    there is kept; `room_tokens` is what the model has room for. `is_over` when it is only looked at again: then nothing
    that was said after the question is read, and no block is closed.
    """

    turn: Turn
    trigger: Message
    place: Place
    owed: Owed | None
    agent: Agent
    agents: Sequence[Agent]
    is_archived: bool
    room_tokens: int
    can: Capabilities
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Nothing from before these times is read, in the room and in its parent."""

    here: datetime | None
    above: datetime | None


async def load_transcript(
    store: Store, scene: Scene, texts: BlockTexts
) -> tuple[list[PromptMessage], Voice, list[float]]:
    """The messages, the names in them, and the pauses between the agent's turns in seconds."""
    own = _within(scene.agent.transcript, scene.room_tokens)
    talk = Talk((), (), ())
    question = ""
    if scene.is_archived and scene.owed is not None:
        question = _asked_with(scene.trigger.platform_id)
        shared = _largest(scene.agents, scene.agent.transcript)
        asked = Asked(scene.place, shared, own, question, await _unsaid(store, scene))
        talk = await (load_talk_then(store, asked) if scene.is_over else load_talk(store, asked, texts))
    async with store.work(write=False) as work:
        cuts = await _load_cuts(work, scene)
        above = _since([closed.lines for closed in talk.parent], cuts.above)
        blocks = _since([closed.lines for closed in talk.blocks], cuts.here)
        tail = [line for line in talk.tail if cuts.here is None or line.at > cuts.here or line.post == question]
        name = await _own_name(work, scene, [*blocks, tail])
        if not (above or blocks or tail):
            limit = max(own.total, own.tail) - line_of_message(scene.trigger, name).tokens
            lines = await load_session(work, scene.turn, scene.trigger, name, limit)
            tail = [line for line in lines if cuts.here is None or line.at > cuts.here]
    begins_thread = not (blocks or tail) and bool(above) and above[-1][-1].post == question != ""
    if not begins_thread:
        tail = _with_question(tail, question, line_of_message(scene.trigger, name))
    extras = [part for part in scene.trigger.parts if not isinstance(part, TextPart)]
    if question and scene.can.image_output:
        extras = [*await _load_pictures(store, scene, question), *extras]
    manner = Manner(scene.agent.layout, scene.agent.timestamps, scene.can)
    messages = make_messages([*above, *blocks], tail, extras, name, manner)
    voice = Voice(name, frozenset(line.name for lines in (*above, *blocks, tail) for line in lines))
    said = [line for lines in (*blocks[-1:], tail) for line in lines]
    return messages, voice, pauses_between(_turns_of(said, name))


def _turns_of(lines: Sequence[Line], own: str) -> list[tuple[datetime, datetime]]:
    """When the agent was spoken to and when it had answered; the last line is the question."""
    turns: list[tuple[datetime, datetime]] = []
    for before, line in pairwise(lines):
        if line.name == own and before.name == own and turns:
            turns[-1] = (turns[-1][0], line.at)
        elif line.name == own:
            turns.append((before.at, line.at))
    return [*turns, *((line.at, line.at) for line in lines[-1:])]


async def _load_pictures(store: Store, scene: Scene, question: str) -> Sequence[ImagePart]:
    """The last ones that were shown in the room before the question (inventory C25)."""
    place = scene.place
    async with store.work(write=False) as work:
        room = place.thread or place.channel
        posts = await work.archive.list_posts(place.platform, room, before=question, limit=PICTURES_WITHIN)
    return pictures_of(posts, scene.turn.opened_at - timedelta(seconds=IMAGE_LIFE_S))


def _asked_with(platform_id: str) -> str:
    """The post that asks; empty for a command or a button. Behind a tilde is the time of its edit."""
    return "" if ":" in platform_id else platform_id.partition("~")[0]


def _within(budget: Budget, room_tokens: int) -> Budget:
    """What the model cannot read is of no use."""
    room = max(room_tokens, 0)
    return replace(budget, total=min(budget.total, room), tail=min(budget.tail, room))


def _largest(agents: Iterable[Agent], own: Budget) -> Budget:
    budgets = [agent.transcript for agent in agents if agent.context is ContextStrategy.TRANSCRIPT]
    return max([own, *budgets], key=lambda budget: (budget.total, budget.block_tokens))


async def _unsaid(store: Store, scene: Scene) -> frozenset[str]:
    """What this turn, or the one that it supersedes, has posted already."""
    turns = [scene.turn.id]
    if scene.owed is not None and scene.owed.supersedes:
        turns.append(scene.owed.supersedes)
    async with store.work(write=False) as work:
        posted = [each.platform_id for turn in turns for each in await work.outbox.list_for_turn(turn)]
    return frozenset(filter(None, posted))


async def _load_cuts(work: UnitOfWork, scene: Scene) -> _Cuts:
    agent, place = scene.agent.name, scene.place
    reset = await reset_at(work, agent, place.conversation_id)
    anew = await began_anew_at(work, scene.turn.session_id)
    above = await reset_at(work, agent, Place(place.platform, place.channel).conversation_id) if place.thread else None
    return _Cuts(_later(reset, anew), _later(above, _later(reset, anew)))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(one, other) if one and other else one or other


def _since(blocks: Sequence[Sequence[Line]], cut: datetime | None) -> list[Sequence[Line]]:
    if cut is None:
        return list(blocks)
    left = [[line for line in lines if line.at > cut] for lines in blocks]
    return [lines for lines in left if lines]


async def _own_name(work: UnitOfWork, scene: Scene, said: Iterable[Sequence[Line]]) -> str:
    """As the platform shows it, by the agent's last post here; before that as it is configured."""
    account = scene.owed.account if scene.owed else AgentName(scene.agent.name)
    looked: set[str] = set()
    for lines in reversed(list(said)):
        for line in reversed(lines):
            if not line.is_bot or not line.post or line.name in looked:
                continue
            looked.add(line.name)
            delivery = await work.outbox.find_by_platform_id(scene.place.platform, line.post)
            if delivery is not None and delivery.agent == account:
                return line.name
    return account


def _with_question(tail: Sequence[Line], question: str, told: Line) -> list[Line]:
    """The question last, as it was posted or, where that is not archived, as it came."""
    asked = next((line for line in tail if question and line.post == question), told)
    return [*(line for line in tail if line is not asked), asked]
