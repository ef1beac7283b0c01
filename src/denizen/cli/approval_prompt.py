"""A call that waits for the one at the terminal: what would happen is shown, and a line decides.

`ask` and `chat` hand it every event of a turn. The question is taken back when somebody else decides meanwhile.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from denizen.cli.terminal import can_prompt, echo, printable, show_decision, show_waiting_call
from denizen.domain.approval import ApprovalChoice
from denizen.domain.errors import DenizenError
from denizen_sdk.turns import ApprovalDecidedEvent, ApprovalInfo, ApprovalRequestedEvent, ChatEvent

QUESTION = "Allow it? [y]es, for an [h]our, [N]o, or a reason why not: "

Read = Callable[[str], Awaitable[str | None]]
Decide = Callable[[str, ApprovalChoice, str], Awaitable[object]]
"""Takes the id of an approval, the decision and its reason."""


async def read_line(question: str) -> str | None:
    """A line from the terminal; empty at its end, None after Ctrl-C."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
    try:
        # It would take the signal for itself, and for good: Ctrl-C would not stop the turn any more.
        return await session.prompt_async(question, handle_sigint=False)
    except EOFError:
        return ""
    except KeyboardInterrupt:
        return None


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

    def __init__(self, group: TaskGroup, decide: Decide, read: Read = read_line) -> None:
        self._group = group
        self._decide = decide
        self._read = read
        self._one = anyio.Lock()
        self._open: dict[str, anyio.CancelScope] = {}

    def take(self, event: ChatEvent) -> None:
        """Every event of the turn, as it comes."""
        match event:
            case ApprovalRequestedEvent() if event.approval.id not in self._open:
                scope = self._open[event.approval.id] = anyio.CancelScope()
                if can_prompt():
                    self._group.start_soon(self._ask, event.approval, scope)
                else:
                    show_waiting_call(event.approval)
            case ApprovalDecidedEvent():
                scope = self._open.get(event.approval.id)
                if scope is not None:
                    scope.cancel()
                show_decision(event.approval)
            case _:
                pass

    async def _ask(self, approval: ApprovalInfo, scope: anyio.CancelScope) -> None:
        with scope:
            async with self._one:
                echo(f"\nApproval needed: {approval.call.tool}\n{approval.call.preview}", err=True)
                line = await self._read(QUESTION)
            choice, note = read_answer(line or "")
            try:
                await self._decide(approval.id, choice, printable(note))
            except DenizenError as error:
                echo(error.explain(), err=True)
            if line is None:
                signal.raise_signal(signal.SIGINT)  # which ends the turn, as anywhere else in it


@asynccontextmanager
async def prompt_for_approvals(decide: Decide) -> AsyncGenerator[ApprovalPrompt]:
    """Until the block ends. Raises what the block raises."""
    failure: DenizenError | None = None
    async with anyio.create_task_group() as group:
        try:
            yield ApprovalPrompt(group, decide)
        except DenizenError as error:  # not from within the group, which would wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
