"""Tables drawn as pictures, since chat programs show them badly as text. Emoji keep their colours."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from denizen.builtin_skills.text_rendering import Colour, TextRenderer
from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput, truncate

skill = Skill("tables", description="Tables drawn as pictures.")

MAX_CELL_CHARS = 300
MAX_COLUMN_PX = 420
MAX_SIDE_PX = 8000
"""Chat programs shrink larger pictures beyond reading."""

SIZE = 22
PAD = 12
MARGIN = 18

_PAPER: Colour = (255, 255, 255)
_STRIPE: Colour = (244, 246, 250)
_HEAD: Colour = (47, 60, 92)
_HEAD_TEXT: Colour = (255, 255, 255)
_TEXT: Colour = (28, 32, 40)
_LINE: Colour = (210, 215, 225)
_NUMBER = re.compile(r"[-+−]?[\d.,\s]*\d[\d.,]*\s?(?:%|[$€£¥]|[kKMGT]?B?)?|[$€£¥][\d.,]+")


@dataclass(frozen=True, slots=True)
class _Grid:
    """Lines of text by row and column, the header first, with widths and heights in pixels."""

    cells: Sequence[Sequence[Sequence[str]]]
    widths: Sequence[int]
    heights: Sequence[int]
    is_number: Sequence[bool]


@skill.tool(tier=Tier.HARMLESS, read_only=True)
def draw_table(
    context: ToolContext,
    columns: Annotated[list[str], Param("headings", min_length=1, max_length=12)],
    rows: Annotated[list[list[str]], Param("cells of each row, as text", min_length=1, max_length=100)],
    title: Annotated[str, Param(max_length=150)] = "",
) -> ToolOutput:
    """Draws a table as a picture, with emoji. The user sees the picture."""
    del context
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ToolError(f"Row {number} has {len(row)} cells, but there are {len(columns)} columns.")
    grid = _lay_out([columns, *rows])
    picture = _draw(grid, title.strip())
    shown: JsonObject = {"url": f"data:image/png;base64,{base64.b64encode(picture).decode()}", "title": title}
    size = f"{len(rows)} {'row' if len(rows) == 1 else 'rows'} and {len(columns)} columns"
    return ToolOutput(f"The table with {size} is shown to the user.", {"images": [shown]})


def _lay_out(rows: Sequence[Sequence[str]]) -> _Grid:
    head, body = TextRenderer(SIZE, bold=True), TextRenderer(SIZE)
    cells: list[list[list[str]]] = []
    for number, row in enumerate(rows):
        letters = body if number else head
        cells.append([letters.wrap(truncate(cell, MAX_CELL_CHARS), MAX_COLUMN_PX) for cell in row])
    widths = [
        2 * PAD
        + round(max((body if number else head).width(line) for number, row in enumerate(cells) for line in row[at]))
        for at in range(len(rows[0]))
    ]
    heights = [2 * PAD + body.line_height * max(len(lines) for lines in row) for row in cells]
    numeric = [
        all(_NUMBER.fullmatch(row[at].strip()) for row in rows[1:] if row[at].strip()) for at in range(len(rows[0]))
    ]
    return _Grid(cells, widths, heights, numeric)


def _draw(grid: _Grid, title: str) -> bytes:
    from PIL import Image, ImageDraw

    heading = TextRenderer(round(SIZE * 1.25), bold=True)
    width = max(sum(grid.widths), round(heading.width(title)) if title else 0) + 2 * MARGIN
    top = MARGIN + (heading.line_height + PAD if title else 0)
    height = top + sum(grid.heights) + MARGIN
    # Before the picture is made, which could take gigabytes.
    if max(width, height) > MAX_SIDE_PX:
        raise ToolError("This table is too large to be read as a picture. Draw fewer rows, or shorter cells.")
    image = Image.new("RGB", (width, height), _PAPER)
    canvas = ImageDraw.Draw(image)
    if title:
        heading.draw(canvas, (MARGIN, MARGIN), title, _TEXT)
    y = top
    right = MARGIN + sum(grid.widths)
    for number, (row, row_height) in enumerate(zip(grid.cells, grid.heights, strict=True)):
        ground = _HEAD if number == 0 else _STRIPE if number % 2 == 0 else _PAPER
        canvas.rectangle((MARGIN, y, right, y + row_height), fill=ground)
        letters, colour = TextRenderer(SIZE, bold=number == 0), _HEAD_TEXT if number == 0 else _TEXT
        x = MARGIN
        for at, (lines, cell_width) in enumerate(zip(row, grid.widths, strict=True)):
            for place, line in enumerate(lines):
                left = x + (cell_width - PAD - letters.width(line) if grid.is_number[at] else PAD)
                letters.draw(canvas, (left, y + PAD + place * letters.line_height), line, colour)
            x += cell_width
        y += row_height
        canvas.line((MARGIN, y, right, y), fill=_LINE)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
