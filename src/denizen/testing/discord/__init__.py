"""A simulated Discord on loopback: a world of people and guilds, and a server that speaks REST v10 and the gateway.

It tests bots, ours and others', through their real client library. `open_discord` starts one, and `fixtures` offers
it to pytest. A client needs two addresses: `api_url` and `gateway_url`.
"""

from denizen.testing.discord.server import DiscordServer, NotReachedError, open_discord
from denizen.testing.discord.state.channels import ChannelKind, SimChannel
from denizen.testing.discord.state.errors import RefusedError
from denizen.testing.discord.state.guilds import SimGuild, SimMember, SimRole
from denizen.testing.discord.state.messages import SimAttachment, SimMessage, SimPollDraft, file
from denizen.testing.discord.state.people import GatewayIntent, SimApplication, SimUser
from denizen.testing.discord.state.permissions import DiscordPermission
from denizen.testing.discord.world.world import SimWorld

__all__ = [
    "ChannelKind",
    "DiscordPermission",
    "DiscordServer",
    "GatewayIntent",
    "NotReachedError",
    "RefusedError",
    "SimApplication",
    "SimAttachment",
    "SimChannel",
    "SimGuild",
    "SimMember",
    "SimMessage",
    "SimPollDraft",
    "SimRole",
    "SimUser",
    "SimWorld",
    "file",
    "open_discord",
]
