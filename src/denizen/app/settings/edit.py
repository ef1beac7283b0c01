"""Changes of `denizen.yaml` in place, for the web, the command line and set-up: comments, order and quotes stay, and
nothing is written that could not be loaded.

ruamel's own round trip moves a comment along with the value before it, and loses it when that value is replaced. So
only the lines of the entry are rewritten here, and the result is read back: it must be the old tree with the one
change. Where that fails (a layout that lines cannot express, such as merge keys), the round trip does it. Positions in
errors are those of the text that would have been written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString

from denizen.app.home.files import SECRET_MODE, edit_lock, restore_on_failure, write_whole
from denizen.app.home.secrets import SECRETS_FILE, drop_secret, load_secrets, put_secret
from denizen.app.settings.effective import Settings
from denizen.app.settings.load import CONFIG_FILE, examine, read_config
from denizen.app.settings.problem import ConfigProblem, KeyPath, config_error, format_path
from denizen.app.settings.yaml_document import ConfigDocument, find_value, parse_document, parse_values, write_document
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.json import Json


def splice_value(text: str, document: ConfigDocument, path: KeyPath, value: Json) -> str:
    """Returns the text with one value set; missing groups above it are created. Raises NotFound when the path leads
    through a value that is not a group, Conflict when the file cannot be edited.
    """
    wanted = with_value(document.tree, path, value)
    entry, group = _find_entry(document, path)
    editor = _Editor(text.split("\n"), document)
    content = find_value(wanted, entry)
    spliced = editor.replace(entry, content) if document.has(entry) else editor.insert(group, entry, content)
    return _verified(spliced, document, wanted)


def splice_out(text: str, document: ConfigDocument, path: KeyPath) -> str:
    """Returns the text without one entry. A group that loses its last entry stays without a value, with its comments in
    place. Raises NotFound, Conflict.
    """
    if not document.has(path):
        raise no_such(path)
    wanted = without_value(document.tree, path)
    editor = _Editor(text.split("\n"), document)
    entry, group = _find_entry(document, path)
    if entry == path and not editor.starts_line(entry):
        entry = group  # the first key of an item stands behind its dash: the item is written anew
    if entry != path:
        return _verified(editor.replace(entry, find_value(wanted, entry)), document, wanted)
    if group and not find_value(wanted, group):
        wanted = with_value(document.tree, group, None)
    return _verified(editor.remove(path), document, wanted)


def read_block(text: str, document: ConfigDocument, path: KeyPath) -> str:
    """Returns the lines of one entry below its key, with their comments, without indentation; empty where there is
    none.
    """
    if not document.has(path):
        return ""
    editor = _Editor(text.split("\n"), document)
    below = editor.read_below(path) if _find_entry(document, path)[0] == path else []
    value = find_value(document.tree, path)
    if below and parse_values("\n".join(below), document.file) == value:
        return "\n".join([*below, ""])
    return write_document(_structure(value, flow=False), (2, 0)) if value else ""


def splice_block(text: str, document: ConfigDocument, path: KeyPath, block: str) -> str:
    """Returns the text with one entry set to what a text in YAML says, whose comments stay. Raises as `splice_value`,
    and InvalidInput for what is not YAML.
    """
    value = parse_values(block, document.file)
    spliced = splice_value(text, document, path, value)
    again = parse_document(spliced, document.file)
    if isinstance(again, ConfigProblem) or not value or _find_entry(again, path)[0] != path:
        return spliced
    written = _Editor(spliced.split("\n"), again).replace_below(path, block.strip("\n").split("\n"))
    return written if _reads_as(written, again, again.tree) else spliced


def with_value(tree: Json, path: KeyPath, value: Json) -> Json:
    """Returns the tree with one value set; nothing is changed in place. Raises NotFound."""
    return _with(tree, path, 0, value)


def without_value(tree: Json, path: KeyPath) -> Json:
    """Returns the tree without one entry."""
    parent = find_value(tree, path[:-1])
    rest: Json = (
        {key: child for key, child in parent.items() if key != path[-1]}
        if isinstance(parent, Mapping)
        else [child for index, child in enumerate(_items(parent)) if index != path[-1]]
    )
    return rest if len(path) == 1 else with_value(tree, path[:-1], rest)


def no_such(path: KeyPath) -> NotFound:
    return NotFound(
        f"There is no setting at {format_path(path)}.",
        code="setting_unknown",
        why="A part of the path is not there, or is a single value and no group.",
        fix="Look at `denizen config show` for what there is.",
    )


def _with(node: Json, path: KeyPath, depth: int, value: Json) -> Json:
    if depth == len(path):
        return value
    part = path[depth]
    if isinstance(part, int):
        items = list(_items(node))
        if not isinstance(node, list) or part > len(items):
            raise no_such(path[: depth + 1])
        below = items[part] if part < len(items) else None
        items[part : part + 1] = [_with(below, path, depth + 1, value)]
        return items
    if node is not None and not isinstance(node, Mapping):
        raise no_such(path[:depth])
    group = dict(node or {})
    group[part] = _with(group.get(part), path, depth + 1, value)
    return group


def _find_entry(document: ConfigDocument, path: KeyPath) -> tuple[KeyPath, KeyPath]:
    """Returns the entry to write, as far down as the file has its groups in lines of their own, and the group it is
    in.
    """
    node: object = document.root
    entry, group = path[:1], path[:0]
    for index, part in enumerate(path):
        if index and not (isinstance(node, CommentedMap | CommentedSeq) and len(node) and not _is_flow(node)):
            break
        entry, group = path[: index + 1], path[:index]
        node = _below(node, part)
    return entry, group


def _below(node: object, part: str | int) -> object:
    if isinstance(node, CommentedMap) and isinstance(part, str):
        return cast("Mapping[str, object]", node).get(part)
    if isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
        return cast("Sequence[object]", node)[part]
    return None


def _verified(spliced: str, document: ConfigDocument, wanted: Json) -> str:
    """Returns the spliced text if it reads as wanted, else the wanted tree as the round trip writes it."""
    if _reads_as(spliced, document, wanted):
        return spliced
    written = write_document(_merged(document.root, wanted if isinstance(wanted, Mapping) else {}), document.indent)
    if not _reads_as(written, document, wanted):
        raise Conflict(
            "This change cannot be made without touching the rest of the file.",
            code="config_not_editable",
            fix=f"Make it in {document.file} with an editor.",
        )
    return written


def _reads_as(text: str, document: ConfigDocument, wanted: Json) -> bool:
    again = parse_document(text, document.file)
    return not isinstance(again, ConfigProblem) and again.tree == wanted


def _merged(root: object, values: Mapping[str, Json]) -> object:
    """Returns the round-trip structure with the values of another tree, touched only where they differ."""
    target = cast("dict[str, object]", root)
    for key in [key for key in target if key not in values]:
        del target[key]
    for key, value in values.items():
        current = target.get(key)
        if isinstance(current, CommentedMap) and isinstance(value, Mapping):
            _merged(current, value)
        elif key not in target or current != value:
            target[key] = _structure(value)
    return root


@dataclass(slots=True)
class _Editor:
    """Rewrites whole lines. Line numbers and columns count from 1, as in `ConfigDocument.marks`."""

    lines: list[str]
    document: ConfigDocument

    def insert(self, group: KeyPath, entry: KeyPath, value: Json) -> str:
        """Puts a new entry at the end of its group, before the comments about the next one."""
        siblings = [path for path in self.document.marks if path[:-1] == group]
        if not siblings:
            return "\n".join([*_without_blank_end(self.lines), *self._blank(group), *self._entry(entry, value), ""])
        column = self._column(siblings[0])
        last = max(siblings, key=self.document.marks.__getitem__)
        at = self._after_comments(self._last_line(last), column)
        new = [" " * (column - 1) + line for line in self._entry(entry, value)]
        return "\n".join([*self.lines[:at], *self._blank(group), *new, *(self.lines[at:] or [""])])

    def replace(self, entry: KeyPath, value: Json) -> str:
        """Rewrites an entry. The comment on its first line stays."""
        line, column = self.document.locate(entry)[0], self._column(entry)
        last = self._last_line(entry)
        old = self.lines[line - 1]
        node = _node(self.document.root, entry)
        styled = isinstance(node, CommentedMap | CommentedSeq) and len(node) > 0
        new = self._entry(entry, value, flow=_is_flow(node) if styled else None)
        comment = _find_comment(old)
        first = old[: column - 1] + new[0] + (f"  {comment}" if comment else "")
        rest = [" " * (column - 1) + each if each else "" for each in new[1:]]
        return "\n".join([*self.lines[: line - 1], first, *rest, *self.lines[last:]])

    def read_below(self, entry: KeyPath) -> list[str]:
        """Returns the lines of an entry after its first, without indentation."""
        line = self.document.locate(entry)[0]
        own = self.lines[line : self._last_line(entry)]
        depth = min((_depth(each) for each in own if each.strip()), default=0)
        return [each[depth:] for each in own]

    def replace_below(self, entry: KeyPath, block: Sequence[str]) -> str:
        """Writes these lines in the place of the value of an entry. The comment on its first line stays."""
        line, column = self.document.locate(entry)[0], self._column(entry)
        comment = _find_comment(self.lines[line - 1])
        key = write_document(CommentedMap({entry[-1]: None}), self.document.indent).rstrip("\n")
        first = self.lines[line - 1][: column - 1] + key + (f"  {comment}" if comment else "")
        rest = [" " * (column + 1) + each if each.strip() else "" for each in block]
        return "\n".join([*self.lines[: line - 1], first, *rest, *self.lines[self._last_line(entry) :]])

    def starts_line(self, entry: KeyPath) -> bool:
        return not self.lines[self.document.locate(entry)[0] - 1][: self._column(entry) - 1].strip()

    def remove(self, entry: KeyPath) -> str:
        line, _ = self.document.locate(entry)
        return "\n".join([*self.lines[: line - 1], *self.lines[self._last_line(entry) :]])

    def _entry(self, entry: KeyPath, value: Json, *, flow: bool | None = None) -> list[str]:
        """Returns the lines of one entry, `key: value` or `- value`, without indentation."""
        node = _structure(value, flow=flow)
        if isinstance(entry[-1], int):
            written = write_document(CommentedSeq([node]), (self.document.indent[0], 0))
        else:
            written = write_document(CommentedMap({entry[-1]: node}), self.document.indent)
        return written.rstrip("\n").split("\n")

    def _column(self, entry: KeyPath) -> int:
        """Returns the column of an entry's key, or of an item's dash."""
        line, column = self.document.locate(entry)
        dash = self.lines[line - 1].rfind("-", 0, column - 1) if isinstance(entry[-1], int) else -1
        return dash + 1 if dash >= 0 else column

    def _last_line(self, entry: KeyPath) -> int:
        """Returns the last line of an entry. Comments and blank lines after it are not its own."""
        here, column = self.document.locate(entry), self._column(entry)
        others = [mark for path, mark in self.document.marks.items() if path[: len(entry)] != entry and mark > here]
        end = min(others)[0] - 1 if others else len(self.lines)
        is_text = isinstance(find_value(self.document.tree, entry), str)
        while end > here[0]:
            line = self.lines[end - 1]
            own = is_text and _depth(line) >= column and line.strip()  # a line of a block text, not a comment
            if own or (line.strip() and not line.lstrip().startswith("#")):
                break
            end -= 1
        return end

    def _after_comments(self, line: int, column: int) -> int:
        """Returns the line after the comments that are indented like the group: they belong to it."""
        at = line
        for number in range(line + 1, len(self.lines) + 1):
            text = self.lines[number - 1]
            if text.strip() and not (text.lstrip().startswith("#") and _depth(text) >= column - 1):
                break
            if text.strip():
                at = number
        return at

    def _blank(self, group: KeyPath) -> list[str]:
        """Returns a blank line between sections, if the file has blank lines already."""
        return [""] if not group and "" in _without_blank_end(self.lines) else []


class _Flow(Protocol):
    """The style of a ruamel collection, which it does not type itself."""

    def flow_style(self) -> bool | None: ...

    def set_flow_style(self) -> None: ...


class _StyledNode(Protocol):
    fa: _Flow


def _is_flow(node: object) -> bool:
    return isinstance(node, CommentedMap | CommentedSeq) and bool(cast("_StyledNode", node).fa.flow_style())


def _structure(value: Json, *, flow: bool | None = None) -> object:
    """Returns a value as round-trip nodes, in brackets (`flow`) or in lines. None chooses: lists of single values in
    brackets, everything else in lines.
    """
    if isinstance(value, str):
        return LiteralScalarString(value) if "\n" in value.rstrip("\n") and not flow else value
    if isinstance(value, Mapping):
        group = CommentedMap()
        for key, child in value.items():
            cast("dict[str, object]", group)[key] = _structure(child, flow=flow or None)
        if flow:
            cast("_StyledNode", group).fa.set_flow_style()
        return group
    if isinstance(value, list):
        single = not any(isinstance(child, Mapping | list) for child in value)
        in_brackets = single if flow is None else flow
        items = CommentedSeq(_structure(child, flow=in_brackets or None) for child in value)
        if in_brackets:
            cast("_StyledNode", items).fa.set_flow_style()
        return items
    return value


def _node(root: object, path: KeyPath) -> object:
    node = root
    for part in path:
        node = _below(node, part)
    return node


def _items(node: Json) -> Sequence[Json]:
    return node if isinstance(node, list) else ()


def _find_comment(line: str) -> str:
    """Returns the comment at the end of a line; a `#` in quotes or within a word is none."""
    quote = ""
    for index, char in enumerate(line):
        before = line[index - 1] if index else " "
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and before in " [{,:":
            quote = char
        elif char == "#" and before in " \t":
            return line[index:]
    return ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _without_blank_end(lines: Sequence[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return list(lines[:end])


_PART = re.compile(r'(?:^|\.)(?:"([^"]+)"|([^."\[\]]+))|\[(\d+)\]')


def parse_path(text: str) -> KeyPath:
    """Parses a key path as people write it: `server.port`, `models.overrides."lab/qwen3.5".images`,
    `gate.rules[0].action`. Raises InvalidInput.
    """
    path: list[str | int] = []
    end = 0
    for match in _PART.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        path.append(int(match[3]) if match[3] else match[1] or match[2])
    if not path or end != len(text) or isinstance(path[0], int):
        raise InvalidInput(
            "This is not the path of a setting.",
            code="path_invalid",
            fix='Write it like server.port; put a part that has dots in double quotes, as in models.overrides."a/b.c".',
        )
    return tuple(path)


def set_values(
    home: Path,
    environment: Mapping[str, str],
    values: Mapping[KeyPath, Json],
    *,
    known_tools: Collection[str] | None = None,
) -> Settings:
    """Sets several values in one step, all of them or none. Raises as `set_value`."""
    with edit_lock(home):
        text = read_config(home)
        for path, value in values.items():
            text = splice_value(text, parse_config(text, home), path, value)
        return _accept(home, environment, text, known_tools)


def set_value(
    home: Path,
    environment: Mapping[str, str],
    path: KeyPath,
    value: Json,
    *,
    known_tools: Collection[str] | None = None,
) -> Settings:
    """Sets one value, creating the groups above it, and returns the settings then in effect.

    A `${NAME}` in a text is a reference. Raises InvalidInput (`config_invalid`) and writes nothing when the file as a
    whole would not be valid, NotFound when the path leads through something that is not a group.
    """
    return set_values(home, environment, {path: value}, known_tools=known_tools)


def set_secret(
    home: Path,
    environment: Mapping[str, str],
    path: KeyPath,
    secret: tuple[str, str],
    *,
    known_tools: Collection[str] | None = None,
) -> Settings:
    """Writes the secret, a variable with its value, into `secrets.env`, and has the setting refer to it. Raises as
    `set_value`, and InvalidInput for a value that fits on no line.
    """
    name, value = secret
    file = home / SECRETS_FILE
    with edit_lock(home), restore_on_failure(file):
        text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        write_whole(file, put_secret(text, name, value), mode=SECRET_MODE)
        changed = read_config(home)
        changed = splice_value(changed, parse_config(changed, home), path, f"${{{name}}}")
        return _accept(home, environment, changed, known_tools)


def remove_secret(
    home: Path, environment: Mapping[str, str], path: KeyPath, name: str, *, known_tools: Collection[str] | None = None
) -> Settings:
    """Removes the setting for which `set_secret` stored the secret `name`, with the groups that hold nothing else, and
    then the secret from `secrets.env` unless the configuration still names it. Raises as `remove_value`.
    """
    file = home / SECRETS_FILE
    with edit_lock(home), restore_on_failure(home / CONFIG_FILE):
        text = read_config(home)
        changed = _splice_out_whole(text, home, path)
        settings = _accept(home, environment, changed, known_tools)
        stored = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        left = drop_secret(stored, name)
        if left != stored and not re.search(rf"\b{re.escape(name)}\b", changed):
            write_whole(file, left, mode=SECRET_MODE)
    return settings


def _splice_out_whole(text: str, home: Path, path: KeyPath) -> str:
    """Returns the text without one entry and the groups above it that it leaves empty. Comments stay, and so does the
    last group: an empty configuration is taken for a lost one.
    """
    changed = splice_out(text, parse_config(text, home), path)
    for depth in range(len(path) - 1, 0, -1):
        document = parse_config(changed, home)
        if find_value(document.tree, path[:depth]) or (depth == 1 and len(document.tree) == 1):
            break
        changed = splice_out(changed, document, path[:depth])
    return changed


def remove_value(
    home: Path, environment: Mapping[str, str], path: KeyPath, *, known_tools: Collection[str] | None = None
) -> Settings:
    """Removes one key, so that its default applies. Raises NotFound when it is not there, otherwise as `set_value`."""
    with edit_lock(home):
        text = read_config(home)
        changed = splice_out(text, parse_config(text, home), path)
        return _accept(home, environment, changed, known_tools)


def parse_config(text: str, home: Path) -> ConfigDocument:
    """Reads a configuration text for editing. Raises InvalidInput when it is not YAML."""
    document = parse_document(text, home / CONFIG_FILE)
    if isinstance(document, ConfigProblem):
        raise config_error([document])
    return document


def _accept(home: Path, environment: Mapping[str, str], text: str, known_tools: Collection[str] | None) -> Settings:
    finding = examine(home, text, load_secrets(home, environment), known_tools)
    if finding.settings is None:
        raise config_error(finding.problems)
    write_whole(home / CONFIG_FILE, text)
    return finding.settings
