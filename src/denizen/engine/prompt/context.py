"""Step 5 of a turn: the prompt is put together from the agent as configured now, the talk before, and the question.

`build_context` does it; the other modules of the package each bring one part. The foreign texts (taint) that a turn
begins with are found here too; `loop/steps.py` adds what it reads later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from denizen.domain.agent import Agent, AnswersFrom, ContextStrategy, SamplingSettings
from denizen.domain.demands import AnswerDemands, demands_from_json
from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound
from denizen.domain.event_listener import EVENT_KINDS
from denizen.domain.file_text import TEXT_FOLLOWS
from denizen.domain.ids import AgentName
from denizen.domain.impersonation import SpeakerNames
from denizen.domain.message import Role, TextPart, join_text
from denizen.domain.principal import PrincipalKind
from denizen.domain.project import TASK_TOOLS
from denizen.domain.prompt import PromptMessage, Segment, Stability, count_tool_tokens, estimate_tokens, order_segments
from denizen.domain.prompt_messages import agent_timezone, count_tokens, date_line, tells_date, to_prompt_messages
from denizen.domain.record import record
from denizen.domain.routing import list_turn_times
from denizen.domain.speaker_choice import SILENCE
from denizen.domain.taint import find_message_taint, find_part_taint, find_prompt_taint
from denizen.domain.tool import Effect, Taint
from denizen.domain.turn import Turn
from denizen.domain.workflow_run import STARTED, find_guild, is_foreign_run, start_from_json
from denizen.engine.configuration.generation import Generation
from denizen.engine.intake.opening import ADMINISTRATION, OpenTurn, load_turn
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.prompt.caching import SHORT_S, pauses_between, plan_keep_s
from denizen.engine.prompt.notes import (
    insert_notes_before_cue,
    join_before_question,
    load_answers,
    load_memories,
    load_refused,
    load_subject_note,
    load_surroundings,
)
from denizen.engine.prompt.participant_prompt import ParticipantTurn, load_transcript
from denizen.engine.prompt.pictures import limit_pictures
from denizen.engine.prompt.room_transcript import BlockTextCache
from denizen.engine.prompt.session_history import HistoryCutoff, Range, TokenBudget, load_history
from denizen.engine.prompt.system_prompt import (
    assemble_participant_prompt,
    assemble_system_prompt,
    fit_to_model,
    plan_task,
    source_rules,
    transient_note,
)
from denizen.engine.tools.toolbox import count_most_tokens, list_allowed, uses_planning
from denizen.ports.model import Model, ModelRequest, Models
from denizen.ports.store import Store
from denizen.ports.toolset import AskedText, CallScope, Delegator, OperatedGuild, Toolset

STORED_LIMIT = 500
"""So many messages of a session are looked at for what a summary or a transcript no longer shows."""

SILENCE_NOTE = (
    "Nobody waits for you here. Speak only if it adds something; "
    f"otherwise answer with exactly {SILENCE} and nothing else."
)
"""For a turn that may end without a word."""


@record(kw_only=True)
class TurnPrompt:
    """The prompt of a turn besides its messages, the same for all requests of its loop."""

    segments: tuple[Segment, ...]
    max_output_tokens: int
    sampling: SamplingSettings
    notes: tuple[PromptMessage, ...] = ()
    """Notes that only this turn shows (`prompt/notes`); those of a participant stand in its transcript already."""
    memories: tuple[str, ...] = ()
    """Ids of the memories that came up unasked; they stand in the notes."""
    keep_s: float = SHORT_S
    """How long its conversation is worth keeping in a provider's cache (`prompt/caching`)."""


