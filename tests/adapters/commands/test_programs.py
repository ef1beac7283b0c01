"""Programs of configured commands: real processes, bounded, with next to nothing of this process's environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from denizen.adapters.commands import READ_BYTES, CommandToolset, run_program
from denizen.domain.custom_command import CustomCommand
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import CallId
from denizen.domain.tool import Origin, Tier, ToolCall, ToolResult
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S, controlled_clock, wait_until

pytestmark = pytest.mark.anyio

SCOPE = scope()
PATH = os.environ["PATH"]


async def run(
    home: Path, *shell: str, text: str = "", timeout_s: float = HANG_LIMIT_S, environ: Mapping[str, str] | None = None
) -> ToolResult:
    command = CustomCommand("it", "It.", shell=shell, timeout_s=timeout_s)
    toolset = CommandToolset([command], cwd=home, environ=environ or {"PATH": PATH})
    return await toolset.call(ToolCall(CallId("1"), "command_it", {"input": text}, Origin.COMMAND), SCOPE)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.proves("T37")
async def test_a_program_gets_the_input_as_one_argument_which_no_shell_reads(tmp_path: Path) -> None:
    text = "$(touch made) `touch made`; touch made | 'a  b' \"c\" *"
    result = await run(tmp_path, "printf", "%s", "{{input}}", text=text)
    assert result == ToolResult(text, data={"exit_code": 0})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("T37")
async def test_a_program_sees_three_variables_and_the_home_folder(tmp_path: Path) -> None:
    environ = {
        "PATH": PATH,
        "LANG": "de_DE.UTF-8",
        "HOME": "/somewhere",
        "ANTHROPIC_API_KEY": "sk-1",
        "DENIZEN_HOME": "/x",
    }
    code = "import os; print(sorted(os.environ.items())); print(os.getcwd())"
    result = await run(tmp_path, *python(code), environ=environ)
    names, where = result.text.splitlines()
    assert "sk-1" not in names
    seen = dict(eval(names))
    seen.pop("LC_CTYPE", None)
    assert seen == {"PATH": PATH, "LANG": "de_DE.UTF-8", "HOME": "/somewhere"}
    assert Path(where) == tmp_path.resolve()


async def test_variables_that_are_not_set_have_usual_values(tmp_path: Path) -> None:
    result = await run(tmp_path, "sh", "-c", 'echo "$HOME $LANG $PATH"', environ={"OTHER": "x"})
    assert result.text == f"{tmp_path} C.UTF-8 /usr/local/bin:/usr/bin:/bin"


async def test_both_streams_come_as_they_were_written_and_the_exit_code_is_told(tmp_path: Path) -> None:
    result = await run(tmp_path, "sh", "-c", "echo one; echo two >&2; echo three; exit 3")
    assert result == ToolResult("one\ntwo\nthree\n[exit code 3]", is_error=True, data={"exit_code": 3})
    assert (await run(tmp_path, "sh", "-c", "exit 2")).text == "[exit code 2]"


async def test_there_is_no_input_to_wait_for(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cat")).text == ""


async def test_bytes_that_are_no_text_do_not_matter(tmp_path: Path) -> None:
    assert (await run(tmp_path, "printf", r"a\377b")).text == "a\ufffdb"


@pytest.mark.parametrize("program", ["./nothing-of-that-name", "no-such-program-here"])
async def test_a_program_that_is_not_there_is_an_error_that_names_it(tmp_path: Path, program: str) -> None:
    result = await run(tmp_path, program)
    assert result.is_error
    assert f"The program `{program}` could not be started: No such file" in result.text


def is_alive(pid: int) -> bool:
    """Somebody who was ended and whom nobody has buried yet is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


async def wait_until_ended(pid: int) -> None:
    await anyio.to_thread.run_sync(wait_until, lambda: not is_alive(pid))


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


