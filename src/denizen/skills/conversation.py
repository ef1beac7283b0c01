"""Looking up what was said earlier in the conversation, beyond what the prompt still holds."""

from __future__ import annotations

from typing import Annotated

from denizen.skill import Param, Skill, Tier, ToolContext, quote_untrusted

MAX_MESSAGE_CHARS = 400

skill = Skill("conversation", description="Earlier messages of this conversation.")


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def search_conversation(
    context: ToolContext,
    words: Annotated[str, Param("all must occur", min_length=1, max_length=200)],
    limit: Annotated[int, Param(ge=1, le=20)] = 5,
) -> str:
    """Finds earlier messages of this conversation, newest first."""
    found = await context.history.search(words, limit=limit)
    if not found:
        return f"No earlier message of this conversation contains: {words}"
    lines = [f"{message.at:%Y-%m-%d %H:%M} {message.author}: {_shorten(message.text)}" for message in found]
    return quote_untrusted("\n".join(lines), source="this conversation, times in UTC")


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_MESSAGE_CHARS else f"{flat[:MAX_MESSAGE_CHARS]} …"