@record(kw_only=True)
class TurnContext:
    """The context of a turn, fixed when it begins: one generation, one agent, one model, one prompt."""

    turn: Turn
    generation: Generation
    agent: Agent
    model: Model
    scope: CallScope
    prompt: TurnPrompt
    demands: AnswerDemands = field(default_factory=AnswerDemands)
    speakers: SpeakerNames | None = None
    """Set for a participant, which is kept from speaking for others."""
    overdue: Range | None = None
    """The stretch of its session that should be summed up when the turn is over (`engine/summaries`)."""

    @property
    def question(self) -> str:
        return self.scope.question.text

    @property
    def plans(self) -> bool:
        """Whether tools are reached by a plan instead of the model's own calls."""
        return uses_planning(self.agent.tool_access.planning, self.model.capabilities)

    def request(self, messages: Iterable[PromptMessage], *, native: bool = False) -> ModelRequest:
        """Returns a request of this turn. `native` is for one in which the model calls tools itself."""
        return ModelRequest(
            segments=self.prompt.segments,
            messages=fit_to_model(messages, self.model.capabilities, native=native),
            max_output_tokens=self.prompt.max_output_tokens,
            sampling=self.prompt.sampling,
            conversation_key=self.turn.session_id,
            reasoning=self.agent.reasoning,
            keep_s=self.prompt.keep_s,
        )


@record
class _TurnFacts:
    """The facts known before anything is loaded. `is_supplied`: the client sent the history along, so none is kept
    here.
    """

    opened: OpenTurn
    generation: Generation
    agent: Agent
    model: Model
    is_supplied: bool

    @property
    def options(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.opened.turn.options)

    @property
    def plans(self) -> bool:
        return uses_planning(self.agent.tool_access.planning, self.model.capabilities)

    @property
    def tool_rules(self) -> bool:
        return not self.plans and self.model.capabilities.takes_tools

    @property
    def reads_transcript(self) -> bool:
        return self.agent.history.context is ContextStrategy.TRANSCRIPT and not self.is_supplied

    @property
    def today(self) -> str:
        return date_line(self.opened.turn.opened_at, agent_timezone(self.agent))


@record
class _Conversation:
    """The messages before, then the message to answer; `notes` stand behind it for this turn alone."""

    messages: list[PromptMessage]
    notes: list[PromptMessage]
    pauses_s: Sequence[float]
    speakers: SpeakerNames | None = None
    overdue: Range | None = None


async def build_context(
    store: Store,
    opened: OpenTurn,
    generation: Generation,
    past: HistoryCutoff | None = None,
    *,
    texts: BlockTextCache | None = None,
    keeper: MemoryKeeper | None = None,
    preface: PromptMessage | None = None,
) -> tuple[TurnContext, list[PromptMessage]]:
    """Gathers the turn's context and its messages, of which the last is the one to answer. `texts` are the blocks of
    transcripts that were read before; `keeper` is asked for what is remembered; `preface` stands in front of the
    question.
    """
    turn, usual = opened.turn, generation.agent(opened.turn.agent)
    if ADMINISTRATION in turn.options:
        usual = _for_administration(usual)
    if turn.parent is not None:
        usual = _for_delegation(usual)
    elif turn.principal.kind is PrincipalKind.TASK_WATCHER:
        usual = _for_tasks(usual)
    max_steps = turn.route.max_steps if turn.route else usual.limits.steps
    agent = replace(usual, limits=replace(usual.limits, max_steps=max_steps, max_steps_multiplier=1.0))
    model = generation.models.get(choose_model_name(turn, agent))
    facts = _TurnFacts(opened, generation, agent, model, "supplied" in turn.options)
    recalled = await load_memories(
        keeper, opened, generation.knowledge.recall, with_ids=not facts.plans and await _changes_memory(facts)
    )
    notes = [*recalled.notes, *await _load_notes(store, facts)]
    segments = await _load_segments(facts)
    wanted = facts.options.get("max_output_tokens")
    demands = _read_demands(facts)
    free_tokens, max_output_tokens = await plan_tokens(agent, model, generation.toolsets, segments, wanted)
    lead = [preface] if preface else []
    taken = sum(map(count_tool_tokens, demands.tools.specs)) + sum(map(count_tokens, lead))
    free_tokens = max(free_tokens - taken, 0)
    if facts.reads_transcript:
        talk = await _read_transcript(store, facts, [*notes, *lead], free_tokens, texts or BlockTextCache(), past)
    else:
        talk = await _read_session(store, facts, notes, free_tokens, past)
        talk = replace(talk, messages=join_before_question(talk.messages, lead))
    _check_results(opened, talk.messages)
    context = TurnContext(
        turn=turn,
        generation=generation,
        agent=agent,
        model=model,
        scope=CallScope(
            agent=agent.name,
            principal=turn.principal,
            place=opened.place,
            session_id=turn.session_id,
            turn_id=turn.id,
            account=choose_account(opened, agent.name),
            taint=await _find_taint(store, facts, [*talk.messages, *talk.notes]),
            guild=opened.owed.guild if opened.owed else "",
            is_administration=agent.tool_access.administration,
            question=AskedText(_find_question(opened, talk.messages), _find_own_words(opened)),
            delegator=await load_delegator(store, turn),
            operated=_find_operated(turn),
        ),
        prompt=TurnPrompt(
            segments=segments,
            max_output_tokens=max_output_tokens,
            sampling=demands.apply_sampling(agent.sampling),
            notes=tuple(talk.notes),
            memories=recalled.memories,
            keep_s=plan_keep_s(talk.pauses_s),
        ),
        demands=demands,
        speakers=talk.speakers,
        overdue=talk.overdue,
    )
    return context, talk.messages


