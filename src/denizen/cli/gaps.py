"""`denizen gaps`: questions that the documents did not answer, put together where they ask the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli import gap_proposals
from denizen.cli.screen import printable_json, say

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.gap import GapGroup

DAYS = 30
SHOWN = 3
"""Wordings of one question."""


@click.group(invoke_without_command=True)
@click.option("--days", default=DAYS, type=click.IntRange(1, 3650), show_default=True, help="How far back.")
@click.option("--limit", default=20, type=click.IntRange(1, 1000), show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each question, a line each.")
@click.pass_context
def command(ctx: click.Context, days: int, limit: int, *, as_json: bool) -> None:
    """What people asked and no document answers: what to write next. The most asked come first.

    A question is here when the agent said that its documents do not answer it, or searched them and found nothing.
    """
    if ctx.invoked_subcommand is None:
        _run(ctx.obj, partial(_list, days=days, limit=limit, as_json=as_json))


@command.command()
@click.argument("gap_id", metavar="ID")
@click.pass_obj
def close(home: Path, gap_id: str) -> None:
    """Take a question off the list, with all that ask the same: it was seen to, or needs no answer."""

    async def act(denizen: Denizen) -> None:
        closed = await denizen.knowledge.gaps.close(gap_id)
        say(f"Closed: {closed[0].question}{f' (asked {len(closed)} times)' if len(closed) > 1 else ''}")

    _run(home, act)


for _each in (gap_proposals.list_command, gap_proposals.accept, gap_proposals.reject):
    command.add_command(_each)


async def _list(denizen: Denizen, *, days: int, limit: int, as_json: bool) -> None:
    found = await denizen.knowledge.gaps.load(days, with_private=True)
    for group in found.groups[:limit]:
        say(printable_json(_fields(group)) if as_json else _shown(group))
    if as_json:
        return
    if not found.groups:
        say(f"No question of the last {days} days was left without an answer from the documents.")
    elif len(found.groups) > limit:
        say(f"({len(found.groups) - limit} more; --limit shows them)")
    if found.is_cut:
        say(f"(only the newest {found.total} were looked at: close what is settled, or give fewer --days)")


def _shown(group: GapGroup) -> str:
    newest = group.newest
    often = f"asked {len(group.gaps)} times by {group.askers}" if len(group.gaps) > 1 else "asked once"
    wordings = list(dict.fromkeys(gap.question for gap in group.gaps))
    more = [f"    also: {each}" for each in wordings[1:SHOWN]]
    where = "in private" if newest.is_private else f"in {newest.place.conversation_id}"
    about = f"    {often}, last {newest.created_at:%Y-%m-%d} {where}; {newest.kind}; turn {newest.turn_id}"
    return "\n".join([f"{newest.id}  {newest.question}", about, *more])


def _fields(group: GapGroup) -> dict[str, object]:
    newest = group.newest
    return {
        "id": newest.id, "question": newest.question, "times": len(group.gaps), "askers": group.askers,
        "agent": newest.agent, "kind": newest.kind.value, "last_at": newest.created_at.isoformat(),
        "private": newest.is_private, "turn": newest.turn_id,
        "questions": list(dict.fromkeys(gap.question for gap in group.gaps)),
    }  # fmt: skip


def _run(home: Path, act: Callable[[Denizen], Awaitable[None]]) -> None:
    async def run() -> None:
        from denizen.app.build import OpenOptions, open_denizen

        async with open_denizen(home, OpenOptions(durable=False)) as denizen:
            await act(denizen)

    anyio.run(run)
