"""A small world to start with: one guild with a few channels and people, and a bot for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.people import SimApplication, SimUser
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.world.world import SimWorld

_BOT = (
    P.VIEW_CHANNEL
    | P.SEND_MESSAGES
    | P.SEND_MESSAGES_IN_THREADS
    | P.READ_MESSAGE_HISTORY
    | P.EMBED_LINKS
    | P.ATTACH_FILES
    | P.ADD_REACTIONS
    | P.CREATE_PUBLIC_THREADS
)
"""The permissions in the link by which an owner invites a bot."""


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """`applications` are in the order in which the agents were named."""

    guild: SimGuild
    owner: SimUser
    applications: Sequence[SimApplication]


def build_small_world(world: SimWorld, agents: Sequence[str], guild_name: str = "Harbour") -> SmallWorld:
    """Builds the world. Ana owns the guild; Ben and Cleo are members; the staff's channel is visible to Ana, Ben and
    the bots.
    """
    ana, ben, cleo = (world.add_person(each) for each in ("Ana", "Ben", "Cleo"))
    guild = world.add_guild(guild_name, owner=ana)
    staff = guild.add_role("staff", mentionable=True)
    guild.set_roles(ana, [staff])
    guild.join(ben, [staff])
    guild.join(cleo)
    welcome = guild.add_channel("welcome", topic="Start here")
    general = guild.add_channel("general", topic="Everything else")
    help_ = guild.add_channel("help", kind="forum", topic="One post for each question")
    applications = [world.add_application(each, owner=ana) for each in agents]
    bots = [each.user for each in applications]
    for bot in bots:
        guild.join(bot, [_BOT])
    office = guild.add_channel("staff", private_to=[staff, *bots], topic="Seen by staff and bots only")

    world.say(ana, welcome, f"Welcome to **{guild_name}**! Talk in {general.mention}, ask for help in {help_.mention}.")
    world.say(ben, general, "When does the last ferry leave on Sundays?")
    world.say(cleo, general, "At 21:40, from pier 3. In winter an hour earlier.")
    world.say(ana, office, "The pier 3 gate code changes on Monday. I will tell you in person.")
    post = world.open_thread(cleo, help_, "Where can I keep my bike?", text="Is there a shed near the pier?")
    world.say(ben, post, "Yes, behind the ticket office. It is open until ten.")
    return SmallWorld(guild, ana, applications)
