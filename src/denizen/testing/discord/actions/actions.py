"""All acts on one realm, together: what REST and the world are built on."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.testing.discord.actions.channels import Channels, Threads
from denizen.testing.discord.actions.guilds import Events, Guilds
from denizen.testing.discord.actions.interactions import Commands, Interactions
from denizen.testing.discord.actions.messages import Messages
from denizen.testing.discord.actions.reactions import Marks
from denizen.testing.discord.state.realm import Realm


@dataclass(frozen=True, slots=True)
class Acts:
    """The realm and what can be done in it."""

    realm: Realm
    messages: Messages
    marks: Marks
    channels: Channels
    guilds: Guilds
    events: Events
    threads: Threads
    commands: Commands
    interactions: Interactions


def acts_on(realm: Realm) -> Acts:
    messages = Messages(realm)
    channels = Channels(realm)
    return Acts(
        realm,
        messages,
        Marks(realm, messages),
        channels,
        Guilds(realm, channels, messages),
        Events(realm),
        Threads(realm, messages),
        Commands(realm),
        Interactions(realm, messages),
    )
