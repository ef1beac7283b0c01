"""`denizen replay`: a turn once more, on another model or agent, beside what was recorded."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.terminal import echo, printable_json
from denizen.cli.trace import find_turn, spent
from denizen.domain.json import JsonObject
from denizen.domain.usage import Usage

if TYPE_CHECKING:
    from denizen.engine.inspection.replay import ReplayResult


@click.command()
@click.argument("turn")
@click.option("--model", default="", help="Another model, by its alias or as PROVIDER/MODEL.  [default: as recorded]")
@click.option("-a", "--agent", default="", help="Another agent, on its own model.  [default: as recorded]")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object with both answers, the difference and the costs."
)
@click.pass_obj
def command(home: Path, turn: str, model: str, agent: str, *, as_json: bool) -> None:
    """Run a turn again without side effects, and show what differs.

    The question and the history are the recorded ones. No tool runs: a call that was recorded gets its recorded result,
    any other an error that says so. Nothing is recorded in statistics or budgets, but the model is asked, which costs
    money.

    \b
    denizen replay turn_1f0c --model fast
    """
    anyio.run(_replay, home, turn, model, agent, as_json)


async def _replay(home: Path, name: str, model: str, agent: str, as_json: bool) -> None:  # noqa: FBT001 - from `run`
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.cli.terminal import show_weights_progress
    from denizen.engine.inspection.replay import replay_turn

    async with open_denizen(home, OpenOptions(durable=False, report=show_weights_progress)) as denizen:
        found = await find_turn(denizen.queries, name)
        result = await replay_turn(denizen.runtime, denizen.services, found, agent=agent, model=model)
    if as_json:
        click.echo(printable_json(_as_json(result)))
        return
    for line in _lines(result):
        echo(line)


def _lines(result: ReplayResult) -> Iterator[str]:
    then = result.recorded.turn
    yield result.reply
    yield ""
    difference = _difference(result)
    yield from difference or ["The answer is the same, word for word."]
    yield ""
    model = then.result.model or "no model"
    yield f"then: {then.agent} on {model}: {len(result.recorded.taken)} steps, {spent(then.result.usage)}"
    yield f"now:  {result.agent} on {result.model}: {len(result.steps)} steps, {spent(result.usage)}; not recorded"
    for call in result.unrecorded:
        yield f"not recorded then, so without a result: {call.tool} {printable_json(dict(call.args))}"


def _difference(result: ReplayResult) -> list[str]:
    then, now = result.recorded.turn.result.reply.splitlines(), result.reply.splitlines()
    return list(difflib.unified_diff(then, now, "then", "now", lineterm=""))


def _as_json(result: ReplayResult) -> JsonObject:
    then = result.recorded.turn
    return {
        "turn": then.id,
        "question": result.recorded.question,
        "then": _side(then.agent, then.result.model, then.result.reply, len(result.recorded.taken), then.result.usage),
        "now": _side(result.agent, result.model, result.reply, len(result.steps), result.usage),
        "diff": "\n".join(_difference(result)),
        "calls": [
            {
                "tool": record.tool_call.tool,
                "args": record.tool_call.args,
                "result": record.outcome.result.text,
                "is_error": record.outcome.result.is_error,
            }
            for record in result.calls
        ],
        "unrecorded": [{"tool": call.tool, "args": call.args} for call in result.unrecorded],
    }


def _side(agent: str, model: str, reply: str, steps: int, usage: Usage) -> JsonObject:
    return {
        "agent": agent,
        "model": model,
        "answer": reply,
        "steps": steps,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cost_usd": None if usage.cost_usd is None else str(usage.cost_usd),
        },
    }
