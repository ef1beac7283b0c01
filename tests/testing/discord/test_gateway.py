"""Sessions survive their connections; intents, rights and shards decide what a bot hears."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import aiohttp
import discord
import pytest

from denizen.testing.discord import DiscordPermission, GatewayIntent, SimGuild, open_discord
from denizen.testing.discord.fixtures import DiscordFixture, build_discord_fixture
from tests.clock import ManualClock
from tests.testing.discord.bots import Bot, pointed_at, running, text_channel
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def test_a_dropped_connection_is_resumed_and_what_was_missed_comes_once_in_order(sim: DiscordFixture) -> None:
    server = sim.discord
    async with running(server, sim.ada, Bot) as bot:
        sim.world.say(sim.ana, sim.general, "0")
        await server.until(lambda: bot.texts == ["0"])
        for round_, break_it in enumerate(
            (server.faults.close_gateway, server.faults.cut_gateway, server.faults.ask_reconnect)
        ):
            break_it()
            for number in range(3):
                sim.world.say(sim.ana, sim.general, f"{round_}.{number}")
            await server.until(lambda expected=round_ + 1: bot.resumes == expected)
        await server.until(lambda: len(bot.texts) == 10)
        assert bot.texts == ["0", *(f"{round_}.{number}" for round_ in range(3) for number in range(3))]
        assert (server.sessions.identified, server.sessions.resumed, bot.readies) == (1, 3, 1)


async def test_an_invalid_session_begins_anew_and_nothing_is_replayed(sim: DiscordFixture) -> None:
    server = sim.discord
    async with running(server, sim.ada, Bot) as bot:
        server.faults.cut_gateway()
        server.faults.invalidate_sessions()
        sim.world.say(sim.ana, sim.general, "missed for good")
        await server.until(lambda: bot.readies == 2)
        sim.world.say(sim.ana, sim.general, "heard")
        await server.until(lambda: bot.texts == ["heard"])
        assert (server.sessions.identified, bot.resumes) == (2, 0)


async def test_op_9_on_a_live_connection_leads_to_a_fresh_identify_or_a_resume(sim: DiscordFixture) -> None:
    server = sim.discord
    async with running(server, sim.ada, Bot) as bot:
        server.faults.invalidate_sessions(resumable=True)
        await server.until(lambda: bot.resumes == 1)
        server.faults.invalidate_sessions()
        await server.until(lambda: bot.readies == 2)


async def test_events_can_be_sent_twice_and_held_back(sim: DiscordFixture) -> None:
    server = sim.discord
    async with running(server, sim.ada, Bot) as bot:
        server.faults.duplicate_events("MESSAGE_CREATE")
        sim.world.say(sim.ana, sim.general, "twice")
        await server.until(lambda: len(bot.heard) == 2)
        with server.faults.held_events():
            sim.world.say(sim.ana, sim.general, "later")
            await text_channel(bot, sim.general).typing()
            assert bot.texts == ["twice", "twice"]
        await server.until(lambda: bot.texts == ["twice", "twice", "later"])


async def test_guilds_are_spread_over_shards(sim: DiscordFixture) -> None:
    server, world = sim.discord, sim.world
    channels = [sim.general]
    while len({(each.guild_id or 0) >> 22 & 1 for each in channels}) < 2:
        guild = world.add_guild("Another", owner=sim.ana)
        guild.join(sim.ada.user)
        channels.append(guild.add_channel("general"))

    class Sharded(Bot, discord.AutoShardedClient):
        pass

    async with running(server, sim.ada, lambda: Sharded(shard_count=2)) as bot:
        assert len(bot.guilds) == len(channels)
        for channel in channels:
            world.say(sim.ana, channel, str(channel.id))
        world.say(sim.ana, world.open_dm(sim.ana, sim.ada.user), "dm")
        await server.until(lambda: len(bot.heard) == len(channels) + 1)
        for session in server.sessions.all:
            sent = [each.body for each in session.events if each.name == "MESSAGE_CREATE"]
            assert all((int(each.get("guild_id", 0)) >> 22) % 2 == session.shard[0] for each in sent)
        assert sorted(session.shard for session in server.sessions.all) == [(0, 2), (1, 2)]


async def test_wrong_tokens_and_intents_that_are_not_enabled_are_turned_away(sim: DiscordFixture) -> None:
    sim.ada.intents = GatewayIntent.GUILD_MEMBERS | GatewayIntent.GUILD_PRESENCES
    with pointed_at(sim.discord):
        async with Bot() as bot:
            with pytest.raises(discord.LoginFailure):
                await bot.login("wrong")
        async with Bot() as bot:
            with pytest.raises(discord.PrivilegedIntentsRequired):
                await bot.start(sim.ada.token)
    assert sim.ada.refused_logins == [4014]


async def test_a_bot_hears_only_of_channels_that_it_sees(sim: DiscordFixture) -> None:
    server, world = sim.discord, sim.world
    crew = sim.guild.add_role("crew")
    hidden = sim.guild.add_channel("hidden", private_to=[crew])
    async with running(server, sim.ada, Bot) as bot:
        world.say(sim.ana, hidden, "unheard")
        sim.guild.set_roles(sim.ada.user, [crew])
        world.say(sim.ana, hidden, "heard")
        await server.until(lambda: bot.texts == ["heard"])


async def test_a_guild_is_joined_left_and_out_of_order_while_a_bot_runs(sim: DiscordFixture) -> None:
    server, world = sim.discord, sim.world
    async with running(server, sim.ada, Bot) as bot:
        second = world.add_guild("Second", owner=sim.ana)
        talk = second.add_channel("talk")
        second.join(sim.ada.user, [DiscordPermission.ADMINISTRATOR])
        await server.until(lambda: len(bot.guilds) == 2)
        world.say(sim.ana, talk, "welcome")
        await server.until(lambda: bot.texts == ["welcome"])
        assert bot.heard[0].guild is not None and bot.heard[0].guild.me.guild_permissions.administrator
        second.set_available(available=False)
        await server.until(lambda: any(each.unavailable for each in bot.guilds))
        second.set_available(available=True)
        await server.until(lambda: not any(each.unavailable for each in bot.guilds))
        second.leave(sim.ada.user)
        await server.until(lambda: len(bot.guilds) == 1)


class Wire:
    """A gateway client without a library."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def say(self, op: int, data: object) -> None:
        await self.socket.send_str(json.dumps({"op": op, "d": data}))

    async def next(self) -> dict[str, Any]:
        message = await self.socket.receive(timeout=HANG_LIMIT_S)
        if message.type is not aiohttp.WSMsgType.TEXT:
            return {"closed": self.socket.close_code}
        return json.loads(message.data)

    async def until(self, name: str) -> list[dict[str, Any]]:
        frames = [await self.next()]
        while frames[-1].get("t") != name:
            frames.append(await self.next())
        return frames


