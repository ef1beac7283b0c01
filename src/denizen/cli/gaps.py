"""`denizen gaps`: questions that the documents did not answer, and the review of answers that people proposed."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen, with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.gap import GapGroup

DAYS = 30
SHOWN = 3
"""Wordings of one question."""


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--days", default=DAYS, type=click.IntRange(1, 3650), show_default=True, help="How many days back.")
@click.option("--limit", default=20, type=click.IntRange(1, 1000), show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each question, a line each.")
@click.pass_context
def command(ctx: click.Context, days: int, limit: int, *, as_json: bool) -> None:
    """List questions that no document answers, the most asked first: write about them next.

    These are questions for which the agent said that its documents do not answer them, or found nothing in them.
    """
    if ctx.invoked_subcommand is None:
        run_with_denizen(ctx.obj, partial(_list, days=days, limit=limit, as_json=as_json))


@command.command()
@click.argument("gap_id", metavar="ID")
@with_denizen
async def close(denizen: Denizen, gap_id: str) -> None:
    """Take a question off the list, with all that ask the same: it is answered now, or needs no answer."""
    closed = await denizen.knowledge.gaps.close(gap_id)
    echo(f"Closed: {closed[0].question}{f' (asked {len(closed)} times)' if len(closed) > 1 else ''}")


async def _list(denizen: Denizen, *, days: int, limit: int, as_json: bool) -> None:
    found = await denizen.knowledge.gaps.load(days, with_private=True)
    for group in found.groups[:limit]:
        echo(printable_json(_gap_fields(group)) if as_json else _format_gap(group))
    if as_json:
        return
    if not found.groups:
        echo(f"No question of the last {days} days was left without an answer from the documents.")
    elif len(found.groups) > limit:
        echo(f"({len(found.groups) - limit} more; --limit shows them)")
    if found.is_cut:
        echo(f"(only the newest {found.total} were looked at: close what is settled, or give fewer --days)")


def _format_gap(group: GapGroup) -> str:
    newest = group.newest
    often = f"asked {len(group.gaps)} times by {group.askers}" if len(group.gaps) > 1 else "asked once"
    wordings = list(dict.fromkeys(gap.question for gap in group.gaps))
    more = [f"    also: {each}" for each in wordings[1:SHOWN]]
    where = "in private" if newest.is_private else f"in {newest.place.conversation_id}"
    about = f"    {often}, last {newest.created_at:%Y-%m-%d} {where}; {newest.kind}; turn {newest.turn_id}"
    return "\n".join([f"{newest.id}  {newest.question}", about, *more])


def _gap_fields(group: GapGroup) -> dict[str, object]:
    newest = group.newest
    return {
        "id": newest.id,
        "question": newest.question,
        "times": len(group.gaps),
        "askers": group.askers,
        "agent": newest.agent,
        "kind": newest.kind.value,
        "last_at": newest.created_at.isoformat(),
        "private": newest.is_private,
        "turn": newest.turn_id,
        "questions": list(dict.fromkeys(gap.question for gap in group.gaps)),
    }


@command.command("proposals")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/gaps/proposals gives them.")
@with_denizen
async def list_proposals(denizen: Denizen, *, as_json: bool) -> None:
    """List proposed answers, each with the file that accepting it writes."""
    from denizen.domain.proposal import credit_authors
    from denizen.web.api.gaps import proposal_to_wire

    reviews = await denizen.knowledge.learning.list_reviews(denizen.operator)
    for review in reviews:
        proposal, answer = review.proposal, review.proposal.answer
        if as_json:
            echo(printable_json(asdict(proposal_to_wire(review))))
        else:
            echo(f"{proposal.id}  {proposal.question or '(no question)'}")
            echo(f"    by {credit_authors(proposal)} on {answer.said_at:%Y-%m-%d}: {answer.link}")
            echo(review.diff)
    if not reviews and not as_json:
        echo("Nobody has proposed an answer that is not decided about.")


@command.command()
@click.argument("proposal_id", metavar="ID")
@click.option("--edit", is_flag=True, help="Edit the answer first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def accept(home: Path, proposal_id: str, *, edit: bool, yes: bool) -> None:
    """Make a document of a proposed answer: shows the file, asks, writes it and syncs it at once."""

    async def run() -> None:
        from denizen.app.build import open_denizen

        async with open_denizen(home) as denizen:
            await _accept(denizen, proposal_id, edit=edit, yes=yes)

    anyio.run(run)


@command.command()
@click.argument("proposal_id", metavar="ID")
@click.option("--reason", default="", help="The reason, for those who run Denizen.")
@with_denizen
async def reject(denizen: Denizen, proposal_id: str, reason: str) -> None:
    """Take a proposed answer off the list. The same message is not proposed again."""
    await denizen.knowledge.learning.reject(proposal_id, denizen.operator, reason)
    echo(f"Rejected {proposal_id}.")


async def _accept(denizen: Denizen, proposal_id: str, *, edit: bool, yes: bool) -> None:
    learning, by = denizen.knowledge.learning, denizen.operator
    review, text = await learning.review(proposal_id, by), ""
    if edit:
        text = click.edit(review.proposal.answer.text, extension=".md") or ""
        review = await learning.review(proposal_id, by, text)
    echo(review.diff.rstrip("\n"))
    if not yes and not click.confirm("Accept this?"):
        echo("Nothing was changed.")
        return
    run = await learning.accept(proposal_id, by, text)
    if run is not None:
        run = await denizen.knowledge.sync.wait(run)
        await denizen.knowledge.indexing.catch_up()
    said = "; ".join(run.failed.values()) if run is not None else ""
    echo(f"Accepted. It could not be read: {said}" if said else f"Accepted. Agents can look up {review.file} now.")
