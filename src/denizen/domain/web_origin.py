"""The origins that a browser may reach, as the owner lists them. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""The usual ports, by scheme."""


@record
class WebOrigin:
    """A host at a port. A host that begins with `*.` stands for all names below it."""

    host: str
    port: int

    def admits(self, host: str, port: int) -> bool:
        """Returns whether a connection to that host and port belongs to it."""
        if port != self.port:
            return False
        name = host.lower().strip("[]").rstrip(".")
        return name.endswith(self.host[1:]) if self.host.startswith("*.") else name == self.host

    @property
    def is_address(self) -> bool:
        """Whether the owner wrote an address instead of a name."""
        try:
            ip_address(self.host)
        except ValueError:
            return False
        return True


def find_origin(url: str) -> WebOrigin | None:
    """Returns the origin of an address of the web; None for any other text."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    return WebOrigin(host, port) if parts.scheme in PORTS and host and port else None


def parse_origin(text: str) -> WebOrigin:
    """Reads `https://docs.example`, `http://host:8080` or `https://*.example`. Raises InvalidInput."""
    origin, parts = find_origin(text), text.strip().partition("://")[2].rstrip("/")
    if origin is None or set(parts) & set("/?#@") or "*" in origin.host.removeprefix("*.") or origin.host == "*.":
        raise InvalidInput(
            f"'{text[:100]}' is no origin.",
            code="bad_origin",
            fix="Write scheme and host, and the port if it is not the usual one, such as https://docs.example or "
            "https://*.example.",
        )
    return origin
