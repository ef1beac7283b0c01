"""Which addresses and ports a fetch may reach. Pure: nothing here resolves or connects.

The tables follow the IANA registries of special-purpose addresses. They are written out because what
`ipaddress.is_global` says has changed between Python releases; it is asked as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from denizen.domain.errors import InvalidInput

Address = IPv4Address | IPv6Address

_SPECIAL_V4 = {
    IPv4Network(network): reason
    for network, reason in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_SPECIAL_V6 = {
    IPv6Network(network): reason
    for network, reason in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "64:ff9b:1::/48": "private",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "private",
        "ff00::/8": "multicast",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "3fff::/20": "for documentation",
    }.items()
}
_METADATA = frozenset(
    ip_address(text)
    for text in (
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "169.254.0.23"),
        *("100.100.100.200", "192.0.0.192", "168.63.129.16"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
    )
)
"""The addresses at which clouds hand out credentials to whoever asks from within. No allow list opens them."""

_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = IPv6Network("::ffff:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_6TO4 = IPv6Network("2002::/16")

_OTHER_SERVICES = frozenset(
    {1719, 1720, 1723, 2049, 2375, 2376, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 10080, 11211, 27017}
)
"""The ports above 1023 that the fetch standard blocks, and those of databases and of Docker."""


def find_refusal(address: Address) -> str | None:
    """Returns why no fetch may go to the address; None for an address of the public internet.

    An IPv6 address that carries an IPv4 address (mapped, 6to4, NAT64, ISATAP) is checked as that one too.
    """
    if is_cloud_metadata(address):
        return "for the metadata of a cloud"
    for inner in _embedded(address):
        reason = find_refusal(inner)
        if reason is not None:
            return reason
    if isinstance(address, IPv4Address):
        reason = next((reason for network, reason in _SPECIAL_V4.items() if address in network), None)
        return reason or (None if address.is_global else "reserved")
    reason = next((reason for network, reason in _SPECIAL_V6.items() if address in network), None)
    if reason is not None:
        return reason
    if address in _MAPPED or address in _NAT64:
        return None
    return None if address in _GLOBAL_V6 else "reserved"


def is_cloud_metadata(address: Address) -> bool:
    """Returns whether the address, or one that it carries, serves credentials of a cloud."""
    return address in _METADATA or any(inner in _METADATA for inner in _embedded(address))


def find_port_refusal(port: int) -> str | None:
    """Returns why a port may not be fetched. Allowed are 80, 443 and from 1024 up, except ports of well-known
    services that do not speak HTTP.
    """
    if port in {80, 443} or (1024 <= port <= 65_535 and port not in _OTHER_SERVICES):
        return None
    return f"port {port} is not used for the web"


def _embedded(address: Address) -> Iterator[IPv4Address]:
    if isinstance(address, IPv4Address):
        return
    low = int(address) & 0xFFFF_FFFF
    if address in _MAPPED or address in _NAT64 or (address in _COMPATIBLE and low > 1):
        yield IPv4Address(low)
    if address in _6TO4:
        # 6to4 keeps the IPv4 address in bits 16 to 47.
        yield IPv4Address((int(address) >> 80) & 0xFFFF_FFFF)
    # ISATAP: the interface id is 0000:5efe or, for a global address, 0200:5efe, then the IPv4 address.
    if (int(address) >> 32) & 0xFDFF_FFFF == 0x5EFE:
        yield IPv4Address(low)


class AllowList:
    """The networks (`10.0.0.0/8`, `192.168.1.5`) and `host:port` pairs that the operator opened.

    A pair opens that name at that port, whatever it resolves to. Raises InvalidInput for an entry that is neither.
    """

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._pairs: set[tuple[str, int]] = set()
        for entry in map(str.strip, entries):
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                host, colon, port = entry.rpartition(":")
                if not (host and colon and port.isdecimal() and 0 < int(port) <= 65_535) or "/" in host:
                    raise InvalidInput(
                        f"`{entry}` cannot be allowed",
                        code="bad_allow_private",
                        fix="write a network such as 10.0.0.0/8 or a pair such as weather.lan:8080",
                    ) from None
                self._pairs.add((_normalise_host(host), int(port)))

    def admits(self, host: str, port: int, address: Address) -> bool:
        """Returns whether the address of that host and port may be reached."""
        if is_cloud_metadata(address):
            return False
        return self.names(host, port) or any(address in network for network in self._networks)

    def names(self, host: str, port: int) -> bool:
        """Returns whether the pair itself is listed."""
        return (_normalise_host(host), port) in self._pairs


def _normalise_host(host: str) -> str:
    """Returns one spelling for a name or a literal address: lower case, no brackets, no dot at the end."""
    text = host.lower().strip("[]").rstrip(".")
    try:
        return str(ip_address(text))
    except ValueError:
        return text
