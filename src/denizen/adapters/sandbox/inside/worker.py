"""The main program of a worker: isolates itself, then answers lines of JSON until nobody needs it any more.

The first line is the isolation spec, answered by `{"ready": true}` or `{"failed": ...}`. Then comes one request a line,
with `commands`, `timeout_s` and `total_timeout_s`, answered by one line with `results`. `process.py` starts it with an
interpreter that sees the standard library only. Nothing is kept between requests: each command begins in the top
folder.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from denizen.adapters.sandbox.inside.capture import (
    CAPPED,
    TIMED_OUT,
    CallerGoneError,
    CapturedOutput,
    CapturingRunner,
    CommandStoppedError,
)
from denizen.adapters.sandbox.inside.evaluation import Evaluator, Rehearsal, Runner
from denizen.adapters.sandbox.inside.expansion import DeadlineError, Expander
from denizen.adapters.sandbox.inside.grammar import parse_commands
from denizen.adapters.sandbox.inside.isolation import BindMount, IsolationSpec, isolate_process
from denizen.adapters.sandbox.inside.pipeline import OUT_OF_MEMORY, REFUSED, ProgramLauncher
from denizen.adapters.sandbox.inside.reading import sum_up
from denizen.adapters.sandbox.inside.words import CommandRefusedError

MAX_CHARS = 50_000
"""The limit for each stream of a command."""
MAX_COMMAND_CHARS = 2000
_CHUNK = 65_536


def main() -> NoReturn:
    """Runs the worker. Never returns."""
    os.umask(0o022)  # whom this process becomes has to find its way in the folders that it makes
    requests, replies, null = _move_pipes()
    reader = _Lines(requests)
    told: dict[str, Any] = json.loads(reader.read(30.0) or "{}")
    spec = _read_spec(told)
    try:
        top = isolate_process(spec)
    except OSError as error:
        _reply(replies, {"failed": error.strerror or str(error)})
        os._exit(1)
    worker = _Worker(
        programs=told["programs"],
        environ=told["environ"],
        null=null,
        top=top,
        top_path=spec.top,
        control=requests,
        kill=_make_killer(spec.tier),
    )
    _reply(replies, {"ready": True})
    while (line := reader.read(float(told["idle_s"]))) is not None:
        request: dict[str, Any] = json.loads(line)
        deadline = time.monotonic() + float(request["total_timeout_s"])
        results: list[dict[str, Any]] = []
        for command in request["commands"]:
            until = min(deadline, time.monotonic() + float(request["timeout_s"]))
            results.append(worker.answer(str(command), until))
        _reply(replies, {"results": results})
    os._exit(0)


@dataclass(frozen=True, slots=True)
class _Worker:
    """Answers commands. The fields are those of `ProgramLauncher` and `CapturingRunner`."""

    programs: dict[str, str]
    environ: dict[str, str]
    null: int
    top: int
    top_path: str
    control: int
    kill: Callable[[], None]

    def answer(self, text: str, deadline: float) -> dict[str, Any]:
        started = time.monotonic()
        output, is_refused = CapturedOutput(), False
        launcher = ProgramLauncher(
            self.programs,
            self.environ,
            null=self.null,
            top=self.top,
            top_path=self.top_path,
            report=output.reports.append,
        )
        runner = CapturingRunner(launcher, output, deadline, self.control, self.kill)
        try:
            code = self._evaluate(text, runner, deadline)
        except CommandRefusedError as refusal:
            output.stderr += refusal.explain().encode(errors="replace")
            code, is_refused = REFUSED, True
        except (CommandStoppedError, DeadlineError) as stop:
            code = stop.code if isinstance(stop, CommandStoppedError) else TIMED_OUT
            what = "it printed too much" if code == CAPPED else "its time was over"
            output.stderr += f"stopped: {what}. Search for something narrower, in fewer files.\n".encode()
        except CallerGoneError:
            with suppress(ProcessLookupError):
                self.kill()
            os._exit(0)
        except OSError as error:  # a program could not be started: too many arguments, too many processes
            output.stderr += f"cannot run this: {error.strerror}\n".encode()
            code = REFUSED
        except (MemoryError, RecursionError):
            output = CapturedOutput()
            output.stderr += b"this takes too much memory. Search for something narrower.\n"
            code = OUT_OF_MEMORY
        runner.clear()
        is_refused = is_refused or output.was_refused
        took_ms = (time.monotonic() - started) * 1000
        return {
            "stdout": _cut(output.stdout),
            "stderr": _cut(output.stderr),
            "exit_code": REFUSED if is_refused else code,
            "refused": is_refused,
            "duration_ms": round(took_ms),
            "read": sum_up(path for report in output.reports for path in report.get("read", ())),
        }

    def _evaluate(self, text: str, runner: Runner, deadline: float) -> int:
        if len(text) > MAX_COMMAND_CHARS:
            raise CommandRefusedError(
                f"a command has at most {MAX_COMMAND_CHARS} characters", "Send several, as a batch."
            )
        commands = parse_commands(text)

        def evaluate(runner: Runner) -> int:
            return Evaluator(runner, self.top, self.programs.keys(), Expander(deadline=deadline)).evaluate(commands)

        evaluate(Rehearsal())
        return evaluate(runner)


def _cut(data: bytearray) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n[cut: {MAX_CHARS} of {len(text)} characters]\n"


def _make_killer(tier: str) -> Any:  # noqa: ANN401 - a function without arguments
    if tier == "namespaces":
        if os.getpid() != 1:
            raise SystemExit("not the first process of a namespace")
        return lambda: os.kill(-1, signal.SIGKILL)
    # Programs cannot leave the group of this process, which the parent made for it, nor ignore the signal.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return lambda: os.kill(0, signal.SIGTERM)


def _move_pipes() -> tuple[int, int, int]:
    """Moves the pipes to descriptors that programs do not inherit, and puts /dev/null in their place. Returns all."""
    requests, replies = os.dup(0), os.dup(1)  # not inherited by what is started
    null = os.open("/dev/null", os.O_RDWR)  # for writing too, which cannot be had any more later
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return requests, replies, null


class _Lines:
    """Reads lines from a pipe with a time-out."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def read(self, timeout_s: float) -> str | None:
        """Returns None when nothing came in time, or the other end is closed."""
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([self._descriptor], [], [], timeout_s)
            chunk = os.read(self._descriptor, _CHUNK) if readable else b""
            if not chunk:
                return None
            self._buffer += chunk
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return line.decode()


def _reply(descriptor: int, reply: dict[str, Any]) -> None:
    data = json.dumps(reply).encode() + b"\n"
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        os._exit(0)


def _read_spec(told: dict[str, Any]) -> IsolationSpec:
    def binds(key: str) -> tuple[BindMount, ...]:
        return tuple(BindMount(source, target, is_documents=key == "folders") for source, target in told[key])

    return IsolationSpec(
        tier=told["tier"],
        folders=binds("folders"),
        runnable=binds("runnable"),
        readable=binds("readable"),
        scratch=told["scratch"],
        memory_bytes=told["memory_bytes"],
        uid=told["uid"],
    )


if __name__ == "__main__":
    sys.exit(main())
