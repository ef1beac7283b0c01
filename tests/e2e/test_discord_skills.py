"""Skills that act on Discord, through whole turns of real processes: asked, approved, done once, chosen from."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

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


@pytest.mark.proves("V21", "V-skill-server-management", "V-skill-user-management")
async def test_a_server_and_its_members_are_managed_and_what_destroys_is_asked_about_though_the_observer_said_yes(
    deployment: DiscordDeployment,
) -> None:
    guild = deployment.guild
    rights = DiscordPermission.MANAGE_CHANNELS | DiscordPermission.MANAGE_NICKNAMES
    guild.set_roles(deployment.ada.user, [guild.add_role("crew", permissions=rights)])
    old = guild.add_channel("old")
    deployment.configure(
        conduct=[f'owners: ["{deployment.ana.id}"]'],
        aliases={"watcher": "local/watcher"},
        rest="tools: {server: {enabled: true}, members: {enabled: true}}\n"
        "gate: {tiers: {create_channel: 1, set_nickname: 1}, observer: {model: watcher}}\n",
    )
    made = [
        ModelCall("create_channel", {"name": "bow"}, id="c1"),
        ModelCall("set_nickname", {"member": "Ben", "nickname": "Benny"}, id="c2"),
    ]
    deployment.script(
        ModelAnswer(calls=made),
        ModelAnswer(calls=[ModelCall("delete_channel", {"channel": "old"})]),
        json.dumps({"decision": "approve", "reason": "it was asked for"}),
        "All done.",
    )
    async with deployment.run():
        deployment.ask(deployment.ana, "make a bow, call Ben Benny, and take the old one away")
        await deployment.until(lambda: old.deleted or deployment.said())
        assert not old.deleted
        card = await deployment.find_card()
        assert deployment.requests[2].body["model"] == "watcher"
        assert "bow" in [channel.name for channel in guild.channels.values()]
        assert guild.members[deployment.ben.id].nick == "Benny"
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: "All done." in deployment.said())
    assert old.deleted


@pytest.mark.proves("V-skill-graph-renderer", "V-skill-table-renderer")
async def test_a_chart_and_a_table_are_pictures_under_the_answer(deployment: DiscordDeployment) -> None:
    deployment.configure(rest="tools: {charts: {enabled: true}, tables: {enabled: true}}\n")
    chart = {"kind": "bar", "series": [{"values": [3, 1]}], "labels": ["May", "June"], "title": "Boats"}
    table = {"columns": ["Who", "How"], "rows": [["Ann", "\U0001f389"]], "title": "Crew"}
    calls = [ModelCall("draw_chart", chart, id="c1"), ModelCall("draw_table", table, id="c2")]
    deployment.script(ModelAnswer(calls=calls), "Here they are.")
    async with deployment.run():
        deployment.ask(deployment.ben, "how many boats, and who?")
        await deployment.until(lambda: sum(len(post.body.embeds) for post in deployment.posts()) == 2)
    assert deployment.said()[0] == "Here they are."
    embeds = [embed for post in deployment.posts() for embed in post.body.embeds]
    assert [embed["title"] for embed in embeds] == ["Boats", "Crew"]
    for embed, file in zip(embeds, deployment.discord.store.files.by_id.values(), strict=True):
        assert embed["image"]["url"].endswith(file.filename)
        assert Image.open(io.BytesIO(file.content)).format == "PNG"
    assert "base64" not in str(deployment.requests[-1].body)
