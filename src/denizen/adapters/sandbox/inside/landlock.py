"""Landlock: which files may be read and which run, for this process and all that it starts. Nothing may be written."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from denizen.adapters.sandbox.inside import kernel

_EXECUTE, _READ_FILE, _READ_DIR = 1, 4, 8
_CREATE, _ADD_RULE, _RESTRICT = 0, 1, 2
_ASK_VERSION = 1
_PATH_BENEATH = 1


def find_version() -> int:
    """Of the kernel's Landlock; 0 where there is none."""
    try:
        return kernel.system_call("landlock", None, 0, _ASK_VERSION)
    except OSError:
        return 0


def forbid_files(readable: Iterable[str], runnable: Iterable[str]) -> None:
    """All but these. Below a folder everything may be read, and nothing run. Raises OSError."""
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
