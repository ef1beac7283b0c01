"""Commands over HTTP: what is offered, what runs and streams, and what acts on a chat."""

import json
from typing import Any

import anyio
import httpx2
import pytest

from denizen.domain.custom_command import CustomCommand
from denizen.domain.message import join_text
from denizen.domain.tool import ToolCall, ToolResult
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.generation import CustomCommandSet
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.commands.test_custom import ALLOWED, STATUS, ProgramToolset
from tests.web.api.test_chats import events, read, say, texts
from tests.web_fixture import ADA, ANN, BEN, ApiKey, make_hello_model, open_web

pytestmark = pytest.mark.anyio

AS_ANN, AS_BEN, AS_ADA = ({"x-api-key": f"key-of-{name}"} for name in ("ann", "ben", "ada"))
OWEN = ApiKey.from_text("owen", "key-of-owen", ("owner", "admin"))
AS_OWEN = {"x-api-key": "key-of-owen"}


async def give(client: httpx2.AsyncClient, text: str, **where: object) -> list[dict[str, Any]]:
    return events(await client.post("/api/command", json={"input": text, **where}))


async def reply(client: httpx2.AsyncClient, text: str, **where: object) -> str:
    """The reply of a command that has been done and started no turn."""
    [event] = await give(client, text, **where)
    assert (event["type"], event["is_failure"]) == ("command", False), event
    return event["text"]


async def test_each_caller_is_offered_the_commands_that_the_caller_may_give() -> None:
    commands = CustomCommandSet((CustomCommand("deploy", "Deploys.", prompt="Deploy {{input}}."),))
    keys = [ANN, ADA, OWEN]
    async with (
        open_web(keys=keys, commands=commands) as web,
        web.client(**AS_ANN) as ann,
        web.client(**AS_ADA) as ada,
        web.client(**AS_OWEN) as owen,
    ):
        rows = [(await client.get("/api/commands")).json() for client in (ann, ada, owen)]
        for_ann, for_ada, for_owen = ({row["name"]: row for row in found} for found in rows)
        assert (await ann.get("/api/commands", params={"agent": "nobody"})).status_code == 404
        [refused] = await give(ann, "/deploy now")
        assert refused["is_failure"]
        assert "/deploy is for admins only" in refused["text"]
        assert await web.turns() == []
    assert list(for_ann) == [
        *(
            "new",
            "reset",
            "agent",
            "handover",
            "model",
            "mode",
            "context",
            "compact",
            "why",
            "usage",
            "memory",
            "reminders",
            "tasks",
            "run",
            "help",
        )
    ]
    assert set(for_ada) - set(for_ann) == {"deploy", "schedules"}
    assert set(for_owen) - set(for_ada) == {"agents", "migrate", "observer"}
    deploy, model = for_ada["deploy"], for_ann["model"]
    assert (deploy["usage"], deploy["allowed"], deploy["is_configured"]) == ("/deploy <input>", "admins", True)
    assert [(each["name"], each["required"]) for each in deploy["options"]] == [("input", True)]
    assert (model["allowed"], for_owen["observer"]["allowed"]) == ("everybody", "owners")
    assert model["subcommands"][0]["usage"] == "/model set <model> [user]"


@pytest.mark.proves("T-http-command")
async def test_a_command_with_a_program_and_a_prompt_streams_its_output_and_then_its_turn() -> None:
    programs = ProgramToolset()
    command = CustomCommand(
        "status", "Says how things are.", shell=("status", "{{input}}"), prompt="What is wrong?", admin_only=False
    )
    model = ScriptedModel(ScriptedReply("Nothing is."))
    async with (
        open_web(model, keys=[ANN], commands=CustomCommandSet((command,), programs.tools), policy=ALLOWED) as web,
        web.client(**AS_ANN) as client,
    ):
        first, *rest = await give(client, "/status db", chat="ops")
        shown = await read(client, "ops")
        log = [entry.event async for entry in read_log(web.store)]
    assert first == {"type": "shell_output", "text": "all is well", "is_error": False, "truncated": False}
    kinds = [event["type"] for event in rest if event["type"] != "title"]
    assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("turn", "finished", {"text"})
    assert next(event for event in rest if event["type"] == "finished")["reply"] == "Nothing is."
    assert "all is well" in join_text(model.requests[0].messages[-1].parts)
    assert [text.startswith("What is wrong?") or text for text in texts(shown)] == [True, "Nothing is."]
    [scope] = programs.scopes
    assert (scope.principal.key, scope.place.thread) == ("api_key:ann", "ops")
    assert ("api_key:ann", "command_status") in [(event.actor, event.subject) for event in log]


