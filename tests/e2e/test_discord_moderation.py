"""A ban through whole turns of real processes: approved by the owner, and done only for who could do it themselves."""

from __future__ import annotations

import pytest

from denizen.testing.discord import DiscordPermission, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("V-skill-moderation")]

SKILLS = "tools: {moderation: {enabled: true}}\n"


def add_members(deployment: DiscordDeployment) -> tuple[SimUser, SimUser]:
    """Mo may ban, Dot is who it is about; the account may ban, too."""
    guild, world = deployment.guild, deployment.world
    mo, dot = world.add_person("Mo"), world.add_person("Dot")
    guild.join(dot)
    mods = guild.add_role("mods", permissions=DiscordPermission.BAN_MEMBERS)
    guild.join(mo, [mods])
    own = next(role for role in guild.roles.values() if role.bot_id == deployment.ada.id)
    own.permissions = DiscordPermission.BAN_MEMBERS | DiscordPermission.VIEW_CHANNEL
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest=SKILLS)
    return mo, dot


async def approve(deployment: DiscordDeployment, who: SimUser) -> str:
    """Presses the button of the card, and returns what stood on it."""
    card = await deployment.find_card()
    text = card.content
    await deployment.press(who, card, "Approve")
    return text


def bans(deployment: DiscordDeployment) -> list[str]:
    """The requests to Discord that bans were asked for with."""
    return [each.reason for each in deployment.discord.requests if each.method == "PUT" and "/bans/" in each.path]


async def test_who_may_not_ban_bans_nobody_and_the_owner_is_not_even_asked(deployment: DiscordDeployment) -> None:
    mo, dot = add_members(deployment)
    deployment.script(ModelAnswer(calls=[ModelCall("ban_member", {"member": mo.mention})]), "You may not.")
    async with deployment.run():
        deployment.ask(dot, "ban Mo")
        await deployment.until(lambda: "You may not." in deployment.said())
    assert deployment.said() == ["You may not."]
    assert not bans(deployment)
    assert not deployment.guild.bans
    assert "it takes the permission 'Ban Members'" in str(deployment.requests[-1])


async def test_what_the_account_may_not_do_is_told_without_asking_the_owner(deployment: DiscordDeployment) -> None:
    mo, dot = add_members(deployment)
    own = next(role for role in deployment.guild.roles.values() if role.bot_id == deployment.ada.id)
    own.permissions = DiscordPermission.VIEW_CHANNEL
    deployment.script(ModelAnswer(calls=[ModelCall("ban_member", {"member": str(dot.id)})]), "I may not.")
    async with deployment.run():
        deployment.ask(mo, "ban Dot")
        await deployment.until(lambda: "I may not." in deployment.said())
    assert deployment.said() == ["I may not."]
    assert "Give the account's role 'Ban Members'" in str(deployment.requests[-1])


async def test_who_lost_the_right_while_the_owner_decided_bans_nobody(deployment: DiscordDeployment) -> None:
    mo, dot = add_members(deployment)
    deployment.script(ModelAnswer(calls=[ModelCall("ban_member", {"member": dot.mention})]), "You may not any more.")
    async with deployment.run():
        deployment.ask(mo, "ban Dot")
        await deployment.find_card()
        deployment.guild.set_roles(mo, [])
        assert "ban_member" in await approve(deployment, deployment.ana)
        await deployment.until(lambda: "You may not any more." in deployment.said())
    assert not deployment.guild.bans


@pytest.mark.proves("P1")
async def test_what_a_moderator_asked_for_and_the_owner_approved_is_done_though_the_process_was_killed_over_it(
    deployment: DiscordDeployment,
) -> None:
    mo, dot = add_members(deployment)
    deployment.script(ModelAnswer(calls=[ModelCall("ban_member", {"member": str(dot.id), "reason": "spam"})]))
    async with deployment.run() as first:
        deployment.ask(mo, "ban Dot for spam")
        banning = deployment.discord.faults.hold("PUT", "/bans/", when="after")
        await approve(deployment, deployment.ana)
        await banning.wait_reached()
        await first.kill()
    banning.release()
    assert list(deployment.guild.bans) == [dot.id]
    deployment.script("Dot is banned.")
    async with deployment.run():
        await deployment.until(lambda: "Dot is banned." in deployment.said())
    assert list(deployment.guild.bans) == [dot.id]
    assert set(bans(deployment)) == {f"Asked for by mo ({mo.id}): spam"}
    assert f"Banned <@{dot.id}>" in str(deployment.requests[-1].body["messages"])
    assert len([text for text in deployment.said() if "asked by" in text]) == 1


async def test_a_warning_is_told_to_its_member_and_kept_for_all_agents(deployment: DiscordDeployment) -> None:
    """In the home folder, whichever agent was asked."""
    mo, dot = add_members(deployment)
    deployment.guild.set_roles(mo, [deployment.guild.add_role("watch", permissions=DiscordPermission.MODERATE_MEMBERS)])
    deployment.configure(rest=f"{SKILLS}gate: {{tiers: {{warn_member: 1}}}}\n")
    deployment.script(
        ModelAnswer(calls=[ModelCall("warn_member", {"member": dot.mention, "reason": "no spam"})]), "Dot is warned."
    )
    async with deployment.run():
        deployment.ask(mo, "warn Dot")
        await deployment.until(lambda: "Dot is warned." in deployment.said())
    [talk] = [each for each in deployment.world.channels if each.is_dm and dot in each.recipients]
    assert talk.texts == ["You were warned in Harbour by Mo: no spam"]
    book = deployment.home.folder / "moderation" / f"{deployment.guild.id}.json"
    assert '"no spam"' in book.read_text()
