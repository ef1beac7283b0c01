"""A call that waits for the one at the terminal: what would happen is shown, and a line decides.

`ask` and `chat` hand it every event of a turn. The question is taken back when somebody else decides meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from denizen.cli.terminal import echo, printable
from denizen.domain.approval import Approval, ApprovalChoice, describe_end
from denizen.domain.errors import DenizenError
from denizen.domain.events import ApprovalDecided, ApprovalRequested, TurnEvent
from denizen.domain.principal import Principal

if TYPE_CHECKING:
    from denizen.engine.gate.approvals import ApprovalQueue

QUESTION = "Allow it? [y]es, for an [h]our, [N]o, or a reason why not: "

Read = Callable[[str], Awaitable[str]]


def can_prompt() -> bool:
    """Whether somebody sits there and sees what is written to standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def read_line(question: str) -> str:
    """A line from the terminal; empty when it is interrupted or at its end."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
    try:
        return await session.prompt_async(question)
    except (EOFError, KeyboardInterrupt):
        return ""


def read_answer(line: str) -> tuple[ApprovalChoice, str]:
    """Reads the typed decision. Any text but a clear yes is a no, with the text as its reason."""
    said = line.strip()
    match said.lower():
        case "y" | "yes":
            return ApprovalChoice.ONCE, ""
        case "h" | "hour":
            return ApprovalChoice.HOUR, ""
        case "" | "n" | "no":
            return ApprovalChoice.DENY, ""
        case _:
            return ApprovalChoice.DENY, said


class ApprovalPrompt:
    """For one turn: one question after another."""

    def __init__(self, group: TaskGroup, approvals: ApprovalQueue, voter: Principal, read: Read = read_line) -> None:
        self._group = group
        self._approvals = approvals
        self._voter = voter
        self._read = read
        self._one = anyio.Lock()
        self._open: dict[str, anyio.CancelScope] = {}

    def take(self, event: TurnEvent) -> None:
        """Every event of the turn, as it comes."""
        match event:
            case ApprovalRequested() if event.approval.id not in self._open:
                scope = self._open[event.approval.id] = anyio.CancelScope()
                if can_prompt():
                    self._group.start_soon(self._ask, event.approval, scope)
                else:
                    # Nobody sits here, so the decision is made elsewhere.
                    key, what = event.approval.id, f"{event.approval.request.tool}\n{event.approval.request.preview}"
                    how = f"denizen approvals approve {key}, or deny {key}"
                    echo(f"\nApproval needed: {what}\nIt waits. In another terminal: {how}", err=True)
            case ApprovalDecided():
                scope = self._open.get(event.approval.id)
                if scope is not None:
                    scope.cancel()
                echo(f"[{event.approval.request.tool}: {describe_end(event.approval)}]", err=True)
            case _:
                pass

    async def _ask(self, approval: Approval, scope: anyio.CancelScope) -> None:
        with scope:
            async with self._one:
                echo(f"\nApproval needed: {approval.request.tool}\n{approval.request.preview}", err=True)
                choice, note = read_answer(await self._read(QUESTION))
            try:
                await self._approvals.decide(approval.id, self._voter, choice, note=printable(note))
            except DenizenError as error:
                echo(error.explain(), err=True)


@asynccontextmanager
async def prompt_for_approvals(approvals: ApprovalQueue, voter: Principal) -> AsyncGenerator[ApprovalPrompt]:
    """Until the block ends. Raises what the block raises."""
    failure: DenizenError | None = None
    async with anyio.create_task_group() as group:
        try:
            yield ApprovalPrompt(group, approvals, voter)
        except DenizenError as error:  # not from within the group, which would wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
