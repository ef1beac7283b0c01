"""Runs the hooks of turns: before the model is asked, and after the answer is recorded.

A hook is a call like any other: through the gate, in the name of whoever asked, with its origin in the record and in
the audit log. It may use every tool that is loaded. What fails is logged, and the next one goes on. Those before a turn
are steps of its durable run; those after it are a run of their own, which no answer waits for. Killed at any point,
either goes on behind the last hook that ended. People are asked about a call only while the asker waits for the turn;
after it, a call that would need them is denied.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, cast

from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.hook import RESPONSE, Hook, Hooks, fill_args, is_plain, list_variables
from denizen.domain.ids import CallId, TurnId, derive, derive_call_key
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Role, TextPart
from denizen.domain.principal import PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.taint import find_call_taint, find_message_taint, taint_from_json
from denizen.domain.tool import Origin, Taint, Tier, ToolCall, ToolResult
from denizen.domain.turn import CallRecord, Turn, TurnResult, TurnStatus
from denizen.domain.usage import Usage, usage_from_json
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.domain.words import truncate
from denizen.engine.audit.audit_log import call_event
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.hooks.skip_rule import find_match
from denizen.engine.intake.opening import HOOKED, VARIABLES, OpenTurn, load_turn
from denizen.engine.loop.services import EngineServices
from denizen.engine.loop.step_record import LATEST, nested_calls_from_json, outcome_from_json, outcome_to_json
from denizen.engine.loop.steps import MAX_INNER
from denizen.engine.prompt.context import choose_account, load_delegator
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.engine.tools.toolbox import list_all
from denizen.ports.toolset import CallOptions, CallScope, CallTrail, Delegator
from denizen.skill.context import quote_untrusted

WORKFLOW = "hooks"
"""The durable run of the hooks after a turn. Its name is stored; changing it would orphan runs that are under way."""

BEFORE = -1_000_000
"""The position of the first hook before a turn among the calls from before the first request."""

MAX_OUTPUT_CHARS = 8000
"""How much of an output stands in front of a prompt: a small model must be able to read it."""

RULE = "\n\n---\n\n"
"""Divides outputs, and the last of them from the prompt, before which a part of a message ends its line."""

FOREIGN = frozenset({Taint.OTHERS, Taint.TOOL})
"""The taint of a variable of which nobody knows what went into it."""

_log = logging.getLogger("denizen.hooks")


@record
class HookRun:
    """A hook that ran, or was not allowed to. `is_match`: its output matches its `skip_if`."""

    hook: Hook
    outcome: CallOutcome
    taint: frozenset[Taint]
    is_match: bool = False
    usage: Usage = field(default_factory=Usage)

    @property
    def output(self) -> str:
        """Its output; empty for one that failed."""
        return _find_output(self.outcome)


@record
class HooksBefore:
    """The outcome of the hooks before a turn. `opened` has what they cost, `preface` what stands in front of the
    prompt.
    """

    opened: OpenTurn
    preface: PromptMessage | None = None
    is_skipped: bool = False


@record(kw_only=True)
class _Stage:
    """The hooks on one side of a turn, with what they may tell, and where their calls stand in its record."""

    name: str
    hooks: Sequence[Hook]
    opened: OpenTurn
    generation: Generation
    variables: Mapping[str, str]
    taint: Mapping[str, frozenset[Taint]]
    """The taint of each variable; one that has none is missing."""
    step: int
    first: int
    delegator: Delegator | None

    @property
    def turn(self) -> Turn:
        return self.opened.turn


def _find_hooks(generation: Generation, turn: Turn) -> Hooks:
    return generation.find_hooks(turn.agent, turn.principal, is_delegated=turn.parent is not None)


class HookRunner:
    """One of a process."""

    def __init__(self, runtime: Runtime, services: EngineServices) -> None:
        self._runtime = runtime
        self._services = services
        services.durable.register(WORKFLOW, self._run_after)

    # --- before a turn -----------------------------------------------------------------------------------------------

    async def run_before(self, opened: OpenTurn, generation: Generation) -> HooksBefore:
        """Runs the hooks before the turn, as steps of its run, up to the first whose output matches its `skip_if`. Only
        a schedule gets to read what they put out.
        """
        turn = opened.turn
        if not turn.options.get(HOOKED):
            return HooksBefore(opened)
        variables = _read_variables(turn)
        stage = _Stage(
            name="before",
            hooks=await self._fix("before", _find_hooks(generation, turn).before),
            opened=opened,
            generation=generation,
            variables=variables,
            taint=_find_foreign(variables),
            step=0,
            first=BEFORE,
            delegator=await load_delegator(self._services.store, turn),
        )
        runs = await self._run(stage)
        usage = sum((run.usage for run in runs), turn.result.usage)
        opened = replace(opened, turn=replace(turn, result=TurnResult(usage=usage)))
        if runs and runs[-1].is_match:
            about = {"turn": turn.id, "agent": turn.agent, "tool": runs[-1].hook.tool}
            _log.info("a hook skipped the turn", extra=about)
            return HooksBefore(opened, is_skipped=True)
        taint = frozenset[Taint]().union(*(run.taint for run in runs if run.output))
        return HooksBefore(opened, _write_preface(turn, [(run.hook.tool, run.output) for run in runs], taint))

    # --- after a turn ------------------------------------------------------------------------------------------------

    async def submit_after(self, turn: Turn) -> None:
        """Starts the run of the hooks after a turn that has an answer. Starting it twice is once. A fault is a line in
        the log: the turn is over.
        """
        if not turn.options.get(HOOKED) or turn.status is not TurnStatus.DONE:
            return
        try:
            await self._services.durable.submit(WORKFLOW, hook_run_id(turn.id), {"turn_id": turn.id})
        except DenizenError as error:
            _log.warning("hooks after a turn not begun: %s", error.message, extra={"turn": turn.id, **error.fields})

    async def finish_after(self, turn_id: TurnId) -> None:
        """Waits for the hooks after a turn, for a process that ends with it. What cannot be waited for goes on in
        another one.
        """
        durable = self._services.durable
        with suppress(DenizenError):
            await durable.wait(turn_id)
            async with self._services.store.work(write=False) as work:
                turn = await work.turns.get(turn_id)
            if turn.options.get(HOOKED) and turn.status is TurnStatus.DONE:
                await durable.wait(hook_run_id(turn_id))

    async def _run_after(self, payload: JsonObject) -> Json:
        store = self._services.store
        try:
            opened = await load_turn(store, TurnId(str(payload["turn_id"])))
        except NotFound:
            return {"status": "forgotten"}
        turn = opened.turn
        if turn.status is not TurnStatus.DONE:  # it ended otherwise meanwhile, in another process
            return {"status": turn.status}
        async with self._runtime.lease() as generation:
            hooks = await self._fix("after", _find_hooks(generation, turn).after)
            if not hooks:
                return {"status": "none"}
            async with store.work(write=False) as work:
                step = max((each.number for each in await work.turns.list_steps(turn.id)), default=0) + 1
                messages = await work.messages.list_tail(turn.session_id, limit=LATEST)
            variables = _read_variables(turn)
            own = [find_message_taint(each) for each in messages if each.turn_id == turn.id]
            stage = _Stage(
                name="after",
                hooks=hooks,
                opened=opened,
                generation=generation,
                variables={**variables, RESPONSE: turn.result.reply},
                taint={**_find_foreign(variables), RESPONSE: frozenset[Taint]().union(*own) if own else FOREIGN},
                step=step,
                first=0,
                delegator=await load_delegator(store, turn),
            )
            return {"status": "done", "hooks": len(await self._run(stage))}

    # --- running -----------------------------------------------------------------------------------------------------

    async def _fix(self, name: str, hooks: Sequence[Hook]) -> Sequence[Hook]:
        """Returns the hooks as they were when the run came here first: a run that is taken up again has to take the
        same steps, whatever the configuration says by now.
        """

        async def tell() -> Json:
            return [{"tool": each.tool, "args": dict(each.args), "skip_if": each.skip_if} for each in hooks]

        rows = cast("list[dict[str, Any]]", await self._services.durable.step(f"hooks:{name}", tell))
        return [Hook(**row) for row in rows]

    async def _run(self, stage: _Stage) -> list[HookRun]:
        """Runs the hooks one after another, and writes down each that ran."""
        runs: list[HookRun] = []
        for number, hook in enumerate(stage.hooks):
            position = stage.first + number
            row = cast(
                "dict[str, Any]",
                await self._services.durable.step(
                    f"hook:{stage.name}:{number}", self._plan_step(stage, hook, position)
                ),
            )
            run = HookRun(
                hook,
                outcome_from_json(row),
                taint_from_json(row["taint"]),
                row["is_match"],
                usage_from_json(row["observed"]),
            )
            await self._write(stage, position, run, row)
            if run.outcome.state != "done":
                self._tell_failure(stage, number, run)
            runs.append(run)
            if run.is_match:
                break
        return runs

    def _plan_step(self, stage: _Stage, hook: Hook, position: int) -> Callable[[], Awaitable[Json]]:
        key = derive_call_key(stage.turn.id, stage.step, position)
        read = [stage.taint[name] for name in list_variables(hook.args) if name in stage.taint]
        scope = CallScope(
            agent=stage.turn.agent,
            principal=stage.turn.principal,
            place=stage.opened.place,
            session_id=stage.turn.session_id,
            turn_id=stage.turn.id,
            account=choose_account(stage.opened, stage.turn.agent),
            guild=stage.opened.owed.guild if stage.opened.owed else "",
            taint=frozenset[Taint]().union(*read),
            delegator=stage.delegator,
            options=CallOptions(idempotency_key=key),
            trail=CallTrail(inner=[]),
        )
        call = ToolCall(CallId(key), hook.tool, fill_args(hook.args, stage.variables), Origin.HOOK)

        async def act() -> Json:
            outcome, taint = await self._call(call, scope, stage.generation)
            output = outcome.result.text
            is_match = bool(hook.skip_if) and outcome.state == "done" and await find_match(hook.skip_if, output)
            return {**outcome_to_json(outcome, taint, scope.trail), "args": call.args, "is_match": is_match}

        return act

    async def _call(
        self, call: ToolCall, scope: CallScope, generation: Generation
    ) -> tuple[CallOutcome, frozenset[Taint]]:
        """Runs the call through the gate; with what it has read."""
        try:
            bound = (await list_all(generation.toolsets)).get(call.tool)
        except DenizenError as error:
            return _refuse(error.message), frozenset()
        if bound is None:
            return _refuse(f"There is no tool '{call.tool}'."), frozenset()
        try:
            checked = replace(call, args=check_arguments(bound.spec, call.args))
        except ArgumentsError as problem:
            return _refuse(str(problem)), frozenset()
        outcome = await self._services.gate.run(bound, checked, scope, generation.policy)
        return outcome, find_call_taint(bound.spec, outcome)

    async def _write(self, stage: _Stage, position: int, run: HookRun, row: Mapping[str, Any]) -> None:
        """Writes the call into the record of the turn and into the audit log, with the calls from within it. Twice is
        once.
        """
        key = CallId(derive_call_key(stage.turn.id, stage.step, position))
        made = [(position, ToolCall(key, run.hook.tool, row["args"], Origin.HOOK), run.outcome)]
        first_inner = stage.first + (position - stage.first + 1) * MAX_INNER
        for number, nested in enumerate(nested_calls_from_json(row)[:MAX_INNER]):
            made.append((first_inner + number, nested.tool_call, nested.outcome))
        records = [
            CallRecord(
                turn_id=stage.turn.id,
                step=stage.step,
                position=at,
                tool_call=call,
                outcome=outcome,
                cached=False,
                created_at=self._services.clock.now(),
            )
            for at, call, outcome in made
        ]
        async with self._services.store.work() as work:
            new = [call_event(each, stage.turn) for each in records if await work.turns.add_call(each)]
            if new:
                await work.audit.add(new)

    def _tell_failure(self, stage: _Stage, number: int, run: HookRun) -> None:
        verdict = run.outcome.verdict
        is_denied = verdict.decision is Decision.DENY
        extra = {
            "turn": stage.turn.id,
            "agent": stage.turn.agent,
            "when": stage.name,
            "hook": number + 1,
            "tool": run.hook.tool,
            "why": verdict.reason if is_denied else "the tool failed",
            "fix": f"`denizen trace {stage.turn.id}` shows the call.",
        }
        _log.warning("a hook was not run" if is_denied else "a hook failed", extra=extra)


def hook_run_id(turn_id: TurnId) -> str:
    """Returns the id of the durable run of the hooks after a turn."""
    return derive("hooks", turn_id)


def restore_preface(turn: Turn, calls: Sequence[CallRecord]) -> PromptMessage | None:
    """Returns what stood in front of the prompt of a turn, from the record of its calls."""
    ran = [each for each in calls if each.tool_call.origin is Origin.HOOK and each.step == 0]
    outputs = [(each.tool_call.tool, _find_output(each.outcome)) for each in ran]
    return _write_preface(turn, outputs, frozenset(Taint))


def _write_preface(turn: Turn, outputs: Sequence[tuple[str, str]], taint: frozenset[Taint]) -> PromptMessage | None:
    """Returns the outputs by tool that are not empty, quoted, each with a rule below it. Only a schedule gets them."""
    said = [(tool, truncate(output, MAX_OUTPUT_CHARS)) for tool, output in outputs if output]
    if not said or turn.principal.kind is not PrincipalKind.SCHEDULE or turn.parent is not None:
        return None
    texts = [quote_untrusted(output, source=f"the hook {tool}") for tool, output in said]
    taint |= {Taint.TOOL}
    return replace(
        PromptMessage(Role.USER, (TextPart(RULE.join([*texts, ""]).removesuffix("\n")),), "hook"), taint=taint
    )


def _find_output(outcome: CallOutcome) -> str:
    return outcome.result.text.strip() if outcome.state == "done" else ""


def _read_variables(turn: Turn) -> dict[str, str]:
    rows = turn.options.get(VARIABLES)
    return {name: str(value) for name, value in rows.items()} if isinstance(rows, Mapping) else {}


def _find_foreign(variables: Mapping[str, str]) -> dict[str, frozenset[Taint]]:
    """Returns the taint of the variables that could hold words of anybody: an answer of before, a task's title."""
    return {name: FOREIGN for name, value in variables.items() if not is_plain(value)}


def _refuse(why: str) -> CallOutcome:
    """Returns the outcome of a hook that never reached the gate."""
    verdict = Verdict(Decision.DENY, Tier.HARMLESS, why, "hook")
    return CallOutcome(verdict, ToolResult(why, is_error=True), duration_ms=0)