def identify(token: str, intents: object = 513, **more: object) -> dict[str, object]:
    return {"token": token, "intents": intents, "properties": {}, **more}


@pytest.mark.parametrize(
    ("op", "data", "code"),
    [
        (99, None, 4001),
        (1, "x" * 4096, 4002),
        (8, {}, 4003),
        (2, identify("wrong"), 4004),
        (2, identify("TOKEN", 1 << 30), 4013),
        (2, identify("TOKEN", "all"), 4013),
        (2, identify("TOKEN", 1 << 15), 4014),
        (2, identify("TOKEN", shard=[2, 2]), 4010),
        (6, {"token": "wrong", "session_id": "x", "seq": 1}, 4004),
    ],
)
async def test_what_does_not_fit_closes_the_connection_with_its_code(
    sim: DiscordFixture, op: int, data: Any, code: int
) -> None:
    sim.ada.intents = GatewayIntent(0)
    sent = json.loads(json.dumps(data).replace("TOKEN", sim.ada.token))
    async with aiohttp.ClientSession() as session, session.ws_connect(sim.discord.gateway_url) as socket:
        wire = Wire(socket)
        assert (await wire.next())["op"] == 10
        await wire.say(op, sent)
        assert await wire.next() == {"closed": code}


async def test_another_version_of_the_api_is_turned_away(sim: DiscordFixture) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{sim.discord.gateway_url}?v=9&encoding=json") as socket:
            assert await Wire(socket).next() == {"closed": 4012}
        async with session.ws_connect(f"{sim.discord.gateway_url}?v=10&encoding=json") as socket:
            assert (await Wire(socket).next())["op"] == 10


async def test_more_than_120_frames_in_a_minute_close_the_connection() -> None:
    clock = ManualClock()
    async with open_discord(clock=clock) as server, aiohttp.ClientSession() as session:
        server.gateway_faults.ack_delay_s = 0.0
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            await wire.next()
            for _ in range(2):
                for _ in range(120):
                    await wire.say(1, None)
                assert {(await wire.next())["op"] for _ in range(120)} == {11}
                clock.advance(60)
            for _ in range(121):
                await wire.say(1, None)
            frame = await wire.next()
            while "closed" not in frame:
                frame = await wire.next()
            assert frame == {"closed": 4008}


