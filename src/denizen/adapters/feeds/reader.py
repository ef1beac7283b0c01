"""`WebFeedReader`: fetches a feed if it has changed."""

from __future__ import annotations

from functools import partial

from anyio import to_thread

from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.feed import FeedDocument, FeedVersion
from denizen.ports.feeds import FeedReading
from denizen.ports.fetch import FileValidators, VersionFetcher

TIMEOUT_S = 30.0
MAX_BYTES = 4_000_000
ACCEPT = "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"

_OK, _NOT_MODIFIED, _GONE = 200, 304, 410


class WebFeedReader:
    """Implements `ports.feeds.FeedReader`."""

    def __init__(self, fetcher: VersionFetcher) -> None:
        self._fetcher = fetcher

    async def read(self, url: str, known: FeedVersion) -> FeedReading:
        """Implements the port."""
        validators = FileValidators(etag=known.etag, last_modified=known.last_modified)
        found = await self._fetcher.fetch_version(
            url, validators, accept=ACCEPT, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES
        )
        file = found.file
        if file.status == _NOT_MODIFIED:
            return FeedReading(None, known)
        if file.status != _OK:
            raise Unavailable(
                f"The server of the feed answered {file.status}.",
                code="feed_status",
                fix="The feed is gone for good." if file.status == _GONE else "Look at its address in a browser.",
            )
        if file.truncated:
            raise InvalidInput(
                "The feed is too large.",
                code="feed_too_large",
                fix=f"Feeds of at most {MAX_BYTES // 1_000_000} MB can be followed.",
            )
        document = await to_thread.run_sync(partial(_parse, file.data, file.url), abandon_on_cancel=True)
        version = FeedVersion(etag=found.validators.etag, last_modified=found.validators.last_modified)
        return FeedReading(document, version)


def _parse(data: bytes, url: str) -> FeedDocument:
    from denizen.adapters.feeds.parser import parse_feed  # loads feedparser, which most homes do not need

    return parse_feed(data, url)
