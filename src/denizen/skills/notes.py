"""What an agent writes down for itself, as Markdown files in its own folder that people can read and edit too.

Notes of a room stay in that room, those of a direct talk between the two, those of an API key or a web user with them:
what was noted in private must not be read where others read (promise 3). What is to be known everywhere is memory,
which knows who may hear of it. Only the operator's notes lie in the agent's folder itself.

The reading tools are not declared `read_only`: such answers may come from the turn's cache, and a note that was just
changed must not read as it was before. What they give was noted in anybody's turn, so it counts as what others wrote.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated

from denizen.skill import Effect, Param, PrincipalKind, Skill, Taint, Tier, ToolContext, ToolError
from denizen.skills.notebook import Notebook, parse_note_name
from denizen.skills.paging import read_part

HITS_PER_NOTE = 5
SEARCH_CHARS = 3000

skill = Skill("notes", description="The agent's own notes.")

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")

Name = Annotated[str, "letters, digits, _ and -"]
Text = Annotated[str, Param("Markdown", min_length=1, max_length=16_000)]


@skill.tool(tier=Tier.HARMLESS, reads={Taint.OTHERS})
def list_notes(context: ToolContext) -> str:
    """Lists your notes."""
    notes = Notebook(_folder(context)).list_notes()
    return "\n".join(f"{note.name} ({note.size_bytes} bytes)" for note in notes) or "There are no notes yet."


@skill.tool(tier=Tier.HARMLESS, reads={Taint.OTHERS})
def read_note(context: ToolContext, name: Name, start: Annotated[int, Param("character to begin at", ge=0)] = 0) -> str:
    """Reads one of your notes."""
    notebook = Notebook(_folder(context))
    text = notebook.find_text(name)
    if text is None:
        names = ", ".join(note.name for note in notebook.list_notes()[:30])
        raise ToolError(
            f"There is no note `{parse_note_name(name)}`. " + (f"There are: {names}." if names else "None yet.")
        )
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


@skill.tool(tier=Tier.HARMLESS, reads={Taint.OTHERS})
def search_notes(context: ToolContext, words: Annotated[str, Param("all must occur in a line", max_length=200)]) -> str:
    """Recalls what was noted: finds lines in your notes."""
    wanted = words.casefold().split()
    if not wanted:
        raise ToolError("Give at least one word to search for.")
    notebook, lines = Notebook(_folder(context)), list[str]()
    for note in notebook.list_notes():
        found = [
            f"{note.name}, line {number}: {line.strip()[:500]}"
            for number, line in enumerate((notebook.find_text(note.name) or "").splitlines(), start=1)
            if all(word in line.casefold() for word in wanted)
        ]
        lines += found[:HITS_PER_NOTE]
    return "\n".join(lines)[:SEARCH_CHARS] or f"No note has a line with: {words}"


def _folder(context: ToolContext) -> Path:
    """Where the notes of this place lie."""
    principal, place = context.principal, context.place
    match principal.kind:
        case PrincipalKind.LOCAL:
            return context.folder
        case PrincipalKind.PLATFORM_USER:
            return context.folder / "rooms" / _plain(f"{place.platform}-{place.thread or place.channel}")
        case _:
            return context.folder / "people" / _plain(principal.key)


def _plain(text: str) -> str:
    """As the name of a folder; what had to be replaced is told apart by a digest."""
    plain = _NOT_PLAIN.sub("_", text)[:80]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
