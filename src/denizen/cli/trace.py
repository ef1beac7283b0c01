"""`denizen trace`: what happened in a turn."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from denizen.cli.screen import printable_json, say
from denizen.domain.ids import TurnId


@click.command()
@click.argument("turn")
@click.pass_obj
def command(home: Path, turn: str) -> None:
    """Show a turn: its steps with tokens and cost, its tool calls with the gate's verdicts, its outcome."""
    anyio.run(_show, home, TurnId(turn))


async def _show(home: Path, turn_id: TurnId) -> None:
    from denizen.app.build import Opening, open_denizen

    async with open_denizen(home, Opening(durable=False)) as denizen:
        detail = await denizen.queries.get_turn(turn_id)
    turn = detail.turn
    say(f"{turn.id}  agent {turn.agent}  {turn.status}  opened {turn.opened_at:%Y-%m-%d %H:%M:%S} UTC")
    calls = list(detail.calls)
    for step in detail.steps:
        usage = step.usage
        cost = "" if usage.cost_usd is None else f"  ${usage.cost_usd}"
        say(
            f"  step {step.number} {step.purpose} on {step.model}: {usage.input_tokens} in "
            f"({usage.cache_read_tokens} cached), {usage.output_tokens} out, {step.duration_ms} ms{cost}"
        )
        for call in (call for call in calls if call.step == step.number):
            args = printable_json(dict(call.args))
            verdict = f"{call.verdict.decision} by {call.verdict.decided_by}"
            outcome = "failed" if call.is_error else "cached" if call.cached else "ran"
            tool = " ".join(call.tool.split())  # the model may have made it up
            say(f"    {tool} {args}: {verdict}, {outcome}, {call.duration_ms} ms")
    say(f"reply: {turn.reply}" if turn.reply else f"failure: {turn.failure} [{turn.failure_code}]")
