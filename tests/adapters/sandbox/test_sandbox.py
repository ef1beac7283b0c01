"""The pool of workers: sessions, limits, what is stopped, what is seen, and where there is no isolation."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from denizen.adapters.sandbox.inside.policy import check_command
from denizen.adapters.sandbox.inside.programs import EXTERNAL, NAMES
from denizen.adapters.sandbox.inside.reading import MAX_READ
from denizen.adapters.sandbox.inside.words import CommandRefusedError
from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.sandbox.process import (
    UNPRIVILEGED_UID,
    HostPrograms,
    SandboxLimits,
    find_host_programs,
    plan_isolation,
    start_worker,
)
from denizen.adapters.sandbox.sessions import MAX_OWN_SESSIONS, MAX_SESSIONS, SESSION_TTL_S, SandboxSessions
from denizen.domain.clock import SystemClock
from denizen.domain.errors import InvalidInput, NotFound, Unavailable
from denizen.ports.sandbox import (
    CAPPED_EXIT_CODE,
    MAX_STREAM_CHARS,
    REFUSED_EXIT_CODE,
    TIMED_OUT_EXIT_CODE,
    ShellResult,
    ShellView,
)
from tests.adapters.sandbox.sandbox_folder import LEAKS, MARK, SandboxFolder, make_sandbox_folder
from tests.adapters.sandbox.unprivileged import open_folder
from tests.clock import ManualClock
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

PATIENT = SandboxLimits(workers=1, timeout_s=HANG_LIMIT_S, batch_timeout_s=HANG_LIMIT_S)
QUICK = replace(PATIENT, timeout_s=0.5)


@asynccontextmanager
async def open_pool(tier: str, limits: SandboxLimits = PATIENT) -> AsyncGenerator[SandboxPool]:
    async with SandboxPool(SystemClock(), limits, tiers=(tier,)) as pool:
        yield pool


def open_view(documents: SandboxFolder) -> ShellView:
    return ShellView((("", documents.root),))


async def run(pool: SandboxPool, documents: SandboxFolder, command: str) -> ShellResult:
    return (await pool.run([command], open_view(documents), owner="a")).results[0]


@pytest.mark.proves("S16", "S18")
async def test_every_installed_program_runs_and_a_missing_one_says_that_it_is_missing(
    tier: str, documents: SandboxFolder
) -> None:
    lines = {
        "find": "find docs",
        "ls": "ls",
        "tree": "tree docs",
        "grep": "grep foo README.md",
        "cat": "cat README.md",
        "head": "head README.md",
        "tail": "tail README.md",
        "wc": "wc README.md",
        "sort": "sort README.md",
        "uniq": "uniq README.md",
        "diff": "diff README.md README.md",
        "echo": "echo x",
        "stat": "stat README.md",
        "file": "file README.md",
        "du": "du docs",
        "basename": "basename a/b",
        "dirname": "dirname a/b",
        "realpath": "realpath --relative-to=. docs -q",
        "xargs": "echo a | xargs",
        "sed": "sed -n 1p README.md",
        "awk": "awk '{print $1}' README.md",
        "jq": "jq .name api/a.json",
        "cut": "cut -c1-3 README.md",
        "tr": "tr a-z A-Z < README.md",
        "nl": "nl README.md",
        "printf": "printf '%s\\n' x",
        "test": "test -f README.md",
        "[": "[ -f README.md ]",
        "true": "true",
        "false": "! false",
        ":": ":",
        "pwd": "pwd",
        "cd": "cd docs",
        "egrep": "egrep 'f|g' README.md",
        "fgrep": "fgrep foo README.md",
        "rg": "rg foo",
    }
    assert lines.keys() == NAMES
    installed = find_host_programs().programs
    async with open_pool(tier) as pool:
        for name, line in lines.items():
            result = await run(pool, documents, line)
            if name in installed or name not in EXTERNAL:
                assert not result.refused, result
                assert name == "realpath" or result.exit_code == 0, result
            else:
                assert f"`{name}` is not installed here" in result.stderr


@pytest.mark.proves("S17")
async def test_a_refusal_says_why_and_what_is_allowed(best_tier: str, documents: SandboxFolder) -> None:
    said = {
        "rm x": ("`rm` is not allowed", "Nothing can be changed here", "grep"),
        "echo $(id)": ("nothing is substituted", "single quotes"),
        "ls > x": ("the redirects are `2>/dev/null`", "quotes"),
        "cat /etc/passwd": ("absolute path", "relative"),
        "sort -o x README.md": ("sort may not have the option `-o`", "-u"),
        "find . -delete": ("find may not have `-delete`", "-name"),
        "zgrep x README.md": ("`zgrep` is not allowed", "grep"),
        "if ls; then ls; fi": ("no `if`", "[ -f FILE ] &&"),
        "while read f; do cat $f; done": ("no `while`", "for NAME in WORDS", "xargs"),
        "for f in $(ls); do cat $f; done": ("nothing is substituted", "xargs"),
        "f() { ls; }": ("no functions", "themselves"),
        "cat <<EOF": ("no here-documents", "echo"),
        "(cd docs && ls)": ("no subshells", "cd holds"),
        "cat $HOME/x": ("`HOME` is not set", "f=docs/a.md"),
        "x=1 ls": ("for one program", "NAME=VALUE; COMMAND"),
        "awk 'BEGIN { system(\"id\") }'": ("awk may not have `system(`", "computes and prints"),
        "awk '{ print length / 2 }' README.md": ("`/` right behind `length`", "length($0)"),
        "jq -f x README.md": ("jq may not have the option `-f`", "not read from files"),
        "sed -i s/a/b/ README.md": ("sed may not have the option `-i", "never to a file"),
        "rg -r x foo": ("rg may not have the option `-r`", "sed"),
        "rg --pre cat foo": ("rg may not have the option `--pre`", "No other program"),
        "printf -v x %s a": ("printf may not have the option `-v`", "no options"),
        "test -e /etc/passwd": ("absolute path", "relative"),
        "cat < /etc/passwd": ("absolute path", "relative"),
        "for i in {1..2000}; do echo $i; done": ("more than 1000 turns", "xargs"),
        "echo {1..99999}": ("more than 10000 numbers", "quotes"),
        "ls & ls": ("background", "quotes"),
    }
    async with open_pool(best_tier) as pool:
        for line, parts in said.items():
            result = await run(pool, documents, line)
            assert result.refused
            assert result.exit_code == REFUSED_EXIT_CODE
            assert all(part in result.stderr for part in parts), result


async def test_a_long_output_is_cut_with_a_note_of_its_length(best_tier: str, documents: SandboxFolder) -> None:
    (documents.root / "long.txt").write_text("ä" * 80_000, encoding="utf-8")
    async with open_pool(best_tier) as pool:
        result = await run(pool, documents, "cat long.txt")
    assert result.stdout == "ä" * MAX_STREAM_CHARS + "\n[cut: 50000 of 80000 characters]\n"


async def test_what_prints_without_end_is_stopped(tier: str, documents: SandboxFolder) -> None:
    (documents.root / "big").write_text("x" * 1_000_000, encoding="utf-8")
    async with open_pool(tier) as pool:
        result = await run(pool, documents, "cat" + " big" * 30)
        assert result.exit_code == CAPPED_EXIT_CODE
        assert "it printed too much" in result.stderr
        assert (await run(pool, documents, "echo still here")).stdout == "still here\n"


@pytest.mark.proves("S22")
async def test_what_takes_too_long_is_stopped_with_all_that_it_started(tier: str, documents: SandboxFolder) -> None:
    os.mkfifo(documents.root / "pipe")
    lines = ["cat pipe", "cat pipe | sort", "find pipe -exec cat {} +", "echo pipe | xargs cat", "grep -r x pipe docs"]
    lines += [
        "for i in 1 2; do cat pipe; done",
        "for i in 1 2; do cat pipe; done | sort",
        "echo x | for i in 1; do cat pipe; done",
    ]
    lines += ["awk 'BEGIN { while (1); }'", "sed ':a;ba' README.md", "for i in {1..1000}; do echo {1..9999}; done"]
    async with open_pool(tier, QUICK) as pool:
        for line in lines:
            result = await run(pool, documents, line)
            assert result.exit_code == TIMED_OUT_EXIT_CODE, result
            assert result.duration_ms >= QUICK.timeout_s * 1000
            assert "its time was over" in result.stderr
        with anyio.fail_after(HANG_LIMIT_S):  # a busy machine may take longer than QUICK, even for this
            while (await run(pool, documents, "echo still here")).stdout != "still here\n":
                pass
    assert not _readers(documents.root / "pipe")


def _readers(pipe: Path) -> bool:
    """Whether anybody has it open: without a reader it cannot be opened for writing."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