def _for_administration(agent: Agent) -> Agent:
    """Returns the agent as it speaks about the administration: with the tools for that instead of its own, and
    bound to no sources: its documents say nothing about that.
    """
    instructions = replace(agent.instructions, answers_from=AnswersFrom.ANYTHING)
    return replace(agent, tool_access=replace(agent.tool_access, administration=True), instructions=instructions)


def _for_tasks(agent: Agent) -> Agent:
    """Returns the agent with the tools for tasks, whatever else it has."""
    access = agent.tool_access
    tools = (*access.tools, *(name for name in TASK_TOOLS if name not in access.tools))
    return replace(agent, tool_access=replace(access, tools=tools, pinned_tools=(*TASK_TOOLS, *access.pinned_tools)))


def _for_delegation(agent: Agent) -> Agent:
    """Returns the agent as it works on a task that another one gave it: it hands nothing on, and reads its own session,
    also where it takes part in rooms.
    """
    history = replace(agent.history, context=ContextStrategy.SESSION)
    return replace(agent, history=history, tool_access=replace(agent.tool_access, delegates_to=()))


def _find_operated(turn: Turn) -> OperatedGuild | None:
    """Returns the community from which the event came for which the turn is a run of a workflow. Only what a platform
    itself tells of names one: an event that somebody sent, or a run that somebody started, could claim any.
    """
    start = start_from_json(turn.options.get(STARTED))
    source = find_guild(start) if start and turn.principal.kind is PrincipalKind.LISTENER else None
    return OperatedGuild(*source) if source else None


async def load_delegator(store: Store, turn: Turn) -> Delegator | None:
    """Returns who gave the turn its task, with what was asked there; None where somebody asked it."""
    parent = turn.parent
    if parent is None:
        return None
    try:
        asked = await load_turn(store, parent.id)
    except NotFound:  # the chat was deleted meanwhile
        return Delegator(parent.id, parent.agent)
    return Delegator(parent.id, parent.agent, join_text(asked.trigger.parts))


def _check_results(opened: OpenTurn, messages: Sequence[PromptMessage]) -> None:
    """Raises InvalidInput where results of the asker's tools are left out, since nothing asked for them."""
    if opened.trigger.role is Role.TOOL and messages[-1:] and messages[-1].role is not Role.TOOL:
        raise InvalidInput(
            "The results answer no call of this conversation.",
            code="tool_result_unknown",
            fix="Send the assistant message with the calls before their results, with the ids as they came.",
        )


