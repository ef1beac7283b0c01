"""Lays Markdown out as a PDF: headings, lists, tables, code, links and pictures, in any script that a font here has.

`files` uses it; it holds no tool. Nothing is read but what the caller's `load_picture` gives: pictures of the web are
never fetched, and HTML within the Markdown is shown as text. fpdf2 and Matplotlib's fonts are loaded with the first
document.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from denizen.builtin_skills.text_rendering import find_font, has_letter
from denizen.skill import ToolError

if TYPE_CHECKING:
    from fpdf import FPDF
    from markdown_it.token import Token

MAX_CHARS = 200_000
MAX_PIXELS = 20_000_000
"""The largest picture: a small file may hold one that takes gigabytes."""
FONT, CODE_FONT = "DejaVu", "DejaVuMono"
_FALLBACKS = 6
_PAGE_MM = 170
"""The width of the text on A4."""
_PX_MM = 25.4 / 96
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""The date in each file, so that the same text is the same file."""

LoadPicture = Callable[[str], bytes | None]
"""Returns the bytes of a picture by its path; None where there is none that may be shown."""


@dataclass(frozen=True, slots=True)
class RenderedPdf:
    """The file, and what of the text it does not show: letters that no font has, pictures that were not there."""

    data: bytes
    missing_letters: str
    missing_pictures: Sequence[str]


def render_pdf(markdown: str, load_picture: LoadPicture) -> RenderedPdf:
    """Returns the document on A4 pages. Raises ToolError for a text that is too long, or cannot be laid out, and where
    the extra `images` is not installed.
    """
    if len(markdown) > MAX_CHARS:
        raise ToolError(f"A document has at most {MAX_CHARS:,} characters; this one has {len(markdown):,}.")
    if find_spec("fpdf") is None or find_spec("matplotlib") is None:
        raise ToolError("PDFs need the package fpdf2, which the extra `images` brings.")
    from fpdf.errors import FPDFException

    pictures = _Pictures(load_picture)
    html = _to_html(markdown, pictures)
    rare = sorted({char for char in markdown if ord(char) > 0x24F and char.isprintable()})
    pdf = _open_pdf(rare)
    try:
        pdf.write_html(html, font_family=FONT, tag_styles=_styles())
        data = bytes(pdf.output())
    except (FPDFException, ValueError, RuntimeError, NotImplementedError, LookupError) as error:
        raise ToolError(f"This text cannot be laid out: {error}.") from error
    return RenderedPdf(data, "".join(char for char in rare if not has_letter(char)), pictures.missing)


class _Pictures:
    """Turns addresses of pictures into their bytes, and remembers those that are not there."""

    def __init__(self, load: LoadPicture) -> None:
        self._load = load
        self.missing: list[str] = []

    def to_html(self, source: str, label: str) -> str:
        picture = self._find(source)
        if picture is None:
            self.missing.append(source)
            return f"<i>[{escape(label or source)}]</i>"
        kind, data, (width, height) = picture
        shown_mm = min(width * _PX_MM, _PAGE_MM, 200 * width / height)
        points = shown_mm / 25.4 * 72  # fpdf takes a width without a unit for points
        return f'<img src="data:image/{kind};base64,{base64.b64encode(data).decode()}" width="{points:.0f}">'

    def _find(self, source: str) -> tuple[str, bytes, tuple[int, int]] | None:
        from PIL import Image, UnidentifiedImageError

        address = urlsplit(source)
        if address.scheme or address.netloc or not address.path:
            return None
        data = self._load(unquote(address.path))
        if data is None:
            return None
        try:
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    return None
                kind = (image.format or "").lower()
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
            return None
        return kind, data, (width, height)


def _to_html(markdown: str, pictures: _Pictures) -> str:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def show_picture(_: object, tokens: Sequence[Token], at: int, options: object, env: object) -> str:
        del options, env
        picture = tokens[at]
        return pictures.to_html(str(picture.attrs["src"]), "".join(_find_words(picture.children or ())))

    parser.add_render_rule("image", show_picture)
    tokens, options, env = parser.parse(markdown), parser.options, dict[str, object]()
    for token in tokens:
        _drop_anchors(token.children or ())
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):  # fpdf lays no marks out within the cells of a table
            text = "".join(_find_words(token.children or ()))
            token.children = [Token("text", "", 0, content=text)]
    return parser.renderer.render(tokens, options, env)


def _drop_anchors(tokens: Sequence[Token]) -> None:
    """Shows links within the document as underlined text: fpdf knows no places in it to lead to."""
    is_anchor = False
    for token in tokens:
        if token.type == "link_open":
            is_anchor = str(token.attrs.get("href", "")).startswith("#")
        if is_anchor and token.type in ("link_open", "link_close"):
            token.tag, token.attrs = "u", {}


def _find_words(tokens: Sequence[Token]) -> Iterator[str]:
    """Yields the text of a cell, without its marks."""
    for token in tokens:
        if token.children:
            yield from _find_words(token.children)
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        else:
            yield token.content


def _open_pdf(letters: Sequence[str]) -> FPDF:
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_margin(20)
    pdf.set_auto_page_break(auto=True, margin=20)
    pdf.set_creation_date(_EPOCH)
    folder = Path(find_font("a")).parent
    for style, name in (("", ""), ("B", "-Bold"), ("I", "-Oblique"), ("BI", "-BoldOblique")):
        pdf.add_font(FONT, style, folder / f"DejaVuSans{name}.ttf")
        pdf.add_font(CODE_FONT, style, folder / f"DejaVuSansMono{name}.ttf")
    others = {find_font(char) for char in letters} - {str(folder / "DejaVuSans.ttf")}
    fallbacks = sorted(others)[:_FALLBACKS]
    names = [f"Fallback{number}" for number in range(len(fallbacks))]
    for name, path in zip(names, fallbacks, strict=True):
        pdf.add_font(name, "", path)
    if names:
        pdf.set_fallback_fonts(names, exact_match=False)
    pdf.set_font(FONT, size=11)
    pdf.add_page()
    return pdf


def _styles() -> dict[str, Any]:
    from fpdf import FontFace, TextStyle

    def heading(size: int) -> TextStyle:
        return TextStyle(font_family=FONT, font_style="B", font_size_pt=size, t_margin=size / 4, b_margin=size / 8)

    return {
        "a": FontFace(color=(28, 84, 178), emphasis="UNDERLINE"),
        "code": FontFace(family=CODE_FONT),
        "pre": TextStyle(font_family=CODE_FONT, font_size_pt=9, t_margin=2, b_margin=2),
        "blockquote": TextStyle(color=(80, 88, 100), t_margin=2, b_margin=2, l_margin=6),
        **{f"h{level}": heading(size) for level, size in enumerate((22, 17, 14, 12, 11, 11), 1)},
    }


def pdf_path(path: str) -> str:
    """Returns where the PDF of a Markdown file goes, if nobody says so: beside it, by the same name."""
    return str(PurePosixPath(path).with_suffix(".pdf"))
