"""The main program of a worker: isolates itself, then answers lines of JSON until nobody needs it any more.

The first line is the isolation spec, answered by `{"ready": true}` or `{"failed": ...}`. Then comes one request a line,
with `commands`, `timeout_s` and `total_timeout_s`, answered by one line with `results`. `process.py` starts it with an
interpreter that sees the standard library only. Nothing is kept between requests: each line begins in the top folder.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

from denizen.adapters.sandbox.inside.isolation import BindMount, IsolationSpec, isolate_process
from denizen.adapters.sandbox.inside.pipeline import (
    CAPPED,
    CallerGoneError,
    CommandStoppedError,
    ExecutionEnvironment,
    LineOutput,
    run_pipeline,
)
from denizen.adapters.sandbox.inside.plan import LinePlan, LinePlanner
from denizen.adapters.sandbox.inside.reading import sum_up
from denizen.adapters.sandbox.inside.words import CommandRefusedError

REFUSED = 126
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
    environment = ExecutionEnvironment(
        programs=told["programs"],
        environ=told["environ"],
        null=null,
        control=requests,
        kill=_killer(spec.tier),
        top=spec.top,
    )
    planner = LinePlanner(spec.top, top, frozenset(told["programs"]))
    _reply(replies, {"ready": True})
    while (line := reader.read(float(told["idle_s"]))) is not None:
        request: dict[str, Any] = json.loads(line)
        deadline = time.monotonic() + float(request["total_timeout_s"])
        results: list[dict[str, Any]] = []
        for command in request["commands"]:
            until = min(deadline, time.monotonic() + float(request["timeout_s"]))
            results.append(_answer(str(command), planner, environment, until))
        _reply(replies, {"results": results})
    os._exit(0)


def _answer(command: str, planner: LinePlanner, environment: ExecutionEnvironment, deadline: float) -> dict[str, Any]:
    started = time.monotonic()
    output, refused = LineOutput(), False
    try:
        if len(command) > MAX_COMMAND_CHARS:
            raise CommandRefusedError(
                f"a command has at most {MAX_COMMAND_CHARS} characters", "Send several, as a batch."
            )
        code = _run(planner.plan(command), environment, output, deadline)
        code, refused = (REFUSED, True) if output.was_refused else (code, False)
    except CommandRefusedError as refusal:
        output.stderr += refusal.explain().encode(errors="replace")
        code, refused = REFUSED, True
    except CommandStoppedError as stop:
        code = stop.code
        what = "it printed too much" if code == CAPPED else "its time was over"
        output.stderr += f"stopped: {what}. Search for something narrower, in fewer files.\n".encode()
    except CallerGoneError:
        os._exit(0)
    except OSError as error:  # a program could not be started: too many arguments, too many processes
        output.stderr += f"cannot run this: {error.strerror}\n".encode()
        code = REFUSED
    except (MemoryError, RecursionError):
        output = LineOutput()
        output.stderr += b"this takes too much memory. Search for something narrower.\n"
        code = CAPPED
    _clear(environment)
    took_ms = (time.monotonic() - started) * 1000
    return {
        "stdout": _cut(output.stdout),
        "stderr": _cut(output.stderr),
        "exit_code": code,
        "refused": refused,
        "duration_ms": round(took_ms),
        "read": sum_up(path for path in output.read.decode(errors="replace").split("\0") if path),
    }


def _run(plan: LinePlan, environment: ExecutionEnvironment, output: LineOutput, deadline: float) -> int:
    code = 0
    for pipeline in plan.pipelines:
        if (pipeline.operator == "&&" and code) or (pipeline.operator == "||" and not code):
            continue
        code = run_pipeline(pipeline, plan.depth, environment, output, deadline)
    return code


def _clear(environment: ExecutionEnvironment) -> None:
    """Kills and reaps everything that a line started, also after a pipeline that was started in part."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        environment.kill()
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _cut(data: bytearray) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n[cut: {MAX_CHARS} of {len(text)} characters]\n"


def _killer(tier: str) -> Any:  # noqa: ANN401 - a function without arguments
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