def _read_demands(facts: _TurnFacts) -> AnswerDemands:
    """Raises InvalidInput for what the agent or its model cannot do."""
    demands, agent = demands_from_json(facts.opened.turn.options), facts.agent
    if demands.tools.specs and not facts.model.capabilities.takes_tools:
        raise InvalidInput(
            f"The model of {agent.name} calls no tools.",
            code="tools_unsupported",
            fix="Leave `tools` out, or ask another agent.",
        )
    if demands.output is not None and agent.instructions.answers_from is AnswersFrom.SOURCES:
        raise InvalidInput(
            f"{agent.name} answers from its sources only, which a form would keep it from.",
            code="response_format_unsupported",
            why='each statement is held to what was read, and "I do not know" has to fit',
            fix="Ask without a form, or ask another agent.",
        )
    return demands


def _find_question(opened: OpenTurn, messages: Sequence[PromptMessage]) -> str:
    """Returns what was asked. Results of the asker's tools answer no question: it stands before them."""
    if opened.trigger.role is not Role.TOOL:
        return join_text(opened.trigger.parts)
    asked = (join_text(each.parts) for each in reversed(messages) if each.role is Role.USER and each.kind != "summary")
    return next(asked, "")


async def _changes_memory(facts: _TurnFacts) -> bool:
    """Whether the agent can say which memory it means."""
    allowed = await list_allowed(facts.agent, facts.generation.toolsets)
    return any(Effect.MEMORY in tool.spec.flow.effects for tool in allowed.values())


def choose_model_name(turn: Turn, agent: Agent) -> str:
    """Returns the name of the model: the one asked for, else the one that the router chose, else the agent's own."""
    return str(turn.options.get("model") or (turn.route.model if turn.route else agent.model))


async def _load_segments(facts: _TurnFacts) -> tuple[Segment, ...]:
    """The system prompt. Where the client keeps the history, the date stands in it and not behind a message."""
    agent, opened = facts.agent, facts.opened
    sources = ""
    if agent.instructions.answers_from is not AnswersFrom.ANYTHING:
        has_readers = opened.owed is not None and bool(opened.trigger.meta.get("speaker"))  # others on a platform
        allowed = await list_allowed(agent, facts.generation.toolsets)
        sources = source_rules(agent, allowed, is_short=facts.plans or has_readers)
    assemble = assemble_participant_prompt if facts.reads_transcript else assemble_system_prompt
    instructions = str(facts.options.get("instructions", ""))
    segments = assemble(agent, tool_rules=facts.tool_rules, instructions=instructions, sources=sources)
    if facts.is_supplied:
        return order_segments([*segments, Segment("date", facts.today, Stability.TURN)])
    return segments


def choose_account(opened: OpenTurn, agent: AgentName) -> AgentName | None:
    """Returns whose login acts for tools: nobody's for a question of several people, who may not all do the same."""
    if opened.owed is None:
        return agent
    return None if opened.owed.of_several else opened.owed.account


