"""Discord, simulated on loopback: a world of people and guilds, and a server that speaks REST v10 and the gateway.

For tests of bots, ours and others', through the client library that they use in earnest. `open_discord` starts one;
`fixtures` has it for pytest. A client is pointed at it by two addresses, `api_url` and `gateway_url`.
"""

from denizen.testing.discord.server import DiscordServer, NotReachedError, open_discord
from denizen.testing.discord.state.channels import Channel, ChannelKind
from denizen.testing.discord.state.errors import RefusedError
from denizen.testing.discord.state.guilds import Guild, Member, Role
from denizen.testing.discord.state.messages import Attachment, Message, PollDraft, file
from denizen.testing.discord.state.people import Application, Intent, User
from denizen.testing.discord.state.permissions import Permission
from denizen.testing.discord.world.world import World

__all__ = [
    "Application",
    "Attachment",
    "Channel",
    "ChannelKind",
    "DiscordServer",
    "Guild",
    "Intent",
    "Member",
    "Message",
    "NotReachedError",
    "Permission",
    "PollDraft",
    "RefusedError",
    "Role",
    "User",
    "World",
    "file",
    "open_discord",
]
