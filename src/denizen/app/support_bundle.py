"""A report for whoever helps with an installation: findings, versions, the outline of the configuration, and what
happened by the log.

It is made of what is known to be harmless, never of a text with its secrets taken out: words of the program, numbers,
switches and choices that the configuration's schema knows, codes of errors and places in the code. So it has no
messages, memories, documents or names, and no secret wherever one was written. `denizen doctor --bundle FILE` writes
it.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import platform
import re
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from denizen import __version__
from denizen.adapters.log_files import LogFiles
from denizen.app.health import CheckOutcome
from denizen.app.home.environment import read_environment
from denizen.app.settings import CONFIG_FILE, ConfigProblem, find_config_problems
from denizen.app.settings.interpolation import whole_reference
from denizen.app.settings.key_schema import config_schema
from denizen.app.settings.yaml_document import parse_document, write_document
from denizen.domain.errors import DenizenError, NeedsAttention
from denizen.domain.json import Json
from denizen.domain.log import LEVELS, LogEntry, LogFilter

LOG_ENTRIES = 2000
MASK = "***"
OUTLINE_FILE = "configuration.yaml"

Mask = Callable[[str], str]
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_TOLD_FIELDS = frozenset({"code", "family", "method", "outcome", "status"})
"""Fields of the log with a word of the program; of others, only numbers and switches are told."""
_MOST = 10**9
"""Greater numbers may be ids of people and places."""
_HOME_FILES = re.compile(
    rf"{re.escape(CONFIG_FILE)}|secrets\.env|(?:denizen|durable)\.db(?:-wal|-shm|-journal)?|denizen\.sock"
)

_SECRETS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), MASK),
    (re.compile(r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s:/@\"']*:)[^\s@\"']+(?=@)", re.IGNORECASE), rf"\g<keep>{MASK}"),
    (re.compile(r"\b(?:sk|rk|pk|xox[a-z]|gh[a-z]|glpat|github_pat|hf|dnz|AIza|ya29|AKIA|ASIA)[-_.]?[\w-]{12,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
)
"""Shapes of secrets, with what stands in their place: a second net below the first."""


def mask_shapes(text: str) -> str:
    """Returns the text without keys and tokens of well-known shapes, and without passwords in addresses."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


async def build_bundle(home: Path, outcomes: Sequence[CheckOutcome], mask: Mask) -> Mapping[str, str]:
    """Returns the files of the report, by name."""
    files = {
        "doctor.txt": _list_findings(outcomes),
        "versions.txt": _list_versions(),
        "home.txt": _list_sizes(home),
        OUTLINE_FILE: _outline_home(home),
        "log.jsonl": await _read_log(home / "logs"),
    }
    return {name: mask_shapes(mask(text)) for name, text in files.items()}


def write_bundle(file: Path, files: Mapping[str, str]) -> None:
    """Writes them as a tar.gz that only its owner reads. Raises NeedsAttention when it cannot."""
    try:
        file.touch(mode=0o600, exist_ok=False)
        with tarfile.open(file, "w:gz") as archive:
            for name, text in files.items():
                data = text.encode()
                about = tarfile.TarInfo(f"denizen-report/{name}")
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))
    except OSError as error:
        raise NeedsAttention(
            f"The report {file} cannot be written.",
            code="bundle_not_writable",
            why=error.strerror or type(error).__name__,
            fix="Name a file that is not there yet, in a folder that can be written.",
        ) from error


def _list_findings(outcomes: Sequence[CheckOutcome]) -> str:
    """Returns the kinds of the checks with codes: what they say quotes names, addresses and errors of others."""
    rows: list[str] = []
    for each in outcomes:
        rows += [f"{finding.severity:<8} {each.kind} {_code(finding.code)}".rstrip() for finding in each.findings]
        if each.error is not None:
            rows.append(f"failed   {each.kind} {_code(each.error.code)} {each.error.family}")
    return "".join(f"{row}\n" for row in rows)


def _code(code: str) -> str:
    return code if _CODE.fullmatch(code) else ""


def _list_versions() -> str:
    packages = sorted({f"{each.name}=={each.version}" for each in importlib.metadata.distributions()}, key=str.lower)
    head = [f"denizen {__version__}", f"Python {sys.version}", f"{platform.system()} {platform.release()}"]
    return "\n".join([*head, platform.machine(), "", *packages]) + "\n"


def _list_sizes(home: Path) -> str:
    """Sizes and modes of Denizen's own files in the home folder; others have names that people gave."""
    found = [each for each in sorted(home.glob("*")) if _HOME_FILES.fullmatch(each.name)]
    return "".join(f"{each.stat().st_size:>14} {each.stat().st_mode & 0o7777:04o} {each.name}\n" for each in found)


# --- the configuration ---------------------------------------------------------------------------------------------


