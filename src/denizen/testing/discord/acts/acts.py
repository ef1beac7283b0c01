"""All acts on one realm, together: what REST and the world are built on."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.testing.discord.acts.channels import Channels
from denizen.testing.discord.acts.commands import Commands
from denizen.testing.discord.acts.events import Events
from denizen.testing.discord.acts.guilds import Guilds
from denizen.testing.discord.acts.interactions import Interactions
from denizen.testing.discord.acts.marks import Marks
from denizen.testing.discord.acts.messages import Messages
from denizen.testing.discord.acts.threads import Threads
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
