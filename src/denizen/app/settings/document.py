"""`denizen.yaml` as text, as a tree with positions, and as a round-trip structure that keeps comments.

`{key: ${NAME}}` is not YAML, and yet what everybody writes. References are therefore shielded before parsing: each
character in them that means something to YAML is replaced by a private one, and put back afterwards. Lines and columns
stay what they were.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Protocol, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from denizen.app.settings.problem import KeyPath, Problem
from denizen.app.settings.syntax import explain_syntax
from denizen.domain.json import Json

MAX_NODES = 20_000
MAX_DEPTH = 40
"""Together these end reference cycles and files that multiply themselves by aliases."""

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}\n]*)?\}")
_MEANINGFUL = "{}[],:#&*!|>%@`"
_SHIELD = {ord(char): 0xF100 + index for index, char in enumerate(_MEANINGFUL)}
_UNSHIELD = {shielded: char for char, shielded in _SHIELD.items()}


@dataclass(frozen=True, slots=True)
class Document:
    """`tree` holds plain values, `root` is ruamel's structure with comments, `marks` gives line and column from 1.

    `indent` is how far mappings and the dashes of lists are indented.
    """

    file: Path
    root: object
    tree: Mapping[str, Json]
    marks: Mapping[KeyPath, tuple[int, int]]
    indent: tuple[int, int]

    def locate(self, path: KeyPath) -> tuple[int, int]:
        """Where a key stands; for one that is not there, where the nearest key above it stands."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (1, 1))

    def problem(self, path: KeyPath, message: str, fix: str, *, variable: str = "") -> Problem:
        line, column = self.locate(path)
        return Problem(self.file, line, column, path, message, fix, variable)

    def has(self, path: KeyPath) -> bool:
        """Whether the file has a value there."""
        node: Json = self.tree
        for part in path:
            if isinstance(node, Mapping) and isinstance(part, str) and part in node:
                node = node[part]
            elif isinstance(node, list) and isinstance(part, int) and part < len(node):
                node = cast("list[Json]", node)[part]
            else:
                return False
        return True


class _Places(Protocol):
    """What ruamel knows of positions: for each key or index [line, column, ...] from 0."""

    data: dict[object, list[int]] | None


class _Tag(Protocol):
    value: str | None


class _Node(Protocol):
    """The part of a ruamel collection that it does not type itself."""

    lc: _Places
    tag: _Tag

    def items(self) -> Iterable[tuple[object, object]]: ...


class _Codec(Protocol):
    """The two methods of `YAML` that are used."""

    def load(self, stream: str) -> object: ...

    def dump(self, data: object, stream: io.StringIO) -> None: ...


def parse_document(text: str, file: Path) -> Document | Problem:
    """Reads the text of a configuration file. The first fault of the syntax comes back as a problem."""
    strange = next((index for index, char in enumerate(text) if ord(char) in _UNSHIELD), None)
    if strange is not None:
        line = text.count("\n", 0, strange) + 1
        return Problem(file, line, 1, (), "a private Unicode character.", "Take it out.")
    try:
        root = cast("_Codec", _yaml()).load(_shield(text))
    except MarkedYAMLError as error:
        return explain_syntax(error, text, file)
    except (YAMLError, RecursionError, ValueError):
        return Problem(file, 0, 0, (), "this is not YAML.", "Check for control characters and for deep nesting.")
    if root is None:
        root = CommentedMap()
    if not isinstance(root, CommentedMap):
        message = "the file must hold keys with values."
        return Problem(file, 1, 1, (), message, "Write `key: value` lines, such as `server:` with `port: 8642` below.")
    reader = _Reader(file)
    tree = reader.mapping(root, (), (1, 1))
    if reader.problems:
        return reader.problems[0]
    return Document(file, root, tree, reader.marks, _indentation(text))


