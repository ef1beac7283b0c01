"""Schedules of a `denizen run`: they post on Discord at their time, once whatever happens to the process."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from anyio import to_thread

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.deployment import wait_until_reached
from tests.e2e.discord import DiscordDeployment
from tests.e2e.home import Home, Server
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns
from tests.timing import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

NEW_YEAR = "0 0 1 1 *"
STATES = "SELECT status FROM schedule_runs ORDER BY position"


def write_schedule(where: int, *, name: str = "news", cron: str = NEW_YEAR, more: str = "") -> str:
    return f"""\
schedules:
  {name}:
    cron: "{cron}"
    prompt: Say what is new.
    catch_up: once
    delivery: {{to: discord, target: "{where}"}}
{more}"""


async def let_its_time_pass(deployment: DiscordDeployment) -> None:
    """Lets the schedules be seen once, and years pass while nothing runs."""
    async with deployment.run() as first:
        await to_thread.run_sync(wait_until, lambda: bool(deployment.rows("SELECT name FROM schedules")))
        await first.kill()
    with closing(sqlite3.connect(deployment.home.folder / "denizen.db")) as connection, connection:
        connection.execute("UPDATE schedules SET looked_until = '2020-06-01 00:00:00.000000'")


async def test_a_schedule_posts_into_its_channel_when_its_time_has_come(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script("Nothing is new.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Nothing is new."]
    assert deployment.rows(STATES) == [("started",)]
    assert len(deployment.requests) == 2


async def test_a_run_that_was_killed_goes_on_and_posts_once(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script(HangingAnswer())
    async with deployment.run() as first:
        await deployment.until(lambda: deployment.requests)
        await first.kill()
    deployment.script("Nothing is new.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Nothing is new."]
    assert deployment.rows(STATES) == [("started",)]


@pytest.mark.parametrize("number", [1, 2], ids=["while it is posted", "when it is there, before that was known"])
async def test_a_run_that_was_killed_while_it_was_delivered_posts_once(
    number: int, deployment: DiscordDeployment
) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script("Nothing is new.")
    when = "before" if number == 1 else "after"
    fault = deployment.discord.faults.hold("POST", r"/channels/\d+/messages$", times=1, when=when)
    async with deployment.run(ready=None) as first:
        await wait_until_reached(fault)
        await first.kill()
    async with deployment.run():
        await deployment.until(deployment.said)
        fault.release()
        assert await deployment.settle() == ["Nothing is new."]
    assert len(deployment.requests) == 2


@pytest.mark.proves("T31", "X-no-action", "TW9")
@pytest.mark.parametrize(
    ("answer", "posted"),
    [
        ("[silence]", []),
        ("I said [silence] and NO_ACTION to them.", ["I said [silence] and NO_ACTION to them."]),
        ("NO_ACTION", ["NO_ACTION"]),
    ],
)
async def test_a_run_ends_in_silence_by_the_agreed_word_alone(
    answer: str, posted: list[str], deployment: DiscordDeployment
) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    await let_its_time_pass(deployment)
    deployment.script(answer)
    async with deployment.run():
        await to_thread.run_sync(wait_until, lambda: ("done",) in deployment.rows("SELECT status FROM turns"))
        assert await deployment.settle() == posted
    assert "[silence]" in str(deployment.requests[0])  # it was told how


@pytest.mark.proves("T32")
async def test_a_direct_message_without_a_target_goes_to_the_owner(deployment: DiscordDeployment) -> None:
    rest = write_schedule(0).replace('delivery: {to: discord, target: "0"}', "delivery: discord-dm")
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest=rest)
    await let_its_time_pass(deployment)
    deployment.script("Nothing is new.")
    async with deployment.run():
        direct = deployment.world.open_dm(deployment.ana, deployment.ada.user)
        await deployment.until(lambda: deployment.said(direct) == ["Nothing is new."])
    assert deployment.said() == []


@pytest.mark.proves("T32")
async def test_a_channel_without_an_id_is_an_error_in_the_log_and_the_old_schedules_stay(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(rest=write_schedule(deployment.general.id))
    async with deployment.run() as server:
        deployment.configure(rest=write_schedule(0).replace('{to: discord, target: "0"}', "discord"))
        await to_thread.run_sync(wait_until, lambda: bool(server.lines("configuration refused")))
        assert "a delivery into a channel needs its id" in server.log
        assert deployment.home.do("schedules", "list").code == 2  # the file is wrong, which commands say, too
    assert deployment.rows("SELECT name FROM schedules") == [("news",)]


@pytest.mark.proves("V-skill-cron")
async def test_an_agent_adds_lists_switches_runs_and_removes_schedules_for_people(
    deployment: DiscordDeployment,
) -> None:
    rest = """\
