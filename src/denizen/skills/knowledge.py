"""Reading and searching the knowledge folders: the one that all agents share, and the agent's own (inventory
T-agent-knowledge), and what was read of the sources of knowledge.

Files are named `own/...`, `shared/...`, and as in the snapshot of the sources: `docs/...`. What stands in them was
collected somewhere, and is quoted as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from typing import Annotated

from denizen.skill import (
    IndexedPassage,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolResult,
    quote_untrusted,
    rank_by_words,
    run_in_thread,
    split_passages,
)
from denizen.skills.paging import read_part
from denizen.skills.shelf import TextFile, TextFolder

OWN, SHARED = "own/", "shared/"
MAX_LISTED = 200
MAX_IN_SNAPSHOT = 20_000
MAX_FOUND = 15

skill = Skill("knowledge", description="Files that were collected for the agents to look things up in.")

Folder = Annotated[str, Param("such as shared/plants/", max_length=500)]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
def list_knowledge(context: ToolContext, folder: Folder = "") -> str:
    """Lists the files of your knowledge."""
    found = [(name, sheet) for name, sheet, _ in _sheets(context) if name.startswith(folder)]
    lines = [f"{name} ({sheet.size_bytes} bytes)" for name, sheet in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(f"({len(found) - MAX_LISTED} more; name a folder, or search)")
    return quote_untrusted("\n".join(lines), source="names of files") if lines else "There are no files."


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
def read_knowledge(
    context: ToolContext,
    name: Annotated[str, Param("as listed", max_length=500)],
    start: Annotated[int, Param("character to begin at", ge=0)] = 0,
) -> str:
    """Reads a file of your knowledge."""
    text = _find_text(context, name)
    if text is None:
        raise ToolError(f"There is no file `{name}`. Names are as list_knowledge tells them, such as shared/rules.md.")
    part, more = read_part(text, start, what=f"The file `{name}`")
    return "\n".join(filter(None, (quote_untrusted(part.rstrip("\n"), source=name), more)))


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.DOCUMENT})
async def search_docs(
    context: ToolContext,
    query: Annotated[str, Param(min_length=1, max_length=500)],
    source: Annotated[str, Param("id", max_length=63)] = "",
    limit: Annotated[int, Param(ge=1, le=MAX_FOUND)] = 6,
) -> ToolResult:
    """Finds passages in your documents by words and meaning. Cite as headed: [docs/a.md:12-18]. Where they do not
    answer, say so and end with [[unknown]].
    """
    found = list(await context.documents(query, sources=[source] if source else (), limit=limit))
    own = [] if source else await run_in_thread(partial(_search_folders, context, query))
    # Own files are few: what fits best there stands beside the best of the others.
    chosen = [each for pair in zip_longest(found, own) for each in pair if each is not None][:limit]
    if not chosen:
        return ToolResult("Nothing was found. Try other words, or look around with other tools.", data={"found": 0})
    text = "\n\n".join(f"{_cited(each)}\n{_numbered(each)}" for each in chosen)
    return ToolResult(quote_untrusted(text, source="documents"), data={"found": len(chosen)})


def _search_folders(context: ToolContext, query: str) -> list[IndexedPassage]:
    """In the folders, which are read each time."""
    passages = {
        f"{name}:{passage.number}": IndexedPassage("", name, "", passage)
        for prefix, shelf in _folders(context)
        for sheet in shelf.list_sheets()
        for name in [f"{prefix}{sheet.name}"]
        for passage in split_passages(name, shelf.find_text(sheet.name) or "")
    }
    return [passages[key] for key in rank_by_words(query, {key: p.passage.described for key, p in passages.items()})]


def _cited(found: IndexedPassage) -> str:
    passage = found.passage
    title = f" ({passage.title})" if passage.title else ""
    return f"[{found.path}:{passage.first_line}-{passage.last_line}]{title}"


def _numbered(found: IndexedPassage) -> str:
    """So that no line of a document can pass for the head of another passage, and lines can be cited."""
    first = found.passage.first_line
    return "\n".join(f"{number}: {line}" for number, line in enumerate(found.passage.text.split("\n"), start=first))


def _folders(context: ToolContext) -> list[tuple[str, TextFolder]]:
    shelves = [(OWN, TextFolder(context.folder))]
    if context.shared is not None:
        shelves.append((SHARED, TextFolder(context.shared)))
    return shelves


def _shelves(context: ToolContext) -> list[tuple[str, TextFolder]]:
    shelves = _folders(context)
    if context.snapshot is not None:
        shelves.append(("", TextFolder(context.snapshot, max_files=MAX_IN_SNAPSHOT)))
    return shelves


def _sheets(context: ToolContext) -> Iterator[tuple[str, TextFile, TextFolder]]:
    for prefix, shelf in _shelves(context):
        for sheet in shelf.list_sheets():
            yield f"{prefix}{sheet.name}", sheet, shelf


def _find_text(context: ToolContext, name: str) -> str | None:
    """By its full name; without `own/` or `shared/` the agent's own goes first, and the snapshot last."""
    for prefix, shelf in _shelves(context):
        text = shelf.find_text(name.removeprefix(prefix))
        if text is not None and (name.startswith(prefix) or not name.startswith((OWN, SHARED))):
            return text
    return None