def _outline_home(home: Path) -> str:
    file = home / CONFIG_FILE
    if not file.is_file():
        return "# There is no configuration.\n"
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return "# The configuration cannot be read.\n"
    try:
        problems = find_config_problems(home, read_environment())
        told = "".join(f"# A problem in line {each.line}, column {each.column}.\n" for each in problems)
    except DenizenError as error:
        told = f"# It was not checked: {_code(error.code)}\n"
    return told + outline_configuration(text)


def outline_configuration(text: str) -> str:
    """Returns the outline of a configuration, which may be faulty: the keys that the schema knows, switches, numbers
    with bounds, choices, and which variables are named. Names that people gave are numbered, so that one can see where
    each is used; everything else is masked.
    """
    document = parse_document(text, Path(CONFIG_FILE))
    if isinstance(document, ConfigProblem):
        return f"# It is not YAML in line {document.line}, column {document.column}.\n"
    outline = _Outline()
    outline.number_names(document.tree)
    return write_document(outline.show(document.tree, [config_schema()]), (2, 2))


class _Outline:
    def __init__(self) -> None:
        self._known = frozenset(_list_properties(config_schema()))
        self._names: dict[str, str] = {}

    def number_names(self, node: Json) -> None:
        if isinstance(node, Mapping):
            for key, value in node.items():
                if key not in self._known:
                    self._names.setdefault(key, f"name-{len(self._names) + 1}")
                self.number_names(value)
        elif isinstance(node, list):
            for each in node:
                self.number_names(each)

    def show(self, node: Json, schemas: Sequence[dict[str, Any]]) -> Json:
        """`schemas` are those that may be meant at this place."""
        options = list(_resolve(schemas))
        if isinstance(node, Mapping):
            return {
                self._names.get(key, key): self.show(value, [below for each in options for below in _below(each, key)])
                for key, value in node.items()
            }
        if isinstance(node, list):
            items = [each["items"] for each in options if "items" in each]
            return [self.show(each, items) for each in node]
        if node is None or isinstance(node, bool):
            return node
        if isinstance(node, str):
            return self._show_text(node, options)
        is_bounded = any(each.get("type") in ("integer", "number") and _is_bounded(each) for each in options)
        return node if is_bounded and isinstance(node, int | float) and abs(node) < _MOST else MASK

    def _show_text(self, text: str, options: Sequence[dict[str, Any]]) -> str:
        if text == "" or any(text in each.get("enum", ()) or text == each.get("const") for each in options):
            return text
        reference = whole_reference(text)
        if reference is not None and _VARIABLE.fullmatch(reference.name):
            return f"${{{reference.name}}}" if reference.default is None else f"${{{reference.name}:-{MASK}}}"
        return self._names.get(text, MASK)


def _is_bounded(schema: dict[str, Any]) -> bool:
    return bool({"maximum", "exclusiveMaximum", "le", "lt", "enum"} & schema.keys())


def _resolve(schemas: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in schemas:
        if "$ref" in each:
            yield from _resolve([config_schema()["$defs"][each["$ref"].rpartition("/")[2]]])
        elif "anyOf" in each:
            yield from _resolve(each["anyOf"])
        else:
            yield each


def _below(schema: dict[str, Any], key: str) -> Sequence[dict[str, Any]]:
    found = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return [cast("dict[str, Any]", found)] if isinstance(found, dict) else []


def _list_properties(node: object) -> Iterator[str]:
    """Returns the keys that some part of the schema knows."""
    if isinstance(node, dict):
        schema = cast("dict[str, Any]", node)
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        for each in schema.values():
            yield from _list_properties(each)
    elif isinstance(node, list):
        for each in cast("list[object]", node):
            yield from _list_properties(each)


# --- the log -------------------------------------------------------------------------------------------------------


async def _read_log(folder: Path) -> str:
    try:
        entries = await LogFiles(folder).search(LogFilter(), limit=LOG_ENTRIES)
    except DenizenError as error:
        return json.dumps({"unreadable": _code(error.code)}) + "\n"
    return "".join(f"{json.dumps(outline_entry(each))}\n" for each in reversed(entries))


def outline_entry(entry: LogEntry) -> Mapping[str, Json]:
    """Returns what of an entry holds no words of anybody: when, which event by its name in the code, codes, numbers and
    switches, and the places in the code that a traceback leads to.
    """
    told: dict[str, Json] = {"at": entry.at.isoformat(), "level": entry.level if entry.level in LEVELS else MASK}
    told["event"] = entry.name or "(a line of others)"
    if entry.name:
        told |= {name: value for name, value in entry.fields.items() if _is_harmless(name, value)}
    return {**told, "frames": list(entry.frames)} if entry.frames else told


def _is_harmless(name: str, value: Json) -> bool:
    if isinstance(value, str):
        return name in _TOLD_FIELDS and re.fullmatch(r"[A-Za-z][A-Za-z_0-9]{0,39}", value) is not None
    is_number = isinstance(value, bool | int | float)
    return is_number and abs(value) < _MOST and _CODE.fullmatch(name) is not None
