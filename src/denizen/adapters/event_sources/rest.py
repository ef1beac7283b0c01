"""`WebResourceReader`: asks a REST resource for what has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from denizen.domain.cloud_event import read_json
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.event_source import PollSource
from denizen.domain.feed import FeedVersion
from denizen.ports.event_sources import ResourceReading
from denizen.ports.fetch import FileValidators, VersionFetcher

TIMEOUT_S = 30.0
MAX_BYTES = 2_000_000
ACCEPT = "application/json, */*;q=0.1"
_OK, _NOT_MODIFIED, _REFUSED = 200, 304, (401, 403)


class WebResourceReader:
    """Implements `ports.event_sources.ResourceReader`. `open_fetcher` makes what fetches, by the `host:port` pairs of
    the own network that it may reach.
    """

    def __init__(self, open_fetcher: Callable[[Sequence[str]], VersionFetcher]) -> None:
        self._open_fetcher = open_fetcher

    async def read(self, source: PollSource, known: FeedVersion) -> ResourceReading:
        """Implements the port."""
        found = await self._open_fetcher(source.private_hosts).fetch_version(
            source.url,
            FileValidators(etag=known.etag, last_modified=known.last_modified),
            accept=ACCEPT,
            timeout_s=TIMEOUT_S,
            max_bytes=MAX_BYTES,
            headers=source.headers,
        )
        file = found.file
        if file.status == _NOT_MODIFIED:
            return ResourceReading(None, known, has_changed=False)
        if file.status != _OK:
            fix = "Look at its headers in the configuration." if file.status in _REFUSED else "Look at its address."
            raise Unavailable(f"The server of the resource answered {file.status}.", code="poll_status", fix=fix)
        if file.truncated:
            fix = "Ask for less at a time, by its own parameters in the address."
            raise InvalidInput(f"The answer has more than {MAX_BYTES // 1_000_000} MB.", code="poll_too_long", fix=fix)
        try:
            content = read_json(file.data.decode("utf-8-sig"))
        except ValueError as error:
            raise InvalidInput(
                "The answer of the resource is not valid JSON.", code="poll_unreadable", fix="Look at its address."
            ) from error
        version = FeedVersion(etag=found.validators.etag, last_modified=found.validators.last_modified)
        return ResourceReading(content, version)
