"""Changing `denizen.yaml` in place: comments, order and quotes stay, and nothing is written that could not be loaded.

The one door for edits from the web, the command line and set-up. Positions in errors are those of the text that would
have been written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from denizen.app.secrets import SECRETS_FILE, load_secrets, put_secret
from denizen.app.settings.accepted import Settings
from denizen.app.settings.document import Document, parse_document
from denizen.app.settings.files import SECRET_MODE, edit_lock, write_whole
from denizen.app.settings.load import CONFIG_FILE, examine, read_config
from denizen.app.settings.problem import KeyPath, Problem, refusal
from denizen.app.settings.splice import splice_out, splice_value
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json

_PART = re.compile(r'(?:^|\.)(?:"([^"]+)"|([^."\[\]]+))|\[(\d+)\]')


def parse_path(text: str) -> KeyPath:
    """A key path as people write it: `server.port`, `models.overrides."lab/qwen3.5".images`, `gate.rules[0].action`.

    Raises InvalidInput.
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
    """As `set_value`, several in one step: all of them or none."""
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
    with edit_lock(home):
        file = home / SECRETS_FILE
        text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        write_whole(file, put_secret(text, name, value), mode=SECRET_MODE)
    return set_value(home, environment, path, f"${{{name}}}", known_tools=known_tools)


def remove_value(
    home: Path, environment: Mapping[str, str], path: KeyPath, *, known_tools: Collection[str] | None = None
) -> Settings:
    """Takes one key out, so that its default holds. Raises NotFound when it is not there, otherwise as `set_value`."""
    with edit_lock(home):
        text = read_config(home)
        changed = splice_out(text, parse_config(text, home), path)
        return _accept(home, environment, changed, known_tools)


def parse_config(text: str, home: Path) -> Document:
    """Reads a configuration text for editing. Raises InvalidInput when it is not YAML."""
    document = parse_document(text, home / CONFIG_FILE)
    if isinstance(document, Problem):
        raise refusal([document])
    return document


def _accept(home: Path, environment: Mapping[str, str], text: str, known_tools: Collection[str] | None) -> Settings:
    finding = examine(home, text, load_secrets(home, environment), known_tools)
    if finding.settings is None:
        raise refusal(finding.problems)
    write_whole(home / CONFIG_FILE, text)
    return finding.settings