async def plan_tokens(
    agent: Agent, model: Model, toolsets: Iterable[Toolset], segments: Iterable[Segment], wanted: int | None = None
) -> tuple[int, int]:
    """Returns the tokens that are left for the history when system prompt, tools and the answer have theirs, and those
    for the answer, `wanted` or as many as it may have: at most half of what it shares with the history. Raises
    NeedsAttention when the model cannot even read what stands in every prompt.
    """
    most = min(agent.limits.max_output_tokens, model.capabilities.max_output_tokens or agent.limits.max_output_tokens)
    max_output = min(int(wanted or most), most)
    window, prompt = model.capabilities.context_tokens, sum(estimate_tokens(s.text) for s in segments)
    tools = 0
    if not uses_planning(agent.tool_access.planning, model.capabilities):  # plans have tools in no other prompt
        tools = await count_most_tokens(agent, toolsets)
    free = window - prompt - tools
    if free <= 0:
        raise NeedsAttention(
            f"The instructions of {agent.name} are longer than what its model can read.",
            code="prompt_too_large",
            why=f"System prompt {prompt}, tools {tools}, and {model.name} reads {window} tokens (estimated).",
            fix="Shorten the agent's files, lower its limits.max_tools, or give it a model that reads more.",
        )
    max_output = min(max_output, max(free // 2, 1))
    return free - max_output, max_output


async def _load_notes(store: Store, facts: _TurnFacts) -> list[PromptMessage]:
    opened = facts.opened
    notes = list(await load_subject_note(store, opened))
    is_scheduled = opened.turn.principal.kind is PrincipalKind.SCHEDULE
    if is_scheduled or (opened.owed and opened.owed.may_be_silent):
        notes.append(transient_note(SILENCE_NOTE))
    return [*notes, *plan_task(facts.agent, opened.turn.route, tool_rules=facts.tool_rules)]


async def _read_transcript(
    store: Store,
    facts: _TurnFacts,
    notes: list[PromptMessage],
    free_tokens: int,
    texts: BlockTextCache,
    past: HistoryCutoff | None,
) -> _Conversation:
    """For participants: the whole room as one text, in which the notes stand before the cue to speak."""
    opened, generation, can = facts.opened, facts.generation, facts.model.capabilities
    if facts.agent.reasoning or facts.plans:
        can = replace(can, prefill=False)  # Claude refuses a begun answer while it reasons, and one in a plan's form
    participant = ParticipantTurn(
        turn=opened.turn,
        trigger=opened.trigger,
        place=opened.place,
        owed=opened.owed,
        agent=facts.agent,
        agents=tuple(_fit_transcript(agent, generation.models) for agent in generation.agents.values()),
        is_archived=generation.archive.enabled and opened.owed is not None,
        room_tokens=free_tokens - sum(map(count_tokens, notes)),
        can=can,
        is_over=past is not None,
    )
    history, speakers, pauses_s = await load_transcript(store, participant, texts)
    dated = [transient_note(facts.today, "date")] if facts.agent.instructions.persona else []
    return _Conversation(insert_notes_before_cue(history, [*notes, *dated]), [], pauses_s, speakers)


def _fit_transcript(agent: Agent, models: Models) -> Agent:
    """Returns the agent with a transcript that its model can read: larger blocks would never be shown to it."""
    if agent.history.context is not ContextStrategy.TRANSCRIPT:
        return agent
    budget = agent.history.transcript
    try:
        window = models.get(agent.model).capabilities.context_tokens
    except NotFound:  # each question names another
        return agent
    return replace(agent, history=replace(agent.history, transcript=replace(budget, total=min(budget.total, window))))


async def _read_session(
    store: Store, facts: _TurnFacts, notes: list[PromptMessage], free_tokens: int, past: HistoryCutoff | None
) -> _Conversation:
    """For assistants: the messages of the session that fit, the date where no message tells it yet."""
    notes = [*notes, *await load_refused(store, facts.opened), *await _load_around(store, facts)]
    left = TokenBudget(free_tokens, sum(map(count_tokens, notes)))
    found = await load_history(store, facts.opened, facts.agent, left, past)
    history = limit_pictures(found.messages) if facts.model.capabilities.image_output else found.messages
    if not facts.is_supplied and not any(tells_date(message, facts.today) for message in history):
        notes.append(transient_note(facts.today, "date"))
    pauses_s = pauses_between(list_turn_times(found.read, facts.opened.turn.route))
    return _Conversation(history, notes, pauses_s, overdue=found.overdue)


async def _load_around(store: Store, facts: _TurnFacts) -> list[PromptMessage]:
    """Loads what others said just before, for an agent that was not in the talk."""
    opened, limit = facts.opened, facts.agent.history.recent_messages
    owed, trigger = opened.owed, opened.trigger
    if owed is None or not (owed.reply_to and trigger.meta.get("speaker") and limit):
        return []
    before = await load_surroundings(store, opened, tuple(facts.generation.agents), before=owed.reply_to, limit=limit)
    return [*before, *await load_answers(store, owed, opened.place, limit=limit)]


# --- foreign texts ----------------------------------------------------------------------------------------------------

_FORWARDED = "[forwarded message:"
_QUOTING = ("[in reply to ", "[pressed a button", "[chose, under your message ")
"""Marks of others' words in a question (`adapters/discord/messages/wording`, `engine/listener/interactions`)."""


async def _find_taint(store: Store, facts: _TurnFacts, messages: Sequence[PromptMessage]) -> frozenset[Taint]:
    """Returns the kinds of foreign text in `messages`, which are all that the model is sent. In transcripts and
    summaries nobody sees any more who wrote what, and from which texts an answer was made; the messages of the session
    still tell.
    """
    opened, is_transcript = facts.opened, facts.reads_transcript
    asker = opened.trigger.author.id
    taint = find_prompt_taint(messages, asker) | find_part_taint(opened.trigger.parts)
    if is_transcript and any(TEXT_FOLLOWS in join_text(message.parts) for message in messages):
        taint |= {Taint.DOCUMENT}
    if opened.turn.principal.kind in EVENT_KINDS or is_foreign_run(opened.turn.options):
        taint |= {Taint.TOOL}
    if facts.is_supplied and any(message.role is Role.TOOL for message in messages):
        taint |= {Taint.TOOL}
    if _quotes_others(opened, messages) or (is_transcript and _is_shared(opened)):
        taint |= {Taint.OTHERS}
    has_summary = any(message.kind == "summary" for message in messages)
    if has_summary or is_transcript:
        async with store.work(write=False) as work:
            stored = await work.messages.list_tail(opened.turn.session_id, limit=STORED_LIMIT)
        taint |= find_prompt_taint(to_prompt_messages(stored), asker)
        if has_summary and len(stored) == STORED_LIMIT:
            taint |= {Taint.TOOL}  # what else went into it is not known
    return taint


def _quotes_others(opened: OpenTurn, messages: Sequence[PromptMessage]) -> bool:
    """Whether somebody else is quoted now, or in a question of before, which may have got no answer that would tell. In
    a direct talk a quotation is of the asker or of the agent.
    """
    owed = opened.owed
    is_merged = owed is not None and len(owed.answers) > 1
    marks = (_FORWARDED, *_QUOTING) if _is_shared(opened) else (_FORWARDED,)
    said = (join_text(message.parts) for message in messages if message.role is Role.USER)
    return is_merged or any(mark in text for text in (opened.trigger.text, *said) for mark in marks)


_PEOPLE = (PrincipalKind.PLATFORM_USER, PrincipalKind.WEB_USER, PrincipalKind.LOCAL)


def _find_own_words(opened: OpenTurn) -> str:
    """Returns what the asker wrote, without the line that quotes the message which it answers; empty where somebody
    else, or a program, may have written some of it.
    """
    trigger, owed = opened.trigger, opened.owed
    is_sure = owed is None or not (len(owed.answers) > 1 or owed.of_several or owed.is_unsure)
    texts = [part.text for part in trigger.parts if isinstance(part, TextPart)]
    if not is_sure or trigger.author.is_bot or opened.turn.principal.kind not in _PEOPLE:
        return ""
    if len(texts) != len(trigger.parts) or find_message_taint(trigger):
        return ""
    said = "\n".join(texts)
    # The line ends where what was quoted does: its white space is blanks.
    return said.partition("\n")[2] if said.startswith(_QUOTING[0]) else said


def _is_shared(opened: OpenTurn) -> bool:
    return bool(opened.trigger.meta.get("speaker")) or (opened.owed is not None and bool(opened.owed.guild))
