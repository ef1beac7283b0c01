"""Reading feeds from real servers on loopback."""

from __future__ import annotations

import gzip

import pytest

from denizen.adapters.feeds import WebFeedReader
from denizen.adapters.feeds.parser import parse_feed
from denizen.adapters.feeds.reader import MAX_BYTES
from denizen.adapters.fetch import WebFetcher
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, Unavailable
from denizen.domain.feed import FeedItem, FeedVersion
from tests.local_server import Answer, Exchange, LocalServer, serve

pytestmark = pytest.mark.anyio

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News &amp; more</title><link>https://a.b</link>
<item><title>Two</title><guid>urn:2</guid><link>https://a.b/2</link>
<description>&lt;p&gt;Hello &lt;b&gt;you&lt;/b&gt;&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</description></item>
<item><title>One</title><link>/1</link><description>plain</description></item></channel></rss>"""
ATOM = """<?xml version="1.0" encoding="windows-1251"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Вести</title>
<entry><id>tag:1</id><title>Да</title><link href="https://a.b/x"/>
<content type="html">&lt;i&gt;ж&lt;/i&gt;</content></entry>
</feed>"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {name} "{f"&{of};" * 12}">' for of, name in zip("abcdefg", "bcdefgh", strict=True))
    + ']><rss version="2.0"><channel><title>&h;</title></channel></rss>'
)


def reader_of(server: LocalServer) -> WebFeedReader:
    return WebFeedReader(WebFetcher(allow_private=[server.address], backoff_s=(0.0, 0.0)))


async def read_refused(reader: WebFeedReader, url: str) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        await reader.read(url, FeedVersion())
    return caught.value


async def test_rss_is_read_with_plain_texts_and_whole_links() -> None:
    with serve({"/feed": lambda exchange: exchange.say(RSS, kind="application/rss+xml")}) as server:
        document = (await reader_of(server).read(server.url("/feed"), FeedVersion())).document
    assert document is not None
    assert document.title == "News & more"
    one = server.url("/1")
    assert list(document.items) == [
        FeedItem(key="urn:2", title="Two", url="https://a.b/2", text="Hello you"),
        FeedItem(key=one, title="One", url=one, text="plain"),
    ]


def test_atom_is_read_in_the_encoding_that_it_names() -> None:
    document = parse_feed(ATOM.encode("cp1251"), "https://a.b/")
    assert document.title == "Вести"
    assert list(document.items) == [FeedItem(key="tag:1", title="Да", url="https://a.b/x", text="ж")]


async def test_a_version_that_is_known_is_asked_for_with_both_of_its_marks_and_not_sent_again() -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.headers["If-None-Match"] == '"v1"' and exchange.headers["If-Modified-Since"] == "yesterday":
            exchange.say("", status=304)
        else:
            exchange.say(RSS, ETag='"v1"', Last_Modified="yesterday")

    with serve({"/feed": answer}) as server:
        reader = reader_of(server)
        first = await reader.read(server.url("/feed"), FeedVersion())
        assert first.version == FeedVersion(etag='"v1"', last_modified="yesterday")
        again = await reader.read(server.url("/feed"), first.version)
        assert again.document is None
        assert again.version == first.version
        other = await reader.read(server.url("/feed"), FeedVersion(etag='"v0"'))
        assert other.document is not None


async def test_a_mark_that_would_not_be_one_header_is_left_out() -> None:
    with serve({"/feed": lambda exchange: exchange.say(RSS)}) as server:
        await reader_of(server).read(server.url("/feed"), FeedVersion(etag="a\r\nx-evil: 1", last_modified="now"))
        assert "if-none-match" not in server.requests[0].headers
        assert "x-evil" not in server.requests[0].headers
        assert server.requests[0].headers["if-modified-since"] == "now"


@pytest.mark.parametrize(
    "text",
    ["", "hello", "<html><body><p>Hi</p></body></html>", "<rss><channel>", '{"a": 1}', BOMB, "<!DOCTYPE" * 100_000],
    ids=["empty", "text", "page", "broken", "json", "bomb", "prolog"],
)
async def test_what_is_no_feed_is_refused_with_words(text: str) -> None:
    with serve({"/feed": lambda exchange: exchange.say(text)}) as server:
        error = await read_refused(reader_of(server), server.url("/feed"))
    assert isinstance(error, InvalidInput)
    assert error.code == "feed_unreadable"
    assert error.why
    assert "RSS or Atom" in error.fix


async def test_entities_of_html_that_nothing_declares_are_read() -> None:
    text = '<rss version="2.0"><channel><title>a&nbsp;&eacute; &amp;lt;</title></channel></rss>'
    assert parse_feed(text.encode(), "https://a.b").title == "a é <"


async def test_a_feed_that_is_too_large_is_refused_however_small_it_was_packed() -> None:
    packed = gzip.compress(b"<rss>" + b" " * (MAX_BYTES + 1))
    with serve({"/feed": lambda exchange: exchange.say(packed, Content_Encoding="gzip")}) as server:
        error = await read_refused(reader_of(server), server.url("/feed"))
    assert error.code == "feed_too_large"
    assert "4 MB" in error.fix


async def test_an_error_of_the_server_is_told() -> None:
    with serve({"/gone": lambda exchange: exchange.say("", status=410)}) as server:
        error = await read_refused(reader_of(server), server.url("/gone"))
        assert isinstance(error, Unavailable)
        assert "410" in error.message
        assert "for good" in error.fix


async def test_a_feed_at_a_private_address_is_refused_also_where_a_redirect_leads_there() -> None:
    with serve({"/feed": lambda exchange: exchange.say(RSS)}) as inner:
        error = await read_refused(WebFeedReader(WebFetcher()), inner.url("/feed"))
        assert isinstance(error, NotAllowed)
        with serve({"/feed": lambda exchange: exchange.redirect(inner.url("/feed"))}) as outer:
            error = await read_refused(reader_of(outer), outer.url("/feed"))
            assert isinstance(error, NotAllowed)
        assert inner.requests == []


async def test_a_redirect_to_another_public_address_is_followed() -> None:
    routes: dict[str, Answer] = {
        "/old": lambda exchange: exchange.redirect("/new"),
        "/new": lambda exchange: exchange.say(RSS),
    }
    with serve(routes) as server:
        assert (await reader_of(server).read(server.url("/old"), FeedVersion())).document is not None
