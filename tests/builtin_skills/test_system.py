"""Allowed programs, downloads, what was spent, and a restart: each only for whom and as far as it is meant."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from denizen.adapters.commands import ProgramRunner
from denizen.app.build import HomeInstanceControl, RestartSignal
from denizen.builtin_skills import load_builtin
from denizen.domain.budget import SERVER
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolResult
from denizen.domain.usage import Usage
from denizen.ports.fetch import DownloadedFile
from denizen.skill import OwnerServices, SkillToolset
from denizen.testing.temporary_store import TemporaryStore
from tests.contracts.store.records import make_step, make_turn, open_conversation
from tests.skill_fixture import ServicesFixture, run, scope
from tests.timing import controlled_clock

pytestmark = pytest.mark.anyio

OWNER, ADMIN = (
    replace(scope(), principal=Principal(PrincipalKind.PLATFORM_USER, "1", "Ana", frozenset({role})))
    for role in ("owner", "admin")
)


def system(root: Path, *allow: str, **services: object) -> SkillToolset:
    programs = ProgramRunner(home=root, environ={"PATH": os.environ["PATH"], "SECRET_KEY": "sk-1"})
    given = replace(ServicesFixture(root).services(), **{"run_program": programs, **services})
    return SkillToolset(load_builtin("system"), given, {"allow": list(allow)} if allow else {})


async def execute(root: Path, command: str, *allow: str) -> ToolResult:
    return await run(system(root, *allow), "exec", {"command": command})


@pytest.mark.proves("TW20", "T-tool-exec")
async def test_without_an_allow_list_nothing_runs(tmp_path: Path) -> None:
    result = await execute(tmp_path, "date")
    assert result.is_error and "tools.system.allow" in result.text


@pytest.mark.proves("T-tool-exec", "V-skill-system")
async def test_only_allowed_programs_run(tmp_path: Path) -> None:
    assert (await execute(tmp_path, 'printf "%s" "a  b"', "printf")).text == "a  b"
    for command in ("date", "/usr/bin/printf x", "./printf x", "printfx", "''", ""):
        result = await execute(tmp_path, command, "printf")
        assert result.is_error and ("not allowed" in result.text or "was not run" in result.text), command


@pytest.mark.proves("T-tool-exec", "V-skill-system")
@pytest.mark.parametrize("char", [*";|&`$(){}<>!#\n", "\\", "\r", "\0"])
async def test_every_character_of_a_shell_is_refused(tmp_path: Path, char: str) -> None:
    result = await execute(tmp_path, f"printf a{char}touch made", "printf")
    assert result.is_error and "There is no shell" in result.text
    assert not list(tmp_path.rglob("made"))


@pytest.mark.proves("T-tool-exec")
async def test_a_program_that_prints_too_much_is_stopped(tmp_path: Path) -> None:
    result = await execute(tmp_path, "yes 0123456789", "yes")
    assert result.is_error and result.text.endswith("[stopped: it printed more than 1 MB]")
    assert 1_000_000 <= len(result.text) < 1_000_100


@pytest.mark.proves("T-tool-exec")
async def test_a_program_is_stopped_after_30_s(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    results: list[ToolResult] = []

    async def wait_for_ever() -> None:
        results.append(await execute(tmp_path, f"cat {pipe}", "cat"))

    with ExitStack() as files, controlled_clock() as clock:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_ever)
            held = await anyio.to_thread.run_sync(os.open, pipe, os.O_WRONLY, abandon_on_cancel=True)  # once it is read
            files.callback(os.close, held)
            await anyio.wait_all_tasks_blocked()
            clock.advance(20)
            await anyio.wait_all_tasks_blocked()
            assert not results
            clock.advance(10)
    assert results == [ToolResult("[stopped: it was not done within 30 s]", is_error=True)]


@pytest.mark.proves("V-skill-system")
async def test_exec_is_dangerous_and_has_to_be_named_and_a_download_is_sensitive(tmp_path: Path) -> None:
    specs = {spec.name: spec for spec in await system(tmp_path).list_tools()}
    run_program = specs["exec"]
    assert (run_program.tier, run_program.timeout_s, run_program.listed_only) == (Tier.DANGEROUS, 40.0, True)
    assert specs["download_file"].tier is Tier.SENSITIVE


async def test_a_program_sees_no_secret_and_works_in_the_agents_folder(tmp_path: Path) -> None:
    result = await execute(tmp_path, "env", "env")
    assert "SECRET_KEY" not in result.text and "PATH=" in result.text
    assert (await execute(tmp_path, "pwd", "pwd")).text == str(tmp_path / "ada" / "system")


async def test_a_program_that_fails_says_how(tmp_path: Path) -> None:
    result = await execute(tmp_path, f"{sys.executable} --no-such-option", sys.executable)
    assert result.is_error and "[exit code 2]" in result.text
    assert "could not be started" in (await execute(tmp_path, "no-such-program", "no-such-program")).text


@pytest.mark.proves("V-skill-system", "TW7")
async def test_a_file_is_downloaded_into_the_agents_folder_once(tmp_path: Path) -> None:
    async def download(url: str, *, timeout_s: float = 60.0, max_bytes: int = 1) -> DownloadedFile:
        return DownloadedFile(url, 200, "image/png", b"\x89PNG", truncated="large" in url)

    tools = system(tmp_path, download=download)
    done = await run(tools, "download_file", {"url": "https://example.org/a/picture.png?x=1"})
    place = tmp_path / "ada" / "system" / "downloads" / "picture.png"
    assert str(place) in done.text and place.read_bytes() == b"\x89PNG"
    for url, name in (("https://example.org/large", "x"), ("https://example.org/", ""), ("https://e.org/x", "../x")):
        assert (await run(tools, "download_file", {"url": url, "name": name})).is_error
    place.write_bytes(b"other")
    assert "already" in (await run(tools, "download_file", {"url": "https://example.org/picture.png"})).text


@pytest.mark.proves("V-skill-system")
async def test_money_and_cache_are_told_to_those_who_may_know(tmp_path: Path) -> None:
    around, store = ServicesFixture(tmp_path), TemporaryStore()
    async with store.work() as work:
        await work.spending.add([SERVER], Usage(10, 5, cost_usd=Decimal("0.25"), requests=1), at=around.clock.now())
    _, session = await open_conversation(store)
    async with store.work() as work:
        for name, hours in (("now", 0), ("long ago", -8 * 24)):
            await work.turns.open(turn := make_turn(session, name, hours=hours))
            await work.turns.add_step(make_step(turn, 1, usage=Usage(4000, 5, 3000, 500), hours=hours))
    tools = system(tmp_path, owner=OwnerServices(instance=HomeInstanceControl(store, around.clock, RestartSignal())))
    for trusted in (OWNER, ADMIN):
        assert (await run(tools, "credits", {}, trusted)).text == (
            "Today: $0.2500 in 1 requests. This month: $0.2500 in 1 requests."
        )
        assert (await run(tools, "cache_statistics", {}, trusted)).text == (
            "Last 7 days: 4,000 tokens in, of which 3,000 (75%) were read from the cache and 500 written to it."
        )
    for tool in ("credits", "cache_statistics"):
        assert (await run(tools, tool, {})).is_error


@pytest.mark.proves("V-skill-system", "TW8")
async def test_a_restart_is_for_owners_and_where_a_server_runs(tmp_path: Path) -> None:
    around, restart = ServicesFixture(tmp_path), RestartSignal()
    tools = system(tmp_path, owner=OwnerServices(instance=HomeInstanceControl(TemporaryStore(), around.clock, restart)))
    assert "nothing to restart" in (await run(tools, "restart_denizen", {}, OWNER)).text
    restart.is_possible = True
    assert "only an owner" in (await run(tools, "restart_denizen", {})).text
    assert not restart.wanted.is_set()
    assert (await run(tools, "restart_denizen", {}, OWNER)).text == "Denizen restarts now."
    assert restart.wanted.is_set()
