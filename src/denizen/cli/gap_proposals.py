"""`denizen gaps proposals`, `accept` and `reject`: the review of answers that people proposed for the documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.screen import printable_json, say

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.engine.knowledge.learning import Review


@click.command("proposals")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each proposal, a line each.")
@click.pass_obj
def list_command(home: Path, *, as_json: bool) -> None:
    """Answers of members that somebody trusted proposed, each with the file that accepting it writes."""

    async def run() -> None:
        from denizen.app.build import OpenOptions, open_denizen

        async with open_denizen(home, OpenOptions(durable=False)) as denizen:
            reviews = await denizen.knowledge.learning.list_reviews(denizen.operator)
        for review in reviews:
            say(printable_json(_fields(review)) if as_json else _shown(review))
        if not reviews and not as_json:
            say("Nobody has proposed an answer that is not decided about.")

    anyio.run(run)


@click.command()
@click.argument("proposal_id", metavar="ID")
@click.option("--edit", is_flag=True, help="Change the answer in your editor before.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def accept(home: Path, proposal_id: str, *, edit: bool, yes: bool) -> None:
    """Make a document of a proposed answer: shows what is written, asks, writes it and reads it at once."""

    async def run() -> None:
        from denizen.app.build import open_denizen

        async with open_denizen(home) as denizen:
            await _accept(denizen, proposal_id, edit=edit, yes=yes)

    anyio.run(run)


@click.command()
@click.argument("proposal_id", metavar="ID")
@click.option("--reason", default="", help="Why, for those who run Denizen.")
@click.pass_obj
def reject(home: Path, proposal_id: str, reason: str) -> None:
    """Take a proposed answer off the list. The same message is not proposed again."""

    async def run() -> None:
        from denizen.app.build import OpenOptions, open_denizen

        async with open_denizen(home, OpenOptions(durable=False)) as denizen:
            await denizen.knowledge.learning.reject(proposal_id, denizen.operator, reason)
        say(f"Rejected {proposal_id}.")

    anyio.run(run)


async def _accept(denizen: Denizen, proposal_id: str, *, edit: bool, yes: bool) -> None:
    learning, by = denizen.knowledge.learning, denizen.operator
    review, text = await learning.review(proposal_id, by), ""
    if edit:
        text = click.edit(review.proposal.answer, extension=".md") or ""
        review = await learning.review(proposal_id, by, text)
    say(review.diff.rstrip("\n"))
    if not yes and not click.confirm("Accept this?"):
        say("Nothing was changed.")
        return
    run = await learning.accept(proposal_id, by, text)
    if run is not None:
        run = await denizen.knowledge.sync.wait(run)
        await denizen.knowledge.indexing.catch_up()
    said = "; ".join(run.failed.values()) if run is not None else ""
    say(f"Accepted. It could not be read: {said}" if said else f"Accepted. Agents can look up {review.file} now.")


def _shown(review: Review) -> str:
    from denizen.domain.proposal import credit

    proposal = review.proposal
    about = f"    by {credit(proposal)} on {proposal.said_at:%Y-%m-%d}: {proposal.link}"
    return "\n".join([f"{proposal.id}  {proposal.question or '(no question)'}", about, review.diff])


def _fields(review: Review) -> dict[str, object]:
    proposal = review.proposal
    return {
        "id": proposal.id, "question": proposal.question, "answer": proposal.answer, "author": proposal.author_name,
        "author_id": proposal.author, "proposed_by": proposal.proposer, "link": proposal.link,
        "said_at": proposal.said_at.isoformat(), "created_at": proposal.created_at.isoformat(),
        "gap": proposal.gap_id, "file": review.file, "content": review.content, "diff": review.diff,
    }  # fmt: skip