@linux
@pytest.mark.proves("T37", "T-tool-exec", "T-tool-custom")
async def test_a_program_that_takes_too_long_is_ended_with_all_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "told")
    results: list[ToolResult] = []

    async def run_for_too_long() -> None:
        program = ("sh", "-c", "sleep 600 & echo $!; echo printed > told; wait")
        results.append(await run(tmp_path, *program, timeout_s=HANG_LIMIT_S))

    with controlled_clock() as clock:
        async with anyio.create_task_group() as group:
            group.start_soon(run_for_too_long)
            await anyio.to_thread.run_sync((tmp_path / "told").read_text, abandon_on_cancel=True)
            await anyio.wait_all_tasks_blocked()
            clock.advance(HANG_LIMIT_S)
    [result] = results
    assert result.is_error
    assert "exit_code" not in result.data
    child, said = result.text.splitlines()
    assert said == f"[stopped: it was not done within {HANG_LIMIT_S:g} s]"
    await wait_until_ended(int(child))


@linux
async def test_a_child_left_behind_does_not_hold_the_answer_up(tmp_path: Path) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        result = await run(tmp_path, "sh", "-c", "sleep 600 & echo $!", timeout_s=600)
    assert result.data == {"exit_code": 0}
    await wait_until_ended(int(result.text))


@linux
@pytest.mark.proves("T-tool-exec", "T-tool-custom")
async def test_who_goes_away_ends_the_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "told")
    pid = ""
    async with anyio.create_task_group() as group:
        group.start_soon(run, tmp_path, "sh", "-c", "echo $$ > told; sleep 600")
        with anyio.fail_after(HANG_LIMIT_S):
            pid = await anyio.to_thread.run_sync((tmp_path / "told").read_text, abandon_on_cancel=True)
        group.cancel_scope.cancel()
    await wait_until_ended(int(pid))


@pytest.mark.proves("T37")
async def test_a_program_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        result = await run(tmp_path, "yes", "0123456789", timeout_s=600)
    assert result.is_error
    assert result.text.endswith("[stopped: it printed more than 1,000,000 bytes]")
    assert READ_BYTES <= len(result.text) < READ_BYTES + 100


async def test_exactly_as_much_as_is_read_is_not_too_much(tmp_path: Path) -> None:
    code = f"import sys; sys.stdout.write('x' * {READ_BYTES})"
    done = await run_program(python(code), cwd=tmp_path, environ={}, timeout_s=HANG_LIMIT_S)
    assert (len(done.text), done.exit_code, done.is_cut) == (READ_BYTES, 0, False)


async def test_only_commands_with_a_program_are_tools_and_they_are_sensitive(tmp_path: Path) -> None:
    commands = [
        CustomCommand("one", "One.", shell=("date",), timeout_s=30),
        CustomCommand("two", "Two.", shell=("cal", "{{input}}")),
        CustomCommand("three", "Three.", prompt="{{input}}"),
    ]
    toolset = CommandToolset(commands, cwd=tmp_path, environ={})
    one, two = await toolset.list_tools()
    assert [(spec.name, spec.tier, spec.read_only) for spec in (one, two)] == [
        ("command_one", Tier.SENSITIVE, False),
        ("command_two", Tier.SENSITIVE, False),
    ]
    assert one.parameters["properties"] == {}
    assert two.parameters["required"] == ["input"]
    assert one.timeout_s > 30
    missing = await toolset.call(ToolCall(CallId("1"), "command_three", {}), SCOPE)
    assert missing.is_error


@pytest.mark.parametrize("shell", [("sh", "-c", "echo {{input}}"), ("/usr/bin/python3", "-c", "print('{{input}}')")])
def test_an_input_inside_of_code_is_refused_when_the_command_is_built(tmp_path: Path, shell: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="as code") as refused:
        CommandToolset([CustomCommand("it", "It.", shell=shell)], cwd=tmp_path, environ={})
    assert '"sh", "{{input}}"]' in refused.value.fix


async def test_a_shell_program_may_take_the_input_as_its_argument(tmp_path: Path) -> None:
    result = await run(tmp_path, "sh", "-c", 'echo "$1"', "sh", "{{input}}", text="a; b")
    assert result.text == "a; b"


async def test_an_input_that_looks_like_an_option_does_not_reach_the_program(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="dash"):
        await run(tmp_path, "ls", "{{input}}", text="-la")
