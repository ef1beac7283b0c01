"""Asking REST resources on a real server on loopback."""

from __future__ import annotations

import pytest

from denizen.adapters.event_sources import WebResourceReader
from denizen.adapters.fetch import WebFetcher
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, Unavailable
from denizen.domain.event_source import PollSource
from denizen.domain.feed import FeedVersion
from denizen.ports.event_sources import ResourceReading
from tests.local_server import Exchange, serve

pytestmark = pytest.mark.anyio

READER = WebResourceReader(lambda hosts: WebFetcher(allow_private=hosts, backoff_s=(0.0, 0.0)))


def source_at(url: str, *, is_private: bool = True, **headers: str) -> PollSource:
    return PollSource(name="tickets", url=url, headers=headers, is_private=is_private)


async def read_refused(source: PollSource) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await READER.read(source, FeedVersion())
    return caught.value


async def test_a_resource_is_read_with_its_headers_and_not_again_while_it_has_not_changed() -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.headers.get("if-none-match") == '"1"':
            exchange.say("", status=304)
        else:
            exchange.say('{"items": [1]}', kind="application/json", ETag='"1"')

    with serve({"/tickets": answer}) as server:
        source = source_at(server.url("/tickets"), Authorization="Bearer secret")
        first = await READER.read(source, FeedVersion())
        assert first == ResourceReading({"items": [1]}, FeedVersion(etag='"1"'))
        assert not (await READER.read(source, first.version)).has_changed
        assert [each.headers.get("authorization") for each in server.requests] == ["Bearer secret"] * 2


async def test_headers_do_not_follow_a_redirect_to_another_server() -> None:
    with (
        serve({"/x": lambda exchange: exchange.say("[]")}) as other,
        serve({"/x": lambda exchange: exchange.redirect(other.url("/x"))}) as server,
    ):
        reader = WebResourceReader(lambda hosts: WebFetcher(allow_private=[*hosts, other.address]))
        await reader.read(source_at(server.url("/x"), Authorization="Bearer secret"), FeedVersion())
        assert "authorization" in server.requests[0].headers and "authorization" not in other.requests[0].headers


async def test_what_cannot_be_read_says_why() -> None:
    deep = "[" * 100_000
    with serve(
        {
            "/page": lambda exchange: exchange.say("<html>"),
            "/deep": lambda exchange: exchange.say(deep),
            "/closed": lambda exchange: exchange.say("", status=401),
            "/huge": lambda exchange: exchange.say(f'["{"x" * 2_100_000}"]'),
        }
    ) as server:
        page = await read_refused(source_at(server.url("/page")))
        assert isinstance(page, InvalidInput) and page.code == "poll_unreadable"
        assert (await read_refused(source_at(server.url("/deep")))).code == "json_nesting"
        closed = await read_refused(source_at(server.url("/closed")))
        assert isinstance(closed, Unavailable) and "401" in closed.message and "headers" in closed.fix
        assert (await read_refused(source_at(server.url("/huge")))).code == "poll_too_long"
        assert isinstance(await read_refused(source_at(server.url("/page"), is_private=False)), NotAllowed)
