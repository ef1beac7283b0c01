"""The client's side of the shell, of sources, settings and reports of usage; and the tools that hear of every call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from openai.types import CompletionUsage
from openai.types.responses import ResponseUsage
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic_ai import RunUsage
from starlette.requests import Request
from starlette.responses import Response

from denizen_sdk import ApiError, DenizenClient, NetworkError, ShellTools
from denizen_sdk.knowledge import SourceInfo, SourceSettings, SourceSyncState, StartedSnapshot, StartedSync
from denizen_sdk.shell import CommandOutput, ToolActivity
from denizen_sdk.usage import TokenCounts, UsageReceipt, read_tokens
from tests.clock import ManualClock
from tests.sdk.stub_server import CONFIG, URL, StubServer

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-sdk-create")
async def test_a_client_has_a_url_a_key_a_session_a_source_and_headers_of_its_own() -> None:
    server = StubServer()
    client = server.client("sesame", session_id="sess_a", source="ci", source_id="42", headers={"x-team": "blue"})
    async with client:
        await client.bash("ls")
        await client.report_usage(TokenCounts(1, 2))
    assert (server.headers["authorization"], server.headers["x-team"]) == ("Bearer sesame", "blue")
    shell, usage = server.heard
    assert shell[2] == {"command": "ls", "sessionId": "sess_a"}
    assert (usage[2]["source"], usage[2]["sourceId"]) == ("ci", "42")
    with pytest.raises(ValueError, match="base_url is missing"):
        DenizenClient("", "sesame")


@pytest.mark.proves("S-sdk-client")
async def test_the_client_runs_commands_and_reads_and_starts_what_there_is() -> None:
    server = StubServer()
    async with server.client() as client:
        assert await client.bash("cat gone") == CommandOutput("", "gone\n", 1)
        assert await client.bash_batch(["ls", "cat gone"]) == (
            CommandOutput("shared\n", "", 0, "ls"),
            CommandOutput("", "gone\n", 1, "cat gone"),
        )
        assert await client.list_sources() == [
            SourceInfo(
                id="docs",
                folder="docs/docs",
                settings=SourceSettings("git", "Docs"),
                sync_state=SourceSyncState(files=2, documents=1),
            )
        ]
        assert await client.sync_source("docs") == StartedSync("started", "sync_1", ("docs",))
        assert await client.create_snapshot() == StartedSnapshot("started")
        assert await client.get_agent_config() == CONFIG


@pytest.mark.proves("S-sdk-session")
async def test_the_session_of_each_answer_is_kept_for_the_next_call_and_can_be_set() -> None:
    server = StubServer()
    async with server.client() as client:
        assert client.session_id == ""
        await client.bash("ls")
        assert client.session_id == "sess_1"
        await client.bash_batch(["ls"])
        client.session_id = "sess_mine"
        await client.bash("ls")
        assert client.session_id == "sess_3", "the server does not know that one"
        client.session_id = ""
        await client.bash_batch(["ls"], agent="scribe")
        assert client.session_id == "sess_4"
    assert [body.get("sessionId") for _, _, body in server.heard] == [None, "sess_1", "sess_mine", None]
    assert [body.get("agent") for _, _, body in server.heard] == [None, None, None, "scribe"]


# --- usage -----------------------------------------------------------------------------------------------------------


@dataclass
class FrameworkRun:
    """A finished run of some framework."""

    usage: Any


@dataclass
class RunInContext:
    context_wrapper: FrameworkRun


RESPONSE = ResponseUsage(
    input_tokens=3,
    output_tokens=5,
    total_tokens=8,
    input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
)


@pytest.mark.parametrize(
    "finished",
    [
        TokenCounts(3, 5),
        RunUsage(input_tokens=3, output_tokens=5),
        FrameworkRun(RunUsage(input_tokens=3, output_tokens=5)),
        FrameworkRun(lambda: RunUsage(input_tokens=3, output_tokens=5)),
        CompletionUsage(prompt_tokens=3, completion_tokens=5, total_tokens=8),
        RESPONSE,
        RunInContext(FrameworkRun(RESPONSE)),
        {"input_tokens": 3, "output_tokens": 5},
        {"usage": {"prompt_tokens": 3, "completion_tokens": 5}},
    ],
)
@pytest.mark.proves("S-sdk-usage")
async def test_the_usage_of_a_finished_run_is_reported_whoever_ran_it(finished: object) -> None:
    server = StubServer()
    async with server.client(source="ci", source_id="7") as client:
        answer = await client.report_usage(
            finished, model="m", duration_ms=12, metadata={"pr": 1}, idempotency_key="run-1"
        )
    assert answer == UsageReceipt("use_1", recorded=True)
    assert server.headers["idempotency-key"] == "run-1"
    assert server.heard == [
        (
            "POST",
            "/api/stats/usage",
            {
                "source": "ci",
                "sourceId": "7",
                "model": "m",
                "inputTokens": 3,
                "outputTokens": 5,
                "durationMs": 12,
                "metadata": {"pr": 1},
            },
        )
    ]


@pytest.mark.parametrize("finished", [None, 3, {}, FrameworkRun(None), {"usage": {"input_tokens": 3}}])
def test_what_holds_no_usage_is_said_to(finished: object) -> None:
    with pytest.raises(TypeError, match="There is no usage in a"):
        read_tokens(finished)


# --- tools -----------------------------------------------------------------------------------------------------------


@dataclass
class SlowServer(StubServer):
    """Its shell takes a second and a half, by a clock of its own."""

    clock: ManualClock = field(default_factory=ManualClock)

    async def shell(self, request: Request) -> Response:
        self.clock.advance(1.5)
        return await super().shell(request)


@pytest.mark.proves("S-sdk-on-tool-call", "S22")
async def test_every_tool_call_is_told_while_it_runs_and_when_it_is_done() -> None:
    told: list[ToolActivity] = []
    server = SlowServer()
    async with server.client() as client:
        tools = ShellTools(client, told.append, clock=server.clock.monotonic_s)
        assert await tools.bash("cat shared/rules.md") == "No shoes."
        assert await tools.bash_batch(["ls", "cat gone"]) == "$ ls\nshared\n\n$ cat gone\ngone\n[exit code 1]"
    assert [(each.tool, each.state, each.success) for each in told] == [
        ("bash", "loading", False),
        ("bash", "done", True),
        ("bash_batch", "loading", False),
        ("bash_batch", "done", True),
    ]
    assert told[0].id == told[1].id != told[2].id == told[3].id
    assert told[2].args == {"commands": ["ls", "cat gone"]}
    assert [each.duration_ms for each in told] == [None, 1500, None, 1500]
    assert [(output.command, output.exit_code) for output in told[3].results] == [("ls", 0), ("cat gone", 1)]


@pytest.mark.proves("S-sdk-on-tool-call")
async def test_a_refused_command_is_told_to_the_model_and_a_lost_server_to_the_program() -> None:
    told: list[ToolActivity] = []

    async def hear(activity: ToolActivity) -> None:
        told.append(activity)

    async with StubServer().client() as client:
        assert await ShellTools(client, hear).bash("rm x") == "Not allowed.\n`rm x`\nUse ls."
    assert [each.state for each in told] == ["loading", "error"]
    assert "why: `rm x`" in told[1].error

    def break_off(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("nobody there")

    async with DenizenClient(URL, transport=httpx2.MockTransport(break_off)) as client:
        with pytest.raises(NetworkError):
            await ShellTools(client, hear).bash("ls")
    assert [each.state for each in told[2:]] == ["loading", "error"]


async def test_a_wrong_key_ends_the_run() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        problem = {"code": "credentials_wrong", "message": "This API key is not known.", "status": 401}
        return httpx2.Response(401, json={"error": problem})

    async with DenizenClient(URL, transport=httpx2.MockTransport(refuse)) as client:
        with pytest.raises(ApiError) as caught:
            await ShellTools(client).bash_batch(["ls"])
    assert caught.value.is_auth
