"""The only place where a fetch resolves and connects: httpcore2 comes here for every new connection.

A name is resolved once; all its addresses must be fit to be reached, and the connection is made to one of them, not
to the name. So a second answer of the name server (DNS rebinding) is never asked for, and a redirect, being another
connection, is checked like the first. TLS still verifies the name, which httpcore2 knows from the URL.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address

import anyio
import httpcore2

from denizen.adapters.fetch.addresses import Address, AllowList, find_port_refusal, find_refusal
from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable

ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses, best first. Raises OSError when the name is unknown."""

_MAX_ADDRESSES = 4
_PATIENCE_S = 3.0
"""How long an address may take when there is another one to try."""


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    """Asks the machine's resolver, which also understands spellings of addresses such as `0x7f.1`."""
    rows = await anyio.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(row[4][0] for row in rows))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """`network` makes the connections; it is only ever given literal addresses that passed."""

    def __init__(self, allowed: AllowList, resolve: ResolveHost, network: httpcore2.AsyncNetworkBackend) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises NotAllowed, InvalidInput or Unavailable, which httpcore2 lets pass, and its own ConnectError."""
        *others, last = await self.check(host, port)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                stream = await self._network.connect_tcp(str(address), port, _PATIENCE_S, local_address, socket_options)
                return await self._kept(stream, host, port, address)
        stream = await self._network.connect_tcp(str(last), port, timeout, local_address, socket_options)
        return await self._kept(stream, host, port, last)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def check(self, host: str, port: int) -> list[Address]:
        """The addresses of the host, each of them fit to be reached at that port; never empty."""
        if not self._allowed.names(host, port):
            reason = find_port_refusal(port)
            if reason is not None:
                raise NotAllowed(f"{host}:{port} may not be fetched: {reason}", code="port_refused")
        addresses = await self._lookup(host, port)
        for address in addresses:
            reason = find_refusal(address)
            if reason is not None and not self._allowed.admits(host, port, address):
                raise NotAllowed(
                    f"{host} may not be fetched: its address is {reason}",
                    code="address_refused",
                    fix="only addresses of the public internet can be fetched",
                    host=host,
                    address=str(address),
                )
        return addresses[:_MAX_ADDRESSES]

    async def _lookup(self, host: str, port: int) -> list[Address]:
        with suppress(ValueError):
            return [ip_address(host)]
        try:
            addresses = [ip_address(text) for text in await self._resolve(host, port)]
        except OSError as error:
            raise Unavailable(f"the name {host} could not be resolved", code="unknown_host", why=str(error)) from error
        except ValueError as error:
            raise InvalidInput(f"{host} is no name of a host", code="bad_url") from error
        if not addresses:
            raise Unavailable(f"the name {host} has no address", code="unknown_host")
        return addresses

    async def _kept(
        self, stream: httpcore2.AsyncNetworkStream, host: str, port: int, address: Address
    ) -> httpcore2.AsyncNetworkStream:
        """The stream, unless it turns out to lead back to this machine. Nothing was sent over it yet."""
        loops = is_own_address(stream.get_extra_info("client_addr"), address, port)
        if loops and not self._allowed.admits(host, port, address):
            await stream.aclose()
            raise NotAllowed(f"{host}:{port} may not be fetched: it is this machine", code="address_refused")
        return stream


def is_own_address(own: tuple[str, int] | None, address: Address, port: int) -> bool:
    """Whether a connection from `own` to `address` stays on this machine, other than at the ports of websites.

    A machine with a public address of its own could be asked for services there that a firewall hides from others.
    """
    return own is not None and port not in {80, 443} and ip_address(own[0]) == address
