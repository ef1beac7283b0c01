"""Notes that an agent writes down for itself, as Markdown files in its own folder that people can read and edit too.

Notes of a room stay in that room, those of a direct message between the two, those of an API key or a web user with
them: what was noted in private must not be read where others read. What is to be known everywhere is memory, which
knows who may hear of it. Only the operator's notes lie in the agent's folder itself.

Notes may come from anybody's turn, so their text counts as written by others.

Every file is opened relative to the folder, without following links, so that no name and no link leads out of it.
Changes are atomic, one at a time across processes, and happen once per idempotency key: before a note is replaced, the
journal records the key and the digest of the new text; the next change sees from the note whether the replacement
happened.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from denizen.builtin_skills.paging import read_part
from denizen.skill import Effect, Param, PrincipalKind, Skill, Taint, Tier, ToolContext, ToolError, ToolOutput

MAX_NOTES = 200
MAX_NOTE_BYTES = 64 * 1024
MAX_READ_BYTES = 1024 * 1024
KEYS_KEPT = 200

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_JOURNAL = ".journal.json"
_LOCK = ".lock"
_NEXT = ".next"


def parse_note_name(text: str) -> str:
    """Returns the name without `.md`. Raises ToolError for anything but letters, digits, `_` and `-`."""
    name = text.removesuffix(".md")
    if not _NAME.fullmatch(name):
        raise ToolError(f"`{text[:80]}` cannot be a note's name: use up to 64 letters, digits, _ and -.")
    return name


@dataclass(frozen=True, slots=True)
class Note:
    name: str
    size_bytes: int


@dataclass(slots=True)
class _Journal:
    """The `keys` of changes that were made, oldest first, and the key, file and digest of the latest change."""

    keys: list[str] = field(default_factory=list[str])
    key: str = ""
    file: str = ""
    digest: str = ""


class Notebook:
    """A folder of Markdown notes. It need not exist yet: the first change makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_notes(self) -> list[Note]:
        """Returns the notes by name. Links, folders and files that could not be notes are left out."""
        if not self._folder.is_dir():
            return []
        notes: list[Note] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name.removesuffix(".md")
                if entry.name == f"{name}.md" and _NAME.fullmatch(name) and entry.is_file(follow_symlinks=False):
                    notes.append(Note(name, entry.stat(follow_symlinks=False).st_size))
        return sorted(notes, key=lambda note: note.name)

    def find_text(self, name: str) -> str | None:
        """Returns the first MAX_READ_BYTES of a note; None when there is none. Raises ToolError for a link."""
        if not self._folder.is_dir():
            return None
        with _opened(self._folder) as folder:
            data = _read(folder, f"{parse_note_name(name)}.md")
        return None if data is None else data.decode(errors="replace")

    def write(self, name: str, text: str, *, key: str) -> bool:
        """Replaces the note or makes it. Returns False when this very change was made before."""
        return self._change(parse_note_name(name), key, lambda _: _line(text))

    def append(self, name: str, text: str, *, key: str) -> bool:
        """Adds a paragraph at the end of the note or makes it. Returns False when this very change was made before."""

        def edit(before: bytes) -> bytes:
            return before + (b"" if not before or before.endswith(b"\n") else b"\n") + _line(text)

        return self._change(parse_note_name(name), key, edit)

    def _change(self, name: str, key: str, edit: Callable[[bytes], bytes]) -> bool:
        """Changes a note once for each key; without a key each call is a change. Raises ToolError when the note or
        the folder would grow too large.
        """
        file = f"{name}.md"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The journal is written before the note, so that a crash in between can be settled by the digest.
        with _opened(self._folder) as folder, _locked(folder):
            journal = _load_journal(folder)
            if key and key in journal.keys:
                return False
            before = _read(folder, file)
            if before is None and len(self.list_notes()) >= MAX_NOTES:
                raise ToolError(f"There are {MAX_NOTES} notes already: add to one of them.")
            after = edit(before or b"")
            if len(after) > MAX_NOTE_BYTES:
                raise ToolError(f"The note `{name}` would pass {MAX_NOTE_BYTES} bytes: shorten it or begin another.")
            journal.key, journal.file, journal.digest = key, file, _digest(after)
            _save_journal(folder, journal)
            _replace(folder, file, after)
        return True


def _line(text: str) -> bytes:
    return text.strip("\n").rstrip().encode(errors="replace") + b"\n"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _opened(path: Path) -> Generator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _locked(folder: int) -> Generator[None]:
    """Allows one writer at a time, in all threads and processes. The lock goes with the descriptor, also at a crash."""
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _read(folder: int, file: str) -> bytes | None:
    """Returns None when there is no such file. Raises ToolError for links, folders and pipes."""
    try:
        # Without O_NONBLOCK a pipe put here under a note's name would hold the thread for ever.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            raise ToolError(f"`{file}` is not a note but a link or a device.") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ToolError(f"`{file}` is not a note but a folder or a device.")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read(MAX_READ_BYTES)
    finally:
        os.close(handle)


