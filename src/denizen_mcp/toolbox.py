"""Small tools as an MCP server: the time, the weather, the reputation of IP addresses, pictures.

Everything works without a key except the pictures. GREYNOISE_API_KEY gives more about addresses: without it the
community API is asked, which knows less. IMAGE_API_KEY (or XAI_API_KEY), IMAGE_BASE_URL and IMAGE_MODEL choose a
service that speaks OpenAI's `images/generations`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from denizen.builtin_skills import time, weather
from denizen.skill import Json, Param, Skill, Taint, Tier, ToolContext, ToolError, ToolOutput
from denizen_mcp.server import EnvVariable, run
from denizen_mcp.vendor_client import VendorClient, VendorService

_GREYNOISE_ERRORS = {
    400: "does not take this address.",
    401: "does not know the key. Check GREYNOISE_API_KEY.",
    403: "does not allow this with the key. Check GREYNOISE_API_KEY and the plan.",
    429: "has been asked too often. Try again later.",
}
_NOT_SEEN = frozenset({404})


@dataclass(frozen=True, slots=True)
class GreyNoiseSettings:
    """The access to GreyNoise. Without a key the community API is asked."""

    api_key: str = ""
    base_url: str = "https://api.greynoise.io"
    timeout_s: float = 10.0


greynoise_skill = Skill("greynoise", description="The reputation of IP addresses.", settings=GreyNoiseSettings)


@greynoise_skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=60, reads={Taint.WEB})
async def greynoise_ip_address(
    context: ToolContext, ip_address: Annotated[str, Param("dotted IPv4 address", min_length=7, max_length=15)]
) -> dict[str, Any]:
    """Tells what GreyNoise knows about an IPv4 address: whether it was seen scanning, and how it is classified."""
    settings = context.settings(GreyNoiseSettings)
    address = _public(ip_address)
    headers = {"key": settings.api_key} if settings.api_key else {}
    service = VendorService("GreyNoise", settings.base_url, headers, _GREYNOISE_ERRORS, settings.timeout_s)
    async with VendorClient(service) as remote:
        if settings.api_key:
            answer = await remote.get(f"v3/ip/{address}", accept=_NOT_SEEN)
            return _full(address, answer.body)
        answer = await remote.get(f"v3/community/{address}", accept=_NOT_SEEN)
        return _community(address, answer.body)


def _public(text: str) -> str:
    try:
        address = ipaddress.IPv4Address(text.strip())
    except ValueError as error:
        raise ToolError(f"`{text[:40]}` is not a dotted IPv4 address, such as 8.8.8.8.") from error
    if not address.is_global:
        raise ToolError(f"{address} is not an address of the public Internet, so nobody has seen it there.")
    return str(address)


def _full(address: str, body: Mapping[str, Any]) -> dict[str, Any]:
    scanner: Mapping[str, Any] = body.get("internet_scanner_intelligence") or {}
    business: Mapping[str, Any] = body.get("business_service_intelligence") or {}
    found: dict[str, Any] = {
        "ip": address,
        "seen": bool(scanner.get("found")),
        "classification": scanner.get("classification") or "unknown",
        "first_seen": scanner.get("first_seen") or None,
        "last_seen": scanner.get("last_seen") or None,
        "tags": [tag.get("name", "") for tag in scanner.get("tags") or ()],
        "metadata": scanner.get("metadata") or {},
    }
    if business.get("found"):
        found["service"] = {key: business.get(key, "") for key in ("name", "category", "trust_level")}
    return found


def _community(address: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the community API knows; fields that it does not have are left out. An unknown address is an
    answer, too.
    """
    known = {"name": body.get("name"), "link": body.get("link"), "message": body.get("message")}
    return {
        "ip": address,
        "seen": bool(body.get("noise")),
        "classification": body.get("classification") or "unknown",
        "last_seen": body.get("last_seen") or None,
        "is_common_service": bool(body.get("riot")),
        "metadata": {key: value for key, value in known.items() if value},
    }


_IMAGE_ERRORS = {
    400: "does not take this request.",
    401: "does not know the key. Check IMAGE_API_KEY.",
    403: "does not allow this with the key. Check IMAGE_API_KEY.",
    404: "does not know the model. Check IMAGE_MODEL and IMAGE_BASE_URL.",
    429: "has been asked too often, or there is no credit left.",
}


@dataclass(frozen=True, slots=True)
class PainterSettings:
    """The image service. Without a key the tool says what is missing."""

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
        raise ToolError("No key for the image service is configured: set IMAGE_API_KEY.")
    headers = {"Authorization": f"Bearer {settings.api_key}"}
    service = VendorService("The image service", settings.base_url, headers, _IMAGE_ERRORS, settings.timeout_s)
    wanted = {
        "model": settings.model,
        "prompt": prompt,
        "n": n,
        "response_format": response_format,
        "user": context.principal.key,
    }
    async with VendorClient(service) as remote:
        answer = await remote.post("images/generations", wanted)
    images = [shown for row in _rows(answer.body) if (shown := _shown(row))]
    if not images:
        raise ToolError("The image service returned no picture.")
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
            # The first bytes tell the media type, and base64 keeps them recognisable.
            prefixes = {"iVBOR": "png", "UklGR": "webp"}
            return {"url": f"data:image/{prefixes.get(data[:5], 'jpeg')};base64,{data}"}
        case _:
            return None


VARIABLES = (
    EnvVariable("GREYNOISE_API_KEY", "greynoise", "api_key"),
    EnvVariable("GREYNOISE_BASE_URL", "greynoise", "base_url"),
    EnvVariable("XAI_API_KEY", "painter", "api_key"),
    EnvVariable("IMAGE_API_KEY", "painter", "api_key"),
    EnvVariable("IMAGE_BASE_URL", "painter", "base_url"),
    EnvVariable("IMAGE_MODEL", "painter", "model"),
    EnvVariable("WEATHER_GEOCODING_URL", "weather", "geocoding_url"),
    EnvVariable("WEATHER_FORECAST_URL", "weather", "forecast_url"),
    EnvVariable("TIMEZONE", "time", "timezone"),
)


def main() -> None:
    """Runs the server."""
    run("denizen-mcp-toolbox", (time.skill, weather.skill, greynoise_skill, painter_skill), VARIABLES)
