"""Lines for talk that nobody archives: a terminal, the web, the API. The session's own messages are the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.conversation import Place
from denizen.domain.file_text import quote_text, shorten_texts, show_file
from denizen.domain.ids import AgentName, SessionId
from denizen.domain.impersonation import SpeakerNames
from denizen.domain.message import FilePart, ImagePart, Message, Part, Role, TextPart, list_calls
from denizen.domain.names import format_name
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import IMAGE_LIFE_S
from denizen.domain.record import record
from denizen.domain.room import Attachment
from denizen.domain.transcript import TranscriptBudget, TranscriptLine, join_words, limit_lines
from denizen.domain.turn import ReplyTarget, Turn
from denizen.engine.configuration.choices import find_reset_time
from denizen.engine.prompt.caching import pauses_between
from denizen.engine.prompt.pictures import list_pictures
from denizen.engine.prompt.room_transcript import (
    BlockTextCache,
    RoomTranscript,
    TranscriptRequest,
    load_past_transcript,
    load_room_transcript,
)
from denizen.engine.prompt.transcript_messages import TranscriptStyle, make_messages
from denizen.ports.model import Capabilities
from denizen.ports.store import Store, UnitOfWork

PAGE = 100


async def load_session(work: UnitOfWork, turn: Turn, trigger: Message, own: str, limit: int) -> list[TranscriptLine]:
    """The newest that fit the limit in tokens, oldest first, without this turn's messages and questions that came
    later; of a turn that is over, without anything from behind its end.
    """
    lines: list[TranscriptLine] = []
    before: int | None = None
    while True:
        page = await work.messages.list_tail(turn.session_id, limit=PAGE, before=before)
        for message in reversed(page):
            is_later = message.role is Role.USER and message.sequence >= trigger.sequence
            is_later = is_later or (turn.closed_at is not None and message.created_at > turn.closed_at)
            is_step = bool(list_calls(message.parts))  # what is said before a tool is used, nobody was shown
            if message.turn_id == turn.id or is_later or is_step or not message.text.strip():
                continue
            line = message_line(message, own)
            limit -= line.tokens
            if limit < 0:
                return lines[::-1]
            lines.append(line)
        if len(page) < PAGE:
            return lines[::-1]
        before = page[0].sequence


def message_line(message: Message, own: str) -> TranscriptLine:
    """`own` is how the agent is called. A question counts as answered with what the agent said next."""
    is_own = message.role is not Role.USER
    name = own if is_own else format_name(str(message.meta.get("speaker") or message.author.name or "user"))
    files = [part for part in message.parts if isinstance(part, FilePart)]
    texts = zip(files, shorten_texts(part.text for part in files), strict=True)
    shown = [Attachment(part.name, part.media_type, part.size_bytes, part.url, text) for part, text in texts]
    words = join_words(message.text, [show_file(file) for file in shown])
    return TranscriptLine(message.id, name, f"{name}: {words}", message.created_at, is_own)


async def find_session_start(work: UnitOfWork, session_id: SessionId) -> datetime | None:
    """When the session was begun with /new: nothing from before is read. None for the first session, and before it."""
    if not session_id:
        return None
    session = await work.sessions.get(session_id)
    sessions = await work.sessions.list_sessions(session.conversation_id, session.agent)
    return session.created_at if any(each.created_at < session.created_at for each in sessions) else None


PICTURES_WITHIN = 100
"""Among so many of the newest posts pictures are looked for."""


@record(kw_only=True)
class ParticipantTurn:
    """A turn that a participant is to take. `owed` is None away from platforms, `is_archived` says whether what is said
    there is kept; `room_tokens` is what the model has room for. `is_over` when it is only looked at again: then nothing
    that was said after the question is read, and no block is closed.
    """

    turn: Turn
    trigger: Message
    place: Place
    owed: ReplyTarget | None
    agent: Agent
    agents: Sequence[Agent]
    is_archived: bool
    room_tokens: int
    can: Capabilities
    is_over: bool = False


@record
class _Cuts:
    """Nothing from before these times is read, in the room and in its parent."""

    here: datetime | None
    above: datetime | None


async def load_transcript(
    store: Store, participant: ParticipantTurn, texts: BlockTextCache
) -> tuple[list[PromptMessage], SpeakerNames, list[float]]:
    """The messages, the names in them, and the pauses between the agent's turns in seconds."""
    own = _within(participant.agent.history.transcript, participant.room_tokens)
    talk = RoomTranscript((), (), ())
    question = ""
    if participant.is_archived and participant.owed is not None:
        question = _asked_with(participant.trigger.platform_id)
        shared = _largest(participant.agents, own)
        accounts = tuple(agent.name for agent in participant.agents)
        unsaid = await _unsaid(store, participant)
        asked = TranscriptRequest(participant.place, shared, own, question, unsaid=unsaid, accounts=accounts)
        talk = await (
            load_past_transcript(store, asked) if participant.is_over else load_room_transcript(store, asked, texts)
        )
    async with store.work(write=False) as work:
        cuts = await _load_cuts(work, participant)
        above = _since([closed.lines for closed in talk.parent], cuts.above)
        blocks = _since([closed.lines for closed in talk.blocks], cuts.here)
        tail = [line for line in talk.tail if cuts.here is None or line.at > cuts.here or line.post == question]
        name = await _own_name(work, participant, [*blocks, tail])
        if not (above or blocks or tail):
            limit = max(own.total, own.tail) - message_line(participant.trigger, name).tokens
            lines = await load_session(work, participant.turn, participant.trigger, name, limit)
            tail = [line for line in lines if cuts.here is None or line.at > cuts.here]
    begins_thread = not (blocks or tail) and bool(above) and above[-1][-1].post == question != ""
    if not begins_thread:
        tail = _with_question(tail, question, message_line(participant.trigger, name))
    extras = [part for part in participant.trigger.parts if not _is_told(part, tail)]
    if question and participant.can.image_output:
        extras = [*await _load_pictures(store, participant, question), *extras]
    manner = TranscriptStyle(participant.agent.history.layout, participant.agent.history.timestamps, participant.can)
    closed, tail = limit_lines([*above, *blocks], tail, own.messages)
    messages = make_messages(closed, tail, extras, name, manner)
    voice = SpeakerNames(name, frozenset(line.name for lines in (*closed, tail) for line in lines))
    said = [line for lines in (*blocks[-1:], tail) for line in lines]
    return messages, voice, pauses_between(_find_turn_times(said, name))


