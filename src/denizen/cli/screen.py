"""What may reach a terminal. Text of models, tools, pages and other people could hold control sequences that hide what
is shown, rename the window or type into the shell; it passes through here before it is printed.
"""

from __future__ import annotations

import json
import re

import click

_KEPT = frozenset("\n\t")
_UNFIT = (*range(32), *range(0x7F, 0xA0), *range(0xD800, 0xE000))
_SHOWN = {code: "\ufffd" for code in _UNFIT if chr(code) not in _KEPT} | {ord("\r"): None}
"""Carriage returns go, since they write over what stands there; other control characters, and halves of surrogate
pairs, which cannot be written at all, leave a mark.
"""
_BARE_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")

IN_THE_END = "As it stands in the end:"
"""Before a reply that is not what was streamed."""


def printable(text: str) -> str:
    """The text with no control characters but line breaks and tabs."""
    return text.translate(_SHOWN)


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """`click.echo` for text from outside."""
    click.echo(printable(text), nl=nl, err=err)


def describe_picture(url: str) -> str:
    """A picture of an answer, given as a data URI, which a terminal cannot show."""
    media_type, _, body = url.removeprefix("data:").partition(";base64,")
    return f"[a picture: {media_type}, {len(body) * 3 // 4 // 1024 + 1} KiB]"


def printable_json(value: object) -> str:
    """One line of JSON that reads back as the same value, with every control character escaped."""
    return _BARE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
