"""A coding agent is given a prompt, a session and a folder, is stopped in time, and is told of in bounds."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from denizen.adapters.commands import ProgramRunner
from denizen.builtin_skills import load_builtin
from denizen.builtin_skills.coding_agent import MAX_SESSIONS, read_answer
from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier, ToolResult
from denizen.skill import SkillToolset
from tests.skill_fixture import ServicesFixture, run, scope
from tests.timing import controlled_clock, wait_until

pytestmark = pytest.mark.anyio

PROGRAM = """\
import json, os, pathlib, sys
args, here = sys.argv[1:], pathlib.Path.cwd()
begun = f"{here.name}-{len(list(here.iterdir()))}"
session = args[args.index("--resume") + 1] if "--resume" in args else begun
(here / session).touch()
said = {"args": args, "cwd": str(here), "env": dict(os.environ)}
print("a warning", file=sys.stderr)
print(json.dumps({"type": "result", "subtype": "success", "is_error": "fail" in args[-1], "num_turns": 1,
                  "result": "x" * 9000 if "long" in args[-1] else json.dumps(said), "session_id": session,
                  "total_cost_usd": 0.126}))
sys.exit(3 if "exit" in args[-1] else 0)
"""


def toolset(root: Path, *, program: str = PROGRAM, options: Mapping[str, Json] | None = None) -> SkillToolset:
    script = root / "agent.py"
    script.write_text(program, encoding="utf-8")
    programs = ProgramRunner(home=root, environ={"PATH": os.environ["PATH"], "SECRET_KEY": "sk-1"})
    services = replace(ServicesFixture(root).services(), run_program=programs)
    return SkillToolset(
        load_builtin("coding_agent"), services, {"command": [sys.executable, str(script)], **(options or {})}
    )


async def ask(
    root: Path, args: Mapping[str, Json], *, thread: str = "", options: Mapping[str, Json] | None = None
) -> ToolResult:
    where = replace(scope(), place=Place("discord", "42", thread))
    return await run(toolset(root, options=options), "coding_agent", dict(args), where)


def said(result: ToolResult) -> dict[str, object]:
    assert not result.is_error, result.text
    return json.loads(result.text.splitlines()[1])


@pytest.mark.proves("T-tool-coding-agent")
async def test_a_prompt_is_worked_on_in_a_folder_and_a_session_is_continued(tmp_path: Path) -> None:
    first = await ask(tmp_path, {"prompt": "Fix it; `rm -rf /`"})
    work = tmp_path / "ada" / "coding_agent" / "work"
    [conversation] = work.iterdir()
    assert said(first)["args"] == ["Fix it; `rm -rf /`"]
    assert said(first)["cwd"] == str(conversation / "main")
    assert first.text.startswith("<untrusted source=") and "[session main-0; cost 0.13 USD]" in first.text
    assert said(await ask(tmp_path, {"prompt": "And?"}))["args"] == ["--resume", "main-0", "And?"]
    assert said(await ask(tmp_path, {"prompt": "Anew", "session": "new"}))["args"] == ["Anew"]
    named = await ask(tmp_path, {"prompt": "Back", "session": "main-0"})
    assert said(named)["args"] == ["--resume", "main-0", "Back"]
    elsewhere = await ask(tmp_path, {"prompt": "Else", "folder": "site"})
    assert said(elsewhere)["args"] == ["Else"] and said(elsewhere)["cwd"] == str(conversation / "site")
    assert said(await ask(tmp_path, {"prompt": "-p"}))["args"] == ["--resume", "main-0", " -p"]


def is_read(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


@pytest.mark.proves("T-tool-coding-agent")
async def test_it_is_stopped_after_300_s_with_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waiting = f"import subprocess; print('begun', flush=True); subprocess.run(['cat', {str(pipe)!r}])"
    results: list[ToolResult] = []

    async def wait_for_ever() -> None:
        results.append(await run(toolset(tmp_path, program=waiting), "coding_agent", {"prompt": "Wait"}))

    with ExitStack() as files, controlled_clock() as clock:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_ever)
            held = await anyio.to_thread.run_sync(os.open, pipe, os.O_WRONLY, abandon_on_cancel=True)  # once it is read
            files.callback(os.close, held)
            await anyio.wait_all_tasks_blocked()
            clock.advance(299)
            await anyio.wait_all_tasks_blocked()
            assert not results
            clock.advance(1)
    wait_until(lambda: not is_read(pipe))  # a killed process lets go of it soon
    assert results[0].is_error
    assert "begun" in results[0].text and "not done within 300 s" in results[0].text


@pytest.mark.proves("T-tool-coding-agent")
async def test_8000_characters_of_its_result_are_told_and_that_there_is_more(tmp_path: Path) -> None:
    told = (await ask(tmp_path, {"prompt": "long"})).text
    assert told.count("x") == 7999
    assert "cut: it said 9,000 characters" in told


async def test_it_is_dangerous_sends_anywhere_and_has_to_be_named(tmp_path: Path) -> None:
    [spec] = await toolset(tmp_path).list_tools()
    assert (spec.tier, spec.listed_only, spec.timeout_s) == (Tier.DANGEROUS, True, 310.0)
    assert (spec.flow.reads, spec.flow.effects, spec.flow.destinations) == ({Taint.TOOL}, {Effect.SEND}, ())


async def test_another_conversation_has_other_folders_and_no_session_of_this_one(tmp_path: Path) -> None:
    here = said(await ask(tmp_path, {"prompt": "Here"}))
    there = said(await ask(tmp_path, {"prompt": "There"}, thread="7"))
    assert there["args"] == ["There"] and there["cwd"] != here["cwd"]
    await ask(tmp_path, {"prompt": "Site", "folder": "site"})
    refused = await ask(tmp_path, {"prompt": "x", "session": "main-9"}, thread="7")
    assert refused.is_error and refused.is_own and "There are: main-0." in refused.text


async def test_only_named_secrets_are_in_its_environment_and_they_are_not_told(tmp_path: Path) -> None:
    env = said(await ask(tmp_path, {"prompt": "x"}, options={"env": {"AGENT_KEY": "sk-hidden", "MODE": "fast"}}))["env"]
    assert isinstance(env, dict)
    assert (env["AGENT_KEY"], env["MODE"], "SECRET_KEY" in env) == ("***", "fast", False)


async def test_it_works_in_folders_that_the_owner_names_and_in_no_other_place(tmp_path: Path) -> None:
    site = tmp_path / "srv"
    site.mkdir()
    options: dict[str, Json] = {"folders": {"site": str(site), "gone": str(tmp_path / "gone")}}
    assert said(await ask(tmp_path, {"prompt": "x", "folder": "site"}, options=options))["cwd"] == str(site)
    for folder in ("..", "/etc", "a/b", "", "gone", ".git"):
        refused = await ask(tmp_path, {"prompt": "x", "folder": folder}, options=options)
        assert refused.is_error and "older" in refused.text, folder
    wrong: list[dict[str, Json]] = [{"folders": {"a": "relative"}}, {"folders": {"a/b": "/x"}}, {"command": []}]
    for each in wrong:
        with pytest.raises(InvalidInput):
            toolset(tmp_path, options=each)


async def test_a_failure_is_told_with_what_it_said(tmp_path: Path) -> None:
    for prompt, code in (("fail", 0), ("exit", 3)):
        failed = await ask(tmp_path, {"prompt": prompt})
        assert failed.is_error and f"[it failed, exit code {code}]" in failed.text and "session main-0" in failed.text
    missing = await ask(tmp_path, {"prompt": "x"}, options={"command": ["no-such-agent"]})
    assert "`no-such-agent` could not be started" in missing.text


async def test_the_oldest_sessions_are_forgotten_and_a_broken_list_is_told(tmp_path: Path) -> None:
    for number in range(MAX_SESSIONS + 1):
        await ask(tmp_path, {"prompt": "x", "session": "new", "folder": "main"})
        assert number < MAX_SESSIONS or (await ask(tmp_path, {"prompt": "x", "session": "main-0"})).is_error
    [book] = (tmp_path / "ada" / "coding_agent" / "sessions").iterdir()
    book.write_text("{", encoding="utf-8")
    assert "cannot be read" in (await ask(tmp_path, {"prompt": "x"})).text


@pytest.mark.parametrize(
    ("printed", "text", "session"),
    [
        ("plain\ntext", "plain\ntext", ""),
        ("", "It printed nothing.", ""),
        ('{"result": "a",\n "session_id": "s-1"}', "a", "s-1"),
        ('{"type": "system"}\n{"type": "result", "result": "b", "session_id": "s-2"}\n', "b", "s-2"),
        ('{"response": "c", "stats": {}}', "c", ""),
        ('{"subtype": "error_max_turns", "session_id": "--option"}', "error_max_turns", ""),
        ('{"other": 1}', '{"other": 1}', ""),
    ],
)
async def test_what_it_prints_is_read_in_the_known_forms(printed: str, text: str, session: str) -> None:
    answer = read_answer(printed)
    assert (answer.text, answer.session) == (text, session)