@pytest.mark.proves("T-http-command")
async def test_a_command_with_a_program_alone_streams_its_output_and_leaves_no_message() -> None:
    programs = ProgramToolset(ToolResult("disk full", is_error=True, data={"exit_code": 1}))
    async with (
        open_web(keys=[ANN], commands=CustomCommandSet((STATUS,), programs.tools), policy=ALLOWED) as web,
        web.client(**AS_ANN) as client,
    ):
        output, end = await give(client, "/status db")
        assert (await client.get("/api/chats")).json() == []
    assert output == {"type": "shell_output", "text": "disk full", "is_error": True, "truncated": False}
    assert end == {"type": "command", "text": "", "agent": "denizen", "is_failure": True}


async def test_a_program_that_the_gate_does_not_approve_does_not_run() -> None:
    programs = ProgramToolset()
    async with open_web(commands=CustomCommandSet((STATUS,), programs.tools)) as web, web.client() as client:
        [end] = await give(client, "/status db")
    assert end["is_failure"]
    assert "was not run" in end["text"]
    assert not programs.scopes


async def test_new_and_context_act_on_the_chat_and_not_on_another() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        await say(client, "trees", "Which tree is tallest?")
        await say(client, "boats", "How do boats float?")
        assert "| messages" not in await reply(client, "/context", chat="trees")
        assert "denizen on scripted/model" in await reply(client, "/context", chat="trees")
        assert "starts a new session" in await reply(client, "/new", chat="trees")
        trees, boats = await read(client, "trees"), await read(client, "boats")
        [earlier] = [each["id"] for each in trees["sessions"] if not each["is_current"]]
        assert texts(await read(client, "trees", session=earlier)) == ["Which tree is tallest?", "Hello."]
    assert (texts(trees), texts(boats)) == ([], ["How do boats float?", "Hello."])


async def test_compact_summarizes_the_chat() -> None:
    model = ScriptedModel(*(ScriptedReply(f"Answer {each}.") for each in range(2)), ScriptedReply("They talked."))
    async with open_web(model) as web, web.client() as client:
        await say(client, "trees", "One?")
        await say(client, "trees", "Two?")
        said = await reply(client, "/compact", chat="trees")
        assert "They talked." in said
        assert said.startswith("Compacted: 4 messages before")


async def test_an_agent_that_is_chosen_by_command_goes_on_with_the_chat() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        await say(client, "trees", "Which tree is tallest?")
        [end] = await give(client, "/agent scribe", chat="trees")
        trees = await read(client, "trees")
        back = await reply(client, "/agent default", chat="trees", agent="scribe")
        [failed] = await give(client, "/agent scribe")
    assert (end["agent"], trees["chat"]["agent"]) == ("scribe", "scribe")
    assert texts(trees) == ["Which tree is tallest?", "Hello."]
    assert "denizen answers here" in back
    assert failed["is_failure"]
    assert "each message names the agent" in failed["text"]


async def test_a_model_that_is_chosen_by_command_answers_the_chats_of_its_chooser_only() -> None:
    async with (
        open_web(make_hello_model(), keys=[ADA, BEN]) as web,
        web.client(**AS_ADA) as ada,
        web.client(**AS_BEN) as ben,
    ):
        await reply(ada, "/model set scripted/model", chat="trees")
        await say(ada, "trees", "Hi")
        await say(ben, "boats", "Hi")
        assert "You chose the model `scripted/model`" in await reply(ada, "/model list", chat="trees")
        assert "You chose none" in await reply(ben, "/model list", chat="boats")
        mine, his = await web.turns()
    assert (mine.options.get("model"), his.options.get("model")) == ("scripted/model", None)


