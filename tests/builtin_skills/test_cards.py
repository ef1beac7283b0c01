"""Cards with an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from denizen.builtin_skills.cards import skill
from denizen.domain.attachments import collect_extras
from denizen.domain.delivery import EmbedCard, MessageContent
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.tool import ToolResult
from denizen.skill import SkillToolset
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio


async def make(tmp_path: Path, *, on_platform: bool = True, **args: Json) -> ToolResult:
    toolset = SkillToolset(skill, ServicesFixture(tmp_path).services())
    where = replace(scope(), account=AgentName("ada") if on_platform else None)
    return await run(toolset, "make_embed", args, where)


@pytest.mark.proves("V-skill-utility")
async def test_a_card_has_everything_that_was_given(tmp_path: Path) -> None:
    result = await make(
        tmp_path,
        title="Menu",
        text="Today",
        fields={"Soup": "3 €", "Tea": "2 €"},
        color="#2F855a",
        image="https://a.example/tea.png",
        link="https://a.example",
    )
    assert result.text == "The card is shown with your answer."
    card = EmbedCard(
        "Menu", "Today", "https://a.example", "https://a.example/tea.png", (("Soup", "3 €"), ("Tea", "2 €")), 0x2F855A
    )
    assert collect_extras([result.data]) == (MessageContent("", (card,)),)


def test_a_color_is_read_in_either_spelling() -> None:
    made = [collect_extras([{"embeds": [{"title": "Hi", name: "#000001"}]}]) for name in ("color", "colour")]
    assert made == [(MessageContent("", (EmbedCard("Hi", colour=1),)),)] * 2


async def test_a_title_is_enough(tmp_path: Path) -> None:
    assert collect_extras([(await make(tmp_path, title="Hi")).data]) == (MessageContent("", (EmbedCard("Hi"),)),)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"title": "  "},
        {"title": "t", "color": "red"},
        {"title": "t", "image": "file:///etc/passwd"},
        {"title": "t", "link": "javascript:x"},
        {"title": "t" * 300},
        {"fields": {str(n): "x" for n in range(26)}},
    ],
)
async def test_what_cannot_be_a_card_is_refused(tmp_path: Path, args: dict[str, Json]) -> None:
    result = await make(tmp_path, on_platform=True, **args)
    assert result.is_error
    assert not result.data


async def test_a_card_is_made_off_platforms_too(tmp_path: Path) -> None:
    result = await make(tmp_path, on_platform=False, title="Menu")
    assert not result.is_error
    assert result.data["embeds"]
