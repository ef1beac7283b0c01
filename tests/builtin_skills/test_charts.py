"""Charts as pictures: every kind draws, and data that would mislead is refused."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import get_args

import pytest
from PIL import Image

from denizen.builtin_skills.charts import KINDS, KindName, skill
from denizen.skill import Json, JsonObject, SkillToolset, ToolResult
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio


def charts(tmp_path: Path) -> SkillToolset:
    return SkillToolset(skill, ServicesFixture(tmp_path).services())


def read_picture(result: ToolResult) -> Image.Image:
    assert not result.is_error, result.text
    images = result.data["images"]
    assert isinstance(images, list)
    [image] = images
    assert isinstance(image, dict)
    return Image.open(io.BytesIO(base64.b64decode(str(image["url"]).partition(",")[2])))


async def draw(tmp_path: Path, kind: str) -> Image.Image:
    series: list[Json] = [{"name": "2025 \U0001f680", "values": [3, 1.5, 4]}]
    if not KINDS[kind].is_single:
        series.append({"name": "2026", "values": [2, 7, 1]})
    arguments: JsonObject = {"kind": kind, "series": series, "labels": ["a", "b $1", "c"], "title": "$1"}
    return read_picture(await run(charts(tmp_path), "draw_chart", arguments | {"axes": ["what", "how"]}))


@pytest.mark.proves("V-skill-graph-renderer")
@pytest.mark.parametrize("kind", get_args(KindName))
async def test_every_kind_draws_a_picture(tmp_path: Path, kind: str) -> None:
    image = await draw(tmp_path, kind)
    assert image.size == (1080, 648)
    found = image.convert("RGB").getcolors(maxcolors=1_000_000)
    assert found is not None
    assert len(found) > 20, "it is not blank"


@pytest.mark.proves("V-skill-graph-renderer")
async def test_there_are_twenty_kinds_and_no_two_draw_the_same(tmp_path: Path) -> None:
    pictures = {(await draw(tmp_path, kind)).tobytes() for kind in get_args(KindName)}
    assert len(pictures) == len(KINDS) == 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "cake", "series": [{"values": [1]}]}, "kind"),
        ({"kind": "bar", "series": []}, "series"),
        ({"kind": "bar", "series": [{"values": []}]}, "0 values"),
        ({"kind": "bar", "series": [{"values": [1, 2]}], "labels": ["a"]}, "2 values, but there are 1 labels"),
        ({"kind": "bar", "series": [{"values": [1, 2]}, {"name": "b", "values": [1]}]}, "equally many"),
        ({"kind": "pie", "series": [{"values": [1, -2]}]}, "negative"),
        ({"kind": "pie", "series": [{"values": [1]}, {"values": [1]}]}, "one series"),
        ({"kind": "radar", "series": [{"values": [1, 2]}]}, "at least three"),
        ({"kind": "scatter", "series": [{"values": [1, 2], "x": [1]}]}, "1 of x"),
        ({"kind": "line", "series": [{"values": [1e300]}]}, "not an ordinary number"),
    ],
)
async def test_data_that_would_mislead_is_refused(tmp_path: Path, arguments: JsonObject, said: str) -> None:
    result = await run(charts(tmp_path), "draw_chart", arguments)
    assert result.is_error
    assert said in result.text


async def test_many_values_and_labels_stay_readable(tmp_path: Path) -> None:
    values: list[Json] = [float(n % 17) for n in range(400)]
    labels: list[Json] = [f"day {n}" for n in range(400)]
    arguments: JsonObject = {"kind": "line", "series": [{"values": values}], "labels": labels}
    read_picture(await run(charts(tmp_path), "draw_chart", arguments))
