"""The process that reads a PDF: bytes on stdin, lines of JSON on stdout. Started by `pdf`, which may kill it.

The first line is `{"pages": N}`, then `{"text": ...}` for each page, then `{"done": true}`, or `{"why": ...}` when it
stops early. On a broken PDF it simply dies: what went wrong is of no use to anybody.
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

    # pypdf opens files with an empty password by itself; it loads its ciphers when they are needed.
    data = sys.stdin.buffer.read()
    _confine()
    try:
        reader = PdfReader(io.BytesIO(data))
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        _say(why="it is encrypted")
        return
    _say(pages=count)
    room = MAX_TEXT_BYTES
    for page in reader.pages[:MAX_PAGES]:
        text = page.extract_text().encode(errors="replace")
        _say(text=text[:room].decode(errors="ignore"))
        room -= len(text)
        if room < 0:
            _say(why="it is long")
            return
    if count > MAX_PAGES:
        _say(why="it is long")
        return
    _say(done=True)


def _confine() -> None:
    for limit, value in _LIMITS:
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


def _say(**line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
