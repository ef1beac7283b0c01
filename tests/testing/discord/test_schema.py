"""Every request of a tour through the whole API, and every answer, fits Discord's published schema."""

from __future__ import annotations

import aiohttp
import pytest

from denizen.testing.discord import DiscordPermission
from denizen.testing.discord.fixtures import DiscordFixture
from denizen.testing.discord.rest.request_log import LoggedRequest
from denizen.testing.discord.rest.routes import ROUTES
from tests.testing.discord.api_calls import (
    CommandBot,
    call_channels,
    call_interactions,
    call_members,
    call_messages,
    call_refusals,
)
from tests.testing.discord.bots import running
from tests.testing.discord.raw_api_calls import RawApiCalls
from tests.testing.discord.schema import Schema, find_schema

PATH = find_schema()
pytestmark = pytest.mark.skipif(PATH is None, reason="Discord's published schema is not here")


@pytest.mark.anyio
async def test_requests_and_answers_of_every_route_fit_the_published_schema(sim: DiscordFixture) -> None:
    assert PATH is not None
    schema = Schema(PATH)
    server, ada, guild, general = sim.discord, sim.ada, sim.guild, sim.general
    forum = guild.add_channel("help", kind="forum", tags=["open"])
    guild.add_channel("hidden", private_to=[])
    guild.set_roles(ada.user, [guild.add_role("admin", permissions=DiscordPermission.ADMINISTRATOR)])
    async with running(server, ada, CommandBot) as bot:
        await call_messages(bot, server, general.id, sim.ana)
        await call_channels(bot, guild.id, general.id, forum.id)
        await call_members(bot, guild.id, sim.ben.id)
        await call_interactions(server, sim.ana, general)
        await call_refusals(bot, general.id)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {ada.token}"}) as session:
        await RawApiCalls(sim, session).take()
    faults = [fault for request in server.requests for fault in schema.faults(request)]
    assert not faults, "\n".join(faults[:40])
    called = {(request.method, request.route) for request in server.requests if request.status < 400}
    missing = [(each.method, each.template) for each in ROUTES if (each.method, each.template) not in called]
    assert not missing, "\n".join(map(str, missing))


def test_the_schema_finds_what_does_not_fit() -> None:
    assert PATH is not None
    schema = Schema(PATH)
    wrong = LoggedRequest("GET", "/users/1", "/users/{user_id}", status=200, answer={"id": 1, "username": "ana"})
    assert any("'discriminator' is a required property" in fault for fault in schema.faults(wrong))
    assert any("is not of type 'string'" in fault for fault in schema.faults(wrong))
    route = ("POST", "/channels/1/messages", "/channels/{channel_id}/messages")
    assert any("is not of type 'object'" in fault for fault in schema.faults(LoggedRequest(*route, status=429)))
    sent = LoggedRequest(*route, body={"content": 3}, status=400, answer={"message": "no", "code": 1})
    assert not schema.faults(sent)
    sent.status, sent.answer = 204, None
    assert any("3 is not of type 'string'" in fault for fault in schema.faults(sent))
    assert schema.faults(LoggedRequest("GET", "/nothing", "/nothing", status=200))