async def test_a_batch_ends_at_its_own_deadline(best_tier: str, documents: SandboxFolder) -> None:
    os.mkfifo(documents.root / "pipe")
    limits = replace(PATIENT, timeout_s=0.4, batch_timeout_s=0.6)
    async with open_pool(best_tier, limits) as pool:
        results = (await pool.run(["cat pipe"] * 5 + ["ls"], open_view(documents), owner="a")).results
    assert [result.exit_code for result in results[:5]] == [TIMED_OUT_EXIT_CODE] * 5


async def test_a_pattern_that_explodes_is_stopped_by_memory_or_time(best_tier: str, documents: SandboxFolder) -> None:
    async with open_pool(best_tier, replace(QUICK, timeout_s=2.0)) as pool:
        result = await run(pool, documents, "grep -E '((a{1,100}){1,100}){1,100}' README.md")
    assert result.exit_code != 0


async def test_a_call_has_one_to_ten_commands_of_at_most_two_thousand_characters(
    best_tier: str, documents: SandboxFolder
) -> None:
    async with open_pool(best_tier) as pool:
        for number in (0, 11):
            with pytest.raises(InvalidInput, match="1 to 10 commands"):
                await pool.run(["ls"] * number, open_view(documents), owner="a")
        results = (
            await pool.run(["echo " + "x" * 1995, "echo " + "x" * 1996], open_view(documents), owner="a")
        ).results
    assert [result.refused for result in results] == [False, True]
    assert "2000 characters" in results[1].stderr


