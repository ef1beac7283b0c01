"""Processes that need not import Denizen first: they are forked from one that did that and nothing else.

Nearly all that a start costs are imports, and the tests here start hundreds of processes. One of these is as real as
any other: it has its own pid, memory, streams, environment and command line, and can be killed. Starts with all that
belongs to them are what `Home.start` with `anew` or `before`, and `start_in_terminal`, give.

Run as a program, this file is the process that forks; it has one thread. On a socket, its standard input, it is sent a
line of JSON with four descriptors: the standard streams and one for its answers, which are the pid and, at the end, the
exit code, each four bytes. It ends with that socket, and its children with it.
"""

from __future__ import annotations

import atexit
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
from functools import cache
from typing import Never

_MOST_BYTES = 1_000_000
_ANSWER = struct.Struct("i")
_LEFT_OUT = ("denizen.__main__", "denizen.testing", "denizen.adapters.store.migrations")


class Child:
    """A process that was forked. `stdout` and `stderr` are descriptors that belong to who reads them."""

    def __init__(self, pid: int, answers: socket.socket, streams: tuple[int, int, int]) -> None:
        self.pid = pid
        self._answers = answers
        self.stdin = os.fdopen(streams[0], "wb", buffering=0)
        self.stdout, self.stderr = streams[1:]
        self._code: int | None = None

    def wait(self, timeout: float) -> int:
        """Its exit code, negative for a signal. Raises TimeoutExpired."""
        if self._code is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            with self._answers:
                self._code = _receive(self._answers)
        return self._code

    def send_signal(self, number: int) -> None:
        """Nothing when it has ended."""
        if self._code is None and not self._has_ended(0):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float) -> bool:
        return bool(select.select([self._answers], [], [], timeout)[0])


class Nursery:
    """The process that forks, for as long as this one lives."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._turn = threading.Lock()
        with theirs:
            command = [sys.executable, "-P", __file__]
            environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), env=environment)

    def close(self) -> None:
        """Ends what is left of the children, too."""
        self._socket.close()
        self._process.wait()

    def start(self, args: Sequence[str], environment: Mapping[str, str]) -> Child:
        """`denizen` with these arguments, in the folder of this process."""
        told = json.dumps({"args": args, "environment": dict(environment), "folder": os.getcwd()})  # noqa: PTH109
        answers, theirs = socket.socketpair()
        stdin, write = os.pipe()
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        with ExitStack() as stack:
            stack.enter_context(theirs)
            for end in (stdin, stdout, stderr):
                stack.callback(os.close, end)
            with self._turn:
                socket.send_fds(self._socket, [f"{told}\n".encode()], [stdin, stdout, stderr, theirs.fileno()])
        pid = _receive(answers)
        return Child(pid, answers, (write, out, err))


def _receive(answers: socket.socket) -> int:
    (number,) = _ANSWER.unpack(answers.recv(_ANSWER.size))
    return number


@cache
def nursery() -> Nursery:
    """The one of this process."""
    opened = Nursery()
    atexit.register(opened.close)
    return opened


# --- the process that forks ------------------------------------------------------------------------------------------


def _import_everything() -> None:
    import denizen

    found = [module.name for module in pkgutil.walk_packages(denizen.__path__, "denizen.")]
    wanted = [name for name in found if not name.startswith(_LEFT_OUT) and ".inside" not in name]
    for name in [*wanted, "alembic.command", "alembic.config"]:
        importlib.import_module(name)
    # What reads the configuration is made when it first reads one.
    importlib.import_module("denizen.app.settings.schema").Config.model_validate({"agents": {"denizen": {}}})


def _fork_on_request(requests: socket.socket) -> None:
    """Returns in each child, and at the end."""
    children: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, _only_wake)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _tell_of_ended(children)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not data:
            break
        while not data.endswith(b"\n"):
            data += requests.recv(_MOST_BYTES)
        *streams, answering = descriptors
        answers = socket.socket(fileno=answering)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            for each in (requests, woken, wakes, answers, *children.values()):
                each.close()
            _become(streams, **json.loads(data))
            return
        for descriptor in streams:
            os.close(descriptor)
        children[pid] = answers
        answers.send(_ANSWER.pack(pid))
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    sys.exit()


def _only_wake(_number: int, _frame: object) -> None:
    """What is not handled does not wake."""


def _tell_of_ended(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with children.pop(pid) as answers:
            answers.send(_ANSWER.pack(os.waitstatus_to_exitcode(status)))


def _become(streams: Sequence[int], args: list[str], environment: dict[str, str], folder: str) -> None:
    """A process as it is after `python -m denizen` began."""
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
        _leave(ended.code)


def _leave(code: object) -> Never:
    """As the interpreter ends, but without taking everything apart that was imported, for 0.3 s."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _main()