def find_value(tree: Json, path: KeyPath) -> Json:
    """What stands at a path; None when nothing does."""
    node = tree
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str):
            node = node.get(part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        else:
            return None
    return node


def write_document(root: object, indent: tuple[int, int]) -> str:
    """The text of a round-trip structure, comments and quotes kept. `indent` as in `Document`."""
    mapping, offset = indent
    yaml = _yaml()
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    stream = io.StringIO()
    if root:
        cast("_Codec", yaml).dump(root, stream)
    return stream.getvalue().translate(_UNSHIELD)


def _yaml() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 100_000
    return yaml


def _shield(text: str) -> str:
    return _REFERENCE.sub(lambda match: match[0].translate(_SHIELD), text)


_OPENING = r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*"
_MAPPING = re.compile(_OPENING + r"\1( +)[^\s#-]", re.MULTILINE)
_DASHES = re.compile(_OPENING + r"\1( *)- ", re.MULTILINE)


def _indentation(text: str) -> tuple[int, int]:
    """How far this file indents mappings and the dashes of lists. Two and two when it does not show."""
    mapping = _MAPPING.search(text)
    dashes = _DASHES.search(text)
    return (len(mapping[2]) if mapping else 2, len(dashes[2]) if dashes else 2)


@dataclass(slots=True)
class _Reader:
    """Turns ruamel's nodes into plain values and notes where each one stands."""

    file: Path
    marks: dict[KeyPath, tuple[int, int]] = field(default_factory=dict[KeyPath, tuple[int, int]])
    problems: list[Problem] = field(default_factory=list[Problem])
    nodes: int = 0

    def mapping(self, node: CommentedMap, path: KeyPath, here: tuple[int, int]) -> dict[str, Json]:
        places = cast("_Node", node).lc.data or {}
        plain: dict[str, Json] = {}
        for key, value in cast("_Node", node).items():
            place = places.get(key)
            mark = (place[0] + 1, place[1] + 1) if place else here
            if isinstance(key, bool) or not isinstance(key, str | int):
                self._refuse(path, mark, "a key must be a text.", "Put the key in quotes.")
                continue
            name = str(key).translate(_UNSHIELD)
            self.marks[*path, name] = mark
            plain[name] = self._value(value, (*path, name), mark)
        return plain

    def _value(self, node: object, path: KeyPath, mark: tuple[int, int]) -> Json:
        self.nodes += 1
        if self.nodes > MAX_NODES or len(path) > MAX_DEPTH:
            if not self.problems:
                self._refuse(path, mark, "the file is too large or nested too deeply.", "Repeat less with anchors.")
            return None
        if isinstance(node, TaggedScalar | bytes | bytearray | set) or _tag(node):
            self._refuse(path, mark, "YAML tags such as `!!binary` are not known here.", "Write the plain value.")
            return None
        if isinstance(node, CommentedMap):
            return self.mapping(node, path, mark)
        if isinstance(node, CommentedSeq):
            return self._sequence(node, path, mark)
        return self._scalar(node, path, mark)

    def _sequence(self, node: CommentedSeq, path: KeyPath, here: tuple[int, int]) -> list[Json]:
        places = cast("_Node", node).lc.data or {}
        plain: list[Json] = []
        items: list[object] = list(node)
        for index, value in enumerate(items):
            place = places.get(index)
            mark = (place[0] + 1, place[1] + 1) if place else here
            self.marks[*path, index] = mark
            plain.append(self._value(value, (*path, index), mark))
        return plain

    def _scalar(self, node: object, path: KeyPath, mark: tuple[int, int]) -> Json:
        if node is None or isinstance(node, bool):
            return node
        if isinstance(node, str):
            return str(node).translate(_UNSHIELD)
        if isinstance(node, int):
            return int(node)
        if isinstance(node, float):
            return float(node)
        if isinstance(node, date):
            return node.isoformat()
        self._refuse(path, mark, "this kind of YAML value is not known here.", "Write a text, a number, true or false.")
        return None

    def _refuse(self, path: KeyPath, mark: tuple[int, int], message: str, fix: str) -> None:
        self.problems.append(Problem(self.file, *mark, path, message, fix))


def _tag(node: object) -> bool:
    return isinstance(node, CommentedMap | CommentedSeq) and cast("_Node", node).tag.value is not None