def _is_told(part: Part, tail: Sequence[TranscriptLine]) -> bool:
    """Whether the last line, the question, has all of it."""
    is_whole = isinstance(part, FilePart) and bool(part.text) and bool(tail) and quote_text(part.text) in tail[-1].text
    return is_whole or isinstance(part, TextPart)


def _find_turn_times(lines: Sequence[TranscriptLine], own: str) -> list[tuple[datetime, datetime]]:
    """Returns when the agent was spoken to and when it had answered; the last line is the question."""
    turns: list[tuple[datetime, datetime]] = []
    for before, line in pairwise(lines):
        if line.name == own and before.name == own and turns:
            turns[-1] = (turns[-1][0], line.at)
        elif line.name == own:
            turns.append((before.at, line.at))
    return [*turns, *((line.at, line.at) for line in lines[-1:])]


async def _load_pictures(store: Store, participant: ParticipantTurn, question: str) -> Sequence[ImagePart]:
    """The last ones that were shown in the room before the question."""
    place = participant.place
    async with store.work(write=False) as work:
        room = place.thread or place.channel
        posts = await work.archive.list_posts(place.platform, room, before=question, limit=PICTURES_WITHIN)
    return list_pictures(posts, participant.turn.opened_at - timedelta(seconds=IMAGE_LIFE_S))


def _asked_with(platform_id: str) -> str:
    """The post that asks; empty for a command or a button. Behind a tilde is the time of its edit."""
    return "" if ":" in platform_id else platform_id.partition("~")[0]


def _within(budget: TranscriptBudget, room_tokens: int) -> TranscriptBudget:
    """Keeps the parts that the model can read."""
    room = max(room_tokens, 0)
    return replace(budget, total=min(budget.total, room), tail=min(budget.tail, room))


def _largest(agents: Iterable[Agent], own: TranscriptBudget) -> TranscriptBudget:
    budgets = [agent.history.transcript for agent in agents if agent.history.context is ContextStrategy.TRANSCRIPT]
    return max([own, *budgets], key=lambda budget: (budget.total, budget.block_tokens))


async def _unsaid(store: Store, participant: ParticipantTurn) -> frozenset[str]:
    """Finds posts of this turn, or of the one that it supersedes."""
    turns = [participant.turn.id]
    if participant.owed is not None and participant.owed.supersedes:
        turns.append(participant.owed.supersedes)
    async with store.work(write=False) as work:
        posted = [each.platform_id for turn in turns for each in await work.outbox.list_for_turn(turn)]
    return frozenset(filter(None, posted))


async def _load_cuts(work: UnitOfWork, participant: ParticipantTurn) -> _Cuts:
    agent, place = participant.agent.name, participant.place
    reset = await find_reset_time(work, agent, place.conversation_id)
    anew = await find_session_start(work, participant.turn.session_id)
    above = (
        await find_reset_time(work, agent, Place(place.platform, place.channel).conversation_id)
        if place.thread
        else None
    )
    return _Cuts(_later(reset, anew), _later(above, _later(reset, anew)))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(one, other) if one and other else one or other


def _since(blocks: Sequence[Sequence[TranscriptLine]], cut: datetime | None) -> list[Sequence[TranscriptLine]]:
    if cut is None:
        return list(blocks)
    left = [[line for line in lines if line.at > cut] for lines in blocks]
    return [lines for lines in left if lines]


async def _own_name(work: UnitOfWork, participant: ParticipantTurn, said: Iterable[Sequence[TranscriptLine]]) -> str:
    """As the platform shows it, by the agent's last post here; before that as it is configured."""
    account = participant.owed.account if participant.owed else AgentName(participant.agent.name)
    looked: set[str] = set()
    for lines in reversed(list(said)):
        for line in reversed(lines):
            if not line.is_bot or not line.post or line.name in looked:
                continue
            looked.add(line.name)
            delivery = await work.outbox.find_by_platform_id(participant.place.platform, line.post)
            if delivery is not None and delivery.agent == account:
                return line.name
    return account


def _with_question(tail: Sequence[TranscriptLine], question: str, told: TranscriptLine) -> list[TranscriptLine]:
    """The question last, as it was posted or, where that is not archived, as it came."""
    asked = next((line for line in tail if question and line.post == question), told)
    return [*(line for line in tail if line is not asked), asked]
