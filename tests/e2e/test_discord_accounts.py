"""The accounts of a `denizen run`: what keeps one of them away does not disturb the others, they follow the
configuration, and they come back by themselves.
"""

from __future__ import annotations

import pytest

from denizen.testing.discord import GatewayIntent
from tests.e2e.discord import Harbour, open_harbour, point_at
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.ports import deaf_port

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("CW10", "C1")
async def test_a_bad_token_keeps_one_account_away_and_the_log_names_the_fix(harbour: Harbour) -> None:
    harbour.configure(accounts={"bea": "not-a-token", "ada": harbour.ada.token})
    harbour.script("Hello.")
    async with harbour.run() as denizen:
        await harbour.until(lambda: denizen.lines("account left off", "bea"))
        harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: harbour.said() == ["Hello."])
        [line] = denizen.lines("account left off")
        assert "channels.discord.accounts.bea.token" in line
        assert "https://discord.com/developers/applications" in line
        assert "not-a-token" not in denizen.log


@pytest.mark.proves("C1")
async def test_all_accounts_log_in_and_an_agent_without_a_token_is_left_out(harbour: Harbour) -> None:
    bea = harbour.world.add_application("Bea")
    harbour.guild.join(bea.user)
    harbour.configure(accounts={"ada": harbour.ada.token, "bea": bea.token, "cleo": ""})
    harbour.script("Hello.", "Hello.")
    async with harbour.run(ready=2):
        assert {each.application.name for each in harbour.discord.sessions.all} == {"Ada", "Bea"}
        harbour.ask(harbour.ana, "hello")
        harbour.ask(harbour.ben, "hello", of=bea)
        await harbour.until(lambda: harbour.said() == harbour.said(by=bea) == ["Hello."])


async def test_without_the_message_content_intent_mentions_are_answered_and_the_log_names_the_fix(
    harbour: Harbour,
) -> None:
    harbour.ada.intents = GatewayIntent.GUILD_MEMBERS
    harbour.configure()
    harbour.script("Hello.")
    async with harbour.run() as denizen:
        harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: harbour.said() == ["Hello."])
        [line] = denizen.lines("discord_content_missing")
        assert f"https://discord.com/developers/applications/{harbour.ada.id}/bot" in line
    assert "hello" in str(harbour.requests[0].body["messages"][-1])


async def test_accounts_come_and_go_with_the_configuration(harbour: Harbour) -> None:
    bea = harbour.world.add_application("Bea")
    harbour.guild.join(bea.user)
    harbour.configure()
    async with harbour.run() as denizen:
        harbour.configure(accounts={"ada": harbour.ada.token, "bea": bea.token})
        await harbour.until(lambda: denizen.lines("account ready", "bea"))
        harbour.script("I am new here.")
        harbour.ask(harbour.ana, "who are you?", of=bea)
        await harbour.until(lambda: harbour.said(by=bea) == ["I am new here."])
        harbour.configure()
        await harbour.until(lambda: len(harbour.discord.connections) == 1)
        harbour.ask(harbour.ana, "are you gone?", of=bea)
        harbour.script("She is.")
        harbour.ask(harbour.ana, "is she gone?")
        await harbour.until(lambda: harbour.said() == ["She is."])
        assert len(denizen.lines("account ready", "ada")) == 1
    assert harbour.said(by=bea) == ["I am new here."]


async def test_a_rotated_token_is_taken_up_without_a_restart(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run() as denizen:
        harbour.ada.token = "a-fresh-token-from-the-portal"
        harbour.discord.faults.close_gateway(4004)
        await harbour.until(lambda: denizen.lines("account left off"))
        harbour.script("Here again.")
        harbour.ask(harbour.ana, "are you there?")
        harbour.write_tokens({"ada": harbour.ada.token})
        await harbour.until(lambda: harbour.said() == ["Here again."])
        assert harbour.ada.token not in denizen.log


@pytest.mark.proves("P1")
async def test_rate_limits_are_waited_out(harbour: Harbour) -> None:
    harbour.configure()
    pieces = [letter * 1500 for letter in "ABC"]
    harbour.script("\n".join(pieces))
    harbour.discord.limits.strike(2, method="POST", route="/messages$", retry_after_s=0.2)
    async with harbour.run():
        harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: len(harbour.said()) == 3)
        assert await harbour.settle() == pieces
    assert harbour.discord.limits.refused == 2


@pytest.mark.proves("P1")
async def test_a_discord_that_fails_for_a_while_gets_the_answer_once(harbour: Harbour) -> None:
    harbour.configure()
    harbour.script("Hello.")
    async with harbour.run() as denizen:
        harbour.discord.faults.fail("POST", "/messages$", status=503, times=1)
        harbour.discord.faults.drop("POST", "/messages$", when="after")
        harbour.ask(harbour.ana, "hello")
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["Hello."]
        assert not denizen.lines("[error")


async def test_a_discord_that_is_away_at_the_start_is_waited_for(home: Home, provider: Provider) -> None:
    with deaf_port() as port:
        async with open_harbour(home, provider) as away:
            away.configure()
            home.variables |= point_at(f"http://127.0.0.1:{port}/api/v10", f"ws://127.0.0.1:{port}/gateway")
            async with away.run(ready=None) as denizen:
                await away.until(lambda: denizen.lines("account reconnects", "discord_unreachable"))
                async with open_harbour(home, provider, port=port) as there:
                    there.ada.token = away.ada.token
                    await there.until(lambda: denizen.lines("account ready"))
                    there.script("Good morning.")
                    there.ask(there.ana, "are you there?")
                    await there.until(lambda: there.said() == ["Good morning."])
