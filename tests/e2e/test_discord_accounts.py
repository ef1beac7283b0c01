"""The accounts of a `denizen run`: what keeps one of them away does not disturb the others, they follow the
configuration, and they come back by themselves.
"""

from __future__ import annotations

import anyio
import pytest
from anyio import to_thread

from denizen.testing.discord import GatewayIntent
from denizen.testing.model_server import ModelAnswer
from denizen_sdk import DenizenClient
from tests.e2e.deployment import wait_until_reached
from tests.e2e.discord import Denizen, DiscordDeployment, open_deployment, point_at
from tests.e2e.home import Home
from tests.e2e.provider import Provider, open_provider
from tests.ports import hold_unused_port
from tests.timing import HANG_LIMIT_S, poll

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("CW10", "C1")
async def test_a_bad_token_keeps_one_account_away_and_the_log_names_the_fix(deployment: DiscordDeployment) -> None:
    deployment.configure(accounts={"bea": "not-a-token", "ada": deployment.ada.token})
    deployment.script("Hello.")
    async with deployment.run() as denizen:
        await deployment.until(lambda: denizen.lines("account left off", "bea"))
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.said() == ["Hello."])
        [line] = denizen.lines("account left off")
        assert "channels.discord.accounts.bea.token" in line
        assert "https://discord.com/developers/applications" in line
        assert "not-a-token" not in denizen.log


@pytest.mark.proves("C1", "C-config-agent", "L-config-required")
async def test_all_accounts_log_in_and_an_agent_without_a_token_is_left_out(deployment: DiscordDeployment) -> None:
    bea = deployment.world.add_application("Bea")
    deployment.guild.join(bea.user)
    with open_provider() as beas:
        deployment.configure(
            accounts={"ada": deployment.ada.token, "bea": bea.token, "cleo": ""},
            agents={"bea": "model: beas/scripted"},
            providers={"beas": beas.server.openai_url},
        )
        deployment.script("Hello.")
        beas.script(ModelAnswer(text="Hi."))
        held = deployment.discord.faults.hold("GET", "/users/@me", times=1)

        async def release() -> None:
            await held.wait_reached()
            await deployment.until(lambda: deployment.discord.sessions.all)  # the other one does not wait for it
            held.release()

        async with anyio.create_task_group() as group:
            group.start_soon(release)
            async with deployment.run(ready=2) as denizen:
                assert {each.application.name for each in deployment.discord.sessions.all} == {"Ada", "Bea"}
                assert "so 'cleo' stays away from Discord" in denizen.log
                assert not denizen.lines("account left off"), "it did not try to log in"
                deployment.ask(deployment.ana, "hello")
                deployment.ask(deployment.ben, "hello", of=bea)
                await deployment.until(lambda: (deployment.said(), deployment.said(by=bea)) == (["Hello."], ["Hi."]))


@pytest.mark.proves("V2")
async def test_it_says_that_it_is_ready_when_each_account_is_connected_or_has_failed(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(accounts={"ada": deployment.ada.token, "bea": "not-a-token"})
    async with deployment.run() as denizen:
        told = denizen.log.splitlines()
        [connected], [failed], [ready, _] = (
            [number for number, line in enumerate(told) if words in line]
            for words in ("account ready", "account left off", "Denizen is ready")
        )
        assert connected < ready and failed < ready  # which is in the log first, and is printed then


@pytest.mark.proves("V2", "V28")
async def test_commands_and_backfill_follow_when_it_is_ready(deployment: DiscordDeployment) -> None:
    deployment.world.say(deployment.ben, deployment.general, "long ago")
    deployment.configure()
    commands = deployment.discord.faults.hold("", "/applications/.*/commands")
    past = deployment.discord.faults.hold("GET", f"/channels/{deployment.general.id}/messages")
    async with deployment.run():  # ready, and both have not been answered
        for held in (commands, past):
            await wait_until_reached(held)
        registered = deployment.world.store.interactions.commands
        assert not registered
        assert not deployment.rows("SELECT 1 FROM posts")
        for held in (commands, past):
            held.release()
        await deployment.until(lambda: "help" in {each.name for each in registered.values()})
        await deployment.until(lambda: deployment.rows("SELECT 1 FROM posts WHERE text = 'long ago'"))


async def test_without_the_message_content_intent_mentions_are_answered_and_the_log_names_the_fix(
    deployment: DiscordDeployment,
) -> None:
    deployment.ada.intents = GatewayIntent.GUILD_MEMBERS
    deployment.configure()
    deployment.script("Hello.")
    async with deployment.run() as denizen:
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.said() == ["Hello."])
        [line] = denizen.lines("discord_content_missing")
        assert f"https://discord.com/developers/applications/{deployment.ada.id}/bot" in line
    assert "hello" in str(deployment.requests[0].body["messages"][-1])


