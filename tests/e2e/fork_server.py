"""Processes that need not import Denizen first: they are forked from one that did that and nothing else.

Nearly all that a start costs are imports, and the tests here start hundreds of processes. One of these is as real as
any other: it has its own pid, memory, streams, environment and command line, and can be killed. Starts with all that
belongs to them are what `Home.start` with `anew` or `before`, and `start_in_terminal`, give.

Run as a program, this file is the process that forks; it has one thread. On a socket, its standard input, it is sent a
line of JSON with four descriptors: the standard streams and one for its answers, which are the pid and, at the end, the
exit code, each four bytes; a pid below zero is the error for which there is none. It ends with that socket, and its
children with it; on Linux also when it is killed.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Never

HANG_LIMIT_S = 120.0
"""As in `tests/timing.py`, which this file cannot import while it runs as a program."""

_CLONE_NEWNET = 0x40000000
_MOST_BYTES = 1_000_000
_ANSWER = struct.Struct("i")
_LEFT_OUT = ("denizen.__main__", "denizen.testing", "denizen.adapters.store.migrations")


class ForkServerGoneError(Exception):
    """The process that forks is gone, so that nobody knows how its children ended."""


class Child:
    """A process that was forked. `stdout` and `stderr` are descriptors that belong to who reads them."""

    def __init__(self, pid: int, answers: socket.socket, streams: tuple[int, int, int]) -> None:
        self.pid = pid
        self._answers = answers
        self.stdin = os.fdopen(streams[0], "wb", buffering=0)
        self.stdout, self.stderr = streams[1:]
        self._end: int | ForkServerGoneError | None = None

    def wait(self, timeout: float) -> int:
        """Its exit code, negative for a signal. Raises TimeoutExpired, and ForkServerGoneError, when it is killed."""
        if self._end is None:
            if not _is_ready(self._answers, timeout):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            with self._answers:
                try:
                    self._end = _receive(self._answers)
                except ForkServerGoneError as ended:
                    self._signal(signal.SIGKILL)
                    self._end = ended
        if isinstance(self._end, ForkServerGoneError):
            raise self._end
        return self._end

    def send_signal(self, number: int) -> None:
        """Nothing when it has ended."""
        if self._end is None and not (_is_ready(self._answers, 0) and self._answers.recv(1, socket.MSG_PEEK)):
            self._signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended, and that was not told yet
            os.kill(self.pid, number)


class ForkServer:
    """The process that forks, for as long as this one lives. `before` is Python that it runs first."""

    def __init__(self, before: str = "") -> None:
        self._socket, theirs = socket.socketpair()
        self._turn = threading.Lock()
        with theirs:
            code = f"{before}\nimport runpy; runpy.run_path({__file__!r}, run_name='__main__')"
            command = [sys.executable, "-P", "-c", code] if before else [sys.executable, "-P", __file__]
            environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), env=environment)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """Ends what is left of the children, too."""
        self._socket.close()
        self._process.wait()

    def kill(self) -> None:
        """`kill -9`."""
        self._process.kill()
        self.close()

    def start(
        self,
        args: Sequence[str],
        environment: Mapping[str, str],
        network: str = "",
        *,
        pauses: Mapping[str, float] | None = None,
        limit_s: float = HANG_LIMIT_S,
    ) -> Child:
        """`denizen` with these arguments, in the folder of this process, and in the network namespace of that file.
        `pauses` are constants, as `denizen.module.NAME`, with what they are in that process.
        Raises ForkServerGoneError, OSError.
        """
        start = {"args": args, "environment": dict(environment), "folder": os.getcwd(), "network": network}  # noqa: PTH109
        told = json.dumps({**start, "pauses": dict(pauses or {})})
        with ExitStack() as ours, ExitStack() as theirs:
            answers, answering = socket.socketpair()
            ours.enter_context(answers)
            theirs.enter_context(answering)
            stdin, write = _open_pipe(theirs, ours)
            out, stdout = _open_pipe(ours, theirs)
            err, stderr = _open_pipe(ours, theirs)
            try:
                with self._turn:
                    socket.send_fds(self._socket, [f"{told}\n".encode()], [stdin, stdout, stderr, answering.fileno()])
            except OSError as error:
                raise ForkServerGoneError("the fork server ended") from error
            theirs.close()
            if not _is_ready(answers, limit_s):
                self._process.kill()
                raise ForkServerGoneError(f"the fork server said nothing for {limit_s:.0f} s, and was killed")
            pid = _receive(answers)
            if pid < 0:
                raise OSError(-pid, f"the fork server could not fork: {os.strerror(-pid)}")
            ours.pop_all()
        return Child(pid, answers, (write, out, err))


def _open_pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _is_ready(answers: socket.socket, timeout: float) -> bool:
    return bool(select.select([answers], [], [], timeout)[0])


def _receive(answers: socket.socket) -> int:
    data = answers.recv(_ANSWER.size)
    if not data:
        raise ForkServerGoneError("the fork server ended")
    (number,) = _ANSWER.unpack(data)
    return number


_opened: list[ForkServer] = []
_opening = threading.Lock()


def get_fork_server() -> ForkServer:
    """The one of this process; another one when that has ended."""
    with _opening:
        if not _opened or _opened[-1].has_ended:
            _opened.append(ForkServer())
            atexit.register(_opened[-1].close)
        return _opened[-1]


# --- the process that forks ------------------------------------------------------------------------------------------


def _import_everything() -> None:
    import denizen

    found = [module.name for module in pkgutil.walk_packages(denizen.__path__, "denizen.")]
    wanted = [name for name in found if not name.startswith(_LEFT_OUT) and ".inside" not in name]
    for name in [*wanted, "alembic.command", "alembic.config"]:
        importlib.import_module(name)
    # What reads the configuration is made when it first reads one, and what describes tools when somebody asks.
    importlib.import_module("denizen.app.settings.schema").Config.model_validate({"agents": {"denizen": {}}})
    builtin = importlib.import_module("denizen.builtin_skills")
    for name in builtin.BUILTIN:
        builtin.load_builtin(name).specs()


def _fork_on_request(requests: socket.socket) -> None:
    """Returns in each child only."""
    children: dict[int, socket.socket] = {}
    try:
        _fork_until_the_end(requests, children)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def _fork_until_the_end(requests: socket.socket, children: dict[int, socket.socket]) -> None:
    own = os.getpid()
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, _ignore_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _report_ended(children)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not data:
            sys.exit()
        while not data.endswith(b"\n"):
            data += requests.recv(_MOST_BYTES)
        *streams, answering = descriptors
        answers = socket.socket(fileno=answering)
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or errno.EAGAIN)
        if not pid:
            signal.set_wakeup_fd(-1)
            for each in (requests, woken, wakes, answers, *children.values()):
                each.close()
            children.clear()
            _end_with(own)
            _prepare_child(streams, **json.loads(data))
            return
        for descriptor in streams:
            os.close(descriptor)
        _answer(answers, pid)
        if pid > 0:
            children[pid] = answers
        else:
            answers.close()


def _ignore_signal(_number: int, _frame: object) -> None:
    """Handles the signal by doing nothing: without a handler it would not wake the process."""


def _report_ended(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with children.pop(pid) as answers:
            _answer(answers, os.waitstatus_to_exitcode(status))


def _answer(answers: socket.socket, number: int) -> None:
    with suppress(OSError):  # nobody wants to know any more
        answers.send(_ANSWER.pack(number))


def _end_with(parent: int) -> None:
    """Has the system kill this process when that one ends, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _enter_network(file: str) -> None:
    with open(file, "rb") as namespace:  # noqa: PTH123 - without pathlib's imports
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the network namespace {file} could not be entered")


def _prepare_child(
    streams: Sequence[int],
    args: list[str],
    environment: dict[str, str],
    folder: str,
    network: str,
    pauses: dict[str, float],
) -> None:
    """A process as it is after `python -m denizen` began."""
    for constant, pause_s in pauses.items():
        module, _, name = constant.rpartition(".")
        getattr(sys.modules[module], name)  # a misspelt one fails
        setattr(sys.modules[module], name, pause_s)
    if network:
        _enter_network(network)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in workers of a parallel run it is ignored
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["denizen", *args]
    sys.orig_argv = [sys.executable, "-m", "denizen", *args]


def _main() -> None:
    # A child would answer every collection with copies of what it shares.
    gc.disable()
    _import_everything()
    gc.freeze()
    gc.enable()
    _fork_on_request(socket.socket(fileno=os.dup(0)))
    try:
        runpy.run_module("denizen", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        _exit_child(ended.code)


def _exit_child(code: object) -> Never:
    """As the interpreter ends, but without taking everything apart that was imported, for 0.3 s."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _main()
