"""Pictures from a description, by any service that speaks OpenAI's `images/generations` (inventory 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from denizen.skill import Json, Param, Skill, Tier, ToolContext, ToolError, ToolOutput
from denizen_mcp.remote import VendorClient, VendorService

_IMAGE_ERRORS = {
    400: "does not take this request.",
    401: "does not know the key. Check IMAGE_API_KEY.",
    403: "does not allow this with the key. Check IMAGE_API_KEY.",
    404: "does not know the model. Check IMAGE_MODEL and IMAGE_BASE_URL.",
    429: "has been asked too often, or there is no credit left.",
}


@dataclass(frozen=True, slots=True)
class PainterSettings:
    """Without a key the tool says what is missing."""

    api_key: str = ""
    base_url: str = "https://api.x.ai/v1"
    model: str = "grok-2-image-1212"
    timeout_s: float = 120.0


painter_skill = Skill("painter", description="Pictures from a description.", settings=PainterSettings)


@painter_skill.tool(tier=Tier.SENSITIVE, timeout_s=360)
async def generate_image(
    context: ToolContext,
    prompt: Annotated[str, Param("what to paint", min_length=1, max_length=4000)],
    n: Annotated[int, Param("how many pictures", ge=1, le=10)] = 1,
    response_format: Annotated[Literal["url", "b64_json"], "as links or as files"] = "url",
) -> ToolOutput:
    """Paints pictures from a description. Costs money."""
    settings = context.settings(PainterSettings)
    if not settings.api_key:
        raise ToolError("No key for the service that paints is configured: set IMAGE_API_KEY.")
    headers = {"Authorization": f"Bearer {settings.api_key}"}
    service = VendorService("The service that paints", settings.base_url, headers, _IMAGE_ERRORS, settings.timeout_s)
    wanted = {
        "model": settings.model, "prompt": prompt, "n": n, "response_format": response_format,
        "user": context.principal.key,
    }  # fmt: skip
    async with VendorClient(service) as remote:
        answer = await remote.post("images/generations", wanted)
    images = [shown for row in _rows(answer.body) if (shown := _shown(row))]
    if not images:
        raise ToolError("The service that paints gave no picture.")
    revised = next((str(row["revised_prompt"]) for row in _rows(answer.body) if row.get("revised_prompt")), "")
    text = f"{len(images)} {'picture is' if len(images) == 1 else 'pictures are'} shown to the user."
    return ToolOutput(text + (f" It was painted as: {revised}" if revised else ""), {"images": images})


def _rows(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows = body.get("data")
    listed = cast("list[object]", rows) if isinstance(rows, list) else []
    return [cast("dict[str, Any]", row) for row in listed if isinstance(row, dict)]


def _shown(row: Mapping[str, Any]) -> Json:
    match row:
        case {"url": str() as url} if url.startswith("https://"):
            return {"url": url}
        case {"b64_json": str() as data} if data:
            return {"url": f"data:{_kind(data)};base64,{data}"}
        case _:
            return None


def _kind(data: str) -> str:
    """By the first bytes, which base64 keeps recognisable."""
    return "image/png" if data.startswith("iVBOR") else "image/webp" if data.startswith("UklGR") else "image/jpeg"
