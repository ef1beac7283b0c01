"""Remembers what people want remembered, and looks up earlier tool calls.

The memory decides whose memories these are and who may hear of them, not this skill. There are few tools with short
descriptions, since all of them are in every prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from denizen.skill import Effect, MemoryAccess, MemoryItem, Skill, Tier, ToolContext, ToolError, quote_untrusted

LISTED = 50
RECALLED = 8
SIMILAR = 3
"""So many older memories are shown for a new one, which it may contradict."""
LOGGED = 20

skill = Skill("memory", description="What the agent keeps in mind about people, and what it did.")


@skill.tool(tier=Tier.LIMITED, effects={Effect.MEMORY}, statement="text")
async def remember(
    context: ToolContext,
    text: Annotated[str, "one sentence"],
    about: Annotated[Literal["user", "all"], "all: admins only"] = "user",
    update: Annotated[str, "id of a memory that it replaces"] = "",
) -> str:
    """Keeps a fact in mind for later talks with this user."""
    memory = _memory(context)
    if update.strip():
        kept = await memory.update(update, text)
    else:
        kept = await memory.remember(text, core=about == "all")
    near = [each for each in await memory.recall(text, limit=SIMILAR + 1) if each.id != kept.id][:SIMILAR]
    said = f"Remembered as {kept.id}."
    return f"{said} Update or forget what is not true any more:\n{_quote(near)}" if near else said


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def recall(context: ToolContext, words: Annotated[str, "empty: list all"] = "") -> str:
    """Finds memories by words or meaning."""
    memory = _memory(context)
    if words.strip():
        return _quote(await memory.recall(words, limit=RECALLED), f"Nothing is remembered about: {words}")
    return _quote(await memory.list(limit=LISTED), "Nothing is remembered yet.")


@skill.tool(tier=Tier.LIMITED, effects={Effect.MEMORY})
async def forget(context: ToolContext, memory: Annotated[str, "its id"]) -> str:
    """Deletes a memory."""
    return f"Forgot {(await _memory(context).forget(memory)).id}."


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def search_log(context: ToolContext, words: Annotated[str, "tool, done, failed, denied"] = "") -> str:
    """Lists your earlier tool calls."""
    if context.call_log is None:
        raise ToolError("There is no log here.")
    found = await context.call_log.search(words, limit=LOGGED)
    lines = [f"{deed.at:%Y-%m-%d %H:%M} {deed.tool}: {deed.outcome}, {deed.duration_ms} ms" for deed in found]
    return "\n".join(lines) or "No earlier call is in the log."


def _memory(context: ToolContext) -> MemoryAccess:
    if context.memory is None:
        raise ToolError("There is no memory here.")
    return context.memory


def _quote(found: Sequence[MemoryItem], otherwise: str = "") -> str:
    """Newest first, so that of two that contradict each other the one that holds is read first."""
    if not found:
        return otherwise
    newest = sorted(found, key=lambda each: each.at, reverse=True)
    lines = [f"{each.id} ({each.at:%Y-%m-%d}{', for all' if each.core else ''}): {each.text}" for each in newest]
    return quote_untrusted("\n".join(lines), source="memory")
