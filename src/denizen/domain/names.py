"""Names that people choose for themselves, for roles and for rooms, as a model reads them. Pure.

A name that stands in what somebody else says is a stranger's text among the words of the one who asks. So it is shown
there as one short token, and one that could be an instruction is not shown at all: the platform's form with the id
stays in its place.
"""

from __future__ import annotations

import re
import unicodedata

MAX_NAME_CHARS = 80
MAX_TOKEN_WIDTH = 32
MAX_TOKEN_WORDS = 3

_BREAKS = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Controls, invisible formatting, and separators of lines: categories of Unicode."""
_WIDE = frozenset("FW")
_CHARS_OF_WIDE = 3
"""A script without spaces says as much with one character as others with several."""
_SENTENCE = re.compile(r"""[,;:!?="`<>{}\\]|\w[(\[]""")
"""Signs of a sentence, of a line of a transcript, of code, or of a call."""


def format_name(name: str) -> str:
    """A name as it stands in front of what its owner says: on one line and short."""
    words = "".join(" " if unicodedata.category(char) in _BREAKS else char for char in name[: 4 * MAX_NAME_CHARS])
    return " ".join(words.split())[:MAX_NAME_CHARS] or "somebody"


def quote_name(name: str) -> str:
    """Returns a name as a token for the words of others, in quotes where it has several words; empty for a name that is
    longer than names are, or reads like a sentence.
    """
    plain = format_name(name)
    width = sum(_CHARS_OF_WIDE if unicodedata.east_asian_width(char) in _WIDE else 1 for char in plain)
    words = sum(any(char.isalpha() for char in word) for word in plain.split())
    if width > MAX_TOKEN_WIDTH or words > MAX_TOKEN_WORDS or _SENTENCE.search(plain):
        return ""
    return f'"{plain}"' if " " in plain else plain
