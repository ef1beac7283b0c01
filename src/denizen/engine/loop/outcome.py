"""The outcome of a turn: its answer with proved citations, or its failure; its last event and its log line.

A question that the documents did not answer is stored as a gap. Called by `turn`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from denizen.domain.agent import AnswersFrom
from denizen.domain.attachments import collect_extras, describe_cards, list_pictures
from denizen.domain.attribution import is_refusal
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.events import TurnFinished
from denizen.domain.gap import MAX_CHARS, GapKind, KnowledgeGap
from denizen.domain.ids import derive
from denizen.domain.numbers import find_numbers
from denizen.domain.principal import PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.ranking import topic_words
from denizen.domain.record import record
from denizen.domain.tool import Taint
from denizen.domain.turn import Turn, TurnFailure, TurnStatus
from denizen.engine.knowledge.citations import TurnEvidence
from denizen.engine.knowledge.proof import AnswerProver, ProvedAnswer, TurnProofs
from denizen.engine.loop.step_record import ReplyExtras
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.memory.keeper import is_private
from denizen.engine.prompt.context import TurnContext
from denizen.ports.store import UnitOfWork

_log = logging.getLogger("denizen.turn")


def open_proofs(prover: AnswerProver | None, context: TurnContext, history: Sequence[PromptMessage]) -> TurnProofs:
    """Returns what proves the citations in the texts of a turn. Without a prover the texts stay as they are."""
    evidence, agent = TurnEvidence(history, context.question), context.agent
    if prover is None:
        return TurnProofs(evidence)
    return prover.open(
        evidence,
        agent.name,
        style=agent.instructions.style.citations,
        read_own=context.generation.knowledge.read_own,
        guild=context.scope.guild,
    )


NOT_IN_SOURCES = "I do not know. I did not find the answer in my sources."
_SHORT_WORDS = 3
_LIST_MARK = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?]) +|\n+")


def hold_to_sources(context: TurnContext, steps: TurnSteps, answer: ProvedAnswer) -> ProvedAnswer:
    """Returns the answer, or that the agent does not know: where its answer was the mark for that, or a sentence around
    the mark; for an agent that answers from its sources only, where it has read none; and for one of those, and a small
    model that has passages before it, where nothing has any of the figures that it tells. Small talk needs none, nor
    does what it has done.
    """
    if any(each.doubt is None for each in answer.citations):
        return answer
    if answer.is_unknown:
        says_nothing = len(_SENTENCE_END.split(answer.text.strip())) == 1 and not is_refusal(answer.text)
        return _deny_knowing(steps) if says_nothing else answer
    topic = topic_words(context.question)
    is_bound = context.agent.instructions.answers_from is AnswersFrom.SOURCES
    if topic and Taint.DOCUMENT in steps.taint:
        # A small model would rather tell some year than none. It may write "one" and mean nothing by it.
        invents = context.model.capabilities.small and steps.evidence.found > 0
        text = _LIST_MARK.sub("", answer.text)
        figures = [each for each in find_numbers(text) if is_bound or (invents and not each.is_word)]
        return _deny_knowing(steps) if figures and not steps.evidence.supports_figures(answer.text, figures) else answer
    is_small_talk = not topic or ("?" not in context.question and len(topic) < _SHORT_WORDS)
    if is_small_talk or not is_bound or answer.citations:
        return answer
    figures = find_numbers(answer.text)
    tells_deed = steps.has_acted and (not figures or steps.evidence.supports_figures(answer.text, figures))
    return answer if tells_deed else _deny_knowing(steps)


def _deny_knowing(steps: TurnSteps) -> ProvedAnswer:
    steps.replace_answer(NOT_IN_SOURCES)
    return ProvedAnswer(NOT_IN_SOURCES, is_unknown=True)


async def keep_answer(
    work: UnitOfWork, turn: Turn, context: TurnContext, evidence: TurnEvidence, answer: ProvedAnswer
) -> None:
    """Writes the citations of an answer, and a gap where the documents had none. Doing it again changes nothing."""
    await work.citations.add(turn.id, answer.citations)
    is_proved = any(each.doubt is None for each in answer.citations)
    kind = GapKind.UNKNOWN if answer.is_unknown else None
    if kind is None and evidence.searches and not evidence.found and not is_proved:
        kind = GapKind.NOT_FOUND
    question = " ".join(context.question.split())[:MAX_CHARS]
    if kind is None or not question or not turn.principal.kind.asks:
        return
    private = turn.principal.kind is not PrincipalKind.PLATFORM_USER or await is_private(work, context.scope)
    await work.gaps.add(
        KnowledgeGap(
            id=derive("gap", turn.id)[:14],
            agent=turn.agent,
            question=question,
            asker=turn.principal.key,
            place=context.scope.place,
            is_private=private,
            kind=kind,
            turn_id=turn.id,
            created_at=turn.closed_at or turn.opened_at,
        )
    )


@record
class TurnOutcome:
    """A reply or a failure."""

    status: TurnStatus
    reply: str = ""
    failure: TurnFailure | None = None
    answer: ProvedAnswer | None = None
    """The answer that the reply was made of, with its citations."""
    error: DenizenError | None = None
    """For the log."""


def describe_failure(error: DenizenError | TimeoutError) -> TurnOutcome:
    """Returns the outcome of a turn that an error ended."""
    if isinstance(error, TimeoutError):
        error = Unavailable("This took too long, so I stopped.", code="turn_timeout")
    text = error.message if not error.why else f"{error.message} ({error.why})"
    failure = TurnFailure(text, error.code, error.family, error.fix)
    return TurnOutcome(TurnStatus.FAILED, failure=failure, error=error)


def finished_event(turn: Turn, extras: ReplyExtras) -> TurnFinished:
    """Returns the last event of a turn, from its record and what came besides its text."""
    shown = collect_extras(extras.shown)
    return TurnFinished(
        turn_id=turn.id,
        status=turn.status,
        reply=turn.result.reply,
        usage=turn.result.usage,
        failure=turn.result.failure,
        images=(*list_pictures(shown), *extras.images),
        cards=describe_cards(shown),
        reasoning=extras.thoughts,
        calls=extras.calls,
    )


def log_turn(turn: Turn, steps: TurnSteps | None, duration_ms: int, error: DenizenError | None = None) -> None:
    """Writes the log line of a turn, with nothing of what was said. `error` is what it failed by: what whoever runs
    Denizen can mend is a warning of its own.
    """
    if isinstance(error, Unavailable | NeedsAttention):
        _log.warning("a turn failed: %s", error.message, extra=error.fields)
    usage, failure = turn.result.usage, turn.result.failure
    _log.info(
        "turn",
        extra={
            "turn": turn.id,
            "agent": turn.agent,
            "model": turn.result.model,
            "status": str(turn.status),
            "failure": failure.code if failure else "",
            "route": turn.route.complexity.value if turn.route else "",
            "steps": steps.number if steps else 0,
            "calls": steps.call_count if steps else 0,
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
            "duration_ms": duration_ms,
            **({"context": error.context} if error and error.context else {}),
        },
    )
