"""All actions on one store. REST and the world are built on them."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.testing.discord.actions.channels import ChannelActions, ThreadActions
from denizen.testing.discord.actions.guilds import EventActions, GuildActions
from denizen.testing.discord.actions.interactions import CommandActions, InteractionActions
from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.actions.reactions import ReactionActions
from denizen.testing.discord.state.store import SimStore


@dataclass(frozen=True, slots=True)
class SimActions:
    """The store and the actions on it."""

    store: SimStore
    messages: MessageActions
    marks: ReactionActions
    channels: ChannelActions
    guilds: GuildActions
    events: EventActions
    threads: ThreadActions
    commands: CommandActions
    interactions: InteractionActions


def build_actions(store: SimStore) -> SimActions:
    messages = MessageActions(store)
    channels = ChannelActions(store)
    return SimActions(
        store=store,
        messages=messages,
        marks=ReactionActions(store, messages),
        channels=channels,
        guilds=GuildActions(store, channels, messages),
        events=EventActions(store),
        threads=ThreadActions(store, messages),
        commands=CommandActions(store),
        interactions=InteractionActions(store, messages),
    )
