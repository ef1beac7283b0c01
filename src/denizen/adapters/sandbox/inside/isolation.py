"""Isolates this process: namespaces and a root of its own, or Landlock alone; always without privileges, with limits
and with few system calls.

`worker.py` calls `isolate_process` once, before it reads the first command. Whatever fails raises OSError, and the
worker ends: it never works unprotected.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.sandbox.inside import kernel
from denizen.adapters.sandbox.inside.kernel import forbid_system_calls

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
MAX_PROCESSES = 1024
MAX_FILES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationSpec:
    """The isolation that the parent process asks for. `uid` is the user to become when this process is the
    superuser, None to stay. `runnable` and `readable` are the files of the system that programs need.
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


def isolate_process(spec: IsolationSpec) -> int:
    """Isolates this process and returns a descriptor of the top folder. Raises OSError.

    With namespaces, the process that returns is a child, the first one of a process namespace; the original process
    only waits for it and ends with its exit code.
    """
    _prefer_oom_kill()
    if spec.tier == "namespaces":
        _enter_namespaces(spec)
        enter_root([*spec.folders, *spec.runnable, *spec.readable], spec.scratch)
        readable, runnable = [TOP, *(bind.target for bind in spec.readable)], [bind.target for bind in spec.runnable]
    else:
        if not find_version():
            raise OSError(0, "Landlock is not offered")
        readable = [spec.top, *(bind.source for bind in spec.readable)]
        runnable = [bind.source for bind in spec.runnable]
    top = os.open(spec.top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _limit(spec)
    # The kernel asks for this before Landlock and seccomp of an unprivileged process.
    kernel.control(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if find_version():
        forbid_files(readable, runnable)
    _drop_privileges(spec.uid)
    # No other process of this user may trace or read this one.
    kernel.control(kernel.PR_SET_DUMPABLE, 0)
    if spec.tier == "namespaces":
        kernel.control(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user clears it, so it comes last
    forbid_system_calls()
    return top


def _prefer_oom_kill() -> None:
    """Makes the kernel end programs in here first when the machine runs out of memory. Everything else holds without
    it, so a machine that does not offer it is no reason to refuse.
    """
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
        score.write("1000")


def _enter_namespaces(spec: IsolationSpec) -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare((_NEWUSER if uid else 0) | _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP)
    if uid:
        # The kernel accepts a gid map of an unprivileged process only after setgroups is denied.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            handle = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
    # A process enters its new process namespace only with its first child.
    child = os.fork()
    if child:
        # Waits without privileges and with nothing open, so that the ends of the pipes are the child's alone.
        _drop_privileges(spec.uid)
        os.closerange(0, 256)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _limit(spec: IsolationSpec) -> None:
    limits = {
        # Nothing may be written, not even where the file system would allow it.
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: MAX_FILES,
        resource.RLIMIT_AS: spec.memory_bytes,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if spec.tier == "namespaces":  # elsewhere all processes of this user on the machine would count
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
    """Returns whether this process has capabilities: as the superuser, or in a user namespace of its own."""
    try:
        kernel.control(kernel.PR_CAPBSET_DROP, 0)
    except PermissionError:
        return False
    return True


_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_NOATIME, _NODIRATIME = 1024, 2048
_DETACH = 2
TOP = "/docs"
"""The folder in which a line begins."""


@dataclass(frozen=True, slots=True)
class BindMount:
    """A file or folder of the system and where it appears. Nothing in a folder of documents can be run."""

    source: str
    target: str
    is_documents: bool = False


def enter_root(binds: Sequence[BindMount], scratch: str) -> None:
    """Makes a small read-only root and enters it; what was there before cannot be reached any more. `scratch` is any
    existing folder. Raises OSError.
    """
    # Private first: else the mounts below would spread to the rest of the machine.
    kernel.mount(None, "/", None, _REC | _PRIVATE)
    handles = [os.open(bind.source, os.O_PATH | os.O_CLOEXEC) for bind in binds]  # before the scratch folder is hidden
    kernel.mount("tmpfs", scratch, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=0755")
    Path(scratch + TOP).mkdir(0o755)
    for bind, handle in zip(binds, handles, strict=True):
        mode, target = os.fstat(handle).st_mode, scratch + bind.target
        if stat.S_ISDIR(mode):
            Path(target).mkdir(0o755, parents=True, exist_ok=True)
        else:
            Path(target).parent.mkdir(0o755, parents=True, exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
        kernel.mount(f"/proc/self/fd/{handle}", target, None, _BIND)
        # What the source's mount has is kept: without privileges of the machine none of it may be taken away.
        kept = os.statvfs(target).f_flag & (_RDONLY | _NOSUID | _NODEV | _NOEXEC | _NOATIME | _NODIRATIME)
        wanted = _RDONLY | _NOSUID | (0 if stat.S_ISCHR(mode) else _NODEV) | (_NOEXEC if bind.is_documents else 0)
        kernel.mount(None, target, None, _REMOUNT | _BIND | kept | wanted)
        os.close(handle)
    kernel.mount(None, scratch, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    os.chdir(scratch)
    # Old and new root at one place: the old one lies on top, and unmounting it leaves nothing behind.
    kernel.pivot_root(".", ".")
    kernel.unmount(".", _DETACH)
    os.chdir(TOP)


_EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8
_CREATE, _ADD_RULE, _RESTRICT = 0, 1, 2
_ASK_VERSION = 1
_PATH_BENEATH = 1


def find_version() -> int:
    """Returns the version of the kernel's Landlock; 0 where there is none."""
    try:
        return kernel.system_call("landlock", None, 0, _ASK_VERSION)
    except OSError:
        return 0


def forbid_files(readable: Iterable[str], runnable: Iterable[str]) -> None:
    """Forbids all files but these. What lies below a readable folder may be read, and not run. Raises OSError."""
    version = find_version()
    files = (1 << 13) - 1 | (1 << 13 if version >= 2 else 0) | (1 << 14 if version >= 3 else 0)
    files |= 1 << 15 if version >= 5 else 0
    attributes = struct.pack("QQQ", files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = kernel.system_call("landlock", ctypes.create_string_buffer(attributes, 24), size, 0, offset=_CREATE)
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE)
        for path in runnable:
            _allow(ruleset, path, _READ_FILE | _EXECUTE)
        kernel.system_call("landlock", ruleset, 0, offset=_RESTRICT)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            rights |= _READ_DIR
        rule = struct.pack("=Qi", rights, handle)
        kernel.system_call(
            "landlock", ruleset, _PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0, offset=_ADD_RULE
        )
    finally:
        os.close(handle)
