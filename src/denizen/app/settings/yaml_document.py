"""`denizen.yaml` as text, as a tree with positions, and as a round-trip structure that keeps comments.

`{key: ${NAME}}` is not YAML, and yet what everybody writes. References are therefore shielded before parsing: each
character in them that means something to YAML is replaced by a private one, and put back afterwards. Lines and columns
stay the same.

The parser's own error messages are never passed on: they quote the line, and the line may hold a secret.
`explain_syntax` says instead what is usually behind one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Protocol, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from denizen.app.settings.problem import ConfigProblem, KeyPath, config_error
from denizen.domain.json import Json
from denizen.domain.record import record

MAX_NODES = 20_000
MAX_DEPTH = 40
"""The two limits end reference cycles and files that multiply themselves by aliases."""

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}\n]*)?\}")
_MEANINGFUL = "{}[],:#&*!|>%@`"
_SHIELD = {ord(char): 0xF100 + index for index, char in enumerate(_MEANINGFUL)}
_UNSHIELD = {shielded: char for char, shielded in _SHIELD.items()}


@record
class ConfigDocument:
    """A parsed file. `tree` holds plain values, `root` is ruamel's structure with comments, `marks` has line and column
    of each key from 1. `indent` is how far mappings and the dashes of lists are indented.
    """

    file: Path
    root: object
    tree: Mapping[str, Json]
    marks: Mapping[KeyPath, tuple[int, int]]
    indent: tuple[int, int]

    def locate(self, path: KeyPath) -> tuple[int, int]:
        """Returns the position of a key; for one that is not there, that of the nearest key above it."""
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (1, 1))

    def problem(self, path: KeyPath, message: str, fix: str, *, variable: str = "") -> ConfigProblem:
        line, column = self.locate(path)
        return ConfigProblem(
            file=self.file, line=line, column=column, path=path, message=message, fix=fix, variable=variable
        )

    def has(self, path: KeyPath) -> bool:
        """Returns whether the file has a value there."""
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
    """The positions that ruamel knows: for each key or index [line, column, ...] from 0."""

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


def parse_document(text: str, file: Path) -> ConfigDocument | ConfigProblem:
    """Reads the text of a configuration file. The first fault of the syntax comes back as a problem."""
    root = _load(text, file)
    if isinstance(root, ConfigProblem):
        return root
    if root is None:
        root = CommentedMap()
    if not isinstance(root, CommentedMap):
        message = "the file must hold keys with values."
        return ConfigProblem(
            file=file,
            line=1,
            column=1,
            path=(),
            message=message,
            fix="Write `key: value` lines, such as `server:` with `port: 8650` below.",
        )
    reader = _Reader(file)
    tree = reader.mapping(root, (), (1, 1))
    if reader.problems:
        return reader.problems[0]
    return ConfigDocument(file, root, tree, reader.marks, _indentation(text))


def parse_values(text: str, file: Path) -> Json:
    """Returns the values in a YAML or JSON text of any shape, which people hand over. Raises InvalidInput."""
    root = _load(text, file)
    if isinstance(root, ConfigProblem):
        raise config_error([root])
    reader = _Reader(file)
    values = reader.value(root, (), (1, 1))
    if reader.problems:
        raise config_error(reader.problems[:1])
    return values


def _load(text: str, file: Path) -> object | ConfigProblem:
    """Returns ruamel's structure; the first fault of the syntax as a problem."""
    strange = next((index for index, char in enumerate(text) if ord(char) in _UNSHIELD), None)
    if strange is not None:
        line = text.count("\n", 0, strange) + 1
        return ConfigProblem(
            file=file, line=line, column=1, path=(), message="a private Unicode character.", fix="Take it out."
        )
    try:
        return cast("_Codec", _yaml()).load(_shield(text))
    except MarkedYAMLError as error:
        return explain_syntax(error, text, file)
    except (YAMLError, RecursionError, ValueError):
        return ConfigProblem(
            file=file,
            line=0,
            column=0,
            path=(),
            message="this is not YAML.",
            fix="Check for control characters and for deep nesting.",
        )


def find_value(tree: Json, path: KeyPath) -> Json:
    """Returns the value at a path; None when there is none."""
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
    """Returns the text of a round-trip structure, comments and quotes kept. `indent` as in `ConfigDocument`."""
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
    """Returns how far this file indents mappings and the dashes of lists; two and two when it does not show."""
    mapping = _MAPPING.search(text)
    dashes = _DASHES.search(text)
    return (len(mapping[2]) if mapping else 2, len(dashes[2]) if dashes else 2)


@dataclass(slots=True)
class _Reader:
    """Turns ruamel's nodes into plain values and notes the position of each."""

    file: Path
    marks: dict[KeyPath, tuple[int, int]] = field(default_factory=dict[KeyPath, tuple[int, int]])
    problems: list[ConfigProblem] = field(default_factory=list[ConfigProblem])
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
            plain[name] = self.value(value, (*path, name), mark)
        return plain

    def value(self, node: object, path: KeyPath, mark: tuple[int, int]) -> Json:
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
            plain.append(self.value(value, (*path, index), mark))
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
        self.problems.append(ConfigProblem(self.file, *mark, path, message, fix))