def _replace(folder: int, file: str, data: bytes) -> None:
    """Writes the whole file or nothing. The caller holds the lock."""
    with suppress(FileNotFoundError):
        os.unlink(_NEXT, dir_fd=folder)
    handle = os.open(_NEXT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(handle)
    os.replace(_NEXT, file, src_dir_fd=folder, dst_dir_fd=folder)


def _load_journal(folder: int) -> _Journal:
    """Loads the journal and settles the latest change: its key counts as done when the note has the recorded digest.

    Whoever changes notes holds the lock and loads the journal first, so nothing lies between that change and now.
    """
    data = _read(folder, _JOURNAL)
    try:
        journal = _Journal(**json.loads(data)) if data else _Journal()
    except (ValueError, TypeError) as error:
        raise ToolError(
            f"The journal {_JOURNAL} of the notes is damaged; its owner has to repair or delete it."
        ) from error
    if journal.key and _digest(_read(folder, journal.file) or b"") == journal.digest:
        journal.keys = [*journal.keys, journal.key][-KEYS_KEPT:]
    journal.key = ""
    return journal


def _save_journal(folder: int, journal: _Journal) -> None:
    row = {"keys": journal.keys, "key": journal.key, "file": journal.file, "digest": journal.digest}
    _replace(folder, _JOURNAL, json.dumps(row).encode())


HITS_PER_NOTE = 5
SEARCH_CHARS = 3000

skill = Skill("notes", description="The agent's own notes.")

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")

Name = Annotated[str, "letters, digits, _ and -"]
Text = Annotated[str, Param("Markdown", min_length=1, max_length=16_000)]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
def list_notes(context: ToolContext) -> str | ToolOutput:
    """Lists your notes."""
    notes = Notebook(_folder(context)).list_notes()
    if not notes:
        return ToolOutput("There are no notes yet.", is_own=True)
    return "\n".join(f"{note.name} ({note.size_bytes} bytes)" for note in notes)


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
def read_note(context: ToolContext, name: Name, start: Annotated[int, Param("character to begin at", ge=0)] = 0) -> str:
    """Reads one of your notes."""
    notebook = Notebook(_folder(context))
    text = notebook.find_text(name)
    if text is None:
        names = ", ".join(note.name for note in notebook.list_notes()[:30])
        others = f"There are: {names}." if names else "None yet."
        raise ToolError(f"There is no note `{parse_note_name(name)}`. {others}", is_own=not names)
    part, more = read_part(text, start, what=f"The note `{parse_note_name(name)}`")
    return "\n".join(filter(None, (part.rstrip("\n"), more))) or "The note is empty."


@skill.tool(tier=Tier.LIMITED, effects={Effect.MEMORY})
def append_note(context: ToolContext, name: Name, text: Text) -> str:
    """Remembers something for later: adds it to a note, making the note if it is new."""
    added = Notebook(_folder(context)).append(name, text, key=context.idempotency_key)
    return f"Added to `{parse_note_name(name)}`." if added else f"This was added to `{parse_note_name(name)}` already."


@skill.tool(tier=Tier.LIMITED, effects={Effect.MEMORY})
def write_note(context: ToolContext, name: Name, text: Text) -> str:
    """Replaces a whole note, making it if it is new."""
    written = Notebook(_folder(context)).write(name, text, key=context.idempotency_key)
    return f"Wrote `{parse_note_name(name)}`." if written else f"This was written to `{parse_note_name(name)}` already."


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
def search_notes(
    context: ToolContext, words: Annotated[str, Param("all must occur in a line", max_length=200)]
) -> str | ToolOutput:
    """Recalls what was noted: finds lines in your notes."""
    wanted = words.casefold().split()
    if not wanted:
        raise ToolError("Give at least one word to search for.", is_own=True)
    notebook, lines = Notebook(_folder(context)), list[str]()
    for note in notebook.list_notes():
        found = [
            f"{note.name}, line {number}: {line.strip()[:500]}"
            for number, line in enumerate((notebook.find_text(note.name) or "").splitlines(), start=1)
            if all(word in line.casefold() for word in wanted)
        ]
        lines += found[:HITS_PER_NOTE]
    if not lines:
        return ToolOutput(f"No note has a line with: {words}", is_own=True)
    return "\n".join(lines)[:SEARCH_CHARS]


def _folder(context: ToolContext) -> Path:
    """Returns the folder for the notes of this place."""
    principal, place = context.principal, context.place
    match principal.kind:
        case PrincipalKind.LOCAL:
            return context.folder
        case PrincipalKind.PLATFORM_USER:
            return context.folder / "rooms" / _plain(f"{place.platform}-{place.thread or place.channel}")
        case _:
            return context.folder / "people" / _plain(principal.key)


def _plain(text: str) -> str:
    """Returns the text as the name of a folder; a name that had to be changed gets a digest."""
    plain = _NOT_PLAIN.sub("_", text)[:80]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
