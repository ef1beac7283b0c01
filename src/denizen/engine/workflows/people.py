"""The nodes that wait: for a time, for a yes of people, or for the owner's words.

What is waited for is written down in the store, under an id that derives from the run and the node. So a run that is
taken up again finds it there, and waits for the rest of the time only. Meanwhile the run's own time stands still.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import anyio

from denizen.domain.approval import Approval, ApprovalGrant, ApprovalRule, ApprovalStatus, Deciders
from denizen.domain.errors import DenizenError, NotAllowed
from denizen.domain.ids import CallId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.question import QuestionStatus
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.tool import Tier, ToolCall, ToolSpec
from denizen.domain.verdict import Decision, Verdict
from denizen.domain.workflow_values import show
from denizen.engine.gate.approvals import PendingCall
from denizen.engine.loop.services import EngineServices
from denizen.ports.toolset import CallScope

POLL_S = 2.0
"""How often one looks for an answer of the owner, which another process may have taken."""
LONGEST_SLEEP_S = 3600.0
"""A wait looks at the clock at least so often: somebody may have set it."""

Sleep = Callable[[float], Awaitable[None]]

_APPROVAL = ToolSpec(
    "workflow_approval",
    "Goes on in a workflow.",
    {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    tier=Tier.LIMITED,
    source="workflow",
    destructive=True,  # so that a yes for an hour is one for this very question
)
_SYSTEM = Principal(PrincipalKind.LOCAL, "workflow", "workflow", frozenset({RoleName.OWNER}))


class WaitingNodes:
    """Waits for times and people."""

    def __init__(self, services: EngineServices, sleep: Sleep) -> None:
        self._services = services
        self._sleep = sleep

    async def wait(self, kind: str, scope: CallScope, settings: JsonObject, until: datetime) -> JsonObject:
        """Waits in a race for what a node of this type waits for, and returns its outputs; for a fault `fault`, `code`,
        `fix`.
        """
        try:
            match kind:
                case "wait":
                    await self._sleep_until(scope, until)
                    return {}
                case "approval":
                    return await self.ask_approval(scope, settings)
                case _:
                    return await self.ask_owner(scope, settings, until)
        except DenizenError as error:
            if error.code == STORE_MOVED:  # it is waited for again where the store is
                raise
            return {"fault": error.message, "code": error.code, "fix": error.fix}

    async def pause(self, scope: CallScope, until: datetime) -> None:
        """Waits for a time."""
        async with self._calling(scope):
            await self._sleep_until(scope, until)

    async def _sleep_until(self, scope: CallScope, until: datetime) -> None:
        async with self._away(scope):
            while (left_s := (until - self._services.clock.now()).total_seconds()) > 0:
                await self._sleep(min(left_s, LONGEST_SLEEP_S))

    async def ask_approval(self, scope: CallScope, settings: JsonObject) -> JsonObject:
        """Returns whether it was a yes, who decided and what they wrote. Raises NotAllowed where nobody can be asked,
        and LimitExceeded when too many questions wait.
        """
        question = show(settings["question"])
        rule = ApprovalRule(
            deciders=Deciders.ROLE, role=show(settings["role"]), timeout_s=float(show(settings["timeout"]) or 0)
        )
        verdict = Verdict(Decision.ASK, Tier.LIMITED, question, "workflow", rule=rule)
        call = ToolCall(CallId(scope.options.idempotency_key), _APPROVAL.name, {"question": question})
        found = await self._services.approvals.ask(PendingCall(_APPROVAL, call, scope, verdict))
        match found:
            case None:
                raise NotAllowed(
                    "Nobody can be asked here.",
                    code="approval_nobody",
                    why="the run was started by a program that waits for nobody",
                    fix="Start it where people can be asked, or take the approval out.",
                )
            case ApprovalGrant():
                return {"approved": True, "by": found.given_by, "note": ""}
            case Approval():
                decision = found.decision
                is_yes = found.status is ApprovalStatus.APPROVED
                return {"approved": is_yes, "by": decision.name or decision.by, "note": decision.note}

    async def ask_owner(self, scope: CallScope, settings: JsonObject, until: datetime) -> JsonObject:
        """Returns the owner's answer; none when there was none in time, or the question was dismissed. Raises as
        `QuestionInbox.ask`.
        """
        inbox, clock = self._services.questions, self._services.clock
        asked = await inbox.ask(scope, show(settings["question"]))
        async with self._away(scope):
            while asked.status is QuestionStatus.OPEN and (left_s := (until - clock.now()).total_seconds()) > 0:
                await self._sleep(min(left_s, POLL_S))
                async with self._services.store.work(write=False) as work:
                    asked = await work.questions.find(asked.id) or replace(asked, status=QuestionStatus.LOST)
        if asked.status is QuestionStatus.OPEN:
            await inbox.dismiss(asked.id, _SYSTEM)
        return {"answered": bool(asked.reply.answer), "text": asked.reply.answer}

    async def withdraw(self, scope: CallScope) -> None:
        """Nobody waits any more for what was asked in this scope."""
        await self._services.approvals.withdraw(scope.options.idempotency_key)
        await self._services.questions.withdraw(scope.options.idempotency_key)

    async def race(self, scope: CallScope, waits: Mapping[str, Callable[[], Awaitable[Json]]]) -> Json:
        """Waits side by side until the first of them has ended. Returns its name and its result; the others can be
        waited for again.
        """
        ended: list[JsonObject | DenizenError] = []

        async def run(name: str, wait: Callable[[], Awaitable[Json]]) -> None:
            try:
                ended.append({"path": name, "row": await wait()})
            except DenizenError as error:  # out of the group it would come in a group of errors
                ended.append(error)
            group.cancel_scope.cancel()

        async with AsyncExitStack() as calls:
            for _ in waits:  # all of them stay calls until the last is over: else the first would leave the queue again
                await calls.enter_async_context(self._calling(scope))
            async with anyio.create_task_group() as group:
                for name, wait in waits.items():
                    group.start_soon(run, name, wait)
        if isinstance(ended[0], DenizenError):
            raise ended[0]
        return ended[0]

    @asynccontextmanager
    async def _calling(self, scope: CallScope) -> AsyncGenerator[None]:
        pause = self._services.approvals.pauses.find(scope.turn_id)
        if pause is None:
            yield
        else:
            async with pause.calling():
                yield

    @asynccontextmanager
    async def _away(self, scope: CallScope) -> AsyncGenerator[None]:
        """A call of the run waits until the block ends."""
        pause = self._services.approvals.pauses.find(scope.turn_id)
        if pause is None:
            yield
        else:
            async with pause.away():
                yield


def deadline(now: datetime, seconds: Json) -> datetime:
    return now + timedelta(seconds=float(show(seconds) or 0))


def node_key(scope: CallScope, path: str) -> str:
    """Returns what names the question of a node, in every process."""
    return derive("flow", scope.turn_id, path)
