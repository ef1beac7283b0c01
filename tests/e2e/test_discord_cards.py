"""A card that a tool makes is shown with the answer on Discord."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("V-skill-utility", "L9")
async def test_a_card_comes_with_the_answer(deployment: DiscordDeployment) -> None:
    deployment.configure(rest="tools: {cards: {enabled: true}}\n")
    args = {"title": "Menu", "fields": {"Soup": "3 €"}, "color": "#2f855a", "link": "https://menu.example"}
    async with deployment.run():
        deployment.script(ModelAnswer(calls=(ModelCall("make_embed", args),)), "Here it is.")
        deployment.ask(deployment.ana, "what is for lunch?")
        await deployment.until(lambda: "Here it is." in deployment.said())
    [reply] = deployment.posts()
    [card] = reply.body.embeds
    assert (card["title"], card["url"], card["color"]) == ("Menu", "https://menu.example", 0x2F855A)
    assert [(field["name"], field["value"]) for field in card["fields"]] == [("Soup", "3 €")]