tools: {schedules: {enabled: true}}
gate: {rules: [{tool: add_schedule, action: approve}, {tool: switch_schedule, action: approve}]}
"""
    deployment.configure(rest=rest, agents={"ada": "tools: ['*_schedule', list_schedules]"})

    async def ask(tool: str, **args: object) -> str:
        """Has Ada call a tool for Ana, and returns what it told the model."""
        answered = len(deployment.said())
        deployment.script(ModelAnswer(calls=(ModelCall(tool, args),)), f"{tool} it is.")
        deployment.ask(deployment.ana, f"please {tool}")
        await deployment.until(lambda: len(deployment.said()) > answered)
        return str(deployment.requests[-1])

    async with deployment.run():
        added = await ask("add_schedule", name="tea", when=NEW_YEAR, prompt="Time for tea.")
        assert "Added. tea: 0 0 1 1 *, UTC; next" in added
        assert f"target: '{deployment.general.id}'" in deployment.home.config.read_text()
        assert "Prompt: Time for tea." in await ask("list_schedules")
        assert "UTC; off" in await ask("switch_schedule", name="tea", enabled=False)
        deployment.script(ModelAnswer(calls=(ModelCall("run_schedule", {"name": "tea"}),)), "Tea!", "Tea!")
        deployment.ask(deployment.ana, "run it now")  # its answer and that of the run come in any order
        await deployment.until(lambda: deployment.said()[3:] == ["Tea!", "Tea!"])
        assert "Removed." in await ask("remove_schedule", name="tea")
        assert "tea" not in deployment.home.config.read_text()


@pytest.mark.proves("T27", "T30", "T33", "T-http-cron")
def test_a_run_over_http_is_done_by_its_agent_whose_next_task_a_hook_knows(home: Home, provider: Provider) -> None:
    rest = """\
  bob: {}
default_agent: denizen
schedules:
  sums:
    cron: "0 0 1 1 *"
    prompt: Tell the sum.
    agent: bob
    hooks: {before_run: {tool: calculator, args: {expression: "{{next_task}}"}}}
"""
    home.configure(provider.server.openai_url)
    home.write(home.config.read_text().replace("  denizen: {}\n", f"  denizen: {{}}\n{rest}"))
    folder = home.folder / "agents" / "bob"
    folder.mkdir(parents=True)
    (folder / "next_task.md").write_text("40 + 2\n", encoding="utf-8")
    provider.script(ModelAnswer(text="It is 42."))

    def list_outcomes(server: Server) -> list[str]:
        return [run["outcome"] for run in server.get("/api/schedules/sums/runs").body]

    with home.serve() as server:
        assert server.post("/api/schedules/sums/run").status == 202
        wait_until(lambda: list_outcomes(server) == ["done"])
    [(turn, _)] = read_turns(home.store_url)
    assert (turn.agent, turn.result.reply) == ("bob", "It is 42.")
    [asked] = provider.server.bodies
    *_, prompt, _note_on_silence = asked["messages"]
    assert "\n42\n</untrusted>" in prompt["content"][0]["text"]


def test_schedules_are_added_switched_run_and_seen_by_commands(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest="# Ours.\n")

    def do(*args: str) -> str:
        done = home.do("schedules", *args)
        assert done.code == 0, done
        return done.out

    assert "There are no schedules." in do("list")
    do("add", "tidy", "--cron", NEW_YEAR, "--prompt", "Tidy up.", "--zone", "Europe/Berlin")
    assert "tidy  0 0 1 1 *  next " in do("list") and "Europe/Berlin" in do("list")
    assert "# Ours." in home.config.read_text() and "prompt: Tidy up." in home.config.read_text()
    do("disable", "tidy")
    assert "tidy  0 0 1 1 *  off" in do("list")
    do("enable", "tidy")
    assert "prompt: Tidy up." in do("show", "tidy")
    for wrong in (["run", "tdy"], ["remove", "tdy"], ["enable", "tdy"]):
        assert "Did you mean 'tidy'?" in home.do("schedules", *wrong).err
    refused = home.do("schedules", "add", "new", "--cron", "0 9 31 2 *", "--prompt", "x")
    assert refused.code != 0 and "no cron expression" in refused.err
    assert home.do("schedules", "add", "tidy", "--cron", "@daily", "--prompt", "x").code != 0
    assert "Asked for a run" in do("run", "tidy")
    assert "waiting" in do("history", "tidy")
    provider.script(ModelAnswer(text="Tidied."))
    with home.serve():
        wait_until(lambda: "done" in do("history", "--json"))
    do("remove", "tidy")
    assert "tidy" not in home.config.read_text() and "done" in do("history")
