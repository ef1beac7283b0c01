"""Which files and folders a final command is given to read, after all expansion: the record that citations rest on.

It is made from the arguments and from nothing that a program prints. A folder stands for all that is below it. Programs
that only tell names, and `echo`, read nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

NAMES_ONLY = frozenset(
    {"echo", "printf", "ls", "tree", "stat", "du", "basename", "dirname", "realpath", "file", "pwd", "test", "["}
    | {"true", "false", "cd"}
)
"""Programs that print no line of a file. Any other counts as one that reads what it is given."""
MAX_READ = 300
"""The limit for one line; more files are told by their folders."""
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--(dereference-)?recursive")
_GREPS = frozenset({"grep", "egrep", "fgrep", "rg"})


def list_read(argv: Sequence[str], top: str) -> list[str]:
    """Returns paths below `top` that a command reads when it runs in the current folder; folders end with `/`."""
    name, words = argv[0], argv[1:]
    if name in NAMES_ONLY:
        return []
    if name == "find":
        return _list_found(words, top)
    plain = [word for word in words if not word.startswith("-")]
    given = [word for word in plain if os.path.lexists(word)]
    is_recursive = name == "rg" or (name in _GREPS and any(map(_RECURSIVE.fullmatch, words)))
    if is_recursive and (len(plain) < 2 or plain[-1] not in given):  # a pattern alone: the current folder
        given.append(".")
    return list(filter(None, (_below(each, top) for each in given)))


def _list_found(words: Sequence[str], top: str) -> list[str]:
    """Programs that find runs get names that nobody knows before, all of them below the folders where it looks."""
    commands = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-exec"]
    if all(command in NAMES_ONLY for command in commands):
        return []
    roots = list(takewhile(lambda word: not word.startswith("-") and word not in {"(", ")", "!", ","}, words))
    return list(filter(None, (_below(each, top) for each in roots or ["."])))


def _below(path: str, top: str) -> str:
    """The path below the top folder; empty for one that is not there, such as /dev/null."""
    whole = os.path.normpath(os.path.join(os.getcwd(), path))  # noqa: PTH109, PTH118 - text only, no links followed
    inner = os.path.relpath(whole, top)
    if inner == "." or inner.startswith("../"):
        return "/" if inner == "." else ""
    return f"{inner}/" if os.path.isdir(path) else inner  # noqa: PTH112


def sum_up(paths: Iterable[str]) -> list[str]:
    """Returns each path once, and of very many only their folders."""
    told = list(dict.fromkeys(paths))
    if len(told) > MAX_READ:
        told = list(dict.fromkeys(f"{PurePosixPath(each).parent}/".replace("./", "/") for each in told))
    return told[:MAX_READ]
