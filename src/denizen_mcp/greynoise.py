"""What GreyNoise knows about an IP address: whether it scans the Internet, and what for.

With a key the IP lookup of the v3 API is asked, without one the community API, which knows less (inventory 5.1, 5.4).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from denizen.skill import Param, Skill, Taint, Tier, ToolContext, ToolError
from denizen_mcp.remote import VendorClient, VendorService

_GREYNOISE_ERRORS = {
    400: "does not take this address.",
    401: "does not know the key. Check GREYNOISE_API_KEY.",
    403: "does not allow this with the key. Check GREYNOISE_API_KEY and the plan.",
    429: "has been asked too often. Try again later.",
}
_NOT_SEEN = frozenset({404})


@dataclass(frozen=True, slots=True)
class GreyNoiseSettings:
    """Without a key the community API is asked."""

    api_key: str = ""
    base_url: str = "https://api.greynoise.io"
    timeout_s: float = 10.0


greynoise_skill = Skill("greynoise", description="The reputation of IP addresses.", settings=GreyNoiseSettings)


@greynoise_skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=60, reads={Taint.WEB})
async def greynoise_ip_address(
    context: ToolContext, ip_address: Annotated[str, Param("dotted IPv4 address", min_length=7, max_length=15)]
) -> dict[str, Any]:
    """What GreyNoise knows about an IPv4 address: whether it was seen scanning, and how it is classified."""
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
        raise ToolError(f"`{text[:40]}` is no dotted IPv4 address, such as 8.8.8.8.") from error
    if not address.is_global:
        raise ToolError(f"{address} is no address of the public Internet, so nobody has seen it there.")
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
    """Fields that the community API does not have are left out. An unknown address is an answer, too."""
    known = {"name": body.get("name"), "link": body.get("link"), "message": body.get("message")}
    return {
        "ip": address,
        "seen": bool(body.get("noise")),
        "classification": body.get("classification") or "unknown",
        "last_seen": body.get("last_seen") or None,
        "is_common_service": bool(body.get("riot")),
        "metadata": {key: value for key, value in known.items() if value},
    }