async def test_accounts_come_and_go_with_the_configuration(deployment: DiscordDeployment) -> None:
    bea = deployment.world.add_application("Bea")
    deployment.guild.join(bea.user)
    deployment.configure()
    async with deployment.run() as denizen:
        deployment.configure(accounts={"ada": deployment.ada.token, "bea": bea.token})
        await deployment.until(lambda: denizen.lines("account ready", "bea"))
        deployment.script("I am new here.")
        deployment.ask(deployment.ana, "who are you?", of=bea)
        await deployment.until(lambda: deployment.said(by=bea) == ["I am new here."])
        deployment.configure()
        await deployment.until(lambda: len(deployment.discord.connections) == 1)
        deployment.ask(deployment.ana, "are you gone?", of=bea)
        deployment.script("She is.")
        deployment.ask(deployment.ana, "is she gone?")
        await deployment.until(lambda: deployment.said() == ["She is."])
        assert len(denizen.lines("account ready", "ada")) == 1
    assert deployment.said(by=bea) == ["I am new here."]


@pytest.mark.proves("T4", "T1", "T35", "T35-commands", "L-config-guild", "V2")
async def test_slash_commands_and_how_an_agent_answers_follow_the_configuration(deployment: DiscordDeployment) -> None:
    def list_options(guild: int | None = None) -> dict[str, list[str]]:
        found = [each for each in deployment.world.store.interactions.commands.values() if each.guild_id == guild]
        return {each.name: [option["name"] for option in each.fields.get("options", [])] for each in found}

    deployment.configure()
    async with deployment.run():
        await deployment.until(lambda: "help" in list_options())
        motto = "motto: {description: Says the motto., prompt: Say the motto.}"
        rhyme = 'rhyme: {description: Makes a rhyme., prompt: "Rhyme on {{input}}."}'
        deployment.configure(
            agents={"ada": "sampling: {temperature: 0.125}"}, rest=f"commands:\n  {motto}\n  {rhyme}\n"
        )
        await deployment.until(
            lambda: {"new", "agent", "help", "compact", "context", "motto", "rhyme"} <= list_options().keys()
        )
        assert (list_options()["motto"], list_options()["rhyme"]) == ([], ["input"])
        deployment.script("Hello.")
        deployment.ask(deployment.ana, "hello?")
        await deployment.until(lambda: deployment.said() == ["Hello."])
        assert deployment.requests[-1].body["temperature"] == 0.125
        deployment.configure()
        await deployment.until(lambda: not {"motto", "rhyme"} & list_options().keys())
        deployment.configure(conduct=[f"commands_guild: {deployment.guild.id}"])
        await deployment.until(lambda: "help" in list_options(deployment.guild.id) and not list_options())


COMMANDS = """\
commands:
  up: {description: Says what is up., shell: [printf, "%s is up", "{{input}}"], admin_only: false}
  motto: {description: Says the motto., prompt: Say the motto., admin_only: false}
  how: {description: Says how it is., shell: [printf, fine], prompt: "Tell: {{output}}", admin_only: false}
gate:
  rules:
  - {tool: command_*, action: approve}
"""


@pytest.mark.proves("T37", "T36")
async def test_a_configured_command_runs_its_program_or_asks_its_prompt_or_both(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=COMMANDS)
    async with deployment.run():
        deployment.ask(deployment.ben, "/up $(id)")
        await deployment.until(lambda: deployment.said() == ["```\n$(id) is up\n```"])
        for command, told in (("/motto", "Say the motto."), ("/how", "fine")):
            deployment.script(f"Answer to {command}.")
            deployment.ask(deployment.ben, command)
            await deployment.until(lambda command=command: deployment.said()[-1] == f"Answer to {command}.")
            assert told in str(deployment.requests[-1].body["messages"][-1])


