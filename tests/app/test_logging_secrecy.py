"""Planted secrets never get into the log: not in messages, fields or exceptions, in no style and no escaped form."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.app.home.secrets import FileSecrets
from denizen.app.logging import configure_logging

MARK = "Zq7"
"""What no log line has by itself, so that a secret that got out in any form is seen."""

LINE = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F).filter(str.isprintable), min_size=3, max_size=24)
SECRETS = st.one_of(
    LINE.map(lambda text: f"{MARK}{text.strip()}{MARK}"),
    st.lists(st.from_regex(r"[A-Za-z0-9+/=]{8,40}", fullmatch=True), min_size=2, max_size=4).map(
        lambda lines: "\n".join(f"{MARK}{line}" for line in lines)  # such as a private key
    ),
)
LEAD = st.text(max_size=12).filter(lambda text: MARK not in text)


@contextmanager
def logging_as(style: str, mask_of: FileSecrets) -> Generator[Path]:
    """The root logger as the command sets it up, put back in the end."""
    root, own = logging.getLogger(), logging.getLogger("denizen")
    handlers, levels = list(root.handlers), (root.level, own.level)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log"
        configure_logging(level="debug", style=style, mask=mask_of.mask, file=file)  # pyright: ignore[reportArgumentType]
        try:
            yield file
        finally:
            for handler in root.handlers:
                handler.close()
            root.handlers = handlers
            root.setLevel(levels[0])
            own.setLevel(levels[1])


def texts(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from (str(key), *texts(value))
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)
    else:
        yield str(node)


def fail(secret: str) -> None:
    try:
        raise ValueError(secret)
    except ValueError as error:
        raise RuntimeError(f"while using {secret!r}") from error


@pytest.mark.proves("L-config-masked")
@settings(max_examples=150)
@pytest.mark.parametrize("style", ["console", "json"])
@given(secret=SECRETS, lead=LEAD)
def test_no_planted_secret_gets_into_the_log(style: str, secret: str, lead: str) -> None:
    known = FileSecrets(Path("/home"), {"KEY": secret}, frozenset()).knowing(["KEY"])
    log = logging.getLogger("denizen.planted")
    with logging_as(style, known) as file:
        log.warning(f"{lead}{secret}")  # noqa: G004 - as careless code does
        log.info("sent %s to %r", secret, {"headers": [secret]})
        log.debug("fields", extra={"plain": secret, "nested": {"a": [lead, secret], secret: 1}, "quoted": repr(secret)})
        try:
            fail(secret)
        except RuntimeError:
            log.exception("fault %s", secret)
        written = file.read_text(encoding="utf-8")
    assert MARK not in written
    if style == "json":
        assert not [text for line in written.splitlines() for text in texts(json.loads(line)) if MARK in text]
