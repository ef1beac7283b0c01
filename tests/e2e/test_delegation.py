"""One agent gives tasks to another: configured as an owner does, and killed in the middle."""

from __future__ import annotations

import json
import re
import signal
from contextlib import closing

import anyio
import pytest

from denizen.domain.turn import TurnStatus
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall, RecordedRequest
from denizen.testing.model_wire import JsonBody
from denizen_sdk import DenizenClient
from denizen_sdk.chats import NewChat
from tests.e2e.home import Home
from tests.e2e.home import get_completion_text as said
from tests.e2e.provider import Provider
from tests.e2e.records import read_turns
from tests.timing import wait_until

pytestmark = pytest.mark.e2e

CONFIG = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"}}
  aliases: {{balanced: local/scripted}}
agents:
  denizen: {{delegates_to: [bob]}}
  bob: {{description: Keeps notes}}
default_agent: denizen
"""
NOTE = "agents/bob/notes/shopping.md"
TAKE_NOTE = ModelAnswer(calls=[ModelCall("append_note", {"name": "shopping", "text": "- milk"})])


def hand_on(task: str, agent: str = "bob", *, is_async: bool = False) -> ModelAnswer:
    return ModelAnswer(calls=[ModelCall("delegate", {"agent": agent, "task": task, "async": is_async})])


def list_tools(asked: RecordedRequest) -> set[str]:
    """The tools that were offered to the model."""
    return {tool["function"]["name"] for tool in asked.body.get("tools", ())}


META = {"delegate", "task_status", "cancel_task"}


@pytest.mark.proves(
    "T-delegate", "T-delegate-depth", "T-tool-delegate", "T-tool-task-status", "V-skill-agent-system", "V35-sub-agent"
)
def test_an_agent_runs_another_by_name_with_its_own_tools_and_that_one_runs_no_other(
    home: Home, provider: Provider
) -> None:
    agents = """\
  denizen: {delegates_to: [bob], tools: [delegate, task_status, cancel_task]}
  bob: {delegates_to: [denizen], tools: ["*_note", delegate, task_status, cancel_task, admin]}