@pytest.mark.proves("S19")
async def test_cd_and_variables_hold_for_their_command_only(best_tier: str, documents: SandboxFolder) -> None:
    async with open_pool(best_tier) as pool:
        assert (await run(pool, documents, "x=1; cd docs && ls guide.md")).stdout == "guide.md\n"
        assert (await run(pool, documents, "ls README.md")).stdout == "README.md\n"
        assert "`x` is not set" in (await run(pool, documents, "echo $x")).stderr
        changed = await run(pool, documents, "x=1; echo a | for x in 2 3; do cd docs; done; echo $x; ls README.md")
        assert changed.stdout == "1\nREADME.md\n"


@pytest.mark.proves("S19", "SW2")
async def test_a_text_of_which_anything_is_refused_runs_nothing(best_tier: str, documents: SandboxFolder) -> None:
    async with open_pool(best_tier) as pool:
        for text in (
            "echo a; rm x",
            "echo a\necho b\nrm x",
            "echo a || rm x",
            "for f in a b; do echo $f; done; id",
            "for f in a b; do echo $f; [ -f $f ] && rm $f; done",
            "echo a | for f in a; do echo b; id; done",
            "[ -d nosuch ] && cat /etc/passwd; echo a",
            "echo a; cd docs && [ -f guide.md ] || cd nosuch && rm x",
        ):
            result = await run(pool, documents, text)
            assert (result.refused, result.stdout) == (True, ""), result


@pytest.mark.proves("S19", "SW2")
async def test_what_is_known_only_while_it_runs_is_checked_again(tier: str, documents: SandboxFolder) -> None:
    async with open_pool(tier) as pool:
        known = await run(pool, documents, "[ -d docs ] && cd docs; cat ../README.md | head -1")
        assert (known.refused, known.stdout) == (False, "See docs/guide.md\n")
        for text in (
            "echo a; [ -d nosuch ] && cd docs; cat ../outside/secret.txt",
            "echo a; for i in 1; do [ -d nosuch ] && cd docs; cat ../outside/secret.txt; done | cat",
            "echo a; [ -d nosuch ] && x=./; cat < ../${x}outside/secret.txt; cd ..",
        ):
            result = await run(pool, documents, text)
            assert result.refused, result
            assert result.exit_code == REFUSED_EXIT_CODE
            assert MARK not in result.stdout + result.stderr


async def test_pwd_tells_the_folder_below_the_top_and_not_where_that_lies(tier: str, documents: SandboxFolder) -> None:
    async with open_pool(tier) as pool:
        result = await run(pool, documents, "pwd; cd 'docs/sub dir' && pwd | cat; cd .. && pwd -P")
    assert result.stdout == ".\n./docs/sub dir\n./docs\n"


async def test_input_is_read_from_files_and_never_waited_for(tier: str, documents: SandboxFolder) -> None:
    os.mkfifo(documents.root / "pipe")
    async with open_pool(tier) as pool:
        result = await run(pool, documents, "cat < pipe; cat < docs | wc -c; head -1 < README.md")
    assert result.stdout == "0\nSee docs/guide.md\n"
    assert result.stderr == "pipe: Not a file\ndocs: Is a directory\n"


async def test_redirects_of_a_loop_hold_for_all_that_runs_in_it(best_tier: str, documents: SandboxFolder) -> None:
    async with open_pool(best_tier) as pool:
        result = await run(pool, documents, "for f in a b; do cat $f; cd $f; done 2>&1 >/dev/null | sort -u; echo $?")
        quiet = await run(pool, documents, "for f in a b; do cat $f README.md; cd $f; done 2>/dev/null")
    assert len(result.stdout.splitlines()) == 5
    assert result.stderr == ""
    assert (quiet.stdout.count("See"), quiet.stderr, quiet.exit_code) == (2, "", 1)


