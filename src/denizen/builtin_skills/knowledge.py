"""Lists, reads and searches knowledge: the folder that all agents share, the agent's own, and the sources that were
read.

Files are named `own/...`, `shared/...`, and as in the snapshot of the sources: `docs/...`. Their text was collected
somewhere and is quoted as data. Every folder and file on the way is opened relative to the one above it, without
following links, so that no name and no link leads out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Annotated

from denizen.builtin_skills.paging import read_part
from denizen.skill import (
    DocumentRef,
    IndexedPassage,
    Json,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    covers_question,
    describe_reading,
    quote_untrusted,
    rank_by_words,
    run_in_thread,
    split_passages,
)

SUFFIXES = frozenset({".md", ".mdx", ".markdown", ".txt", ".rst", ".csv", ".json", ".yaml", ".yml"})
MAX_FILES = 2000
"""The limit for one folder, in the order of names, unless another number is given. Further files are not listed or
searched.
"""
MAX_DEPTH = 8
MAX_READ_BYTES = 1024 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the thread for ever


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file. `name` is its path below the folder, with slashes; it ends with one for a folder that may not be read."""

    name: str
    size_bytes: int


class TextFolder:
    """A folder of text files, which need not exist. Names that begin with a dot are ignored."""

    def __init__(self, folder: Path, *, max_files: int = MAX_FILES) -> None:
        self._folder = folder
        self._max_files = max_files

    def list_files(self) -> list[TextFile]:
        """Returns at most `max_files` files, by name."""
        files: list[TextFile] = []
        for file in _walk(self._folder, "", MAX_DEPTH):
            files.append(file)
            if len(files) == self._max_files:
                break
        return files

    def find_text(self, name: str) -> str | None:
        """Returns the first MAX_READ_BYTES of a file; None when there is none with that name."""
        steps = PurePosixPath(name).parts
        is_plain = bool(steps) and "\0" not in name and not any(step.startswith(".") or step == "/" for step in steps)
        if not is_plain or not _is_text(name) or not self._folder.is_dir():
            return None
        with ExitStack() as stack:
            # The folder itself may be a link: its owner put it there.
            place = os.open(self._folder, _FOLDER & ~os.O_NOFOLLOW)
            stack.callback(os.close, place)
            try:
                for step in steps[:-1]:
                    place = os.open(step, _FOLDER, dir_fd=place)
                    stack.callback(os.close, place)
                handle = os.open(steps[-1], _FILE, dir_fd=place)
            except OSError:  # not there, a link, or not readable
                return None
            stack.callback(os.close, handle)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            with os.fdopen(handle, "rb", closefd=False) as stream:
                return stream.read(MAX_READ_BYTES).decode("utf-8-sig", errors="replace")


def _walk(folder: Path, above: str, depth: int) -> Iterator[TextFile]:
    try:
        if not folder.is_dir():
            return
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except PermissionError:
        yield TextFile(above, 0)
        return
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False) and depth:
            yield from _walk(Path(entry.path), f"{name}/", depth - 1)
        elif entry.is_file(follow_symlinks=False) and _is_text(name):
            yield TextFile(name, entry.stat(follow_symlinks=False).st_size)


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


OWN, SHARED = "own/", "shared/"
MAX_LISTED = 200
MAX_IN_SNAPSHOT = 20_000
MAX_FOUND = 15

skill = Skill("knowledge", description="Files that were collected for the agents to look things up in.")

Folder = Annotated[str, Param("such as shared/plants/", max_length=500)]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
def list_knowledge(context: ToolContext, folder: Folder = "") -> str | ToolOutput:
    """Lists the files of your knowledge."""
    found = [(name, file) for name, file, _ in _list_files(context) if name.startswith(folder)]
    if not found:
        return ToolOutput("There are no files.", is_own=True)
    lines = [
        f"{name} (may not be read)" if name.endswith("/") else f"{name} ({file.size_bytes} bytes)"
        for name, file in found[:MAX_LISTED]
    ]
    if len(found) > MAX_LISTED:
        lines.append(f"({len(found) - MAX_LISTED} more; name a folder, or search)")
    return quote_untrusted("\n".join(lines), source="names of files")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