async def test_a_rotated_token_is_taken_up_without_a_restart(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run() as denizen:
        deployment.ada.token = "a-fresh-token-from-the-portal"
        deployment.discord.faults.close_gateway(4004)
        await deployment.until(lambda: denizen.lines("account left off"))
        deployment.script("Here again.")
        deployment.ask(deployment.ana, "are you there?")
        deployment.write_tokens({"ada": deployment.ada.token})
        await deployment.until(lambda: deployment.said() == ["Here again."])
        assert deployment.ada.token not in denizen.log


async def await_readiness(denizen: Denizen, *not_ready: str) -> None:
    """Waits until just these parts of a server are not ready."""
    with anyio.fail_after(HANG_LIMIT_S):
        while True:
            answer = await to_thread.run_sync(denizen.server.get, "/ready")
            assert answer.status == (503 if answer.body["not_ready"] else 200)
            if answer.body["not_ready"] == list(not_ready):
                return


async def test_a_server_is_not_ready_while_discord_refuses_an_account(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run() as denizen:
        await await_readiness(denizen)
        deployment.discord.faults.refuse_gateway(times=1000)
        deployment.discord.faults.close_gateway()
        await await_readiness(denizen, "accounts")
        deployment.discord.faults.clear()
        await await_readiness(denizen)
        deployment.ada.token = "a-fresh-token-from-the-portal"
        deployment.discord.faults.close_gateway(4004)
        await await_readiness(denizen, "accounts")
        answer = await to_thread.run_sync(denizen.server.get, "/ready")
        assert "channels.discord.accounts.ada.token" in answer.body["reasons"]["accounts"]


@pytest.mark.proves("C-inspect-server")
async def test_one_inspects_on_loopback_how_the_server_its_accounts_and_its_channels_stand(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(accounts={"ada": deployment.ada.token, "bea": "not-a-token"})
    deployment.script("Hello.")
    async with deployment.run() as denizen:
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.said() == ["Hello."])
        async with DenizenClient(denizen.server.url) as client:

            async def list_listening() -> list[str]:
                return [each.agent for each in await client.inspect_accounts() if each.is_listening]

            assert await poll(list_listening) == ["ada"]
            told = {each.agent: each.told for each in await client.inspect_accounts()}
            assert "Discord refused the token" in told["bea"]
            health = await client.inspect_health()
            assert list(health.problems) == ["accounts"]
            assert any("python and disk: Python 3" in each.what for each in health.findings)
            assert (await client.inspect_statistics()).requests_today == 1
            channel = (await client.inspect_channel("discord", str(deployment.general.id))).name
            messages = await client.inspect_messages("discord", str(deployment.general.id))
        assert (channel, messages[-1].text) == ("general", "Hello.")


@pytest.mark.proves("P1", "SW11")
async def test_rate_limits_are_waited_out(deployment: DiscordDeployment) -> None:
    deployment.configure()
    pieces = [letter * 1500 for letter in "ABC"]
    deployment.script("\n".join(pieces))
    deployment.discord.limits.strike(2, method="POST", route="/messages$", retry_after_s=0.2)
    async with deployment.run():
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: len(deployment.said()) == 3)
        assert await deployment.settle() == pieces
    assert deployment.discord.limits.refused == 2


@pytest.mark.proves("P1")
async def test_a_discord_that_fails_for_a_while_gets_the_answer_once(deployment: DiscordDeployment) -> None:
    deployment.configure()
    deployment.script("Hello.")
    async with deployment.run() as denizen:
        deployment.discord.faults.fail("POST", "/messages$", status=503, times=1)
        deployment.discord.faults.drop("POST", "/messages$", when="after")
        deployment.ask(deployment.ana, "hello")
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Hello."]
        assert not denizen.lines("[error")


async def test_a_discord_that_is_away_at_the_start_is_waited_for(home: Home, provider: Provider) -> None:
    with hold_unused_port() as port:
        async with open_deployment(home, provider) as away:
            away.configure()
            home.variables |= point_at(f"http://127.0.0.1:{port}/api/v10", f"ws://127.0.0.1:{port}/gateway")
            async with away.run(ready=None) as denizen:
                await away.until(lambda: denizen.lines("account reconnects", "discord_unreachable"))
                async with open_deployment(home, provider, port=port) as there:
                    there.ada.token = away.ada.token
                    await there.until(lambda: denizen.lines("account ready"))
                    there.script("Good morning.")
                    there.ask(there.ana, "are you there?")
                    await there.until(lambda: there.said() == ["Good morning."])
