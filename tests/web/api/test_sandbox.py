"""The shell over HTTP, on a real sandbox: one command or a batch, sessions of one's own, refusals that teach."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from denizen.app.knowledge import KnowledgeShells
from denizen.app.settings import load_settings
from denizen.builtin_skills.shell import skill
from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.ids import AgentName
from denizen.domain.verdict import Decision
from denizen.engine.audit.audit_log import read_log
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.ports.sandbox import ShellResult
from denizen.ports.toolset import CallScope
from denizen.skill import ScopedServices, SkillToolset
from denizen.skill.context import RunShell
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from denizen.web.http.auth import make_csrf_token
from denizen_sdk import DenizenClient, ShellTools
from denizen_sdk.shell import ToolActivity
from denizen_sdk.turns import ToolFinishedEvent, ToolStartedEvent
from tests.sandbox import open_sandbox
from tests.skill_fixture import ServicesFixture
from tests.web.people import add_user, sign_in
from tests.web_fixture import ANN, BEN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

PATH = "/api/sandbox/shell"


@dataclass
class SandboxWebFixture:
    """A server over a folder with documents, and how it is called. A call of its shell takes `took_s`, by its clock."""

    web: WebFixture
    folder: Path
    took_s: float = 0

    async def send(self, key: str = "key-of-ann", **body: Any) -> tuple[int, Any]:
        async with self.web.client(**{"x-api-key": key}) as client:
            answer = await client.post(PATH, json=body)
        return answer.status_code, answer.json()

    async def run(self, key: str = "key-of-ann", **body: Any) -> Any:
        status, answer = await self.send(key, **body)
        assert status == 200, answer
        return answer

    async def refused(self, **body: Any) -> dict[str, Any]:
        status, answer = await self.send(**body)
        assert status == 400, answer
        return answer["error"]


@asynccontextmanager
async def open_sandbox_web(
    home: Path, *models: ScriptedModel, policy: GatePolicy | None = None
) -> AsyncGenerator[SandboxWebFixture]:
    (folder := home / "knowledge").mkdir(parents=True)
    (folder / "rules.md").write_text("# Rules\nNo shoes | no pets\n", encoding="utf-8")
    agents = [Agent(AgentName("denizen")), Agent(AgentName("mute"), tool_access=ToolAccess(tools=("weather",)))]
    async with open_sandbox() as sandbox:
        shells = KnowledgeShells(sandbox, load_settings(home, {}).folders, lambda _: [])

        def open_shell(scope: CallScope) -> RunShell | None:
            shell = shells.open(scope)

            async def run(commands: Sequence[str]) -> tuple[ShellResult, ...]:
                assert shell is not None
                fixture.web.clock.advance(fixture.took_s)
                return await shell(commands)

            return run if shell is not None else None

        toolset = SkillToolset(
            skill, replace(ServicesFixture(home).services(), scoped=ScopedServices(open_shell=open_shell))
        )
        async with open_web(*models, keys=[ANN, BEN], agents=agents, policy=policy, more=[toolset]) as web:
            fixture = SandboxWebFixture(web, folder)
            yield fixture


@pytest.mark.proves("S20", "S-http-sandbox-shell-post")
async def test_one_command_or_a_batch_is_run_and_every_stream_comes_back(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web:
        one = await web.run(command='grep -n "shoes | no" shared/rules.md')
        session = one.pop("sessionId")
        assert session.startswith("sess_")
        assert one == {"stdout": "2:No shoes | no pets\n", "stderr": "", "exitCode": 0}
        several = await web.run(commands=["cat gone", "wc -l shared/rules.md", "ls"], sessionId=session)
        assert several["sessionId"] == session
        assert [(row["command"], row["exitCode"]) for row in several["results"]][0::2] == [("cat gone", 1), ("ls", 0)]
        assert several["results"][0]["stderr"] == "cat: gone: No such file or directory\n"
        assert several["results"][2] == {"command": "ls", "stdout": "shared\n", "stderr": "", "exitCode": 0}
        [only] = (await web.run(commands=["ls"]))["results"]
        assert only["stdout"] == "shared\n"
        log = [entry.event async for entry in read_log(web.web.store)]
    assert [(each.actor, each.subject, each.details["origin"]) for each in log] == [
        ("api_key:ann", "bash", "api"),
        ("api_key:ann", "bash_batch", "api"),
        ("api_key:ann", "bash_batch", "api"),
    ]


@pytest.mark.proves("S-http-sandbox-shell-post")
async def test_a_user_who_is_signed_in_runs_commands_too(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web, web.web.client() as browser:
        await browser.post("/login", data={"key": "key-of-ann"})
        token = {"x-csrf-token": make_csrf_token(browser.cookies["denizen_login"])}
        by_key = await browser.post(PATH, json={"command": "ls"}, headers=token)
        await add_user(web.web, "olga")
        async with sign_in(web.web, await add_user(web.web, "kim")) as kim:
            by_account = await kim.client.post(PATH, json={"commands": ["ls"]})
    assert (by_key.status_code, by_key.json()["stdout"]) == (200, "shared\n")
    assert (by_account.status_code, by_account.json()["results"][0]["stdout"]) == (200, "shared\n")


@pytest.mark.proves("S20")
async def test_a_body_has_exactly_one_of_both_within_bounds(tmp_path: Path) -> None:
    long = "echo " + "x" * 1996
    bodies: list[dict[str, Any]] = [
        {},
        {"command": "ls", "commands": ["ls"]},
        {"command": ""},
        {"command": long},
        {"command": 3},
        {"command": ["ls"]},
        {"commands": []},
        {"commands": ["ls"] * 11},
        {"commands": "ls"},
        {"commands": [""]},
        {"commands": ["ls", long]},
        {"commands": ["ls", None]},
        {"command": "ls", "sessionId": 3},
        {"command": "ls", "sessionId": "s" * 201},
    ]
    async with open_sandbox_web(tmp_path) as web:
        for body in bodies:
            assert (await web.refused(**body))["code"] == "field_invalid", body
        assert '{"command": "ls"}' in (await web.refused(cmd="ls"))["fix"]
        assert "Leave one" in (await web.refused(command="ls", commands=["ls"]))["fix"]
        assert (await web.run(command=long[:2000]))["exitCode"] == 0
        assert len((await web.run(commands=["echo a"] * 10))["results"]) == 10


@pytest.mark.proves("S20")
async def test_what_policy_forbids_is_400_with_what_is_allowed_instead(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web:
        error = await web.refused(command="curl http://example.org")
        assert (error["code"], error["status"]) == ("command_refused", 400)
        assert error["why"].startswith("`curl` is not allowed")
        assert "grep" in error["fix"]
        error = await web.refused(commands=["ls", "rm -r .", "cat /etc/passwd"])
    assert error["why"].partition(" is ")[0] == "rm -r .: `rm`"
    assert "cat /etc/passwd: `/etc/passwd` is an absolute path" in error["why"]


@pytest.mark.proves("S20")
async def test_a_stream_is_cut_at_50000_characters_with_a_note_of_its_length(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web:
        (web.folder / "long.txt").write_text("x" * 60_000, encoding="utf-8")
        (web.folder / "names.txt").write_text("gone\n" * 5_000, encoding="utf-8")
        answer = await web.run(command="cat shared/long.txt ; cat shared/names.txt | xargs cat")
    assert answer["stdout"] == "x" * 50_000 + "\n[cut: 50000 of 60000 characters]\n"
    errors = "cat: gone: No such file or directory\n" * 5_000
    assert answer["stderr"] == f"{errors[:50_000]}\n[cut: 50000 of {len(errors)} characters]\n"


@pytest.mark.proves("S21", "SW10")
async def test_a_session_belongs_to_its_caller(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web:
        ann = (await web.run(command="ls"))["sessionId"]
        assert (await web.run(command="ls"))["sessionId"] == ann
        ben = (await web.run("key-of-ben", command="ls", sessionId=ann))["sessionId"]
        assert ben.startswith("sess_")
        assert ben != ann
        assert (await web.run(command="ls", sessionId=ann))["sessionId"] == ann
        assert (await web.run(command="ls", sessionId="sess_gone"))["sessionId"] not in {"sess_gone", ben}


async def test_who_has_no_key_or_no_shell_gets_none(tmp_path: Path) -> None:
    async with open_sandbox_web(tmp_path) as web:
        assert (await web.send("wrong", command="ls"))[0] == 401
        status, answer = await web.send(command="ls", agent="mute")
        assert (status, answer["error"]["code"]) == (404, "tool_unknown")
        (web.folder / "rules.md").unlink()
        web.folder.rmdir()
        status, answer = await web.send(command="ls")
    assert (status, answer["error"]["code"]) == (503, "shell_unavailable")
    assert "no knowledge files" in answer["error"]["message"]


async def test_the_gate_decides_about_the_shell_over_http_too(tmp_path: Path) -> None:
    policy = GatePolicy(
        rules=(ToolRule("bash", Decision.DENY, reason="not today"), ToolRule("bash_batch", Decision.ASK))
    )
    async with open_sandbox_web(tmp_path, policy=policy) as web:
        status, answer = await web.send(command="ls")
        assert (status, answer["error"]["code"], answer["error"]["why"]) == (403, "call_denied", "not today")
        status, answer = await web.send(commands=["ls"])
    assert (status, answer["error"]["code"]) == (403, "needs_approval")
    assert "turn" in answer["error"]["fix"]


@pytest.mark.proves("S22", "S-sdk-on-tool-call", "S-sdk-session")
async def test_the_tools_of_the_sdk_tell_that_they_run_and_what_came_of_it(tmp_path: Path) -> None:
    told: list[ToolActivity] = []
    async with (
        open_sandbox_web(tmp_path) as web,
        DenizenClient(LOCAL, "key-of-ann", transport=httpx2.ASGITransport(web.web.app)) as client,
    ):
        tools = ShellTools(client, on_tool_call=told.append)
        assert "No shoes" in await tools.bash("cat shared/rules.md")
        session = client.session_id
        await tools.bash_batch(["ls", "cat gone"])
        assert client.session_id == session
    assert [(each.tool, each.state) for each in told] == [
        ("bash", "loading"),
        ("bash", "done"),
        ("bash_batch", "loading"),
        ("bash_batch", "done"),
    ]
    done = told[3]
    assert done.success and done.duration_ms is not None
    assert [(each.command, each.stdout, each.exit_code) for each in done.results] == [
        ("ls", "shared\n", 0),
        ("cat gone", "", 1),
    ]


@pytest.mark.proves("S22")
async def test_a_chat_is_told_that_the_tools_run_and_what_came_of_it(tmp_path: Path) -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("bash", command="cat shared/rules.md")]),
        ScriptedReply(calls=[call("bash_batch", commands=["ls", "cat gone"])]),
        ScriptedReply("No shoes."),
    )
    async with (
        open_sandbox_web(tmp_path, model) as web,
        DenizenClient(LOCAL, "key-of-ann", transport=httpx2.ASGITransport(web.web.app)) as client,
    ):
        web.took_s = 1.5
        told = [
            each async for each in client.chat("what holds?") if isinstance(each, ToolStartedEvent | ToolFinishedEvent)
        ]
    loading, done, batch_loading, batch_done = told
    assert isinstance(loading, ToolStartedEvent) and isinstance(batch_loading, ToolStartedEvent)
    assert isinstance(done, ToolFinishedEvent) and isinstance(batch_done, ToolFinishedEvent)
    assert [each.tool for each in told] == ["bash", "bash", "bash_batch", "bash_batch"]
    assert (done.call_id, done.is_error, "No shoes" in done.text) == (loading.call_id, False, True)
    assert (batch_done.call_id, batch_done.is_error) == (batch_loading.call_id, False)
    assert (done.duration_ms, batch_done.duration_ms) == (1500, 1500)
    assert "$ ls\n" in batch_done.text and "cat: gone: No such file" in batch_done.text
