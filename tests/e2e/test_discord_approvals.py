"""A call that waits for its asker on Discord, with real processes: killed, restarted, pressed, it runs once."""

from __future__ import annotations

import pytest

from denizen.testing.discord import SimMessage, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P2", "VW2", "T-approval-discord")]

NOTE = ModelCall("append_note", {"name": "shopping", "text": "- milk"})
ASKS = """\
gate:
  rules:
  - {tool: append_note, action: ask, reason: notes are kept for ever}
"""
SHORT = """\
gate:
  approvals: {timeout_s: 1}
  rules:
  - {tool: append_note, action: ask}
"""


def noted(harbour: Harbour) -> str:
    return "".join(file.read_text() for file in harbour.home.folder.glob("agents/ada/notes/rooms/*/shopping.md"))


def buttons(card: SimMessage) -> dict[str, str]:
    """The ids of a card's buttons by their labels."""
    return {each["label"]: each["custom_id"] for row in card.components for each in row["components"]}


async def card_of(harbour: Harbour) -> SimMessage:
    await harbour.until(lambda: any("Approval needed" in text for text in harbour.said()))
    return next(post for post in harbour.posts() if "Approval needed" in post.content)


async def press(harbour: Harbour, who: SimUser, card: SimMessage, label: str) -> None:
    used = await harbour.world.press(who, card, buttons(card)[label])
    assert used.acknowledged


async def told(harbour: Harbour, who: SimUser, card: SimMessage, custom_id: str) -> str:
    """Returns the answer to a press of that button, which only the one who pressed it sees."""
    used = await harbour.world.press(who, card, custom_id)
    await harbour.until(lambda: used.answers)
    assert used.answers[0].seen_by is who
    return used.answers[0].content


async def test_asked_killed_restarted_and_pressed_it_runs_once(harbour: Harbour) -> None:
    harbour.configure(rest=ASKS)
    harbour.script(ModelAnswer(calls=[NOTE]))
    async with harbour.run() as first:
        question = harbour.ask(harbour.ana, "put milk on the list")
        card = await card_of(harbour)
        assert card.reference is not None
        assert card.reference.message_id == question.id
        assert '"- milk"' in card.content
        await first.kill()
    assert not noted(harbour)
    harbour.script("Noted.")
    async with harbour.run():
        await press(harbour, harbour.ana, card, "Approve")
        await harbour.until(lambda: "Noted." in harbour.said())
        await harbour.until(lambda: not card.components)
        assert "approved by" in card.content
        assert noted(harbour) == "- milk\n"
        assert len([text for text in harbour.said() if "asked by" in text]) == 1


async def test_a_stranger_is_told_no_in_private_and_the_second_press_what_was_decided(harbour: Harbour) -> None:
    harbour.configure(rest=ASKS)
    harbour.script(ModelAnswer(calls=[NOTE]), "Noted.")
    async with harbour.run():
        harbour.ask(harbour.ana, "put milk on the list")
        card = await card_of(harbour)
        ids = buttons(card)
        assert "not yours to decide" in await told(harbour, harbour.ben, card, ids["Approve"])
        assert not noted(harbour)
        edit = harbour.discord.faults.hold("PATCH", times=1)  # the card keeps its buttons a while
        await press(harbour, harbour.ana, card, "Approve")
        await harbour.until(lambda: noted(harbour))
        assert "decided already: approved by" in await told(harbour, harbour.ana, card, ids["For an hour here"])
        edit.release()
        await harbour.until(lambda: "Noted." in harbour.said())
        assert noted(harbour) == "- milk\n"


@pytest.mark.proves("T-approval-rejected")
async def test_a_no_asks_why_and_tells_the_model(harbour: Harbour) -> None:
    harbour.configure(rest=ASKS)
    harbour.script(ModelAnswer(calls=[NOTE]), "As you wish.")
    async with harbour.run():
        harbour.ask(harbour.ana, "put milk on the list")
        card = await card_of(harbour)
        opened = await harbour.world.press(harbour.ana, card, buttons(card)["Deny"])
        assert opened.modal is not None
        await harbour.world.submit_modal(harbour.ana, opened, {"why": "we have milk"})
        await harbour.until(lambda: "As you wish." in harbour.said())
        assert "we have milk" in str(harbour.requests[-1])
        assert "we have milk" in card.content
        assert not noted(harbour)


@pytest.mark.proves("T-approval-timeout")
async def test_pressed_too_late_it_does_not_run(harbour: Harbour) -> None:
    harbour.configure(rest=SHORT)
    harbour.script(ModelAnswer(calls=[NOTE]), "Nobody said yes.")
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "put milk on the list")
        card = await card_of(harbour)
        await first.kill()
    async with harbour.run():
        await harbour.until(lambda: "Nobody said yes." in harbour.said())
        await harbour.until(lambda: not card.components)
        assert "nobody approved it in time" in card.content
        assert not noted(harbour)
