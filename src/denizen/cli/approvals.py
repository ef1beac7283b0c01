"""`denizen approvals`: calls that wait for people, and a word about one of them, which a running server notices."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.approval import (
    Approval,
    ApprovalChoice,
    ApprovalStatus,
    VoteOutcome,
    describe_deciders,
    describe_end,
)
from denizen.domain.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from denizen.app.build import Denizen


@click.group(cls=CommandGroup)
def command() -> None:
    """List, approve or deny tool calls that wait for a decision. Whoever has a shell here may decide all of them."""


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that are decided or expired.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/approvals gives them.")
@with_denizen
async def list_command(denizen: Denizen, *, everything: bool, as_json: bool) -> None:
    """List the calls that wait, the newest first."""
    from denizen.web.api.records import approval_to_wire

    by, status = denizen.operator, None if everything else ApprovalStatus.PENDING
    found = await denizen.turns.approvals.list_for(by, status=status)
    if as_json:
        for approval in found:
            click.echo(printable_json(asdict(approval_to_wire(approval, by))))
        return
    if not found:
        echo("Nothing waits for approval." if not everything else "Nothing has waited for approval yet.")
    for approval in found:
        echo("\n".join(_lines(approval)))


@command.command()
@click.argument("approval")
@click.option("--hour", is_flag=True, help="Also approve this tool for the same user and place for an hour.")
@with_denizen
async def approve(denizen: Denizen, approval: str, *, hour: bool) -> None:
    """Let a call run. APPROVAL is an id or its beginning."""
    await _decide(denizen, approval, ApprovalChoice.HOUR if hour else ApprovalChoice.ONCE, "")


@command.command()
@click.argument("approval")
@click.option("--reason", default="", help="The reason, which the agent is told.")
@with_denizen
async def deny(denizen: Denizen, approval: str, reason: str) -> None:
    """Refuse a call. APPROVAL is an id or its beginning."""
    await _decide(denizen, approval, ApprovalChoice.DENY, reason)


def _lines(approval: Approval) -> list[str]:
    tool, asker = " ".join(approval.request.tool.split()), " ".join(approval.request.requester_name.split())
    head = f"{approval.id}  {tool}  asked by {asker} ({approval.request.requester}) of {approval.request.agent}"
    lines = [head, *(f"  | {line}" for line in approval.request.preview.splitlines())]
    if approval.status.is_final:
        return [*lines, f"  {describe_end(approval)}"]
    until = f", until {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC" if approval.expires_at else ""
    return [*lines, f"  waits for {describe_deciders(approval.rule)}{until}"]


async def _decide(denizen: Denizen, name: str, choice: ApprovalChoice, reason: str) -> None:
    """Decides about the approval whose id begins so; those that wait go first. Raises NotFound, InvalidInput for the
    beginning of several ids, and Conflict when it is decided already.
    """
    approvals, by = denizen.turns.approvals, denizen.operator
    matches = [each for each in await approvals.list_for(by) if each.id.startswith(name)]
    found = [each.id for each in matches if not each.status.is_final] or [each.id for each in matches]
    if len(found) > 1:
        raise InvalidInput(f"'{name}' begins {len(found)} approvals.", fix="Write more of the id.")
    if not found:
        raise NotFound(
            f"There is no approval '{name}'.", code="approval_not_found", fix="`denizen approvals list` shows them."
        )
    ruling = await approvals.decide(found[0], by, choice, note=reason)
    if ruling.outcome is VoteOutcome.LATE or ruling.approval.status is ApprovalStatus.EXPIRED:
        raise Conflict(ruling.text, code="approval_expired", fix="The agent has to be asked again.")
    wished = ApprovalStatus.DENIED if choice is ApprovalChoice.DENY else ApprovalStatus.APPROVED
    if ruling.outcome is VoteOutcome.OVER and ruling.approval.status is not wished:
        raise Conflict(ruling.text, code="approval_over", fix="A decision is not changed; ask the agent again.")
    echo(ruling.text)
