"""What becomes of the texts of a turn: what they cite is proved (`knowledge/proof`), and a question that the documents
did not answer is kept as a gap. Called by `turn`.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.gap import MAX_CHARS, Gap, GapKind
from denizen.domain.ids import derive
from denizen.domain.principal import PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import Turn
from denizen.engine.knowledge.evidence import Evidence
from denizen.engine.knowledge.proof import Answer, Proofs, Prover
from denizen.engine.memory import is_private
from denizen.engine.services import TurnContext
from denizen.ports.store import UnitOfWork

PEOPLE = frozenset({PrincipalKind.PLATFORM_USER, PrincipalKind.WEB_USER, PrincipalKind.API_KEY, PrincipalKind.LOCAL})


def open_proofs(prover: Prover | None, context: TurnContext, history: Sequence[PromptMessage]) -> Proofs:
    """For the texts of a turn. Without a prover they stay as they are."""
    evidence, agent = Evidence(history), context.agent
    if prover is None:
        return Proofs(evidence)
    return prover.open(evidence, agent.name, style=agent.style.citations, read_own=context.generation.read_own)


async def keep_answer(work: UnitOfWork, turn: Turn, context: TurnContext, evidence: Evidence, answer: Answer) -> None:
    """With the end of the turn; twice is once."""
    await work.citations.add(turn.id, answer.citations)
    kind = _kind_of_gap(evidence, answer)
    question = " ".join(context.question.split())[:MAX_CHARS]
    if kind is None or not question or turn.principal.kind not in PEOPLE:
        return
    private = turn.principal.kind is not PrincipalKind.PLATFORM_USER or await is_private(work, context.scope)
    await work.gaps.add(
        Gap(
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


def _kind_of_gap(evidence: Evidence, answer: Answer) -> GapKind | None:
    if answer.is_unknown:
        return GapKind.UNKNOWN
    is_proved = any(each.doubt is None for each in answer.citations)
    return GapKind.NOT_FOUND if evidence.searches and not evidence.found and not is_proved else None
