"""All routes. Where two templates match the same path, the more exact one comes first."""

from __future__ import annotations

from denizen.testing.discord.rest import (
    channel_routes,
    fixed_routes,
    guild_routes,
    interaction_routes,
    message_routes,
    people_routes,
    thread_routes,
)
from denizen.testing.discord.rest.call import RestRoute

ROUTES: tuple[RestRoute, ...] = (
    *people_routes.ROUTES,
    *message_routes.ROUTES,
    *thread_routes.ROUTES,
    *channel_routes.ROUTES,
    *guild_routes.GUILD_ROUTES,
    *guild_routes.EMOJI_ROUTES,
    *guild_routes.EVENT_ROUTES,
    *fixed_routes.ROUTES,
    *interaction_routes.COMMAND_ROUTES,
    *interaction_routes.INTERACTION_ROUTES,
)