def _tag(node: object) -> bool:
    return isinstance(node, CommentedMap | CommentedSeq) and cast("_Node", node).tag.value is not None


_INDENT = "Indent with spaces, two for each level, and start keys of one group in the same column."
_COLON = "Write `key: value`, with a colon and a space."
_QUOTE = "Put the whole value in quotes."

# (words in the parser's message, message, fix); the first match counts. {opened} is the line where a thing began.
_CAUSES: Sequence[tuple[str, str, str]] = (
    ("unexpected end of stream", "a quote that opens in line {opened} is not closed.", "Close it with the same quote."),
    ("unknown escape character", "a backslash in double quotes starts an escape.", "Use single quotes instead."),
    ("while scanning an alias", "a value that starts with `*` needs quotes.", _QUOTE),
    ("undefined alias", "a value that starts with `*` needs quotes.", _QUOTE),
    ("while scanning an anchor", "a value that starts with `&` needs quotes.", _QUOTE),
    ("while scanning a tag", "a value that starts with `!` needs quotes.", _QUOTE),
    ("cannot start any token", "a value starts with a character that means something else in YAML.", _QUOTE),
    ("could not find expected ':'", "line {opened} has no colon after its key.", _COLON),
    ("flow sequence", "a `[` that opens in line {opened} is not closed, or a comma is missing.", "Close it with `]`."),
    ("flow mapping", "a `{{` that opens in line {opened} is not closed, or a comma is missing.", "Close it with `}`."),
    ("expected <block end>", "this line does not line up with the lines around it.", _INDENT),
    ("a single document", "a second document starts here.", "Keep one document: take out the `---` line."),
)


class _Mark(Protocol):
    line: int
    column: int


class _Fault(Protocol):
    """A parser error, as ruamel does not type it. Lines and columns count from 0."""

    context: str | None
    context_mark: _Mark | None
    problem: str | None
    problem_mark: _Mark | None


def explain_syntax(error: MarkedYAMLError, text: str, file: Path) -> ConfigProblem:
    """Returns the problem behind a parser error, with line and column."""
    lines = text.split("\n")
    fault = cast("_Fault", error)
    mark = _mark(fault.problem_mark) or _mark(fault.context_mark) or (1, 1)
    opened = _mark(fault.context_mark) or mark
    words = f"{fault.context or ''} {fault.problem or ''}"
    if isinstance(error, DuplicateKeyError):
        return _duplicate(words, mark, file)
    tab = _tab_line(lines, mark[0])
    if tab:
        column = lines[tab - 1].index("\t") + 1
        return ConfigProblem(
            file=file,
            line=tab,
            column=column,
            path=(),
            message="a tab character; YAML wants spaces.",
            fix="Replace each tab by two spaces.",
        )
    if "mapping values are not allowed" in words:
        return _misplaced_colon(lines, mark, file)
    for pattern, message, fix in _CAUSES:
        if pattern in words:
            at = opened if "{opened}" in message else mark
            return ConfigProblem(file, *at, (), message.format(opened=opened[0]), fix)
    return ConfigProblem(file, *mark, (), "this is not YAML.", f"{_COLON} {_INDENT}")


def _duplicate(words: str, mark: tuple[int, int], file: Path) -> ConfigProblem:
    found = re.search(r'duplicate key "([^"]*)" with value', words)
    key = f" `{found[1]}`" if found else ""
    return ConfigProblem(file, *mark, (), f"the key{key} is there twice.", "Keep one of the two.")


def _misplaced_colon(lines: Sequence[str], mark: tuple[int, int], file: Path) -> ConfigProblem:
    """Explains a colon in the wrong place. Often the line above is to blame."""
    number = mark[0]
    line = lines[number - 1]
    above = next((n for n in range(number - 1, 0, -1) if _content(lines[n - 1])), 0)
    if above and ":" not in _content(lines[above - 1]):
        return ConfigProblem(
            file=file, line=above, column=1, path=(), message="this line has no colon after its key.", fix=_COLON
        )
    glued = next((n for n in (above, number) if n and re.match(r"\s*[\w.-]+:[^\s/]", lines[n - 1])), 0)
    if glued:
        return ConfigProblem(
            file=file, line=glued, column=1, path=(), message="there must be a space after the colon.", fix=_COLON
        )
    if above and _depth(line) > _depth(lines[above - 1]):
        return ConfigProblem(file, *mark, (), f"this line is indented below line {above}, which has a value.", _INDENT)
    return ConfigProblem(file, *mark, (), "a second colon in one line.", "Put a value that contains `: ` in quotes.")


def _tab_line(lines: Sequence[str], number: int) -> int:
    """Returns the line, this or the one before, that is indented with a tab; 0 for none."""
    for candidate in (number, number - 1):
        if 1 <= candidate <= len(lines) and re.match(r"[^\S\n]*\t|[^#\"']*:[ ]*\t", lines[candidate - 1]):
            return candidate
    return 0


def _content(line: str) -> str:
    return line.partition("#")[0].strip()


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _mark(mark: _Mark | None) -> tuple[int, int] | None:
    return None if mark is None else (mark.line + 1, mark.column + 1)
