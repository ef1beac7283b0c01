"""The text of a PDF, read in a process of its own: a PDF can make its reader run for ever, or take all memory.

Called by `attachments`. The reader is `pdf_reader`; what it has written when it has to be killed is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.lowlevel import RunVar

MAX_PDF_BYTES = 20 * 1024 * 1024

# By its path: as a module it would load this package first.
_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("pdf_reader.py")))
_TIMEOUT_S = 20.0
_SIDE_BY_SIDE = 2
_MAX_OUTPUT_BYTES = 4 * 1024 * 1024
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("_limiter")


@dataclass(frozen=True, slots=True)
class PdfText:
    """`lacks` says what is missing of the text and why; empty when it is whole. `is_passing` means that this is not
    the fault of the PDF, which can be read another time.
    """

    text: str
    lacks: str = ""
    is_passing: bool = False


async def read_pdf(data: bytes, *, timeout_s: float = _TIMEOUT_S) -> PdfText:
    """The text of at most 100 pages, 256 KB of it. Never fails: a bad PDF has no text, and `lacks` says why."""
    async with _side_by_side():
        try:
            said, is_late = await _run(data, timeout_s)
        except OSError:
            return PdfText("", "its reader could not be started", is_passing=True)
    lines = list(_parsed(said))
    pages = [str(line["text"]) for line in lines if "text" in line]
    text = "\n\n".join(filter(None, (page.strip() for page in pages)))
    return PdfText(text, _lacking(lines, len(pages), text, is_late=is_late))


def _lacking(lines: list[dict[str, Any]], pages: int, text: str, *, is_late: bool) -> str:
    head, last = (lines[0], lines[-1]) if lines else ({}, {})
    if why := str(last.get("why", "")):
        return why if not pages else f"only {pages} of {head.get('pages')} pages were read: {why}"
    if "done" in last:
        return "" if text else "it has no text, only pictures"
    why = "reading it takes too long" if is_late else "it is damaged"
    return f"only {pages} of {head.get('pages')} pages were read: {why}" if pages else why


async def _run(data: bytes, timeout_s: float) -> tuple[bytes, bool]:
    """What the reader wrote until it ended, and whether it was ended because its time was up."""
    said = bytearray()
    with anyio.move_on_after(timeout_s) as scope:
        # An empty environment: nothing of ours is there to be found.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await anyio.open_process(
            _COMMAND, stderr=subprocess.DEVNULL, env=environment, cwd="/", start_new_session=True
        )
        async with process:
            try:
                await _talk(process, data, said)
            finally:
                _kill(process)
    return bytes(said), scope.cancelled_caught


async def _talk(process: Process, data: bytes, said: bytearray) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    # It reads everything before it writes, and may die while it reads.
    with suppress(anyio.BrokenResourceError):
        await process.stdin.send(data)
        await process.stdin.aclose()
    with suppress(anyio.EndOfStream):
        while len(said) < _MAX_OUTPUT_BYTES:
            said += await process.stdout.receive()
    if len(said) < _MAX_OUTPUT_BYTES:
        await process.wait()


def _kill(process: Process) -> None:
    """Unless it has ended: who kills it then takes its exit from the event loop, which complains."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _parsed(said: bytes) -> Iterator[dict[str, Any]]:
    """The lines that are whole."""
    for line in said.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            return
        if isinstance(value, dict):
            yield value


def _side_by_side() -> anyio.CapacityLimiter:
    """One for each event loop: reading is heavy, and there may be few cores."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_SIDE_BY_SIDE)
        _limiter.set(limiter)
        return limiter
