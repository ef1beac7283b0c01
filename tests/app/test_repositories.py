"""Which servers repositories are read from: public ones, and those that the owner names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from denizen.adapters.fetch import WebFetcher
from denizen.adapters.git.program import RemoteAddress
from denizen.app.build import OpenOptions, open_denizen
from denizen.app.knowledge import resolve_repository
from denizen.domain.errors import NotAllowed
from denizen.domain.source import SourceChange
from denizen.ports.fetch import NO_HEADERS, FetchedPage
from tests.app.home_folder import LAB, Home

pytestmark = pytest.mark.anyio

ADDRESSES = {"git.example": "93.184.216.34", "new.example": "93.184.216.35", "git.lan": "10.0.0.7"}
REFS = "/info/refs?service=git-upload-pack"


class RedirectingFetcher(WebFetcher):
    """Every page is at `end`, if that may be reached."""

    def __init__(self, end: str = "", allow_private: Sequence[str] = ()) -> None:
        super().__init__(allow_private=allow_private, resolve=self._find)
        self.end = end

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        end = self.end or url
        await self.check(urlsplit(end).hostname or "", 443)
        return FetchedPage(end, 200, "text/plain", "", 0, truncated=False)

    async def _find(self, host: str, port: int) -> Sequence[str]:
        return [ADDRESSES[host]]


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("", ("https://git.example/docs", "93.184.216.34")),
        (f"https://new.example/docs.git{REFS}", ("https://new.example/docs.git", "93.184.216.35")),
        ("https://new.example/login", ("https://git.example/docs", "93.184.216.34")),
        (f"http://new.example/docs.git{REFS}", ("https://git.example/docs", "93.184.216.34")),
        (f"https://new.example/a=b{REFS}", ("https://git.example/docs", "93.184.216.34")),
    ],
)
async def test_a_redirect_to_another_public_place_is_followed(end: str, found: tuple[str, str]) -> None:
    location, address = found
    assert await resolve_repository(RedirectingFetcher(end), "https://git.example/docs") == RemoteAddress(
        location, (address,)
    )


@pytest.mark.proves("VW5")
@pytest.mark.parametrize(
    ("location", "end"),
    [
        ("https://127.0.0.1:8443/docs.git", ""),
        ("https://git.lan/docs.git", ""),
        ("https://git.example/docs.git", f"https://git.lan/docs.git{REFS}"),
    ],
)
async def test_a_private_server_is_read_from_only_when_the_owner_names_it(location: str, end: str) -> None:
    with pytest.raises(NotAllowed, match="may not be reached") as refused:
        await resolve_repository(RedirectingFetcher(end), location)
    assert "knowledge.private_hosts" in refused.value.fix
    if "git.lan" in location + end:
        found = await resolve_repository(RedirectingFetcher(end, ["git.lan:443"]), location)
        assert found.addresses == ("10.0.0.7",)


@pytest.mark.proves("VW5")
async def test_neither_a_repository_nor_a_sitemap_of_this_machine_is_read(home: Home) -> None:
    home.write(LAB)
    connected: list[SocketStream] = []

    async def hang_up(stream: SocketStream) -> None:
        connected.append(stream)
        await stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, hang_up)
        server = f"https://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        async with open_denizen(home.path, OpenOptions()) as denizen:
            for source_id, location in (("code", f"{server}/docs.git"), ("site", f"{server}/sitemap.xml")):
                await denizen.knowledge.catalog.add(location, SourceChange(), source_id=source_id)
            read = await denizen.knowledge.sync.wait(await denizen.knowledge.sync.start())
        assert (read.failed.keys(), connected) == ({"code", "site"}, [])
        group.cancel_scope.cancel()


async def test_private_servers_of_the_operator_are_not_read_for_one_discord_server(home: Home) -> None:
    connected: list[SocketStream] = []

    async def hang_up(stream: SocketStream) -> None:
        connected.append(stream)
        await stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, hang_up)
        server = f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        home.write(f"{LAB}\nknowledge: {{private_hosts: ['{server}']}}\n")
        async with open_denizen(home.path, OpenOptions()) as denizen:
            await denizen.knowledge.catalog.add(f"https://{server}/docs.git", SourceChange(guild="111"))
            read = await denizen.knowledge.sync.wait(await denizen.knowledge.sync.start())
            assert ("may not be reached" in read.failed["docs"], connected) == (True, [])
        group.cancel_scope.cancel()


def test_private_hosts_are_checked_when_they_are_read(home: Home) -> None:
    found = home.load("knowledge: {private_hosts: ['git.lan:443', 10.0.0.0/8]}").config.knowledge.private_hosts
    assert found == ("git.lan:443", "10.0.0.0/8")
    assert "cannot be allowed" in home.refuse("knowledge: {private_hosts: ['https://git.lan']}").explain()
