"""A tour through the API with discord.py: every kind of request that it makes."""

from __future__ import annotations

import io
from datetime import timedelta

import discord
import pytest

from denizen.testing.discord import DiscordServer, SimChannel, SimPollDraft, SimUser, file
from tests.testing.discord.bots import Bot


class CommandBot(Bot):
    """A bot with one of each kind of command."""

    async def setup_hook(self) -> None:
        @self.tree.command(name="ask", description="Asks.")
        async def ask(interaction: discord.Interaction, text: str, to: discord.Member | None = None) -> None:
            await interaction.response.defer()
            await interaction.followup.send(f"about {text}")
            await interaction.followup.send("and more", ephemeral=True)
            await interaction.edit_original_response(content="edited")
            await interaction.original_response()

        @self.tree.command(name="form", description="Opens a form.")
        async def form(interaction: discord.Interaction) -> None:
            await interaction.response.send_modal(Form())

        @self.tree.context_menu(name="Look")
        async def look(interaction: discord.Interaction, message: discord.Message) -> None:
            await interaction.response.send_message(f"seen {message.content}", ephemeral=True)

        await self.tree.sync()


class Form(discord.ui.Modal, title="Form"):
    name = discord.ui.TextInput[discord.ui.View](label="Name")

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"hello {self.name.value}", view=Buttons())


class Buttons(discord.ui.View):
    @discord.ui.button(label="Yes", custom_id="yes")
    async def yes(self, interaction: discord.Interaction, button: discord.ui.Button[discord.ui.View]) -> None:
        await interaction.response.edit_message(content="yes", view=self)

    @discord.ui.select(custom_id="pick", options=[discord.SelectOption(label="One"), discord.SelectOption(label="Two")])
    async def pick(self, interaction: discord.Interaction, select: discord.ui.Select[discord.ui.View]) -> None:
        await interaction.response.defer()


async def call_messages(bot: Bot, server: DiscordServer, channel_id: int, ana: SimUser) -> None:
    channel = bot.get_channel(channel_id)
    assert isinstance(channel, discord.TextChannel)
    world = server.world
    sim = world.guilds[0]
    talk = sim.channel("general")
    sticker = sim.add_sticker("wave")
    said = world.say(
        ana, talk, f"{talk.mention} look", attachments=[file("a.png", b"x"), file("b.txt", "b")], stickers=[sticker]
    )
    world.say(ana, talk, "poll", poll=SimPollDraft("Tea?", ["yes", "no"]))
    world.react(ana, said, "👍")
    sent = await channel.send("plain", nonce="abc")
    embed = discord.Embed(title="T", description="D", url="https://example.org", colour=3, timestamp=sent.created_at)
    embed.add_field(name="a", value="b").set_footer(text="f").set_author(name="x").set_image(url="attachment://a.txt")
    rich = await channel.send(embed=embed, file=discord.File(io.BytesIO(b"hello"), "a.txt"), view=Buttons(timeout=None))
    await rich.edit(content="more", attachments=[discord.File(io.BytesIO(b"new"), "n.txt")])
    await sent.reply("back")
    poll = discord.Poll("Sun?", timedelta(hours=2))
    poll.add_answer(text="yes", emoji="🌞").add_answer(text="no")
    polled = await channel.send(poll=poll)
    await polled.end_poll()
    await (await channel.fetch_message(said.id)).forward(channel)
    await sent.add_reaction("🎉")
    async for _ in (await channel.fetch_message(sent.id)).reactions[0].users():
        pass
    await sent.remove_reaction("🎉", get_own_member(bot))
    await (await channel.fetch_message(said.id)).clear_reactions()
    await sent.pin()
    assert [each.id async for each in channel.pins()] == [sent.id]
    await sent.unpin()
    async with channel.typing():
        pass
    found = [each async for each in channel.history(limit=None)]
    assert len(found) == len(talk.messages)
    view = discord.ui.LayoutView()
    view.add_item(discord.ui.Container(discord.ui.TextDisplay("hi"), accent_colour=3))
    await channel.send(view=view)
    more = [await channel.send(str(each)) for each in range(3)]
    await channel.delete_messages(more)
    await sent.delete()
    thread = await rich.create_thread(name="talk")
    await thread.send("in the thread")
    await thread.leave()
    await thread.join()
    assert await thread.fetch_members()
    await thread.edit(name="new name", archived=True)
    assert [each.id async for each in channel.archived_threads()] == [thread.id]
    person = await bot.fetch_user(ana.id)
    await person.send("hello")


def get_own_member(bot: Bot) -> discord.Member:
    return bot.guilds[0].me


