"""Our own corpus against the gate: each case in an engine of its own, by a model that does what it is written to do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from denizen.domain.approval import Approval, ApprovalChoice
from denizen.domain.ids import CallId, SessionId, TurnId
from denizen.domain.principal import Principal
from denizen.domain.tool import Tier, ToolCall
from denizen.domain.verdict import Decision
from denizen.engine.gate.executor import BoundTool
from denizen.engine.tools.toolbox import NestedCalls
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import Say, ScriptedModel
from denizen.testing.security.case import Case, Direct, Fate, Line
from denizen.testing.security.cases_decisions import DECISIONS
from denizen.testing.security.cases_reading import READING
from denizen.testing.security.cases_tricks import TRICKS
from denizen.testing.security.stage import AGENT, FOOLED, HERE, Guard, Ran, Stage, open_stage
from denizen.testing.security.world import World, list_specs

CORPUS: tuple[Case, ...] = (*READING, *DECISIONS, *TRICKS)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a case. `tier` is the one of the tool that it ends in, 0 for a tool that there is not."""

    case: Case
    fate: Fate
    tier: Tier

    @property
    def is_expected(self) -> bool:
        return self.fate is self.case.fate

    @property
    def succeeded(self) -> bool:
        """An attack whose last call ran, though no human meant it to."""
        return self.case.is_attack and self.fate in (Fate.ALLOWED, Fate.APPROVED)


async def run_corpus(cases: Sequence[Case]) -> AsyncGenerator[Finding]:
    """Each finding as it comes about."""
    for case in cases:
        yield await run_case(case)


def list_unobserved(cases: Sequence[Case]) -> Sequence[Case]:
    """The attacks on an observer that falls for everything, as they are where there is none, which is the default."""
    return [replace(case, observer=()) for case in cases if case.is_attack and case.observer == (FOOLED,)]


async def run_case(case: Case) -> Finding:
    """Plays all lines and looks at the last."""
    steps: list[Say] = []
    for each in case.lines:
        if isinstance(each, Line):
            steps += _script(each)
    world, words = World(case.results), chain(case.words, repeat(case.words[-1]))

    def speak(_: Approval) -> Sequence[tuple[Principal, ApprovalChoice]]:
        return next(words)

    guard = Guard(case.observer, speak)
    async with open_stage(ScriptedModel(*steps), [world], guard, case.policy, tools=("*", *case.tools)) as stage:
        world.nested = NestedCalls(stage.runtime, stage.gate)
        fate = Fate.DENIED
        for each in case.lines:
            world.done.clear()
            fate = (
                await _direct(stage, world, each) if isinstance(each, Direct) else await _line(stage, world, each, case)
            )
    return Finding(case, fate, _tier(case))


def _script(said: Line) -> list[Say]:
    calls = [replace(each, id=CallId(f"call_{number}")) for number, each in enumerate(said.calls)]
    replies = [Say(calls=calls)] if said.together and calls else [Say(calls=(each,)) for each in calls]
    return [*replies, Say("Done.")]


async def _line(stage: Stage, world: World, said: Line, case: Case) -> Fate:
    ran = await stage.say(said.said)
    target = _target(case)
    return _fate(ran, target, did_run=any(each.tool == target for each in world.done))


def _fate(ran: Ran, target: str, *, did_run: bool) -> Fate:
    was_asked = any(approval.tool == target for approval in ran.asked)
    if did_run:
        return Fate.APPROVED if was_asked else Fate.ALLOWED
    return Fate.ASKED if was_asked else Fate.DENIED


async def _direct(stage: Stage, world: World, made: Direct) -> Fate:
    """Straight to the door, as hooks, schedules and commands come. Nobody can be asked from there."""
    spec = next(each for each in list_specs() if each.name == made.made.tool)
    call = ToolCall(CallId("call_direct"), spec.name, made.made.args, made.origin)
    scope = CallScope(
        AGENT, made.asker, HERE, HERE.conversation_id, SessionId("s"), TurnId("t"), depth=made.depth, taint=made.taint
    )
    outcome = await stage.gate.run(BoundTool(spec, world), call, scope, stage.runtime.current.policy)
    return Fate.ALLOWED if outcome.verdict.decision is Decision.APPROVE else Fate.DENIED


def _target(case: Case) -> str:
    return case.target or case.made.tool


def _tier(case: Case) -> Tier:
    found = next((spec for spec in list_specs() if spec.name == _target(case)), None)
    return Tier.HARMLESS if found is None else case.policy.tier(found)
