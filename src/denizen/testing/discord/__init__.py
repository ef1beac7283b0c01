"""Discord, simulated on loopback: a world of people and guilds, and a server that speaks REST v10 and the gateway.

For tests of bots, ours and others', through the client library that they use in earnest. `open_discord` starts one;
`fixtures` has it for pytest. A client is pointed at it by two addresses, `api_url` and `gateway_url`.
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
