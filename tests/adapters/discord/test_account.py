"""Logging in, staying, coming back, and ending."""

from __future__ import annotations

import logging

import anyio
import pytest

from denizen.adapters.discord.account import DiscordAccount
from denizen.adapters.discord.settings import AccountSettings, DiscordEndpoints
from denizen.domain.clock import SystemClock
from denizen.domain.delivery import Content
from denizen.domain.errors import Conflict, DenizenError, NeedsAttention, Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.ports.channel import MentionNames
from denizen.testing.discord import Intent
from tests.adapters.discord.listening import Harbour, Heard, running, settings_for

pytestmark = pytest.mark.anyio


async def fail_to_run(settings: AccountSettings) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await DiscordAccount(settings, SystemClock()).run(Heard())
    return caught.value


async def test_a_connected_account_knows_itself_and_hears_what_is_said(harbour: Harbour) -> None:
    async with running(harbour) as (account, heard):
        harbour.say(f"{harbour.ada.mention} hello")
        await heard.until(lambda: heard.arrivals)
    assert (account.platform, account.agent, account.user_id) == ("discord", "ada", str(harbour.ada.user.id))
    assert heard.arrivals[0].mentions.me
    assert heard.log[0] == "ready"


async def test_a_refused_token_is_told_with_its_setting_and_never_shown(harbour: Harbour) -> None:
    error = await fail_to_run(settings_for(harbour, token="not-a-token"))
    assert isinstance(error, NeedsAttention)
    assert error.code == "discord_token_refused"
    assert "channels.discord.accounts.ada.token" in error.fix
    assert "Reset Token" in error.fix
    assert "not-a-token" not in error.explain()


async def test_the_token_is_not_in_the_printed_settings(harbour: Harbour) -> None:
    assert harbour.ada.token not in repr(settings_for(harbour))


@pytest.mark.proves("CW10")
async def test_a_bad_token_does_not_stop_the_other_accounts(harbour: Harbour) -> None:
    good, bad = Heard(), DiscordAccount(settings_for(harbour, token="bad"), SystemClock())
    refused: list[NeedsAttention] = []
    told = anyio.Event()

    async def run_bad() -> None:
        try:
            await bad.run(Heard())
        except NeedsAttention as error:
            refused.append(error)
            told.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_bad)
        tasks.start_soon(DiscordAccount(settings_for(harbour), SystemClock()).run, good)
        await good.until(lambda: good.ready)
        with anyio.fail_after(20):
            await told.wait()
        harbour.say("still there?")
        await good.until(lambda: good.arrivals)
        tasks.cancel_scope.cancel()
    assert refused[0].code == "discord_token_refused"


async def test_several_accounts_live_in_one_process(harbour: Harbour) -> None:
    bea = harbour.world.add_application("Bea")
    harbour.guild.join(bea.user)
    async with running(harbour) as (_, ada_heard), running(harbour, application=bea) as (bea_account, bea_heard):
        harbour.say("to both")
        await ada_heard.until(lambda: ada_heard.arrivals)
        await bea_heard.until(lambda: bea_heard.arrivals)
        await bea_account.post(harbour.place(), Content("I am Bea"), nonce="n1")
        await ada_heard.until(lambda: "I am Bea" in ada_heard.texts())
    assert ada_heard.arrivals[-1].post.author.is_bot


async def test_without_the_members_intent_it_runs_without_members(harbour: Harbour) -> None:
    harbour.ada.intents = Intent.MESSAGE_CONTENT
    async with running(harbour) as (_, heard):
        harbour.say("hello")
        await heard.until(lambda: heard.arrivals)
    assert heard.texts() == ["hello"]


async def test_without_the_content_intent_it_runs_and_says_what_to_switch_on(
    harbour: Harbour, caplog: pytest.LogCaptureFixture
) -> None:
    harbour.ada.intents = Intent(0)
    with caplog.at_level(logging.WARNING, "denizen.discord"):
        async with running(harbour) as (_, heard):
            harbour.say(f"{harbour.ada.mention} do you hear me?")
            await heard.until(lambda: heard.arrivals)
    assert heard.arrivals[0].question == "do you hear me?"
    warning = next(each for each in caplog.records if "does not see" in each.message)
    assert "Message Content Intent" in warning.__dict__["fix"]
    assert str(harbour.ada.id) in warning.__dict__["fix"]


async def test_a_refused_intent_is_named_with_the_page_and_an_invitation(harbour: Harbour) -> None:
    heard = Heard()
    ended: list[DenizenError] = []

    async def run() -> None:
        try:
            await DiscordAccount(settings_for(harbour), SystemClock()).run(heard)
        except DenizenError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await heard.until(lambda: heard.ready)
        harbour.ada.intents = Intent(0)  # somebody switches them off in the portal
        harbour.discord.faults.close_gateway(4014)
    error = ended[0]
    assert isinstance(error, NeedsAttention)
    assert error.code == "discord_intents_refused"
    assert "Message Content Intent and Server Members Intent" in error.fix
    assert f"{harbour.ada.id}/bot > Privileged Gateway Intents" in error.fix
    assert f"client_id={harbour.ada.id}" in error.fix


