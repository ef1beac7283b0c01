"""Cards with a title, a text and fields in a frame, which platforms show with an answer."""

from __future__ import annotations

from typing import Annotated

from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput

skill = Skill("cards", description="Shows cards (embeds) with an answer.")

_WEB = ("https://", "http://")


@skill.tool(tier=Tier.HARMLESS, read_only=True)
def make_embed(
    context: ToolContext,  # noqa: ARG001 - the first parameter of every tool
    title: Annotated[str, Param(max_length=256)] = "",
    text: Annotated[str, Param(max_length=4000)] = "",
    fields: Annotated[dict[str, str] | None, "name to value"] = None,
    color: Annotated[str, Param("#rrggbb", pattern="^(#[0-9A-Fa-f]{6})?$")] = "",
    image: Annotated[str, Param("URL", max_length=2000)] = "",
    link: Annotated[str, Param("URL", max_length=2000)] = "",
) -> ToolOutput:
    """Shows a card with your answer."""
    named = fields or {}
    if not (title.strip() or text.strip() or named or image):
        raise ToolError("An empty card cannot be shown. Give it a title, a text, fields or an image.")
    if len(named) > 25:
        raise ToolError("A card has at most 25 fields.")
    for name, url in (("image", image), ("link", link)):
        if url and not url.startswith(_WEB):
            raise ToolError(f"`{name}` is a URL that begins with https://.")
    card: JsonObject = {
        "title": title,
        "text": text,
        "fields": dict(named),
        "color": color,
        "image": image,
        "url": link,
    }
    return ToolOutput("The card is shown with your answer.", {"embeds": [card]})
