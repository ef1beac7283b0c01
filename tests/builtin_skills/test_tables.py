"""Tables as pictures: what is drawn, in which letters, and what is refused."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from denizen.builtin_skills.tables import MAX_COLUMN_PX, skill
from denizen.builtin_skills.text_rendering import TextRenderer, remove_emoji, split_emoji
from denizen.skill import Json, SkillToolset, ToolResult
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio


async def draw(tmp_path: Path, columns: list[str], rows: list[list[str]]) -> ToolResult:
    toolset = SkillToolset(skill, ServicesFixture(tmp_path).services())
    return await run(toolset, "draw_table", {"columns": cast("Json", columns), "rows": cast("Json", rows)})


def read_picture(data: Any) -> Image.Image:
    [image] = data["images"]
    return Image.open(io.BytesIO(base64.b64decode(image["url"].partition(",")[2]))).convert("RGB")


def colours(image: Image.Image) -> set[tuple[int, ...]]:
    found = image.getcolors(maxcolors=1_000_000)
    assert found is not None
    return {colour for _, colour in found if isinstance(colour, tuple)}


@pytest.mark.proves("V-skill-table-renderer")
async def test_a_table_is_a_picture_in_which_emoji_have_their_colours(tmp_path: Path) -> None:
    plain = await draw(tmp_path, ["Who", "How"], [["Ann", "well"]])
    bright = await draw(tmp_path, ["Who", "How"], [["Ann", "\U0001f389 \U0001f1e9\U0001f1ea"]])
    assert not bright.is_error
    red = {colour for colour in colours(read_picture(bright.data)) if colour[0] > 180 and max(colour[1:]) < 90}
    assert red, "the flag has a red stripe"
    assert not {colour for colour in colours(read_picture(plain.data)) if colour[0] > 180 and max(colour[1:]) < 90}


@pytest.mark.proves("V-skill-table-renderer")
async def test_the_words_of_each_column_and_cell_are_in_the_picture(tmp_path: Path) -> None:
    """The words are as wide as each other, so nothing but the letters themselves can differ."""
    tables = [(["on"], [["on"]]), (["no"], [["on"]]), (["on"], [["no"]])]
    pictures = [read_picture((await draw(tmp_path, columns, rows)).data) for columns, rows in tables]
    assert len({picture.size for picture in pictures}) == 1
    assert len({picture.tobytes() for picture in pictures}) == len(tables)


async def test_long_cells_make_the_table_taller_and_not_endlessly_wide(tmp_path: Path) -> None:
    short = read_picture((await draw(tmp_path, ["a"], [["b"]])).data)
    long = read_picture((await draw(tmp_path, ["a"], [["word " * 50]])).data)
    assert long.height > 2 * short.height
    assert long.width < MAX_COLUMN_PX + 100


@pytest.mark.parametrize(
    ("columns", "rows", "said"),
    [
        (["a", "b"], [["1", "2"], ["1"]], "Row 2 has 1 cells"),
        ([], [["1"]], "columns"),
        (["a"], [], "rows"),
        (["a"] * 13, [["1"] * 13], "columns"),
        (["a"], [["1"]] * 101, "rows"),
        (["a"], [["w" * 300 + "x"]] * 100, "too large"),
    ],
)
async def test_what_cannot_be_a_readable_table_is_refused(
    tmp_path: Path, columns: list[str], rows: list[list[str]], said: str
) -> None:
    result = await draw(tmp_path, columns, rows)
    assert result.is_error
    assert said in result.text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("plain 12 #1", ["plain 12 #1"]),
        ("a\U0001f600b", ["a", "\U0001f600", "b"]),
        ("\U0001f469\u200d\U0001f4bb", ["\U0001f469\u200d\U0001f4bb"]),
        ("\U0001f44d\U0001f3fd\U0001f44d", ["\U0001f44d\U0001f3fd", "\U0001f44d"]),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]),
        ("2\ufe0f\u20e3", ["2\ufe0f\u20e3"]),
        ("\u2764\ufe0f \u2713", ["\u2764\ufe0f", " \u2713"]),
        ("\u65e5\u672c", ["\u65e5\u672c"]),
    ],
)
def test_emoji_are_told_from_text(text: str, pieces: list[str]) -> None:
    assert split_emoji(text) == pieces


def test_text_without_emoji_has_no_holes() -> None:
    assert remove_emoji("Tue \U0001f680 late") == "Tue late"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.integers(60, 300))
def test_wrapped_lines_fit_and_hold_every_letter(text: str, most: int) -> None:
    letters = TextRenderer(20)
    lines = letters.wrap(text, most)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(letters.width(line) <= most or len(split_emoji(line)) == 1 for line in lines)
