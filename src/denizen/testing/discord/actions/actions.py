"""All acts on one realm, together: what REST and the world are built on."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.testing.discord.actions.channels import ChannelActions, ThreadActions
from denizen.testing.discord.actions.guilds import EventActions, GuildActions
from denizen.testing.discord.actions.interactions import CommandActions, InteractionActions
from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.actions.reactions import ReactionActions
from denizen.testing.discord.state.realm import SimStore


@dataclass(frozen=True, slots=True)
class SimActions:
    """The realm and what can be done in it."""

    realm: SimStore
    messages: MessageActions
    marks: ReactionActions
    channels: ChannelActions
    guilds: GuildActions
    events: EventActions
    threads: ThreadActions
    commands: CommandActions
    interactions: InteractionActions


def build_actions(realm: SimStore) -> SimActions:
    messages = MessageActions(realm)
    channels = ChannelActions(realm)
    return SimActions(
        realm,
        messages,
        ReactionActions(realm, messages),
        channels,
        GuildActions(realm, channels, messages),
        EventActions(realm),
        ThreadActions(realm, messages),
        CommandActions(realm),
        InteractionActions(realm, messages),
    )
