"""Reads the text of a PDF in a child process, since a PDF can make its reader run forever or take all memory.

The child runs `pdf_reader`. The pages that it wrote before it had to be killed are kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.lowlevel import RunVar

from denizen.ports.pdf import PdfText

# The script is named by its path: `-m` would import this package, and anyio with it, before the limits are set.
_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("pdf_reader.py")))
_TIMEOUT_S = 20.0
_MAX_PARALLEL = 2
_MAX_OUTPUT_BYTES = 4 * 1024 * 1024
# A font draws `ffi` as one glyph, which nobody types who searches. Other compatibility characters mean something: x².
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("_limiter")


async def read_pdf(data: bytes, *, timeout_s: float = _TIMEOUT_S) -> PdfText:
    """Returns the text of at most 100 pages, up to 256 KB. Never raises: for a bad PDF `missing` says what is wrong."""
    async with _get_limiter():
        try:
            output, is_late = await _run_reader(data, timeout_s)
        except OSError:
            return PdfText("", "its reader could not be started", is_temporary=True)
    lines = list(_parse_lines(output))
    pages = [str(line["text"]) for line in lines if "text" in line]
    text = "\n\n".join(filter(None, (page.strip() for page in pages))).translate(_LIGATURES)
    return PdfText(text, _explain_missing(lines, len(pages), text, is_late=is_late))


def _explain_missing(lines: list[dict[str, Any]], pages: int, text: str, *, is_late: bool) -> str:
    head, last = (lines[0], lines[-1]) if lines else ({}, {})
    if why := str(last.get("why", "")):
        return why if not pages else f"only {pages} of {head.get('pages')} pages were read: {why}"
    if "done" in last:
        return "" if text else "it has no text, only pictures"
    why = "reading it takes too long" if is_late else "it is damaged"
    return f"only {pages} of {head.get('pages')} pages were read: {why}" if pages else why


async def _run_reader(data: bytes, timeout_s: float) -> tuple[bytes, bool]:
    """Returns the output of the child process, and whether it was killed at the timeout."""
    output = bytearray()
    with anyio.move_on_after(timeout_s) as scope:
        # The child gets no other environment variable, so a PDF that takes it over finds no keys of ours there.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = await anyio.open_process(
            _COMMAND, stderr=subprocess.DEVNULL, env=environment, cwd="/", start_new_session=True
        )
        async with process:
            try:
                await _exchange(process, data, output)
            finally:
                _kill(process)
    return bytes(output), scope.cancelled_caught


async def _exchange(process: Process, data: bytes, output: bytearray) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    # The reader takes all its input before it writes, and may die while it reads.
    with suppress(anyio.BrokenResourceError):
        await process.stdin.send(data)
        await process.stdin.aclose()
    with suppress(anyio.EndOfStream):
        while len(output) < _MAX_OUTPUT_BYTES:
            output += await process.stdout.receive()
    if len(output) < _MAX_OUTPUT_BYTES:
        await process.wait()


def _kill(process: Process) -> None:
    # Killing a process that has ended would reap its exit status before the event loop does, which then complains.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _parse_lines(output: bytes) -> Iterator[dict[str, Any]]:
    """Yields the complete lines: the last one may have been cut off when the reader was killed."""
    for line in output.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            return
        if isinstance(value, dict):
            yield value


def _get_limiter() -> anyio.CapacityLimiter:
    """Returns the limiter of this event loop. Reading a PDF is heavy, and the machine may have few cores."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_MAX_PARALLEL)
        _limiter.set(limiter)
        return limiter
