"""The child process that reads a PDF: bytes on stdin, lines of JSON on stdout. `pdf` starts it, and may kill it.

The first line is `{"pages": N}`, then `{"text": ...}` for each page, then `{"done": true}`, or `{"why": ...}` when it
stops early. On a broken PDF it dies without a message: nobody could act on the details.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from contextlib import suppress

MAX_PAGES = 100
MAX_TEXT_BYTES = 256 * 1024

_LIMITS = (
    (resource.RLIMIT_AS, 1024 * 1024 * 1024),
    (resource.RLIMIT_CPU, 30),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NPROC, 0),
)


def main() -> None:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    # pypdf tries the empty password by itself. It imports its ciphers only for an encrypted file.
    data = sys.stdin.buffer.read()
    # After the imports and the input: the address space limit counts what they take, too.
    _limit_resources()
    try:
        reader = PdfReader(io.BytesIO(data))
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        _write(why="it is encrypted")
        return
    _write(pages=count)
    bytes_left = MAX_TEXT_BYTES
    for page in reader.pages[:MAX_PAGES]:
        text = page.extract_text().encode(errors="replace")
        _write(text=text[:bytes_left].decode(errors="ignore"))
        bytes_left -= len(text)
        if bytes_left < 0:
            _write(why="it is long")
            return
    if count > MAX_PAGES:
        _write(why="it is long")
        return
    _write(done=True)


def _limit_resources() -> None:
    for limit, value in _LIMITS:
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


def _write(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
