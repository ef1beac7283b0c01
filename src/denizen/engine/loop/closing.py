"""The end of a turn: what happened is written down in one transaction, and whoever watches is told.

A turn ends once, whatever happens: when its steps cannot be written, when the store is away for a while, when its run
is over although the store has it open. Called by `turn`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

import anyio

from denizen.domain.delivery import Delivery
from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.events import Notice
from denizen.domain.ids import TurnId
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.turn import Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.workflow_run import STARTED
from denizen.engine.intake.opening import OpenTurn, load_turn
from denizen.engine.knowledge.proof import ProvedAnswer
from denizen.engine.loop.outcome import TurnOutcome, describe_failure, finished_event, keep_answer, log_turn
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.step_record import ReplyExtras
from denizen.engine.loop.steps import TurnSteps

PATIENCE_S = 60.0
"""How long the end of a turn waits for a store that is locked or away: its answer has been paid for."""
PAUSE_S = 0.5

_log = logging.getLogger("denizen.turn")


class TurnCloser:
    """Closes turns."""

    def __init__(self, services: EngineServices) -> None:
        self._services = services

    async def close_somehow(self, opened: OpenTurn, outcome: TurnOutcome, steps: TurnSteps | None) -> Turn:
        """Closes the turn, even when what happened in it cannot be written down. Raises DenizenError for a store that
        stays away.
        """
        try:
            return await self.close(opened, outcome, steps)
        except DenizenError:
            raise
        except Exception:  # noqa: BLE001 - the boundary of a turn
            _log.exception("turn could not be recorded", extra={"turn": opened.turn.id})
            lost = TurnOutcome(TurnStatus.FAILED, failure=TurnFailure("What happened could not be recorded.", "bug"))
            return await self.close(opened, lost, None)

    async def close(self, opened: OpenTurn, outcome: TurnOutcome, steps: TurnSteps | None) -> Turn:
        """Writes down the outcome with its steps and what is owed to a platform, and tells those who watch. Raises
        Unavailable for a store that stays away.
        """
        closed = replace(
            opened.turn,
            status=outcome.status,
            closed_at=self._services.clock.now(),
            result=TurnResult(
                reply=outcome.reply,
                failure=outcome.failure,
                model=steps.answered_by if steps else "",
                usage=steps.usage if steps else opened.turn.result.usage,
            ),
        )
        extras = steps.extras if steps else ReplyExtras()
        owed = await self._services.outbox.plan(replace(opened, turn=closed), extras.rows)
        await self._write_end(closed, steps, owed, outcome.answer)
        if opened.owed:
            self._services.outbox.wake(opened.place.platform, opened.owed.account)
        self._services.live.publish(closed.id, finished_event(closed, extras))
        return closed

    async def _write_end(
        self, closed: Turn, steps: TurnSteps | None, owed: Sequence[Delivery], answer: ProvedAnswer | None
    ) -> None:
        clock = self._services.clock
        until_s = clock.monotonic_s() + PATIENCE_S
        while True:
            try:
                async with self._services.store.work() as work:
                    if steps:
                        await steps.write(work)
                    is_wanted = not (await work.turns.get(closed.id)).status.is_final
                    await work.turns.close(closed)
                    if steps and answer:
                        await keep_answer(work, closed, steps.context, steps.evidence, answer)
                    is_workflow = STARTED in closed.options  # which may end while people are asked on another way
                    if closed.status is not TurnStatus.DONE or is_workflow:
                        await self._services.approvals.end_turn(work, closed)
                    if is_workflow:
                        await self._services.questions.end_turn(work, closed)
                    if owed and is_wanted:  # else it ended meanwhile: its question was asked anew, or deleted
                        await work.outbox.add(owed)
                    if steps:
                        await steps.audit(work)
            except Unavailable as error:
                if clock.monotonic_s() >= until_s or error.code == STORE_MOVED:
                    raise
                self._services.live.publish(closed.id, Notice(f"{error.message} Trying again."))
            else:
                return
            await anyio.sleep(PAUSE_S)

    async def look_after(self, key: TurnId, pending: Collection[str]) -> Turn:
        """Returns a turn as it is recorded. One that is open although its run is not pending is closed."""
        opened = await load_turn(self._services.store, key)
        if opened.turn.status.is_final or key in pending:
            return opened.turn
        outcome = await self._find_end(opened.turn)
        closed = await self.close(opened, outcome, None)
        log_turn(closed, None, 0, outcome.error)
        return closed

    async def _find_end(self, turn: Turn) -> TurnOutcome:
        """The end of a turn whose run is over, although the store has it open. A run succeeds after the store has the
        turn's end: then the store is an older copy that was put back, and the question was answered.
        """
        try:
            await self._services.durable.wait(turn.id)
        except DenizenError:
            lost = Unavailable(
                "This turn was interrupted and could not be finished.", code="turn_lost", fix="Ask again."
            )
            return describe_failure(lost)
        _log.warning("the database is older than the durable log: not answered again", extra={"turn": turn.id})
        failure = TurnFailure("This was answered before the database was put back to an older copy.", "turn_answered")
        return TurnOutcome(TurnStatus.CANCELLED, failure=failure)


async def settle(turn: Turn, steps: TurnSteps | None) -> None:
    """Counts what a stopped turn has cost."""
    try:
        with anyio.CancelScope(shield=True):
            if steps:
                await steps.settle()
    except DenizenError as error:
        if error.code == STORE_MOVED:  # it goes on elsewhere, and is counted there
            return
        _log.warning("a stopped turn was not counted: %s", error.message, extra={"turn": turn.id, **error.fields})
