"""Reading the knowledge folders: the one that all agents share, and the agent's own (inventory T-agent-knowledge), and
what was read of the sources of knowledge.

Files are named `own/...`, `shared/...`, and as in the snapshot of the sources: `docs/...`. What stands in them was
collected somewhere, and is quoted as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from denizen.skill import Param, Skill, Taint, Tier, ToolContext, ToolError, quote_untrusted
from denizen.skills.paging import read_part
from denizen.skills.shelf import Sheet, Shelf

OWN, SHARED = "own/", "shared/"
MAX_LISTED = 200
MAX_IN_SNAPSHOT = 20_000
HITS_PER_FILE = 5
SEARCH_CHARS = 4000
LINE_CHARS = 500

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
def search_knowledge(
    context: ToolContext, words: Annotated[str, Param("all must occur in a line", min_length=1, max_length=200)]
) -> str:
    """Finds lines in the files of your knowledge."""
    wanted = words.casefold().split()
    if not wanted:
        raise ToolError("Give at least one word to search for.")
    lines: list[str] = []
    for name, sheet, shelf in _sheets(context):
        found = [
            f"{name}, line {number}: {line.strip()[:LINE_CHARS]}"
            for number, line in enumerate((shelf.find_text(sheet.name) or "").splitlines(), start=1)
            if all(word in line.casefold() for word in wanted)
        ]
        lines += found[:HITS_PER_FILE]
        if sum(map(len, lines)) > SEARCH_CHARS:
            break
    if not lines:
        return f"No file has a line with: {words}"
    return quote_untrusted("\n".join(lines)[:SEARCH_CHARS], source="lines of knowledge files")


def _shelves(context: ToolContext) -> list[tuple[str, Shelf]]:
    shelves = [(OWN, Shelf(context.folder))]
    if context.shared is not None:
        shelves.append((SHARED, Shelf(context.shared)))
    if context.snapshot is not None:
        shelves.append(("", Shelf(context.snapshot, max_files=MAX_IN_SNAPSHOT)))
    return shelves


def _sheets(context: ToolContext) -> Iterator[tuple[str, Sheet, Shelf]]:
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
