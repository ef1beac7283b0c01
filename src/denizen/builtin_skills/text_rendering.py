"""Draws text into pictures: letters of any script that a font here has, and emoji in colour.

`tables` and `charts` use it; it holds no tool. Pillow and Matplotlib are loaded with the first picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Colour = tuple[int, int, int]

EMOJI_FONT = Path(__file__).parent / "fonts" / "emoji.woff2"

_SHOWN_AS_EMOJI = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1\u26aa\u26ab\u26bd\u26be"
    "\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a\u270b\u2728\u274c\u274e\u2753-\u2755\u2757"
    "\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55"
)
"""Characters below U+1F000 that are shown as pictures by default (Unicode property Emoji_Presentation)."""
_ONE = f"(?:[\U0001f000-\U0001faff{_SHOWN_AS_EMOJI}]|[\u00a9\u00ae\u203c-\u3299](?=\ufe0f))"
_MODIFIED = f"{_ONE}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?[\U000e0020-\U000e007f]*"
_EMOJI = re.compile(f"([\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_MODIFIED}(?:\u200d{_MODIFIED})*)")
_FALLBACKS = 8
"""At most so many fonts of this computer are searched for letters that the first font lacks."""


class TextRenderer:
    """Measures, wraps and draws text of one size, in pixels; `bold` for headings."""

    def __init__(self, size: int, *, bold: bool = False) -> None:
        self.size = size
        self.line_height = round(size * 1.35)
        self._bold = bold

    def width(self, text: str) -> float:
        """Returns the width of one line, in pixels."""
        return sum(font.getlength(run) for font, run, _ in self._runs(text))

    def wrap(self, text: str, most: float) -> list[str]:
        """Returns the text in lines of at most that many pixels; a longer word is broken."""
        lines: list[str] = []
        for paragraph in text.splitlines() or [""]:
            line = ""
            for word in paragraph.split(" "):
                longer = f"{line} {word}" if line else word
                if self.width(longer) <= most:
                    line = longer
                    continue
                if line:
                    lines.append(line)
                pieces = [""]
                for piece in split_emoji(word):
                    for char in [piece] if _EMOJI.fullmatch(piece) else piece:
                        if pieces[-1] and self.width(pieces[-1] + char) > most:
                            pieces.append("")
                        pieces[-1] += char
                *full, line = pieces
                lines.extend(full)
            lines.append(line)
        return lines

    def draw(self, canvas: ImageDraw, at: tuple[float, float], text: str, colour: Colour) -> None:
        """Draws one line with its upper left corner at that position."""
        x, y = at
        for font, run, is_emoji in self._runs(text):
            top = y + (self.size * 0.13 if is_emoji else 0)
            canvas.text((x, top), run, fill=colour, font=font, embedded_color=is_emoji)
            x += font.getlength(run)

    def _runs(self, text: str) -> Iterator[tuple[FreeTypeFont, str, bool]]:
        for piece in split_emoji(text):
            if _EMOJI.fullmatch(piece):
                yield _font(str(EMOJI_FONT), round(self.size * 0.95)), piece, True
                continue
            for path, run in _by_font(piece, bold=self._bold):
                yield _font(path, self.size), run, False


def split_emoji(text: str) -> list[str]:
    """Returns the text as pieces that are one emoji each, or hold none."""
    return [piece for piece in _EMOJI.split(text) if piece]


def remove_emoji(text: str) -> str:
    """Returns the text without emoji, for programs that cannot draw them."""
    return " ".join(_EMOJI.sub("", text).split())


def _by_font(text: str, *, bold: bool) -> Iterator[tuple[str, str]]:
    """Yields runs of letters with the file of a font that has them. Letters that no font has are drawn by the first
    one, as boxes.
    """
    usual = _usual(bold=bold)
    path, run = usual, ""
    for char in text:
        best = path if char.isspace() and run else _find_font(char, usual)
        if best != path and run:
            yield path, run
            run = ""
        path, run = best, run + char
    if run:
        yield path, run


def find_font(char: str) -> str:
    """Returns the file of a font that has the letter; DejaVu where none has it."""
    return _find_font(char, _usual(bold=False))


def has_letter(char: str) -> bool:
    """Returns whether a font here has the letter."""
    return ord(char) in _coverage(find_font(char))


@lru_cache(maxsize=4096)
def _find_font(char: str, usual: str) -> str:
    code = ord(char)
    # Latin letters below U+0250 are in DejaVu; skipping the lookup makes usual text fast.
    if code < 0x250 or code in _coverage(usual):
        return usual
    return next((path for path in _installed() if code in _coverage(path)), usual)


@lru_cache(maxsize=2)
def _usual(*, bold: bool) -> str:
    import matplotlib as mpl

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return str(Path(mpl.get_data_path()) / "fonts" / "ttf" / name)


@lru_cache(maxsize=1)
def _installed() -> Sequence[str]:
    """Returns fonts of this computer that may have letters that DejaVu lacks, Noto's first."""
    from matplotlib import font_manager

    manager: Any = font_manager
    found: list[str] = manager.findSystemFonts(fontext="ttf")
    return sorted(found, key=lambda path: ("Noto" not in path, "Regular" not in path, path))[:_FALLBACKS]


@lru_cache(maxsize=_FALLBACKS + 2)
def _coverage(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that cannot be read has no letters
        return frozenset()


@lru_cache(maxsize=64)
def _font(path: str, size: int) -> FreeTypeFont:
    from PIL import ImageFont

    return ImageFont.truetype(path, size)
