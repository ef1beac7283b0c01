"""The processes that are measured: the model that answers in no time, `denizen` commands, and a bare interpreter.

Children run with compiled bytecode, as an installed Denizen does, in a home folder of their own. Linux only: memory
and processor time come from /proc.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import denizen

READY_WITHIN_S = 240.0
STOPS_WITHIN_S = 10.0
_POLL_S = 0.005
_TICKS = os.sysconf("SC_CLK_TCK")

CONFIG = """\
models:
  providers:
    instant: {{kind: openai-compatible, base_url: "http://127.0.0.1:{port}/v1"}}
  aliases:
    balanced: instant/instant
agents:
  denizen: {{model: balanced}}
"""


def compile_sources() -> None:
    """Compiles the sources, as `scripts/install` does for the installed packages."""
    compileall.compile_dir(Path(denizen.__file__).parent, quiet=1)


def child_environment() -> dict[str, str]:
    """Ours, without what changes how Python starts."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DENIZEN_", "PYTHON"))} | (
        {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_home(folder: Path, model_port: int) -> Path:
    """A home folder with one agent on the instant model."""
    folder.mkdir(parents=True)
    (folder / "denizen.yaml").write_text(CONFIG.format(port=model_port), encoding="utf-8")
    return folder


def make_used_home(folder: Path, model_port: int) -> Path:
    """One whose databases exist: making them brings in what no later start needs."""
    home = make_home(folder, model_port)
    with run_server(home):
        pass
    return home


class Process:
    """A child, and what it uses."""

    def __init__(self, child: subprocess.Popen[bytes], port: int) -> None:
        self.child = child
        self.port = port

    def memory_mb(self) -> float:
        """Resident."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() / 1e6

    def cpu_ms(self) -> float:
        """Processor time of all threads since it was started; whole ticks of the kernel (10 ms)."""
        stat = Path(f"/proc/{self.child.pid}/stat").read_text(encoding="ascii")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS * 1e3

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str) -> object:
        connection = self.connect()
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def wait_until_answers(self, path: str) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if self.child.poll() is not None:
                raise RuntimeError(f"{self.child.args} ended with {self.child.returncode}")
            try:
                self.get(path)
            except OSError:
                time.sleep(_POLL_S)
            else:
                return
        raise RuntimeError(f"{self.child.args} does not answer")


@contextmanager
def run_model(delay_s: float = 0.0) -> Generator[Process]:
    """The instant model in a process of its own, or one that takes so long."""
    port = free_port()
    with running([sys.executable, "-m", "benchmarks.model", str(port), str(delay_s)], port) as process:
        process.wait_until_answers("/stats")
        yield process


@contextmanager
def run_server(home: Path, *options: str, log: Path | None = None) -> Generator[Process]:
    """`denizen run` with these options, answering. What it logs is in that file."""
    port = free_port()
    with running([*denizen_command(home), "run", "--port", str(port), *options], port, log=log) as process:
        process.wait_until_answers("/health")
        yield process


@contextmanager
def running(command: Sequence[str], port: int = 0, *, log: Path | None = None) -> Generator[Process]:
    """A child until the end of the block."""
    with (log or Path(os.devnull)).open("wb") as err:
        child = subprocess.Popen(command, env=child_environment(), stderr=err, stdin=subprocess.DEVNULL)
    try:
        yield Process(child, port)
    finally:
        child.terminate()
        try:
            child.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def denizen_command(home: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("denizen")), "--home", str(home)]


def time_command(command: Sequence[str]) -> tuple[float, float]:
    """Seconds and processor seconds of a command from start to end. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, env=child_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=True)
    wall_s = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bare_python_mb() -> float:
    """Resident memory of an interpreter that does nothing."""
    code = "print(open('/proc/self/statm').read().split()[1])"
    done = subprocess.run([sys.executable, "-c", code], env=child_environment(), capture_output=True, check=True)
    return int(done.stdout) * resource.getpagesize() / 1e6
