"""One skill's folder, read into memory once, and its manifest: `skill.yaml` of a Python skill, or the front matter of a
SKILL.md.

The same bytes are hashed, checked and run, whatever happens to the files meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tokenize
from collections.abc import Iterator, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.skill.manifest import SkillManifest, parse_front_matter, parse_manifest

SKILLS_FOLDER = "skills"
MANIFEST_FILE = "skill.yaml"
MARKDOWN_FILE = "SKILL.md"
MAX_FILES = 200
MAX_BYTES = 2_000_000
MAX_DEPTH = 6

_PASSED_OVER = frozenset({"__pycache__", ".git", ".DS_Store", ".ruff_cache", ".pytest_cache"})
"""Files of other programs. They are never loaded, so they do not count as content."""


@record
class SkillFolder:
    """The content of a skill. `files` maps paths below the folder, with slashes, to their bytes; `sha256` is taken of
    all of them.
    """

    name: str
    path: Path
    files: Mapping[str, bytes]
    sha256: str

    @property
    def is_markdown(self) -> bool:
        return MARKDOWN_FILE in self.files and MANIFEST_FILE not in self.files

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.files.values()))


def list_skill_names(home: Path) -> list[str]:
    """Returns the folders below `skills/`, by name, without those that begin with a dot."""
    place = home / SKILLS_FOLDER
    if not place.is_dir():
        return []
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith((".", "_")))


def load_folder(home: Path, name: str) -> SkillFolder:
    """Raises NotFound when there is no such folder, InvalidInput (`bad_skill`) for links, devices and too much."""
    path = home / SKILLS_FOLDER / name
    if path.is_symlink():
        raise _bad(f"{path} is a link", "copy what it leads to: a link can be turned elsewhere unnoticed")
    if not path.is_dir():
        raise NotFound(
            f"There is no skill '{name}' in {home / SKILLS_FOLDER}.",
            code="skill_unknown",
            fix="`denizen skill list` shows those there are; `denizen skill new NAME` begins one.",
            skill=name,
        )
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    try:
        for relative in _walk(path, "", MAX_DEPTH):
            data = _read(path / relative, left)
            left -= len(data)
            files[relative] = data
            if left < 0 or len(files) > MAX_FILES:
                raise _bad(
                    f"it has more than {MAX_FILES} files or {MAX_BYTES // 1_000_000} MB", "keep data out of the folder"
                )
    except OSError as error:
        raise _bad(f"it cannot be read: {error.strerror}", "let Denizen's user read all of it") from error
    return SkillFolder(name, path, files, hash_files(files))


def hash_files(files: Mapping[str, bytes]) -> str:
    """Returns the sha256 of names and contents: a renamed file is a change too."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def _walk(folder: Path, above: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.name in _PASSED_OVER or entry.name.endswith(".pyc"):
            continue
        if entry.is_symlink():
            raise _bad(f"`{name}` is a link", "copy what it leads to: a link can be turned elsewhere unnoticed")
        if entry.is_dir():
            if not depth:
                raise _bad("its folders lie too deep in each other", f"{MAX_DEPTH} levels at most")
            yield from _walk(Path(entry.path), f"{name}/", depth - 1)
        else:
            yield name


def _read(file: Path, left: int) -> bytes:
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _bad(f"`{file.name}` is no plain file", "take it out of the folder")
        return stream.read(left + 1)


def _bad(what: str, fix: str) -> InvalidInput:
    return InvalidInput(what, code="bad_skill", fix=fix)


MAX_MANIFEST_BYTES = 64_000


def read_folder_manifest(folder: SkillFolder) -> SkillManifest:
    """Raises InvalidInput (`bad_skill`) that names the file."""
    try:
        if folder.is_markdown:
            return parse_front_matter(_parse(split_front_matter(folder)[0]), folder=folder.name)
        if MANIFEST_FILE not in folder.files:
            raise InvalidInput(
                f"it has neither {MANIFEST_FILE} nor {MARKDOWN_FILE}",
                code="bad_skill",
                fix="`denizen skill new NAME` writes a whole example",
            )
        manifest = parse_manifest(_parse(_text(folder, MANIFEST_FILE)), folder=folder.name)
        if manifest.entry not in folder.files:
            fix = f"write the skill into {manifest.entry}, or name another file as `entry`"
            raise InvalidInput(f"there is no {manifest.entry}", code="bad_skill", fix=fix)
    except InvalidInput as error:
        file = MARKDOWN_FILE if folder.is_markdown else MANIFEST_FILE
        raise InvalidInput(f"{file}: {error.message}", code="bad_skill", fix=error.fix) from error
    return manifest


def split_front_matter(folder: SkillFolder) -> tuple[str, str]:
    """Returns the front matter and the body of a skill's SKILL.md. Raises InvalidInput."""
    lines = _text(folder, MARKDOWN_FILE).replace("\r\n", "\n").split("\n")
    if lines[0].strip() == "---" and "---" in (rest := [line.rstrip() for line in lines[1:]]):
        end = rest.index("---") + 1
        return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip()
    raise InvalidInput(
        "it does not begin with front matter",
        code="bad_skill",
        fix="write a line ---, then `name: ...` and `description: ...`, then --- again",
    )


def decode_source(file: str, data: bytes) -> str:
    """Returns the text of a Python file, which is what a review shows and what is compiled. Raises InvalidInput
    (`bad_skill`) where its bytes ask Python to read another text, in which a comment can be code.
    """
    fix = "save it as UTF-8, without a line that names another encoding"
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        text = data.decode("utf-8-sig")
    except (SyntaxError, UnicodeDecodeError):
        raise InvalidInput(f"{file} is no UTF-8 text", code="bad_skill", fix=fix) from None
    if encoding not in ("utf-8", "utf-8-sig"):
        raise InvalidInput(f"{file} says that its encoding is {encoding}", code="bad_skill", fix=fix)
    return text


def _text(folder: SkillFolder, file: str) -> str:
    data = folder.files[file]
    if file == MANIFEST_FILE and len(data) > MAX_MANIFEST_BYTES:
        raise InvalidInput("it is too long", code="bad_skill", fix="shorten it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("it is no UTF-8 text", code="bad_skill", fix="save it as UTF-8") from None


def _parse(text: str) -> Json:
    try:
        parsed: object = cast("Any", YAML(typ="safe", pure=True)).load(StringIO(text))
    except (YAMLError, RecursionError, ValueError) as error:
        where = str(getattr(error, "problem", "") or "it cannot be read")
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise InvalidInput(f"it is no YAML: {where}{line}", code="bad_skill", fix="correct it there") from error
    return cast("Json", parsed)
