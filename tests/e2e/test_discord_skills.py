"""Skills that act on Discord, through whole turns of real processes: asked, approved, done once, chosen from."""

from __future__ import annotations

import pytest

from denizen.testing.discord import DiscordPermission, SimMessage, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SKILLS = """\
tools: {discord: {enabled: true}, components: {enabled: true}}
gate:
  tiers: {post_choices: 1, post_role_menu: 1}
  rules:
  - {tool: send_message, action: ask, reason: it speaks elsewhere}
"""
NEWS = ModelCall("send_message", {"channel": "news", "text": "The ferry is late. @everyone"})


def buttons(message: SimMessage) -> dict[str, str]:
    """The ids of a message's buttons by their labels."""
    return {each["label"]: each["custom_id"] for row in message.components for each in row["components"]}


async def approve(harbour: Harbour, who: SimUser) -> None:
    await harbour.until(lambda: any("Approval needed" in text for text in harbour.said()))
    card = next(post for post in harbour.posts() if "Approval needed" in post.content)
    await harbour.world.press(who, card, buttons(card)["Approve"])


@pytest.mark.proves("V-skill-discord", "P1")
async def test_a_message_that_was_approved_stands_once_though_the_process_was_killed_over_it(harbour: Harbour) -> None:
    news = harbour.guild.add_channel("news")
    harbour.configure(rest=SKILLS)
    harbour.script(ModelAnswer(calls=[NEWS]))
    async with harbour.run() as first:
        harbour.ask(harbour.ben, "tell them that the ferry is late")
        sending = harbour.discord.faults.hold("POST", f"/channels/{news.id}/messages", when="after")
        await approve(harbour, harbour.ben)
        await sending.wait_reached()
        assert len(harbour.said(news)) == 1
        await first.kill()
    sending.release()
    harbour.script("They know.")
    async with harbour.run():
        await harbour.until(lambda: "They know." in harbour.said())
    (sent,) = harbour.posts(news)
    assert not sent.mention_everyone
    assert f"/{sent.id}" in str(harbour.requests[-1])


@pytest.mark.proves("V-skill-discord")
async def test_who_may_not_write_there_gets_nothing_written_whatever_was_approved(harbour: Harbour) -> None:
    secret = harbour.guild.add_channel("news", private_to=[harbour.ada.user])
    harbour.configure(rest=SKILLS)
    harbour.script(ModelAnswer(calls=[NEWS]), "There is no such channel.")
    async with harbour.run():
        harbour.ask(harbour.ben, "tell them that the ferry is late")
        await approve(harbour, harbour.ben)
        await harbour.until(lambda: "There is no such channel." in harbour.said())
    assert not harbour.said(secret)
    assert "There is no channel 'news' that you can see" in str(harbour.requests[-1])


@pytest.mark.proves("V-skill-components")
async def test_what_somebody_chooses_is_told_to_the_agent_after_a_restart_too(harbour: Harbour) -> None:
    harbour.configure(rest=SKILLS)
    offer = {"text": "Which pier?", "choices": [{"label": "Pier 1"}, {"label": "Pier 3"}]}
    harbour.script(ModelAnswer(calls=[ModelCall("post_choices", offer)]), "Choose.")
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "ask them which pier")
        await harbour.until(lambda: "Choose." in harbour.said())
        await first.kill()
    posted = next(each for each in harbour.posts() if each.components)
    harbour.script("Pier 3 it is.")
    async with harbour.run():
        await harbour.world.press(harbour.ben, posted, buttons(posted)["Pier 3"])
        await harbour.until(lambda: "Pier 3 it is." in harbour.said())
    said = harbour.requests[-1].body["messages"][-1]["content"]
    assert '[chose, under your message "Which pier?":] Pier 3' in str(said)


@pytest.mark.proves("V-skill-components")
async def test_members_give_themselves_roles_without_the_model(harbour: Harbour) -> None:
    guild = harbour.guild
    guild.set_roles(harbour.ada.user, [guild.add_role("giver", permissions=DiscordPermission.MANAGE_ROLES)])
    sailor = guild.add_role("sailor")
    harbour.configure(rest=SKILLS)
    menu = {"text": "Who are you?", "roles": ["sailor"]}
    harbour.script(ModelAnswer(calls=[ModelCall("post_role_menu", menu)]), "There it is.")
    async with harbour.run():
        harbour.ask(harbour.ana, "make a menu for the sailors")
        await harbour.until(lambda: "There it is." in harbour.said())
        asked = len(harbour.requests)
        posted = next(each for each in harbour.posts() if each.components)
        used = await harbour.world.press(harbour.ben, posted, buttons(posted)["sailor"])
        (told,) = await used.until_followups()
        assert (told.content, told.seen_by) == ("You have now: sailor.", harbour.ben)
        assert sailor.id in guild.members[harbour.ben.id].roles
        assert len(harbour.requests) == asked
