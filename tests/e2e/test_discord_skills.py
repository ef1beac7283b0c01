"""Skills that act on Discord, through whole turns of real processes: asked, approved, done once, chosen from."""

from __future__ import annotations

import pytest

from denizen.testing.discord import DiscordPermission
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SKILLS = """\
tools: {discord: {enabled: true}, components: {enabled: true}}
gate:
  tiers: {post_choices: 1, post_role_menu: 1, send_message: 1}
  rules:
  - {tool: send_message, action: ask, reason: it speaks elsewhere}
"""
NEWS = ModelCall("send_message", {"channel": "news", "text": "The ferry is late. @everyone"})


@pytest.mark.proves("V-skill-discord", "P1")
async def test_a_message_that_was_approved_stands_once_though_the_process_was_killed_over_it(
    deployment: DiscordDeployment,
) -> None:
    news = deployment.guild.add_channel("news")
    deployment.configure(rest=SKILLS)
    deployment.script(ModelAnswer(calls=[NEWS]))
    async with deployment.run() as first:
        deployment.ask(deployment.ben, "tell them that the ferry is late")
        sending = deployment.discord.faults.hold("POST", f"/channels/{news.id}/messages", when="after")
        await deployment.press(deployment.ben, await deployment.find_card(), "Approve")
        await sending.wait_reached()
        assert len(deployment.said(news)) == 1
        await first.kill()
    sending.release()
    deployment.script("They know.")
    async with deployment.run():
        await deployment.until(lambda: "They know." in deployment.said())
    (sent,) = deployment.posts(news)
    assert not sent.mentioned.everyone
    assert f"/{sent.id}" in str(deployment.requests[-1])


@pytest.mark.proves("V-skill-discord")
async def test_who_may_not_write_there_gets_nothing_written_and_nobody_is_asked(deployment: DiscordDeployment) -> None:
    secret = deployment.guild.add_channel("news", private_to=[deployment.ada.user])
    deployment.configure(rest=SKILLS)
    deployment.script(ModelAnswer(calls=[NEWS]), "There is no such channel.")
    async with deployment.run():
        deployment.ask(deployment.ben, "tell them that the ferry is late")
        await deployment.until(lambda: "There is no such channel." in deployment.said())
    assert deployment.said() == ["There is no such channel."]
    assert not deployment.said(secret)
    assert "There is no channel 'news' that you can see" in str(deployment.requests[-1])


@pytest.mark.proves("V-skill-components")
async def test_what_somebody_chooses_is_told_to_the_agent_after_a_restart_too(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=SKILLS)
    offer = {"text": "Which pier?", "choices": [{"label": "Pier 1"}, {"label": "Pier 3"}]}
    deployment.script(ModelAnswer(calls=[ModelCall("post_choices", offer)]), "Choose.")
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "ask them which pier")
        await deployment.until(lambda: "Choose." in deployment.said())
        await first.kill()
    posted = next(each for each in deployment.posts() if each.body.components)
    deployment.script("Pier 3 it is.")
    async with deployment.run():
        await deployment.press(deployment.ben, posted, "Pier 3")
        await deployment.until(lambda: "Pier 3 it is." in deployment.said())
    said = deployment.requests[-1].body["messages"][-1]["content"]
    assert '[chose, under your message "Which pier?":] Pier 3' in str(said)


@pytest.mark.proves("V-skill-components")
async def test_members_give_themselves_roles_without_the_model(deployment: DiscordDeployment) -> None:
    guild = deployment.guild
    guild.set_roles(deployment.ada.user, [guild.add_role("giver", permissions=DiscordPermission.MANAGE_ROLES)])
    sailor = guild.add_role("sailor")
    deployment.configure(rest=SKILLS)
    menu = {"text": "Who are you?", "roles": ["sailor"]}
    deployment.script(ModelAnswer(calls=[ModelCall("post_role_menu", menu)]), "There it is.")
    async with deployment.run():
        deployment.ask(deployment.ana, "make a menu for the sailors")
        await deployment.until(lambda: "There it is." in deployment.said())
        asked = len(deployment.requests)
        posted = next(each for each in deployment.posts() if each.body.components)
        used = await deployment.press(deployment.ben, posted, "sailor")
        (told,) = await used.until_followups(timeout_s=HANG_LIMIT_S)
        assert (told.content, told.origin.seen_by) == ("You have now: sailor.", deployment.ben)
        assert sailor.id in guild.members[deployment.ben.id].roles
        assert len(deployment.requests) == asked
