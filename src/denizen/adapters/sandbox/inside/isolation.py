"""Shuts this process in: namespaces and a root of its own, or Landlock alone; always without privileges, with limits
and with few system calls (inventory S17).

Called once by `worker.py`, before it reads the first command. Whatever fails raises OSError, and the worker ends: it
never works unprotected.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from denizen.adapters.sandbox.inside import kernel
from denizen.adapters.sandbox.inside.landlock import find_version, forbid_files
from denizen.adapters.sandbox.inside.mounts import TOP, BindMount, enter_root
from denizen.adapters.sandbox.inside.seccomp import forbid_system_calls

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
MAX_PROCESSES = 1024
MAX_FILES = 256


@dataclass(frozen=True, slots=True)
class IsolationSpec:
    """What the parent wants. `uid` is whom to become when this process is the superuser, None to stay. `runnable` and
    `readable` say what of the system is needed; `programs` where a program is once shut in.
    """

    tier: str
    folders: tuple[BindMount, ...]
    runnable: tuple[BindMount, ...]
    readable: tuple[BindMount, ...]
    scratch: str
    memory_bytes: int
    uid: int | None

    @property
    def top(self) -> str:
        """The folder in which a line begins, as seen from within."""
        return TOP if self.tier == "namespaces" else os.path.realpath(self.folders[0].source)


def isolate_process(order: IsolationSpec) -> int:
    """Returns a descriptor of the top folder. Raises OSError. With namespaces the process that returns is a child, the
    first of a process namespace; the caller's own process only waits for it and ends with its exit code.
    """
    _go_first()
    if order.tier == "namespaces":
        _enter_namespaces(order)
        enter_root([*order.folders, *order.runnable, *order.readable], order.scratch)
        readable, runnable = [TOP, *(bind.target for bind in order.readable)], [bind.target for bind in order.runnable]
    else:
        if not find_version():
            raise OSError(0, "Landlock is not offered")
        readable = [order.top, *(bind.source for bind in order.readable)]
        runnable = [bind.source for bind in order.runnable]
    top = os.open(order.top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _limit(order)
    kernel.control(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if find_version():
        forbid_files(readable, runnable)
    _drop_privileges(order.uid)
    kernel.control(kernel.PR_SET_DUMPABLE, 0)
    if order.tier == "namespaces":
        kernel.control(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user clears it, so it comes last
    forbid_system_calls()
    return top


def _go_first() -> None:
    """When the machine runs out of memory, programs in here end and not the service. Without it all else still holds,
    so a machine that does not offer this is no reason to refuse.
    """
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
        score.write("1000")


def _enter_namespaces(order: IsolationSpec) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare((_NEWUSER if uid else 0) | _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP)
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            handle = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
    child = os.fork()
    if child:
        _wait_for(child, order)


def _wait_for(child: int, order: IsolationSpec) -> NoReturn:
    """Without privileges, and with nothing open, so that the ends of the pipes are the child's alone."""
    _drop_privileges(order.uid)
    os.closerange(0, 256)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _limit(order: IsolationSpec) -> None:
    limits = {
        resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: MAX_FILES,
        resource.RLIMIT_AS: order.memory_bytes, resource.RLIMIT_MEMLOCK: 0, resource.RLIMIT_MSGQUEUE: 0,
    }  # fmt: skip
    if order.tier == "namespaces":  # elsewhere all processes of this user on the machine would count
        limits[resource.RLIMIT_NPROC] = MAX_PROCESSES
    for kind, value in limits.items():
        _, most = resource.getrlimit(kind)
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (bound, bound))


def _drop_privileges(uid: int | None) -> None:
    if uid is not None and os.geteuid() == 0:
        kernel.drop_bounding_set()
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    elif _has_capabilities():
        kernel.drop_bounding_set()
    kernel.drop_capabilities()


def _has_capabilities() -> bool:
    """As the superuser, or in a user namespace of one's own."""
    try:
        kernel.control(kernel.PR_CAPBSET_DROP, 0)
    except PermissionError:
        return False
    return True
