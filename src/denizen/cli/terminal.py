"""Output to a terminal: printable text, progress lines, and Ctrl-C.

Text of models, tools, pages and other people could hold control sequences that hide text, rename the window or type
into the shell; it passes through here before it is printed. Every command loads this module, so it imports little.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from denizen.domain.errors import DenizenError

if TYPE_CHECKING:
    from denizen.adapters.models.embedded.progress import LoadProgress
    from denizen_sdk.turns import ApprovalInfo

_KEPT = frozenset("\n\t")
_UNFIT = (*range(32), *range(0x7F, 0xA0), *range(0xD800, 0xE000))
_SHOWN = {code: "\ufffd" for code in _UNFIT if chr(code) not in _KEPT} | {ord("\r"): None}
"""Carriage returns go, since they write over what stands there; other control characters, and halves of surrogate
pairs, which cannot be written at all, leave a mark.
"""
_BARE_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")

IN_THE_END = "As it stands in the end:"
SKIPPED = "Skipped by a hook."
"""Before a reply that is not what was streamed."""


def printable(text: str) -> str:
    """The text with no control characters but line breaks and tabs."""
    return text.translate(_SHOWN)


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """`click.echo` for text from outside."""
    click.echo(printable(text), nl=nl, err=err)


def describe_picture(url: str) -> str:
    """A picture of an answer, given as a data URI, which a terminal cannot show, or as a web address."""
    if not url.startswith("data:"):
        return f"[a picture: {url}]"
    media_type, _, body = url.removeprefix("data:").partition(";base64,")
    return f"[a picture: {media_type}, {len(body) * 3 // 4 // 1024 + 1} KiB]"


def printable_json(value: object) -> str:
    """One line of JSON that reads back as the same value, with every control character escaped."""
    return _BARE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def can_prompt() -> bool:
    """Whether somebody sits there and sees what is written to standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def show_waiting_call(approval: ApprovalInfo) -> None:
    """Tells of a call that waits for people, where nobody sits who could be asked."""
    key, what = approval.id, f"{approval.call.tool}\n{approval.call.preview}"
    how = f"denizen approvals approve {key}, or deny {key}"
    echo(f"\nApproval needed: {what}\nIt waits. In another terminal: {how}", err=True)


def show_decision(approval: ApprovalInfo) -> None:
    """Tells what came of a call that waited."""
    from denizen.domain.approval import ApprovalDecision, ApprovalStatus, describe_decision

    decision = ApprovalDecision()
    if approval.decision is not None:
        decision = ApprovalDecision(by=approval.decision.by, note=approval.decision.note)
    echo(f"[{approval.call.tool}: {describe_decision(ApprovalStatus(approval.status), decision)}]", err=True)


TOLD_EVERY_S = 2.5
"""So often something is told of work that takes long, so that nobody takes it for dead."""


class WeightsProgressLine:
    """On a terminal the line is rewritten; elsewhere it is told now and then, and each new activity at once."""

    def __init__(self) -> None:
        self._doing: str = ""
        self._line = ""
        self._told_s = 0.0

    def __call__(self, progress: LoadProgress) -> None:
        if not progress.total_bytes:
            sys.stderr.write(f"[{progress.doing}]\n")
            return
        share = 100 * progress.done_bytes // progress.total_bytes
        line = f"[{progress.doing}: {share} % of {progress.total_bytes / 1_000_000:.0f} MB]"
        is_done = progress.done_bytes >= progress.total_bytes
        if sys.stderr.isatty():
            ending = "\n" if is_done else ""
            sys.stderr.write(f"\r{line}{ending}")
            sys.stderr.flush()
        elif line != self._line and (
            is_done or progress.doing != self._doing or time.monotonic() - self._told_s >= TOLD_EVERY_S
        ):
            sys.stderr.write(f"{line}\n")
            self._doing, self._line, self._told_s = progress.doing, line, time.monotonic()


show_weights_progress = WeightsProgressLine()


@contextmanager
def show_waiting(doing: str, *, every_s: float = TOLD_EVERY_S) -> Generator[None]:
    """Tells of the block while it takes long: in a thread, since imports may be what it waits for."""
    import threading

    ended, began_s = threading.Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(every_s):
            sys.stderr.write(f"[{doing}: {time.monotonic() - began_s:.0f} s]\n")

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


T = TypeVar("T")


async def stoppable(work: Callable[[], Awaitable[T]], stop: Callable[[], object]) -> T:
    """Runs `work` and returns its result. Ctrl-C meanwhile calls `stop`, by which it should come to its end; a second
    one does not wait for that and raises KeyboardInterrupt.
    """
    import anyio

    done: list[T] = []
    failure: DenizenError | None = None
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    stop()
                    break
                async for _ in signals:
                    break
                group.cancel_scope.cancel()

            group.start_soon(listen)
            try:
                done.append(await work())
            except DenizenError as error:
                failure = error  # raised here, it would leave in a group
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise KeyboardInterrupt
    return done[0]


@contextmanager
def stop_on_interrupt(stop: Callable[[], object]) -> Generator[None]:
    """As `stoppable`, for a block without an event loop."""

    def handle(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