async def call_channels(bot: Bot, guild_id: int, channel_id: int, forum_id: int) -> None:
    guild = bot.get_guild(guild_id)
    assert guild is not None
    category = await guild.create_category("Cat")
    text = await guild.create_text_channel("made", category=category, topic="t", slowmode_delay=3)
    await text.set_permissions(guild.default_role, view_channel=False)
    await text.set_permissions(guild.default_role, overwrite=None)
    await text.edit(topic="new")
    invite = await text.create_invite(max_age=60)
    await text.invites()
    await guild.invites()
    await bot.fetch_invite(invite.code)
    await invite.delete()
    hook = await text.create_webhook(name="hook")
    sent = await hook.send("by hook", username="Somebody", wait=True)
    await sent.edit(content="changed")
    await sent.delete()
    await text.webhooks()
    place = await guild.create_voice_channel("quay")
    begins = discord.utils.utcnow() + timedelta(days=1)
    level = discord.PrivacyLevel.guild_only
    swim = await guild.create_scheduled_event(name="Swim", channel=place, start_time=begins, privacy_level=level)
    race = await guild.create_scheduled_event(
        name="Race",
        location="pier 3",
        entity_type=discord.EntityType.external,
        description="d",
        start_time=begins,
        end_time=begins + timedelta(hours=1),
        privacy_level=level,
    )
    await guild.fetch_scheduled_event(swim.id)
    assert {each.id for each in await guild.fetch_scheduled_events()} == {swim.id, race.id}
    await swim.cancel()
    await race.delete()
    emoji = await guild.create_custom_emoji(name="anchor", image=b"\x89PNG\r\n\x1a\n")
    await guild.fetch_emoji(emoji.id)
    await emoji.delete()
    await hook.delete()
    private = await text.create_thread(name="quiet", type=discord.ChannelType.private_thread)
    await private.add_user(discord.Object(guild.owner_id or 0))
    await private.remove_user(discord.Object(guild.owner_id or 0))
    await guild.active_threads()
    await guild.fetch_channels()
    await bot.fetch_channel(channel_id)
    forum = bot.get_channel(forum_id)
    assert isinstance(forum, discord.ForumChannel)
    post = await forum.create_thread(name="Question", content="How?", applied_tags=[forum.available_tags[0]])
    assert post.message.id == post.thread.id
    await text.delete()


async def call_members(bot: Bot, guild_id: int, ben_id: int) -> None:
    guild = await bot.fetch_guild(guild_id)
    guild = bot.get_guild(guild_id)
    assert guild is not None
    ben = await guild.fetch_member(ben_id)
    assert [each.id async for each in guild.fetch_members()]
    assert [each.id async for each in bot.fetch_guilds()] == [guild_id]
    role = await guild.create_role(name="crew", permissions=discord.Permissions(send_messages=True), colour=5)
    await role.edit(name="crew 2", hoist=True)
    await ben.add_roles(role)
    await ben.remove_roles(role)
    await guild.fetch_roles()
    await ben.edit(nick="Benny")
    await guild.me.edit(nick="Me")
    await ben.timeout(timedelta(minutes=1))
    await role.delete()
    await guild.ban(discord.Object(ben_id), reason="why")
    assert [each.user.id async for each in guild.bans()] == [ben_id]
    await guild.fetch_ban(discord.Object(ben_id))
    await guild.unban(discord.Object(ben_id))
    await bot.application_info()
    await guild.fetch_emojis()
    await guild.fetch_stickers()


async def call_interactions(server: DiscordServer, ana: SimUser, general: SimChannel) -> None:
    world = server.world
    asked = await world.run_command(ana, general, "ask", {"text": "x", "to": ana})
    await asked.until_followups()
    await server.until(lambda: asked.text == "edited")
    opened = await world.run_command(ana, general, "form")
    assert opened.response.modal is not None
    sent = await world.submit_modal(
        ana, opened, {opened.response.modal["components"][0]["components"][0]["custom_id"]: "Ana"}
    )
    answer = await sent.until_answered()
    await world.press(ana, answer, "pick", ["Two"])
    pressed = await world.press(ana, answer, "yes")
    assert pressed.acknowledged and answer.content == "yes"
    seen = await world.run_context_command(ana, general, "Look", general.messages[0])
    assert (await seen.until_answered()).ephemeral


async def call_refusals(bot: Bot, channel_id: int) -> None:
    channel = bot.get_channel(channel_id)
    assert isinstance(channel, discord.TextChannel)
    for number, act in (
        (50035, lambda: channel.send("x" * 2001)),
        (10008, lambda: channel.fetch_message(1)),
        (50006, lambda: channel.send("")),
        (10003, lambda: bot.fetch_channel(1)),
    ):
        with pytest.raises(discord.HTTPException) as caught:
            await act()
        assert caught.value.code == number