async def test_all_members_of_a_guild_are_sent_to_a_bot_once_in_30_seconds() -> None:
    clock = ManualClock()
    async with open_discord(clock=clock) as server, aiohttp.ClientSession() as session:
        sim = build_discord_fixture(server)
        second = server.world.add_guild("Lagoon", owner=sim.ana)
        second.join(sim.ada.user)
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            await wire.next()
            await wire.say(2, identify(sim.ada.token, 513 | GatewayIntent.GUILD_MEMBERS))
            await wire.until("GUILD_CREATE")
            await wire.until("GUILD_CREATE")

            async def ask(guild: SimGuild, **more: object) -> dict[str, Any]:
                await wire.say(8, {"guild_id": str(guild.id), "query": "", "limit": 0, "nonce": "n", **more})
                return await wire.next()

            assert (await ask(sim.guild))["t"] == "GUILD_MEMBERS_CHUNK"
            clock.advance(10)
            refused = await ask(sim.guild)
            assert (refused["op"], refused["t"]) == (0, "RATE_LIMITED")
            assert refused["d"] == {
                "opcode": 8,
                "retry_after": pytest.approx(20),
                "meta": {"guild_id": str(sim.guild.id), "nonce": "n"},
            }
            assert (await ask(second))["t"] == "GUILD_MEMBERS_CHUNK"
            assert (await ask(sim.guild, query="an", limit=5))["t"] == "GUILD_MEMBERS_CHUNK"
            clock.advance(20)
            assert (await ask(sim.guild))["t"] == "GUILD_MEMBERS_CHUNK"


async def test_the_gateway_keeps_to_the_protocol_frame_by_frame(sim: DiscordFixture) -> None:
    server = sim.discord
    server.faults.refuse_gateway()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(server.gateway_url)
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            hello = await wire.next()
            assert hello["d"]["heartbeat_interval"] == 41250
            await wire.say(1, None)
            assert (await wire.next())["op"] == 11
            server.faults.ignore_heartbeats()
            await wire.say(1, None)
            await wire.say(2, identify(sim.ada.token))
            ready = await wire.next()
            assert (ready["t"], ready["s"], ready["d"]["session_id"]) == ("READY", 1, server.get_session("Ada").id)
            await wire.until("GUILD_CREATE")
            await wire.say(2, identify(sim.ada.token))
            assert await wire.next() == {"closed": 4005}
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            await wire.next()
            await wire.say(6, {"token": sim.ada.token, "session_id": ready["d"]["session_id"], "seq": 1})
            assert await wire.next() == {"op": 9, "d": False, "s": None, "t": None}
            await wire.say(2, identify(sim.ada.token))
            frames = await wire.until("GUILD_CREATE")
            await socket.close(code=4000)
        sim.world.say(sim.ana, sim.general, "missed")
        resume = {"token": sim.ada.token, "session_id": frames[0]["d"]["session_id"], "seq": frames[-1]["s"]}
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            await wire.next()
            await wire.say(6, resume)
            frames = await wire.until("RESUMED")
            assert [each["t"] for each in frames] == ["MESSAGE_CREATE", "RESUMED"]
            await socket.close(code=4000)
        async with session.ws_connect(server.gateway_url) as socket:
            wire = Wire(socket)
            await wire.next()
            await wire.say(6, resume | {"seq": 1000})
            assert await wire.next() == {"closed": 4007}


async def test_a_silent_client_is_closed_when_the_server_looks_for_zombies(sim: DiscordFixture) -> None:
    sim.discord.gateway_faults.zombie_check = True
    sim.discord.gateway_faults.heartbeat = timedelta(milliseconds=20)
    async with aiohttp.ClientSession() as session, session.ws_connect(sim.discord.gateway_url) as socket:
        wire = Wire(socket)
        await wire.next()
        assert await wire.next() == {"closed": 4009}


async def test_a_frozen_gateway_says_nothing_until_it_thaws(sim: DiscordFixture) -> None:
    server = sim.discord
    async with running(server, sim.ada, Bot) as bot:
        server.faults.freeze_gateway()
        sim.world.say(sim.ana, sim.general, "into the void")
        await text_channel(bot, sim.general).send("rest still works")
        assert not bot.heard
        server.faults.thaw_gateway()
        await server.until(lambda: len(bot.heard) == 2)