async def test_a_token_that_is_reset_meanwhile_is_told(harbour: Harbour) -> None:
    ended: list[DenizenError] = []

    async def run() -> None:
        ended.append(await fail_to_run(settings_for(harbour)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await harbour.discord.until(lambda: harbour.discord.sessions.identified)
        harbour.discord.faults.close_gateway(4004)
    assert ended[0].code == "discord_token_refused"


async def test_an_unreachable_discord_is_unavailable_and_a_later_run_succeeds(harbour: Harbour) -> None:
    harbour.discord.faults.drop("GET", "/users/@me", times=2)  # aiohttp tries a GET again by itself
    account, heard = DiscordAccount(settings_for(harbour), SystemClock()), Heard()
    with pytest.raises(Unavailable) as caught:
        await account.run(heard)
    assert caught.value.code == "discord_unreachable"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(account.run, heard)
        await heard.until(lambda: heard.ready)
        tasks.cancel_scope.cancel()


async def test_a_gateway_that_cannot_be_found_is_unavailable(harbour: Harbour) -> None:
    harbour.discord.faults.fail("GET", "/gateway/bot", status=503)
    error = await fail_to_run(settings_for(harbour))
    assert isinstance(error, Unavailable)
    assert error.code == "discord_unreachable"


async def test_an_account_runs_once_at_a_time(harbour: Harbour) -> None:
    async with running(harbour) as (account, _):
        with pytest.raises(Conflict):
            await account.run(Heard())


async def test_an_account_that_is_not_connected_says_so(harbour: Harbour) -> None:
    account = DiscordAccount(settings_for(harbour), SystemClock())
    with pytest.raises(Unavailable) as caught:
        await account.post(harbour.place(), Content("hello"), nonce="n")
    assert caught.value.code == "discord_not_connected"
    with pytest.raises(Unavailable):
        await account.sync_commands()


async def test_an_account_that_is_not_connected_does_not_disturb_a_turn_and_knows_only_what_is_sure(
    harbour: Harbour,
) -> None:
    account, place = DiscordAccount(settings_for(harbour), SystemClock()), harbour.place()
    ana = Principal(PrincipalKind.PLATFORM_USER, f"discord:{harbour.ana.id}", "Ana")
    async with account.typing(place):
        assert await account.find_names(place, "@Ana") == MentionNames()
        assert await account.visible_rooms(place, ana) == frozenset({place.channel})
        assert not await account.may_moderate(place.channel, ana)


async def test_ending_closes_the_connection(harbour: Harbour) -> None:
    async with running(harbour):
        assert len(harbour.discord.connections) == 1
    await harbour.discord.until(lambda: not harbour.discord.connections)


async def test_a_listener_that_fails_does_not_end_the_account(
    harbour: Harbour, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: object) -> None:
        raise failures.pop()

    failures: list[Exception] = [RuntimeError("a bug"), Unavailable("the store is busy", code="busy")]
    heard = Heard()
    heard.on["message"] = fail
    async with running(harbour, heard):
        harbour.say("one")
        harbour.say("two")
        await heard.until(lambda: len(heard.arrivals) == 2)
        heard.on.clear()
        harbour.say("three")
        await heard.until(lambda: len(heard.arrivals) == 3)
    records = [each for each in caplog.records if "on_message failed" in each.message]
    assert [each.levelname for each in records] == ["WARNING", "ERROR"]
    assert records[0].__dict__["code"] == "busy"
    assert records[1].__dict__["reference"].startswith("err_")


async def test_ready_names_the_rooms_that_can_be_read(harbour: Harbour) -> None:
    harbour.guild.add_channel("secret", private_to=[harbour.ben])
    forum = harbour.guild.add_channel("help", kind="forum")
    harbour.guild.add_channel("corner", kind="category")
    thread = harbour.world.open_thread(harbour.ana, harbour.say("let us talk"), "A talk")
    async with running(harbour) as (_, heard):
        rooms = {room.name: room for room in heard.ready[0]}
    assert set(rooms) == {"general", "help", "A talk"}
    assert rooms["help"].id == str(forum.id)
    assert rooms["A talk"].place.thread == str(thread.id)


async def test_a_resumed_connection_loses_nothing_and_is_not_ready_again(harbour: Harbour) -> None:
    async with running(harbour) as (_, heard):
        harbour.discord.faults.cut_gateway()
        harbour.say("while it was away")
        harbour.discord.faults.release_events()
        await heard.until(lambda: heard.arrivals)
        assert harbour.discord.sessions.resumed == 1
        harbour.say("and after")
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert heard.texts() == ["while it was away", "and after"]
    assert len(heard.ready) == 1


async def test_a_fresh_login_is_ready_again_before_anything_new_is_heard(harbour: Harbour) -> None:
    release = anyio.Event()
    heard = Heard()

    async def wait(_: object) -> None:
        if len(heard.ready) == 2:
            await release.wait()

    heard.on["ready"] = wait
    async with running(harbour, heard):
        harbour.discord.faults.invalidate_sessions()
        await heard.until(lambda: len(heard.ready) == 2)
        harbour.say("new")
        message = harbour.say("newer")
        await harbour.discord.until(lambda: _was_sent(harbour, str(message.id)))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert heard.texts() == []
        release.set()
        await heard.until(lambda: len(heard.arrivals) == 2)
    assert heard.log == ["ready", "ready", "message new", "message newer"]


def _was_sent(harbour: Harbour, message_id: str) -> bool:
    return any(
        event.name == "MESSAGE_CREATE" and event.body["id"] == message_id
        for session in harbour.discord.sessions.all
        for event in session.events
    )


async def test_shards_are_as_many_as_discord_wants_and_ready_together(harbour: Harbour) -> None:
    harbour.world.rules.suggested_shards = 3
    for number in range(5):
        guild = harbour.world.add_guild(f"Guild {number}", owner=harbour.ana)
        guild.add_channel(f"channel-{number}")
        guild.join(harbour.ada.user)
    async with running(harbour) as (_, heard):
        assert len(harbour.discord.connections) == 3
        assert {room.name for room in heard.ready[0]} == {"general", *(f"channel-{number}" for number in range(5))}
        for channel in [each for each in harbour.world.channels if each.name.startswith("channel-")]:
            harbour.say(f"in {channel.name}", channel)
        await heard.until(lambda: len(heard.arrivals) == 5)


async def test_one_shard_of_several_that_logs_in_afresh_makes_the_account_ready_again(harbour: Harbour) -> None:
    harbour.world.rules.suggested_shards = 2
    async with running(harbour) as (_, heard):
        harbour.discord.connections[0].invalidate(resumable=False)
        await heard.until(lambda: len(heard.ready) == 2)
        harbour.say("hello again")
        await heard.until(lambda: heard.arrivals)
    assert [room.name for room in heard.ready[1]] == ["general"]


async def test_a_guild_that_comes_back_after_an_outage_makes_the_account_ready_again(harbour: Harbour) -> None:
    async with running(harbour) as (_, heard):
        harbour.guild.steward.set_available(harbour.guild, available=False)
        harbour.guild.steward.set_available(harbour.guild, available=True)
        await heard.until(lambda: len(heard.ready) == 2)
    assert [room.name for room in heard.ready[1]] == ["general"]


async def test_it_is_ready_without_the_guilds_that_are_not_available(harbour: Harbour) -> None:
    other = harbour.world.add_guild("Broken", owner=harbour.ana)
    other.add_channel("unreachable")
    other.join(harbour.ada.user)
    other.steward.set_available(other, available=False)
    async with running(harbour) as (_, heard):
        assert [room.name for room in heard.ready[0]] == ["general"]


async def test_the_gateway_is_asked_for_when_only_the_rest_address_is_known(harbour: Harbour) -> None:
    async with running(harbour, endpoints=DiscordEndpoints(harbour.discord.api_url)) as (_, heard):
        harbour.discord.faults.invalidate_sessions()  # it comes back by the address that it was told
        await heard.until(lambda: len(heard.ready) == 2)


async def test_an_event_that_cannot_be_understood_ends_this_run_and_not_the_next(harbour: Harbour) -> None:
    account, heard = DiscordAccount(settings_for(harbour), SystemClock()), Heard()
    ended: list[DenizenError] = []

    async def run() -> None:
        try:
            await account.run(heard)
        except DenizenError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await heard.until(lambda: heard.ready)
        harbour.discord.session_of("Ada").push("MESSAGE_CREATE", {"odd": True})
    assert isinstance(ended[0], Unavailable)
    assert ended[0].code == "discord_closed"
    async with running(harbour) as (_, again):
        harbour.say("hello again")
        await again.until(lambda: again.arrivals)


async def test_it_can_be_stopped_while_it_still_tries_to_connect(harbour: Harbour) -> None:
    harbour.discord.faults.refuse_gateway(100)
    account = DiscordAccount(settings_for(harbour), SystemClock())
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(account.run, Heard())
            await harbour.discord.until(lambda: harbour.discord.weather.refusals < 100)
            tasks.cancel_scope.cancel()
    assert harbour.discord.connections == []
