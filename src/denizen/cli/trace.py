"""`denizen trace`: everything that is recorded of a turn. `find_turn` and `spent` are for `replay` too."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.home import run_with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import TurnId
from denizen.domain.routing import describe_route
from denizen.domain.tool import Origin
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, TurnStatus
from denizen.domain.usage import Usage

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.engine.inspection.queries import Queries, TurnTrace

SEARCHED = 1000
"""Among so many of the newest turns the beginning of an id is looked for."""
RESULT_CHARS = 100
"""The characters of a tool's result that are shown; the JSON has all of it."""


@click.command()
@click.argument("turn", default="")
@click.option("--last", is_flag=True, help="The newest turn.")
@click.option("-a", "--agent", default="", help="With --last: the newest turn of this agent.")
@click.option("--texts", is_flag=True, help="Also show the texts of the system prompt, and what was looked up.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, as GET /api/turns/ID gives it, with all texts.")
@click.pass_obj
def command(home: Path, turn: str, agent: str, *, last: bool, texts: bool, as_json: bool) -> None:
    """Show a turn: question and reply, what the prompt was made of, what was looked up, steps with tokens, cache and
    cost, tool calls with the gate's verdicts. TURN is an id or its beginning; `denizen ask --json` and /why show it.
    """
    if last == bool(turn):
        raise InvalidInput("Which turn?", fix="Name one by its id, or write --last for the newest.")
    if agent and not last:
        raise InvalidInput("--agent belongs to --last.")

    async def load(denizen: Denizen) -> TurnTrace:
        return await denizen.queries.get_turn(await find_turn(denizen.queries, turn, agent))

    trace = run_with_denizen(home, load)
    if as_json:
        from denizen.web.api.records import turn_to_wire

        click.echo(printable_json(asdict(turn_to_wire(trace, in_full=True))))
        return
    for line in _lines(trace, texts=texts):
        echo(line)