async def test_folders_stand_side_by_side_under_their_names(tier: str, documents: SandboxFolder) -> None:
    own = f"own-{os.getpid()}-{tier}"  # other tests, in other processes, have such views at the same time
    view = ShellView(((own, documents.root / "docs"), ("shared", documents.root / "api")))
    async with open_pool(tier) as pool:
        (result,) = (await pool.run(["find . -name '*.json' -o -name guide.md | sort"], view, owner="a")).results
        assert result.stdout == f"./{own}/guide.md\n./shared/a.json\n./shared/b.json\n"
        (documents.root / "api" / "c.json").touch()
        (documents.root / "docs").rename(documents.root / "old")
        (documents.root / "docs").mkdir()
        (result,) = (await pool.run([f"ls {own}"], view, owner="a")).results
    assert result.stdout == "", "a folder that was replaced is looked at anew"
    assert not list(Path(find_host_programs().scratch).glob(f"denizen-sandbox-*/view/{own}"))


async def test_a_folder_that_only_its_owner_may_see_is_seen(tier: str, documents: SandboxFolder) -> None:
    documents.root.chmod(0o700)
    (documents.root / "README.md").chmod(0o600)
    async with open_pool(tier) as pool:
        assert (await run(pool, documents, "head -1 README.md")).stdout == "See docs/guide.md\n"
        assert MARK not in (await run(pool, documents, "cat link updir/secret.txt")).stdout


async def test_a_service_that_makes_private_files_can_show_public_ones(tier: str, documents: SandboxFolder) -> None:
    before = os.umask(0o077)
    try:
        view = ShellView((("own", documents.root / "docs"), ("shared", documents.root / "api")))
        async with open_pool(tier) as pool:
            assert (await run(pool, documents, "head -1 README.md")).stdout == "See docs/guide.md\n"
            (result,) = (await pool.run(["cat shared/b.json"], view, owner="a")).results
    finally:
        os.umask(before)
    assert result.stdout == '{"name": "b"}\n', result


async def test_a_folder_that_is_gone_is_told(best_tier: str, tmp_path: Path) -> None:
    async with open_pool(best_tier) as pool:
        with pytest.raises(NotFound, match="no folder"):
            await pool.run(["ls"], ShellView((("", tmp_path / "gone"),)), owner="a")


@pytest.mark.proves("S21", "S-kv-session", "SW10")
async def test_a_session_belongs_to_its_owner_and_is_used_again(best_tier: str, documents: SandboxFolder) -> None:
    view, other, clock = open_view(documents), ShellView((("", documents.outside),)), ManualClock()
    async with SandboxPool(clock, PATIENT, tiers=(best_tier,)) as pool:
        first = (await pool.run(["ls"], view, owner="ann")).session_id
        assert first.startswith("sess_")
        assert (await pool.run(["ls"], view, owner="ann")).session_id == first
        assert (await pool.run(["ls"], other, owner="ann", session_id=first)).results[0].stdout.startswith("--files0")
        stranger = await pool.run(["ls"], other, owner="bob", session_id=first)
        assert stranger.session_id != first
        assert stranger.results[0].stdout == "secret.txt\n"
        clock.advance(minutes=30, seconds=1)
        assert (await pool.run(["ls"], view, owner="ann", session_id=first)).session_id != first


@pytest.mark.proves("S21")
async def test_a_warm_worker_serves_whoever_looks_at_the_same_folder(best_tier: str, documents: SandboxFolder) -> None:
    async with open_pool(best_tier, SandboxLimits(workers=3)) as pool:
        for owner in ("ann", "bob", "cid"):
            await pool.run(["ls"], open_view(documents), owner=owner)
        assert len(pool._free) == 1
        await pool.run(["ls"], ShellView((("", documents.outside),)), owner="ann")
        assert len(pool._free) == 2


@pytest.mark.proves("S21", "S-kv-session")
def test_a_session_lives_for_half_an_hour_after_its_last_use() -> None:
    assert SESSION_TTL_S == 30 * 60
    now = [0.0]
    sessions = SandboxSessions(lambda: now[0])
    view = ShellView((("", Path("/x")),))
    first = sessions.open("ann", view).id
    now[0] += SESSION_TTL_S - 1
    assert sessions.open("ann", view, first).id == first
    now[0] += SESSION_TTL_S - 1
    assert sessions.open("ann", view).id == first
    now[0] += SESSION_TTL_S + 1
    assert sessions.open("ann", view, first).id != first
    assert len(sessions) == 1


@pytest.mark.proves("S21")
def test_nobody_loses_a_session_to_somebody_who_makes_up_ids() -> None:
    sessions = SandboxSessions(lambda: 0.0)
    view = ShellView((("", Path("/x")),))
    ann = sessions.open("ann", view).id
    made_up = [sessions.open("bob", view, f"sess_{number}").id for number in range(MAX_SESSIONS)]
    assert sessions.open("ann", view, ann).id == ann
    assert len(sessions) == 1 + MAX_OWN_SESSIONS
    assert sessions.open("bob", view, made_up[-MAX_OWN_SESSIONS]).id == made_up[-MAX_OWN_SESSIONS]
    assert sessions.open("bob", view, made_up[0]).id != made_up[0]


