"""Calls of the kernel that Python has no words for (Linux; x86_64 and aarch64)."""

from __future__ import annotations

import ctypes
import os
import platform

_libc = ctypes.CDLL(None, use_errno=True)

MACHINE = platform.machine()
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SYSCALLS = {
    "x86_64": {"pivot_root": 155, "capset": 126, "landlock": 444},
    "aarch64": {"pivot_root": 41, "capset": 91, "landlock": 444},
}
_CAPABILITY_VERSION = 0x20080522


def invoke(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """A function of the C library. Raises OSError with the function's name."""
    function = getattr(_libc, name)
    function.restype = ctypes.c_long
    converted = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
    result = int(function(*converted))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def system_call(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None, offset: int = 0) -> int:
    """One that the C library has no function for."""
    known = _SYSCALLS.get(MACHINE)
    if known is None:
        raise OSError(0, f"{name}: not known on {MACHINE}")
    try:
        return invoke("syscall", known[name] + offset, *args)
    except OSError as error:
        raise OSError(error.errno, f"{name}: {os.strerror(error.errno or 0)}") from None


def unshare(flags: int) -> None:
    invoke("unshare", flags)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    invoke("mount", _text(source), _text(target), _text(kind), flags, _text(data))


def unmount(target: str, flags: int) -> None:
    invoke("umount2", _text(target), flags)


def pivot_root(new: str, old: str) -> None:
    system_call("pivot_root", _text(new), _text(old))


def control(option: int, argument: int = 0) -> None:
    invoke("prctl", option, argument, 0, 0, 0)


def drop_capabilities() -> None:
    """All of them, and for every program that this process may become."""
    header = ctypes.create_string_buffer(_CAPABILITY_VERSION.to_bytes(4, "little") + (0).to_bytes(4, "little"), 8)
    system_call("capset", header, ctypes.create_string_buffer(24))


def drop_bounding_set() -> None:
    """Needs CAP_SETPCAP; stops at the first number that no capability has."""
    for number in range(64):
        try:
            control(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno != 22:
                raise
            return


def _text(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)
