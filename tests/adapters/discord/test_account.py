"""Logging in, staying, coming back, and ending."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import anyio
import pytest

from denizen.adapters.discord.account import DiscordAccount
from denizen.adapters.discord.client.settings import DiscordAccountSettings, DiscordEndpoints
from denizen.adapters.documents.pdf import read_pdf
from denizen.domain.clock import SystemClock
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import Conflict, DenizenError, NeedsAttention, Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.ports.channel import MentionNames
from denizen.testing.discord import GatewayIntent
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running, settings_for
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


async def fail_to_run(settings: DiscordAccountSettings) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await DiscordAccount(settings, SystemClock(), read_pdf).run(RecordingListener())
    return caught.value


async def test_a_connected_account_knows_itself_and_hears_what_is_said(sim: AccountFixture) -> None:
    async with running(sim) as (account, heard):
        sim.say(f"{sim.ada.mention} hello")
        await heard.until(lambda: heard.arrivals)
    assert (account.platform, account.agent, account.user_id) == ("discord", "ada", str(sim.ada.user.id))
    assert heard.arrivals[0].mentions.me
    assert heard.log[0] == "ready"


async def test_a_refused_token_is_told_with_its_setting_and_never_shown(sim: AccountFixture) -> None:
    error = await fail_to_run(settings_for(sim, token="not-a-token"))
    assert isinstance(error, NeedsAttention)
    assert error.code == "discord_token_refused"
    assert "channels.discord.accounts.ada.token" in error.fix
    assert "Reset Token" in error.fix
    assert "not-a-token" not in error.explain()


async def test_the_token_is_not_in_the_printed_settings(sim: AccountFixture) -> None:
    assert sim.ada.token not in repr(settings_for(sim))


@pytest.mark.proves("CW10")
async def test_a_bad_token_does_not_stop_the_other_accounts(sim: AccountFixture) -> None:
    good, bad = RecordingListener(), DiscordAccount(settings_for(sim, token="bad"), SystemClock(), read_pdf)
    refused: list[NeedsAttention] = []
    told = anyio.Event()

    async def run_bad() -> None:
        try:
            await bad.run(RecordingListener())
        except NeedsAttention as error:
            refused.append(error)
            told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_bad)
        tasks.start_soon(DiscordAccount(settings_for(sim), SystemClock(), read_pdf).run, good)
        await good.until(lambda: good.ready)
        with anyio.fail_after(HANG_LIMIT_S):
            await told.wait()
        sim.say("still there?")
        await good.until(lambda: good.arrivals)
        tasks.cancel_scope.cancel()
    assert refused[0].code == "discord_token_refused"


async def test_several_accounts_live_in_one_process(sim: AccountFixture) -> None:
    bea = sim.world.add_application("Bea")
    sim.guild.join(bea.user)
    async with running(sim) as (_, ada_heard), running(sim, application=bea) as (bea_account, bea_heard):
        sim.say("to both")
        await ada_heard.until(lambda: ada_heard.arrivals)
        await bea_heard.until(lambda: bea_heard.arrivals)
        await bea_account.post(sim.place(), MessageContent("I am Bea"), nonce="n1")
        await ada_heard.until(lambda: "I am Bea" in ada_heard.texts())
    assert ada_heard.arrivals[-1].post.author.is_bot


async def test_without_the_members_intent_it_runs_without_members(sim: AccountFixture) -> None:
    sim.ada.intents = GatewayIntent.MESSAGE_CONTENT
    async with running(sim) as (_, heard):
        sim.say("hello")
        await heard.until(lambda: heard.arrivals)
    assert heard.texts() == ["hello"]


async def test_without_the_content_intent_it_runs_and_says_what_to_switch_on(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sim.ada.intents = GatewayIntent(0)
    with caplog.at_level(logging.WARNING, "denizen.discord"):
        async with running(sim) as (_, heard):
            sim.say(f"{sim.ada.mention} do you hear me?")
            await heard.until(lambda: heard.arrivals)
    assert heard.arrivals[0].question == "do you hear me?"
    warning = next(each for each in caplog.records if "does not see" in each.message)
    assert "Message Content Intent" in warning.__dict__["fix"]
    assert str(sim.ada.id) in warning.__dict__["fix"]


async def test_a_refused_intent_is_named_with_the_page_and_an_invitation(sim: AccountFixture) -> None:
    heard = RecordingListener()
    ended: list[DenizenError] = []

    async def run() -> None:
        try:
            await DiscordAccount(settings_for(sim), SystemClock(), read_pdf).run(heard)
        except DenizenError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await heard.until(lambda: heard.ready)
        sim.ada.intents = GatewayIntent(0)  # somebody switches them off in the portal
        sim.discord.faults.close_gateway(4014)
    error = ended[0]
    assert isinstance(error, NeedsAttention)
    assert error.code == "discord_intents_refused"
    assert "Message Content Intent and Server Members Intent" in error.fix
    assert f"{sim.ada.id}/bot > Privileged Gateway Intents" in error.fix
    assert f"client_id={sim.ada.id}" in error.fix


async def test_a_token_that_is_reset_meanwhile_is_told(sim: AccountFixture) -> None:
    ended: list[DenizenError] = []

    async def run() -> None:
        ended.append(await fail_to_run(settings_for(sim)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await sim.discord.until(lambda: sim.discord.sessions.identified)
        sim.discord.faults.close_gateway(4004)
    assert ended[0].code == "discord_token_refused"


async def test_an_unreachable_discord_is_unavailable_and_a_later_run_succeeds(sim: AccountFixture) -> None:
    sim.discord.faults.drop("GET", "/users/@me", times=2)  # aiohttp tries a GET again by itself
    account, heard = DiscordAccount(settings_for(sim), SystemClock(), read_pdf), RecordingListener()
    with pytest.raises(Unavailable) as caught:
        await account.run(heard)
    assert caught.value.code == "discord_unreachable"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(account.run, heard)
        await heard.until(lambda: heard.ready)
        tasks.cancel_scope.cancel()


async def test_a_gateway_that_cannot_be_found_is_unavailable(sim: AccountFixture) -> None:
    sim.discord.faults.fail("GET", "/gateway/bot", status=503)
    error = await fail_to_run(settings_for(sim))
    assert isinstance(error, Unavailable)
    assert error.code == "discord_unreachable"


async def test_an_account_runs_once_at_a_time(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        with pytest.raises(Conflict):
            await account.run(RecordingListener())


async def test_an_account_that_is_not_connected_says_so(sim: AccountFixture) -> None:
    account = DiscordAccount(settings_for(sim), SystemClock(), read_pdf)
    with pytest.raises(Unavailable) as caught:
        await account.post(sim.place(), MessageContent("hello"), nonce="n")
    assert caught.value.code == "discord_not_connected"
    with pytest.raises(Unavailable):
        await account.sync_commands()


async def test_an_account_that_is_not_connected_does_not_disturb_a_turn_and_knows_only_what_is_sure(
    sim: AccountFixture,
) -> None:
    account, place = DiscordAccount(settings_for(sim), SystemClock(), read_pdf), sim.place()
    ana = Principal(PrincipalKind.PLATFORM_USER, f"discord:{sim.ana.id}", "Ana")
    async with account.typing(place):
        assert await account.find_names(place, "@Ana") == MentionNames()
        assert await account.visible_rooms(place, ana) == frozenset({place.channel})
        assert not await account.may_moderate(place.channel, ana)


async def test_ending_closes_the_connection(sim: AccountFixture) -> None:
    async with running(sim):
        assert len(sim.discord.connections) == 1
    await sim.discord.until(lambda: not sim.discord.connections)


async def test_a_listener_that_fails_does_not_end_the_account(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: object) -> None:
        raise failures.pop()

    failures: list[Exception] = [RuntimeError("a bug"), Unavailable("the store is busy", code="busy")]
    heard = RecordingListener()
    heard.on["message"] = fail
    async with running(sim, heard):
        sim.say("one")
        sim.say("two")
        await heard.until(lambda: len(heard.arrivals) == 2)
        heard.on.clear()
        sim.say("three")
        await heard.until(lambda: len(heard.arrivals) == 3)
    records = [each for each in caplog.records if "on_message failed" in each.message]
    assert [each.levelname for each in records] == ["WARNING", "ERROR"]
    assert records[0].__dict__["code"] == "busy"
    assert records[1].__dict__["reference"].startswith("err_")


async def test_ready_names_the_rooms_that_can_be_read(sim: AccountFixture) -> None:
    sim.guild.add_channel("secret", private_to=[sim.ben])
    forum = sim.guild.add_channel("help", kind="forum")
    sim.guild.add_channel("corner", kind="category")
    thread = sim.world.open_thread(sim.ana, sim.say("let us talk"), "A talk")
    async with running(sim) as (_, heard):
        rooms = {room.name: room for room in heard.ready[0]}
    assert set(rooms) == {"general", "help", "A talk"}
    assert rooms["help"].id == str(forum.id)
    assert rooms["A talk"].place.thread == str(thread.id)


async def test_a_resumed_connection_loses_nothing_and_is_not_ready_again(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        sim.discord.faults.cut_gateway()
        sim.say("while it was away")
        sim.discord.faults.release_events()
        await heard.until(lambda: heard.arrivals)
        assert sim.discord.sessions.resumed == 1
        sim.say("and after")
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert heard.texts() == ["while it was away", "and after"]
    assert len(heard.ready) == 1


async def test_a_fresh_login_is_ready_again_before_anything_new_is_heard(sim: AccountFixture) -> None:
    release = anyio.Event()
    heard = RecordingListener()

    async def wait(_: object) -> None:
        if len(heard.ready) == 2:
            await release.wait()

    heard.on["ready"] = wait
    async with running(sim, heard):
        sim.discord.faults.invalidate_sessions()
        await heard.until(lambda: len(heard.ready) == 2)
        sim.say("new")
        message = sim.say("newer")
        await sim.discord.until(lambda: _was_sent(sim, str(message.id)))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert heard.texts() == []
        release.set()
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert heard.log == ["ready", "ready", "message new", "message newer"]


def _was_sent(sim: AccountFixture, message_id: str) -> bool:
    return any(
        event.name == "MESSAGE_CREATE" and event.body["id"] == message_id
        for session in sim.discord.sessions.all
        for event in session.events
    )


async def test_shards_are_as_many_as_discord_wants_and_ready_together(sim: AccountFixture) -> None:
    sim.world.rules.suggested_shards = 3
    for number in range(5):
        guild = sim.world.add_guild(f"Guild {number}", owner=sim.ana)
        guild.add_channel(f"channel-{number}")
        guild.join(sim.ada.user)
    async with running(sim) as (_, heard):
        assert len(sim.discord.connections) == 3
        assert {room.name for room in heard.ready[0]} == {"general", *(f"channel-{number}" for number in range(5))}
        for channel in [each for each in sim.world.channels if each.name.startswith("channel-")]:
            sim.say(f"in {channel.name}", channel)
        await heard.until(lambda: len(heard.arrivals) == 5)


async def test_one_shard_of_several_that_logs_in_afresh_makes_the_account_ready_again(sim: AccountFixture) -> None:
    sim.world.rules.suggested_shards = 2
    async with running(sim) as (_, heard):
        sim.discord.connections[0].invalidate(resumable=False)
        await heard.until(lambda: len(heard.ready) == 2)
        sim.say("hello again")
        await heard.until(lambda: heard.arrivals)
    assert [room.name for room in heard.ready[1]] == ["general"]


async def test_a_guild_that_comes_back_after_an_outage_makes_the_account_ready_again(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        sim.guild.steward.set_available(sim.guild, available=False)
        sim.guild.steward.set_available(sim.guild, available=True)
        await heard.until(lambda: len(heard.ready) == 2)
    assert [room.name for room in heard.ready[1]] == ["general"]


async def test_it_is_ready_without_the_guilds_that_are_not_available(sim: AccountFixture) -> None:
    other = sim.world.add_guild("Broken", owner=sim.ana)
    other.add_channel("unreachable")
    other.join(sim.ada.user)
    other.steward.set_available(other, available=False)
    async with running(sim) as (_, heard):
        assert [room.name for room in heard.ready[0]] == ["general"]


async def test_the_gateway_is_asked_for_when_only_the_rest_address_is_known(sim: AccountFixture) -> None:
    async with running(sim, endpoints=DiscordEndpoints(sim.discord.api_url)) as (_, heard):
        sim.discord.faults.invalidate_sessions()  # it comes back by the address that it was told
        await heard.until(lambda: len(heard.ready) == 2)


async def test_a_gateway_hello_that_cannot_be_read_ends_this_run_and_not_the_next(sim: AccountFixture) -> None:
    account, heard = DiscordAccount(settings_for(sim), SystemClock(), read_pdf), RecordingListener()
    ended: list[DenizenError] = []

    async def run() -> None:
        try:
            await account.run(heard)
        except DenizenError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await heard.until(lambda: heard.ready)
        sim.discord.get_session("Ada").push("READY", {"odd": True})
    assert isinstance(ended[0], Unavailable)
    assert ended[0].code == "discord_closed"
    async with running(sim) as (_, again):
        sim.say("hello again")
        await again.until(lambda: again.arrivals)


async def test_an_event_that_cannot_be_read_is_left_out_and_the_account_stays_connected(
    sim: AccountFixture, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(sim) as (_, heard):
        await heard.until(lambda: heard.ready)
        for event in ("MESSAGE_CREATE", "INTERACTION_CREATE", "GUILD_UPDATE", "MESSAGE_REACTION_ADD"):
            sim.discord.get_session("Ada").push(event, {"id": f"odd-{event}"})
        sim.say("hello again")
        await heard.until(lambda: heard.arrivals)
    assert heard.texts() == ["hello again"]
    assert len(heard.ready) == 1
    told = [getattr(record, "id", "") for record in caplog.records]
    assert {"odd-MESSAGE_CREATE", "odd-INTERACTION_CREATE", "odd-MESSAGE_REACTION_ADD"} <= set(told)


ODD_PARTS = (
    {"embeds": [5]},
    {"components": ["odd"]},
    {"attachments": [{"odd": True}]},
    {"poll": {"odd": True}},
    {"mentions": [5]},
)


@pytest.mark.parametrize("odd", ODD_PARTS, ids=lambda odd: next(iter(odd)))
async def test_a_message_with_a_part_that_cannot_be_read_is_read_without_it(
    sim: AccountFixture, odd: Mapping[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    sim.say("before")
    message = sim.say("odd")
    sim.say("after")
    message.state.odd_fields = odd
    async with running(sim) as (account, heard):
        await heard.until(lambda: heard.ready)
        for _ in range(2):
            posts = await account.list_posts(str(sim.general.id))
            assert [post.text for post in posts] == ["before", "odd", "after"]
        new, session = sim.say("new"), sim.discord.get_session("Ada")
        (sent,) = (json.loads(each.frame)["d"] for each in session.events if each.name == "MESSAGE_CREATE")
        session.push("MESSAGE_CREATE", sent | {"id": str(new.id + 1)} | odd)
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert heard.texts() == ["new", "new"]
    assert [record.id for record in caplog.records if "parts are missing" in record.message] == [  # type: ignore[attr-defined]
        str(message.id),
        str(new.id + 1),
    ]


async def test_a_mention_counts_although_another_part_cannot_be_read(sim: AccountFixture) -> None:
    async with running(sim) as (_, heard):
        await heard.until(lambda: heard.ready)
        sent, session = sim.say(f"{sim.ada.mention} help"), sim.discord.get_session("Ada")
        (body,) = (json.loads(each.frame)["d"] for each in session.events if each.name == "MESSAGE_CREATE")
        session.push("MESSAGE_CREATE", body | {"id": str(sent.id + 1), "components": ["odd"]})
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert [each.mentions.me for each in heard.arrivals] == [True, True]


async def test_the_pause_before_a_reconnection_is_bounded(sim: AccountFixture) -> None:
    async with running(sim) as (account, _):
        assert account._login is not None
        shard = account._login.client.get_shard(0)
        assert shard is not None
        assert max(shard._parent._backoff.delay() for _ in range(50)) <= 30


async def test_a_message_that_cannot_be_read_at_all_is_left_out_of_its_page(sim: AccountFixture) -> None:
    sim.say("before")
    sim.say("odd").state.odd_fields = {"author": {}}
    sim.say("after")
    async with running(sim) as (account, heard):
        await heard.until(lambda: heard.ready)
        posts = await account.list_posts(str(sim.general.id))
        (room,) = heard.ready[0]
        arrivals = await account.list_arrivals(room, after="")
    assert [post.text for post in posts] == ["before", "after"]
    assert [each.post.text for each in arrivals] == ["before", "after"]


async def test_it_can_be_stopped_while_it_still_tries_to_connect(sim: AccountFixture) -> None:
    sim.discord.faults.refuse_gateway(100)
    account = DiscordAccount(settings_for(sim), SystemClock(), read_pdf)
    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(account.run, RecordingListener())
            await sim.discord.until(lambda: sim.discord.gateway_faults.refusals < 100)
            tasks.cancel_scope.cancel()
    assert sim.discord.connections == []