def read_knowledge(
    context: ToolContext,
    name: Annotated[str, Param("as listed", max_length=500)],
    start: Annotated[int, Param("character to begin at", ge=0)] = 0,
) -> ToolOutput:
    """Reads a file of your knowledge."""
    found = _find_text(context, name)
    if found is None:
        why = f"There is no file `{name}`. list_knowledge lists the names, such as shared/rules.md."
        raise ToolError(why, is_own=True)
    path, text = found
    part, more = read_part(text, start, what=f"The file `{name}`")
    told = "\n".join(filter(None, (quote_untrusted(part.rstrip("\n"), source=name), more)))
    first = text.count("\n", 0, start) + 1
    return ToolOutput(told, describe_reading([DocumentRef(path, first, first + part.rstrip("\n").count("\n"))]))


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
async def search_docs(
    context: ToolContext,
    query: Annotated[str, Param(min_length=1, max_length=500)],
    source: Annotated[str, Param("id", max_length=63)] = "",
    limit: Annotated[int, Param(ge=1, le=MAX_FOUND)] = 6,
    *,
    strict: bool = False,
) -> ToolOutput:
    """Finds passages in your documents by words and meaning. Cite as headed: [docs/a.md:12-18]. Where they do not
    answer, say so and end with [[unknown]].
    """
    # Of what is strict much may be left out.
    wanted = MAX_FOUND if strict else limit
    found = await context.documents(query, sources=[source] if source else (), limit=wanted)
    chosen = list(found) if source else await add_folder_passages(found, _folders(context), query)
    if strict:
        chosen = [each for each in chosen if covers_question(each.passage.described, query)]
        if not chosen:
            return ToolOutput("Nothing fits that closely.", is_own=True)
    chosen = chosen[:limit]
    if not chosen:
        why = "Nothing was found. Try other words, or look around with other tools."
        return ToolOutput(why, {"found": 0}, is_own=True)
    text = "\n\n".join(f"{_cited(each)}\n{_numbered(each)}" for each in chosen)
    read = describe_reading(DocumentRef(p.path, p.passage.first_line, p.passage.last_line) for p in chosen)
    passages: list[Json] = [*map(_fields, chosen)]
    return ToolOutput(quote_untrusted(text, source="documents"), {"found": len(chosen), "passages": passages, **read})


async def add_folder_passages(
    found: Sequence[IndexedPassage], folders: Sequence[tuple[str, TextFolder]], query: str
) -> list[IndexedPassage]:
    """Returns passages of sources with those of folders among them, the best first. The files of a folder are called by
    what stands beside it, such as `shared/`, and their names.
    """
    own = await run_in_thread(partial(_search_folders, folders, query))
    # Own files are few: what fits best there stands beside the best of the others.
    return [each for pair in zip_longest(found, own) for each in pair if each is not None]


def _search_folders(folders: Sequence[tuple[str, TextFolder]], query: str) -> list[IndexedPassage]:
    """Searches the folders, which are read each time, by words."""
    passages = {
        f"{name}:{passage.number}": IndexedPassage("", name, "", passage)
        for prefix, folder in folders
        for file in folder.list_files()
        for name in [f"{prefix}{file.name}"]
        for passage in split_passages(name, folder.find_text(file.name) or "")
    }
    return [passages[key] for key in rank_by_words(query, {key: p.passage.described for key, p in passages.items()})]


def _cited(found: IndexedPassage) -> str:
    passage = found.passage
    title = f" ({passage.title})" if passage.title else ""
    return f"[{found.path}:{passage.first_line}-{passage.last_line}]{title}"


def _fields(found: IndexedPassage) -> Json:
    passage = found.passage
    return {
        "path": found.path,
        "first_line": passage.first_line,
        "last_line": passage.last_line,
        "title": passage.title,
        "text": passage.text,
        "source": found.source_id,
    }


def _numbered(found: IndexedPassage) -> str:
    """Numbers the lines, so that they can be cited, and so that no line of a document looks like the head of another
    passage.
    """
    first = found.passage.first_line
    return "\n".join(f"{number}: {line}" for number, line in enumerate(found.passage.text.split("\n"), start=first))


def _folders(context: ToolContext) -> list[tuple[str, TextFolder]]:
    folders = [(OWN, TextFolder(context.folder))]
    if context.shared is not None:
        folders.append((SHARED, TextFolder(context.shared)))
    return folders


def _all_folders(context: ToolContext) -> list[tuple[str, TextFolder]]:
    folders = _folders(context)
    folders += [(f"{name}/", TextFolder(folder, max_files=MAX_IN_SNAPSHOT)) for name, folder in context.snapshot]
    return folders


def _list_files(context: ToolContext) -> Iterator[tuple[str, TextFile, TextFolder]]:
    for prefix, folder in _all_folders(context):
        for file in folder.list_files():
            yield f"{prefix}{file.name}", file, folder


def _find_text(context: ToolContext, name: str) -> tuple[str, str] | None:
    """Finds a file, with its full name; by a name without `own/` or `shared/` in the agent's own folder first and in
    the snapshot, where it is the full name, last.
    """
    name = normpath(name)
    for prefix, folder in _all_folders(context):
        text = folder.find_text(name.removeprefix(prefix))
        is_short = prefix in (OWN, SHARED) and not name.startswith((OWN, SHARED))
        if text is not None and (name.startswith(prefix) or is_short):
            return f"{prefix}{name.removeprefix(prefix)}", text
    return None