def test_when_there_are_too_many_sessions_whoever_has_most_loses_one() -> None:
    sessions = SandboxSessions(lambda: 0.0)
    view = ShellView((("", Path("/x")),))
    ann = sessions.open("ann", view).id
    bob = [sessions.open("bob", view, f"sess_{number}").id for number in range(2)]
    for number in range(MAX_SESSIONS - 2):
        sessions.open(f"guest {number}", view)
    assert len(sessions) == MAX_SESSIONS
    assert sessions.open("ann", view, ann).id == ann
    assert sessions.open("bob", view, bob[1]).id == bob[1]
    assert sessions.open("bob", view, bob[0]).id != bob[0]


def test_of_owners_who_have_as_many_sessions_the_one_not_used_for_longest_goes() -> None:
    sessions = SandboxSessions(lambda: 0.0)
    view = ShellView((("", Path("/x")),))
    owners = [f"guest {number}" for number in range(MAX_SESSIONS // 2)]
    first, second = ([sessions.open(owner, view, f"sess_{turn}").id for owner in owners] for turn in range(2))
    assert sessions.open(owners[0], view, first[0]).id == first[0]
    sessions.open("ann", view)
    assert sessions.open(owners[0], view, second[0]).id == second[0]
    assert sessions.open(owners[0], view, first[0]).id == first[0]
    assert sessions.open(owners[1], view, second[1]).id == second[1]
    assert sessions.open(owners[1], view, first[1]).id != first[1]


@pytest.mark.proves("S21")
async def test_an_idle_worker_ends_and_the_next_call_starts_another(best_tier: str, documents: SandboxFolder) -> None:
    assert SandboxLimits().idle_s == 5 * 60
    async with open_pool(best_tier, replace(PATIENT, idle_s=0.05)) as pool:
        assert (await run(pool, documents, "echo x")).stdout == "x\n"
        [idle] = pool._free
        with anyio.fail_after(HANG_LIMIT_S):
            await idle.worker._process.wait()
        assert (await run(pool, documents, "echo x")).stdout == "x\n"
        assert pool._free != [idle]


@pytest.mark.proves("S16")
async def test_a_program_that_the_host_lacks_is_told_to_be_missing(best_tier: str, documents: SandboxFolder) -> None:
    machine = find_host_programs()
    without = replace(machine, programs={name: path for name, path in machine.programs.items() if name != "wc"})
    assert set(without.missing) == {*machine.missing, "wc"}
    worker = await start_worker(best_tier, open_view(documents), without, PATIENT)
    try:
        lacking, there = await worker.run(["wc README.md", "ls README.md"])
    finally:
        await worker.aclose()
    assert "`wc` is not installed here" in lacking.stderr
    assert there.stdout == "README.md\n"


async def test_a_worker_that_was_killed_is_replaced(tier: str, documents: SandboxFolder) -> None:
    machine = find_host_programs()
    async with open_pool(tier) as pool:
        await run(pool, documents, "ls")
        for bound in pool._free:
            os.killpg(bound.worker._process.pid, signal.SIGKILL)
        assert (await run(pool, documents, "echo x")).stdout == "x\n"
    worker = await start_worker(tier, open_view(documents), machine, SandboxLimits())
    await worker.aclose()


async def test_a_call_that_is_cancelled_leaves_nothing_behind(tier: str, documents: SandboxFolder) -> None:
    pipe = documents.root / "pipe"
    os.mkfifo(pipe)
    async with open_pool(tier) as pool:
        with ExitStack() as stack:
            async with anyio.create_task_group() as group:
                group.start_soon(run, pool, documents, "cat pipe")
                open_pipe = partial(pipe.open, "wb", buffering=0)  # waits for the one who reads
                stack.enter_context(await anyio.to_thread.run_sync(open_pipe, abandon_on_cancel=True))
                group.cancel_scope.cancel()
        assert (await run(pool, documents, "echo x")).stdout == "x\n"
    assert not _readers(pipe)


def test_nothing_outlives_a_service_that_was_killed(tier: str, documents: SandboxFolder) -> None:
    pipe = documents.root / "pipe"
    os.mkfifo(pipe)
    told = {"tier": tier, "root": str(documents.root), "commands": ["cat pipe"], "timeout_s": 60.0}
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.sandbox.runner"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert service.stdin is not None
    with service.stdin as stdin:
        stdin.write(json.dumps(told).encode())
    writer = os.open(pipe, os.O_WRONLY)  # waits for the one who reads
    service.kill()
    service.wait()
    gone = select.poll()
    gone.register(writer, 0)
    try:
        assert gone.poll(HANG_LIMIT_S * 1000), "the program still reads"  # an error comes when nobody reads any more
    finally:
        os.close(writer)


@pytest.mark.parametrize("line", ["-Po pwned", "-Io pwned", "-aPo pwned .", "-PR x", "-Pl x", "-L2"])
def test_tree_gets_no_option_that_hides_behind_the_letter_of_another(line: str) -> None:
    with pytest.raises(
        CommandRefusedError, match="tree may not have the option"
    ):  # tree takes the next word as the value of -P
        check_command(["tree", *line.split()], 0)
    check_command(["tree", "-a", "-L", "2", "-I", "node_modules", "docs"], 0)


def test_a_name_that_find_meets_is_no_format() -> None:
    with pytest.raises(CommandRefusedError, match="cannot have the value"):
        check_command(["find", ".", "-exec", "stat", "-c", "{}", "README.md", ";"], 0)
    check_command(["find", ".", "-exec", "stat", "-c", "%n %s", "{}", "+"], 0)
    check_command(["find", ".", "-exec", "grep", "-e", "x", "{}", ";"], 0)


async def test_a_pipeline_has_no_more_commands_than_there_is_memory_for(
    best_tier: str, documents: SandboxFolder
) -> None:
    async with open_pool(best_tier) as pool:
        assert (await run(pool, documents, "echo x" + " | cat" * 9)).stdout == "x\n"
        assert (await run(pool, documents, "echo x" + " | cat" * 10)).refused


async def test_when_memory_runs_out_programs_inside_go_first(tier: str, documents: SandboxFolder) -> None:
    async with open_pool(tier) as pool:
        await run(pool, documents, "ls")
        [bound] = pool._free
        score = Path(f"/proc/{bound.worker._process.pid}/oom_score_adj")
        assert score.read_text(encoding="ascii").strip() == "1000"


async def test_names_that_are_slow_to_match_take_no_time(best_tier: str, documents: SandboxFolder) -> None:
    (documents.root / ("a" * 250)).touch()
    async with open_pool(best_tier) as pool:
        result = await run(pool, documents, "echo " + "*a" * 100 + "b " + "a*" * 100)
    assert result.stdout == "*a" * 100 + "b " + "a" * 250 + "\n"


async def test_more_callers_than_workers_wait_for_one_another(best_tier: str, documents: SandboxFolder) -> None:
    said: list[str] = []
    async with open_pool(best_tier, replace(PATIENT, workers=2)) as pool:

        async def call(number: int) -> None:
            view = open_view(documents) if number % 2 else ShellView((("", documents.outside),))
            said.append((await pool.run([f"echo {number}"], view, owner=str(number))).results[0].stdout)

        async with anyio.create_task_group() as group:
            for number in range(9):
                group.start_soon(call, number)
    assert sorted(said) == [f"{number}\n" for number in range(9)]


@pytest.mark.proves("S17")
async def test_without_isolation_the_shell_is_off_and_says_why(documents: SandboxFolder) -> None:
    async with SandboxPool(SystemClock(), tiers=()) as pool:
        for _ in range(2):
            with pytest.raises(Unavailable) as caught:
                await pool.run(["ls"], open_view(documents), owner="a")
            assert caught.value.code == "sandbox_off"
            assert "user namespaces or Landlock" in caught.value.fix


PROBE = """
import json, os, socket
open_fds, did = [], []
for number in range(256):
    try:
        os.fstat(number)
    except OSError:
        continue
    open_fds.append(number)
def attempt(name, act):
    try:
        act()
    except (OSError, PermissionError):
        return
    did.append(name)
families = range(1, 46)
for family in families:
    for kind in (1, 2, 3):
        attempt(f"socket {family} {kind}", lambda: socket.socket(family, kind))
attempt("write", lambda: os.open("new", os.O_WRONLY | os.O_CREAT))
attempt("append", lambda: os.open("README.md", os.O_WRONLY | os.O_APPEND))
attempt("truncate", lambda: os.truncate("README.md", 0))
attempt("tmpfile", lambda: os.open(".", os.O_TMPFILE | os.O_RDWR))
attempt("tmp", lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT))
attempt("mkdir", lambda: os.mkdir("new"))
attempt("unlink", lambda: os.unlink("README.md"))
attempt("rename", lambda: os.rename("README.md", "new"))
attempt("chmod", lambda: os.chmod("README.md", 0o777))
attempt("utime", lambda: os.utime("README.md"))
attempt("link", lambda: os.link("README.md", "new"))
attempt("symlink", lambda: os.symlink("README.md", "new"))
attempt("mkfifo", lambda: os.mkfifo("new"))
attempt("memfd", lambda: os.memfd_create("x"))
attempt("setuid", lambda: os.setuid(0) if os.getuid() else os.chroot("/"))
attempt("chroot", lambda: os.chroot("."))
attempt("setsid", os.setsid)
attempt("setpgid", lambda: os.setpgid(0, 0))
attempt("nice", lambda: os.nice(1))
attempt("proc", lambda: os.listdir("/proc"))
attempt("proc self", lambda: os.listdir("/proc/self/fd"))
attempt("etc", lambda: os.listdir("/etc"))
attempt("root", lambda: os.listdir("/root"))
attempt("passwd", lambda: open("/etc/passwd").read())
attempt("link out", lambda: open("link").read())
attempt("folder out", lambda: os.listdir("updir"))
attempt("script", lambda: os.posix_spawn("./script.sh", ["x"], {}))
attempt("sh", lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "true"], {}))
attempt("dev", lambda: open("/dev/zero").read(1))
print(json.dumps({"fds": open_fds, "did": did}))
"""


@pytest.mark.proves("S17", "SW2")
@pytest.mark.parametrize(
    "line", ["cat probe.py", "echo probe.py | xargs cat", "echo x | for file in probe.py; do cat $file; done"]
)
async def test_a_program_inside_finds_no_way_out(tier: str, line: str) -> None:
    """A whole interpreter takes the place of `cat`: even a program that does anything it likes can do nothing."""
    with open_folder() as folder:
        documents = make_sandbox_folder(folder)
        (documents.root / "probe.py").write_text(PROBE, encoding="utf-8")
        before = documents.picture()
        for interpreter in (os.path.realpath(sys.executable), "/usr/bin/python3"):
            result = await _run_inside(tier, documents, interpreter, line)
            if result.exit_code == 0:
                break
        else:
            pytest.skip(f"no Python here starts from within: {result.stderr[:200]}")
        assert documents.picture() == before
    found = json.loads(result.stdout)
    assert set(found["fds"]) <= {0, 1, 2}
    assert found["did"] == []


async def _run_inside(tier: str, documents: SandboxFolder, interpreter: str, line: str) -> ShellResult:
    machine = find_host_programs(also=[interpreter])
    inside = replace(
        machine,
        programs={"cat": os.path.realpath(interpreter), "echo": machine.programs["echo"]},
        data=(*machine.data, _find_library(interpreter)),
    )
    worker = await start_worker(tier, open_view(documents), inside, PATIENT)
    try:
        return (await worker.run([line]))[0]
    finally:
        await worker.aclose()


PAST_THE_PARSER = {
    "awk": r"""
BEGIN { system("id > pwned"); system("echo x > pwned") }
BEGIN { while (("id" | getline l) > 0) print l; "cat link" | getline l; print l }
BEGIN { while ((getline l < "/etc/passwd") > 0) print l; while ((getline l < "link") > 0) print l }
BEGIN { print "x" > "pwned"; print "x" >> "README.md" }
BEGIN { print "id" | "sh"; print "id" | "/bin/sh"; print "x" | "cat > pwned" }
BEGIN { ARGV[1] = "passwd"; ARGC = 2 } { print }
BEGIN { for (k in ENVIRON) print ENVIRON[k] == "root" }
""",
    "sed": r"""
1w pwned
1e id
s/See/id/e
s/See/x/w README.md
1r passwd
$r link
1R updir/secret.txt
""",
    "jq": r"""
import "link" as $x; $x
include "passwd"; 1
import "secret" as $x {search: "updir"}; $x
$ENV | has("HOME")
""",
}


@pytest.mark.parametrize("program", PAST_THE_PARSER)
@pytest.mark.proves("S18", "SW2")
async def test_a_script_reaches_nothing_even_where_nobody_checks_it(
    tier: str, program: str, documents: SandboxFolder
) -> None:
    """The program takes the place of `cat`, whose arguments may be any text."""
    machine = find_host_programs()
    if program not in machine.programs:
        pytest.skip(f"there is no {program} here")
    before = documents.picture()
    inside = replace(machine, programs={**machine.programs, "cat": machine.programs[program]})
    worker = await start_worker(tier, open_view(documents), inside, QUICK)
    scripts = PAST_THE_PARSER[program].strip().splitlines()
    try:
        results = [(await worker.run([f"cat '{script}' README.md"]))[0] for script in scripts]
    finally:
        await worker.aclose()
    assert documents.picture() == before
    for result in results:
        assert not result.refused
        assert not any(leak in result.stdout + result.stderr for leak in LEAKS if leak not in result.command), result


def _find_library(interpreter: str) -> str:
    asked = subprocess.run(
        [interpreter, "-I", "-c", "import os; print(os.path.dirname(os.__file__))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return asked.stdout.strip()


async def test_a_conversation_with_many_batches_does_not_starve_another(tier: str, documents: SandboxFolder) -> None:
    done: list[str] = []
    async with open_pool(tier) as pool:

        async def ask(owner: str) -> None:
            await pool.run(["echo x"] * 3, open_view(documents), owner=owner)
            done.append(owner)

        await pool.check()
        with anyio.fail_after(HANG_LIMIT_S):
            async with anyio.create_task_group() as group:
                for owner in ("busy",) * 8 + ("other",):
                    group.start_soon(ask, owner)
    assert done.index("other") <= 2


async def test_a_session_that_is_forgotten_sees_what_it_is_given_then(
    tier: str, documents: SandboxFolder, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o755)
    (other / "new.txt").write_text("new")
    async with open_pool(tier) as pool:
        first = await pool.run(["ls"], open_view(documents), owner="a")
        kept = await pool.run(["ls"], ShellView((("", other),)), owner="a", session_id=first.session_id)
        assert kept.results[0].stdout == first.results[0].stdout
        await pool.forget()
        again = await pool.run(["ls"], ShellView((("", other),)), owner="a", session_id=first.session_id)
        assert (again.results[0].stdout, again.session_id == first.session_id) == ("new.txt\n", False)


async def test_a_worker_is_told_the_programs_by_the_paths_at_which_it_sees_them(tmp_path: Path) -> None:
    host = HostPrograms({"grep": "/usr/bin/grep"}, ("/lib/libc.so.6",), ("/dev/null",), "/tmp")
    view = ShellView((("guides", tmp_path),))
    moved = plan_isolation("namespaces", view, host, SandboxLimits(memory_mb=1))
    assert moved["folders"] == [(str(tmp_path), "/docs/guides")]
    assert moved["programs"] == {"grep": "/bin/grep"}
    assert moved["runnable"] == [("/usr/bin/grep", "/bin/grep"), ("/lib/libc.so.6", "/lib/libc.so.6")]
    assert moved["memory_bytes"] == 1_000_000
    in_place = plan_isolation("landlock", view, host, SandboxLimits())
    assert in_place["programs"] == {"grep": "/usr/bin/grep"}
    assert in_place["environ"]["PATH"] == "/usr/bin"


async def test_a_worker_becomes_another_user_only_where_everybody_may_read_the_folders(tmp_path: Path) -> None:
    host, view = HostPrograms({}, (), (), "/tmp"), ShellView((("", tmp_path),))
    for mode, uid in ((0o755, UNPRIVILEGED_UID), (0o700, None)):
        tmp_path.chmod(mode)
        assert plan_isolation("namespaces", view, host, SandboxLimits())["uid"] == uid


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("cat docs/guide.md", ["docs/guide.md"]),
        ("cd docs && cat guide.md ../README.md", ["docs/guide.md", "README.md"]),
        ("cat ./docs/*.md | head -2", ["docs/guide.md"]),
        ("cat api/{a,b}.json", ["api/a.json", "api/b.json"]),
        ("find docs -name guide.md -exec cat {} +", ["docs/"]),
        ("cd docs && find . -name '*.txt' -exec grep -h zebra {} +", ["docs/"]),
        ("cat names.txt | xargs cat", ["names.txt", "docs/guide.md", "README.md"]),
        ("cd api && echo a.json | xargs -I{} head -1 {}", ["api/a.json"]),
        ("grep -rh foo .", ["/"]),
        ("grep -rn docs", ["docs/", "/"]),
        ("grep -rn -A 2 foo docs", ["docs/"]),
        ("sort README.md docs/numbers.txt 2>/dev/null", ["README.md", "docs/numbers.txt"]),
        ("sed -n 2,3p 'docs/sub dir/deep file.txt'", ["docs/sub dir/deep file.txt"]),
        ('echo "docs/guide.md:3: Install it"', []),
        ("ls -R docs; find . -name guide.md; stat README.md; tree docs", []),
        ("find . -exec stat {} +", []),
        ("cat docs/nothing.md", []),
        ("cat /dev/null", []),
        ("for f in api/?.json; do cat $f; done", ["api/a.json", "api/b.json"]),
        ("for f in api/?.json; do cat $f; done | head -1", ["api/a.json", "api/b.json"]),
        ("cat < README.md | sort", ["README.md"]),
        ("cd docs; head -1 guide.md; cd ..; cat README.md", ["docs/guide.md", "README.md"]),
        ("F=docs/guide.md; awk '/foo/' \"$F\"", ["docs/guide.md"]),
        ("printf '%s\\n' docs/guide.md; pwd; test -f README.md; [ -d docs ]", []),
        ("rm docs/guide.md", []),
    ],
)
async def test_a_result_tells_what_its_programs_were_given_to_read(
    tier: str, documents: SandboxFolder, line: str, read: list[str]
) -> None:
    async with open_pool(tier) as pool:
        assert list((await run(pool, documents, line)).read) == read


async def test_of_very_many_files_the_folders_are_told(best_tier: str, documents: SandboxFolder) -> None:
    for number in range(MAX_READ + 1):
        (documents.root / "api" / f"{number:04}.md").write_text("x\n", encoding="utf-8")
    async with open_pool(best_tier) as pool:
        assert (await run(pool, documents, "cat api/0*.md README.md")).read == ("api/", "/")
        told = (await run(pool, documents, "find api -name '0*.md' | xargs -n 1 cat")).read
        assert told == ("api/",)