"""
    config = CONFIG.format(url=provider.server.openai_url)
    home.write(re.sub(r"  denizen: .*\n  bob: .*\n", lambda _: agents, config))
    provider.script(
        hand_on("Put milk on the list"),
        hand_on("Do it for me", agent="denizen"),
        ModelAnswer(calls=[ModelCall("admin", {"action": "get_config"})]),
        TAKE_NOTE,
        ModelAnswer(text="Milk is noted."),
        ModelAnswer(text="Done."),
    )
    assert home.do("ask", "--no-stream", "Milk, please").out == "Done.\n"
    first, second, third, fourth, _, last = provider.requests
    assert list_tools(first) == META
    assert list_tools(second) == {"append_note", "read_note", "write_note"}
    assert "There is no tool 'delegate'" in str(third.body["messages"][-1])
    assert "There is no tool 'admin'" in str(fourth.body["messages"][-1])
    assert "Milk is noted." in str(last.body["messages"][-1])
    assert (home.folder / NOTE).read_text() == "- milk\n"
    assert len(read_turns(home.store_url)) == 2


@pytest.mark.proves("T6-meta")
def test_agents_have_the_tools_to_delegate_only_where_the_configuration_lists_somebody(
    home: Home, provider: Provider
) -> None:
    config = CONFIG.format(url=provider.server.openai_url)
    home.write(config.replace("{delegates_to: [bob]}", "{}"))
    provider.script(ModelAnswer(text="Hello."), ModelAnswer(text="Hello."))
    assert home.do("ask", "Hello").code == 0
    home.write(config)
    assert home.do("ask", "Hello").code == 0
    without, having = map(list_tools, provider.requests)
    assert having - without == {*META, "hand_over"}
    assert "admin" not in having, "it is there in chats about the administration only"
    home.write(config.replace("[bob]", "[bop]"))
    refused = home.do("config", "check")
    assert "agents.denizen.delegates_to" in refused.out + refused.err
    assert "there is no agent 'bop'" in refused.out + refused.err


@pytest.mark.proves("T6-meta")
def test_a_chat_about_the_administration_has_the_tool_of_the_configuration_where_an_agent_lists_it(
    home: Home, provider: Provider
) -> None:
    config = CONFIG.format(url=provider.server.openai_url)
    home.write(config.replace("{delegates_to: [bob]}", '{delegates_to: [bob], tools: ["*", admin]}'))
    provider.script(
        ModelAnswer(calls=[ModelCall("admin", {"action": "get_config", "section": "default_agent"})]),
        ModelAnswer(text="It is denizen."),
    )

    async def ask(url: str) -> None:
        async with DenizenClient(url, "") as client:
            await client.create_chat(NewChat(id="own", mode="admin"))
            await client.change_chat("own", title="Settings")
            assert [event async for event in client.send_to_chat("own", "Which is the default?")]

    with home.serve() as server:
        anyio.run(ask, server.url)
    asked, told = provider.requests
    assert "admin" in list_tools(asked) and not META & list_tools(asked)
    assert "denizen" in str(told.body["messages"][-1])


@pytest.mark.proves("TW15")
def test_a_delegating_turn_killed_while_the_other_agent_works_is_finished_once(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url))
    provider.script(hand_on("Put milk on the list"), TAKE_NOTE, HangingAnswer())
    with home.serve() as first, closing(first.send("Milk, please", key="m1")):
        provider.requests.await_count(3)
        assert (home.folder / NOTE).read_text() == "- milk\n"
        assert first.running.kill().code == -signal.SIGKILL
    provider.script(ModelAnswer(text="Noted."), ModelAnswer(text="Milk is on the list."))
    with home.serve() as second:
        assert said(second.ask("Milk, please", key="m1")) == "Milk is on the list."
        assert second.running.stop(signal.SIGTERM).code == 0
    assert (home.folder / NOTE).read_text() == "- milk\n"
    assert len(provider.requests) == 5
    turns = {str(turn.agent): turn for turn, _ in read_turns(home.store_url)}
    assert sorted(turns) == ["bob", "denizen"]
    parent = turns["bob"].parent
    assert parent is not None
    assert parent.id == turns["denizen"].id


@pytest.mark.proves("TW15")
def test_a_task_in_the_background_survives_a_kill_and_is_listed_and_shown(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url))
    provider.script(hand_on("Put milk on the list", is_async=True), *[HangingAnswer()] * 2)
    with home.serve() as first, closing(first.send("Milk, please", key="m1")):
        provider.requests.await_count(3)
        assert first.running.kill().code == -signal.SIGKILL
    provider.script(*[ModelAnswer(text="Here you are.")] * 2)
    with home.serve() as second:
        assert said(second.ask("Milk, please", key="m1")) == "Here you are."
        provider.requests.await_count(5)
        [(task_id, state)] = wait_for_tasks(home, "completed")
        assert state == "completed"
        shown = home.do("background", "show", task_id).out
        assert "result: Here you are." in shown
        assert "task: Put milk on the list" in shown
        trace = home.do("trace", "--last", "-a", "denizen").out
    [child] = [turn for turn, _ in read_turns(home.store_url) if turn.agent == "bob"]
    assert f"gave a task to turn {child.id} in the background" in trace
    assert child.parent is not None
    assert f"given the task by turn {child.parent.id} of denizen" in home.do("trace", child.id).out


@pytest.mark.proves("TW15")
def test_a_task_that_runs_in_the_server_is_cancelled_from_the_command_line(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url))
    provider.script(hand_on("Think for long", is_async=True))
    provider.script(*[HangingAnswer()] * 2)
    with home.serve() as server, closing(server.send("Think", key="m1")):
        provider.requests.await_count(3)
        [(task_id, _)] = wait_for_tasks(home, "running")
        assert home.do("background", "cancel", task_id).out == f"{task_id} is stopped.\n"
        assert [state for _, state in list_tasks(home)] == ["failed"]
        assert home.do("background", "cancel", task_id).code != 0


@pytest.mark.proves("V-skill-sub-agents")
def test_an_agent_starts_looks_at_and_cancels_background_work_and_reads_the_board(
    home: Home, provider: Provider
) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url) + BOARD)

    def answer(body: JsonBody) -> ModelAnswer | HangingAnswer:
        said = str(body["messages"])
        if "Look after the milk" not in said:  # the other agent
            return HangingAnswer()
        results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        task = re.search(r"task_[0-9a-f]{8}", said)
        asked = [
            ("tasks", {"action": "create", "title": "Buy milk"}),
            ("delegate", {"agent": "bob", "task": "Find milk", "async": True}),
            ("task_status", {"action": "list"}),
            ("cancel_task", {"task_id": task[0] if task else ""}),
            ("task_query", {}),
        ]
        if len(results) == len(asked):
            return ModelAnswer(text=" / ".join(result.partition("\n[")[0] for result in results))
        return ModelAnswer(calls=[ModelCall(*asked[len(results)])])

    provider.server.aside = answer
    done = home.do("ask", "--no-stream", "Look after the milk")
    assert done.code == 0, done.err
    assert re.search(r"task_\w+, bob, running: Find milk", done.out)
    assert re.search(r"task_\w+ is stopped", done.out)
    assert "Buy milk" in done.out.rpartition("is stopped")[2]
    assert [turn.status for turn, _ in read_turns(home.store_url) if turn.agent == "bob"] == [TurnStatus.CANCELLED]


BOARD = """\
tools: {projects: {enabled: true}}
"""
LISTED = """\
commands: {tldr: {description: Sums it up, prompt: Sum it up.}}
schedules: {digest: {cron: "0 5 * * *", agent: denizen, prompt: What is new?}}
gate: {modes: {append_note: ask}}
"""


@pytest.mark.proves("T-http-listings")
def test_what_a_server_has_and_does_can_be_read_over_http(home: Home, provider: Provider) -> None:
    home.write(CONFIG.format(url=provider.server.openai_url) + LISTED)
    (home.folder / "agents" / "denizen").mkdir(parents=True)
    (home.folder / "agents" / "denizen" / "IDENTITY.md").write_text("You are kind.", encoding="utf-8")
    provider.script(hand_on("Note milk", is_async=True))
    provider.server.aside = lambda body: None if "Milk, please" in str(body["messages"]) else TAKE_NOTE
    provider.script(ModelAnswer(text="It is under way."))
    with home.serve() as server, closing(server.send("Milk, please", key="m1", waits=True)):
        wait_until(lambda: bool(server.get("/api/approvals?status=pending").body))
        [approval] = server.get("/api/approvals").body
        assert (approval["agent"], approval["call"]["tool"], approval["status"]) == ("bob", "append_note", "pending")
        [task] = server.get("/api/background-tasks").body
        assert (task["agent"], task["task"], task["state"]) == ("bob", "Note milk", "running")
        assert {row["name"] for row in server.get("/api/tools").body} >= {*META, "append_note"}
        assert [row["name"] for row in server.get("/api/agents").body] == ["denizen", "bob"]
        assert [row["name"] for row in server.get("/api/schedules").body] == ["digest"]
        assert {row["subject"] for row in server.get("/api/activity").body} >= {"denizen", "bob"}
        assert "tldr" in {row["name"] for row in server.get("/api/commands").body}
        [file] = server.get("/api/context-files?agent=denizen").body
        assert (file["name"], file["text"]) == ("IDENTITY.md", "You are kind.")


def wait_for_tasks(home: Home, state: str) -> list[tuple[str, str]]:
    wait_until(lambda: [each for _, each in list_tasks(home)] == [state])
    return list_tasks(home)


def list_tasks(home: Home) -> list[tuple[str, str]]:
    """The id and the state of each background task."""
    rows = [json.loads(line) for line in home.do("background", "list", "--json").out.splitlines()]
    return [(row["id"], row["state"]) for row in rows]