async def test_why_tells_about_the_last_answer_of_the_chat() -> None:
    async with open_web(make_hello_model()) as web, web.client() as client:
        await say(client, "trees", "Hi")
        [turn] = await web.turns()
        assert f"Reference: {turn.id}" in await reply(client, "/why", chat="trees")
        [failed] = await give(client, "/why", chat="boats")
    assert failed["is_failure"]


async def test_memory_deletes_the_chats_of_who_asks_and_nobody_elses() -> None:
    async with (
        open_web(make_hello_model(), keys=[ANN, BEN]) as web,
        web.client(**AS_ANN) as ann,
        web.client(**AS_BEN) as ben,
    ):
        await say(ann, "mine", "Hi")
        await say(ben, "his", "Hi")
        assert "sessions with agents: 1 message" in await reply(ann, "/memory show", chat="mine")
        await reply(ann, "/memory forget confirm: yes", chat="mine")
        assert (await ann.get("/api/chats")).json() == []
        assert [row["id"] for row in (await ben.get("/api/chats")).json()] == ["his"]
        [refused] = await give(ann, "/memory opt-out")
    assert refused["is_failure"]
    assert "Chats are not archived." in refused["text"]


async def test_an_admin_who_is_no_owner_does_not_switch_the_observer() -> None:
    async with open_web(keys=[ADA]) as web, web.client(**AS_ADA) as ada:
        [refused] = await give(ada, "/observer disable")
        assert "is for owners only" in refused["text"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/ask Who are you?", "is a question to its agent"),
        ("/allow list", "here people are invited"),
        ("/nwe", "Did you mean /new?"),
        ("/mode set slow", "fast, cheap, balanced, quality"),
    ],
)
async def test_what_cannot_be_done_is_refused_in_words(text: str, told: str) -> None:
    async with open_web() as web, web.client() as client:
        [end] = await give(client, text)
    assert end["is_failure"]
    assert told in end["text"]


async def test_a_text_that_gives_no_command_is_no_valid_request() -> None:
    async with open_web() as web, web.client() as client:
        for body, code in (
            ({"input": "hello"}, "command_none"),
            ({"input": ""}, "message_empty"),
            ({"input": "/help", "chat": "a b"}, "chat_id_invalid"),
            ({"input": "/help", "chat": "a", "session": "b"}, "command_where"),
        ):
            response = await client.post("/api/command", json=body)
            assert (response.status_code, response.json()["error"]["code"]) == (400, code)
        assert (await client.post("/api/command", json={"input": "/help", "agent": "nobody"})).status_code == 404


async def test_a_command_that_has_begun_runs_to_its_end_when_its_reader_leaves() -> None:
    programs, begun, leaves, goes_on = ProgramToolset(), anyio.Event(), anyio.Event(), anyio.Event()

    async def run(tool_call: ToolCall, scope: CallScope) -> ToolResult:
        begun.set()
        await goes_on.wait()
        return programs.result

    body = json.dumps({"input": "/status db"}).encode()
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        if (message := next(sent, None)) is not None:
            return message
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Nobody reads it."""

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    request = {"type": "http", "method": "POST", "path": "/api/command", "raw_path": b"/api/command", "scheme": "http"}
    request |= {"query_string": b"", "root_path": "", "headers": headers, "client": ("127.0.0.1", 1)}
    programs.tools.run = run
    async with open_web(commands=CustomCommandSet((STATUS,), programs.tools), policy=ALLOWED) as web:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.app, request, receive, send)
            await begun.wait()
            leaves.set()
            await anyio.wait_all_tasks_blocked()
            goes_on.set()
        log = [entry.event.details.get("state") async for entry in read_log(web.store)]
    assert log == ["begun", "done"]