async def find_turn(queries: Queries, name: str, agent: str = "") -> TurnId:
    """By its id or the beginning of it; the newest, of that agent, when nothing is named. Raises NotFound."""
    turns = await queries.list_turns(agent=agent, limit=SEARCHED)
    if not name:
        if not turns:
            missing = f"There is no turn{f' of {agent}' if agent else ''} yet."
            raise NotFound(missing, code="turn_none", fix='Ask something first: `denizen ask "hello"`.')
        return turns[0].id
    ids = [turn.id for turn in turns]
    begun = [key for key in ids if key.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    try:
        return (await queries.get_turn(TurnId(name))).turn.id
    except NotFound as error:
        near = difflib.get_close_matches(name, ids, n=1, cutoff=0.8)
        where = "`denizen trace --last`, `denizen ask --json` and /why tell ids."
        hint = f"Did you mean {near[0]}? {where}" if near else where
        if begun:
            hint = f"It begins {len(begun)} ids: write more of it."
        raise NotFound(f"There is no turn {name}.", code=error.code, fix=hint) from error


def spent(usage: Usage) -> str:
    """Tokens with the state of the cache, and money."""
    cached = ""
    if usage.cache_read_tokens or usage.cache_write_tokens:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        cached = f" ({read:,} read from the cache, {written:,} written to it, {usage.new_tokens:,} new)"
    cost = "cost unknown" if usage.cost_usd is None else f"${usage.cost_usd}"
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, {cost}"


def _lines(trace: TurnTrace, *, texts: bool) -> Iterator[str]:
    turn = trace.turn
    took = f", took {(turn.closed_at - turn.opened_at).total_seconds():.1f} s" if turn.closed_at else ""
    yield f"{turn.id}  agent {turn.agent}  {turn.status}  opened {turn.opened_at:%Y-%m-%d %H:%M:%S} UTC{took}"
    yield f"asked by {turn.principal.name} ({turn.principal.key}) in {turn.conversation_id}"
    if turn.parent:
        yield f"given the task by turn {turn.parent.id} of {turn.parent.agent}"
    for task in trace.delegated:
        yield f"gave a task to turn {task.turn_id}{' in the background' if task.is_background else ''}"
    yield _said("question", trace.question)
    if turn.result.reply:
        yield _said("reply", turn.result.reply)
        if trace.is_replaced:
            yield "replaced: Denizen says so where the model does not know, or its answer rests on nothing that it read"
    elif turn.status is TurnStatus.SKIPPED:
        yield "skipped: a hook found that there was nothing to answer"
    elif failure := turn.result.failure:
        yield f"failure: {failure.message} [{failure.code}]"
    if turn.route:
        yield describe_route(turn.route)
    for prompt in trace.prompts:
        yield from _prompt(prompt, texts=texts)
    yield from _memories(trace)
    yield from _documents(trace)
    yield from _unasked(trace, texts=texts)
    yield f"steps: {len(trace.taken)}, {_name_tool_use(trace)}"
    for step in trace.steps:
        yield f"  step {step.number} {step.purpose} on {step.model}: {spent(step.usage)}, {step.duration_ms:,} ms"
        yield from (f"    {_call(call)}" for call in trace.calls if call.step == step.number > 0)
    if trace.hooks_after:
        yield "hooks after the answer:"
    yield from (f"  {_call(call)}" for call in trace.hooks_after)
    yield f"in all: {spent(turn.result.usage)}"


def _memories(trace: TurnTrace) -> Iterator[str]:
    ids = dict.fromkeys(key for prompt in trace.prompts for key in prompt.memories)
    known = {memory.id: memory for memory in trace.memories}
    if ids:
        yield f"memories that came up: {len(ids)}"
    for key in ids:
        memory = known.get(key)
        about = "core" if memory and memory.is_core else f"about {memory.owner}" if memory else ""
        yield f"  {key} {about}: {memory.text}" if memory else f"  {key} (forgotten since)"


def _documents(trace: TurnTrace) -> Iterator[str]:
    if trace.citations:
        yield f"documents cited: {len(trace.citations)}"
    for each in trace.citations:
        at = f" of {each.source_id} at {each.revision[:12]}" if each.source_id else ""
        told = f"taken out: {each.doubt}" if each.doubt else " ".join(filter(None, ("proved", each.link)))
        yield f"  {each.ref}{at}, {told}"


def _unasked(trace: TurnTrace, *, texts: bool) -> Iterator[str]:
    if trace.unasked:
        yield "looked up or done before the model was asked:"
    for call in trace.unasked:
        yield f"  {_call(call)}"
        if texts:
            yield from (f"    | {line}" for line in call.outcome.result.text.splitlines())


def _said(head: str, text: str) -> str:
    """Several lines are marked, so that they cannot pass for lines of the trace."""
    lines = text.splitlines()
    return f"{head}: {text}" if len(lines) < 2 else "\n".join((f"{head}:", *(f"  | {line}" for line in lines)))


def _name_tool_use(trace: TurnTrace) -> str:
    if any(step.purpose == "plan" for step in trace.steps):
        return "planned"
    has_tools = not trace.prompts or any(prompt.tools for prompt in trace.prompts)
    if has_tools:
        return "with native tool calls"
    return "after these calls" if trace.unasked else "without tools"


def _prompt(prompt: PromptUse, *, texts: bool) -> Iterator[str]:
    rows = [(s.name, s.tokens, f"{s.stability.name.lower()}, sha256 {s.sha256[:12]}") for s in prompt.segments]
    if prompt.tools:
        rows.append(("tools", prompt.tool_tokens, ", ".join(prompt.tools)))
    rows += [(m.kind, m.tokens, f"{m.count} {'message' if m.count == 1 else 'messages'}") for m in prompt.messages]
    total = sum(tokens for _, tokens, _ in rows)
    yield f"prompt from step {prompt.step} on, for {prompt.model}: about {total:,} tokens"
    for place, (name, tokens, about) in enumerate(rows):
        yield f"  {name:<14}{tokens:>9,} {tokens / max(total, 1):>6.1%}  {about}"
        if texts and place < len(prompt.segments):
            text = prompt.segments[place].text
            yield "\n".join(f"    | {line}" for line in ("(not kept)" if text is None else text).splitlines())


def _call(record: CallRecord) -> str:
    call, outcome, verdict = record.tool_call, record.outcome, record.outcome.verdict
    state = "failed" if outcome.result.is_error else "cached" if record.cached else "ran"
    tool = " ".join(call.tool.split())  # the model may have made it up
    said = f"{verdict.decision} by {verdict.decided_by}, tier {int(verdict.tier)} ({' '.join(verdict.reason.split())})"
    result = " ".join(outcome.result.text.split())
    cut = f"{result[:RESULT_CHARS]}…" if len(result) > RESULT_CHARS else result
    mark = "hook " if call.origin is Origin.HOOK else ""
    return f"{mark}{tool} {printable_json(call.args)}: {said}, {state}, {outcome.duration_ms:,} ms: {cut}"
