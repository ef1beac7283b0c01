"""A YouTube channel as a source: a document for each of its newest videos, and an index.

The revision is a digest of the list of videos with their titles; as long as some have no transcript, it holds for a
day.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from shutil import rmtree

from anyio import to_thread

from denizen.adapters.youtube.api import YoutubeDataApi
from denizen.adapters.youtube.transcripts import TranscriptCache, TranscriptFetcher
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention, NotFound
from denizen.domain.record import record
from denizen.domain.source import Source
from denizen.domain.video import Video, VideoAccess, VideoTranscript, write_index, write_video
from denizen.ports.fetch import Fetcher
from denizen.ports.source import ReadingProgress, ReportProgress, SourceFile, SourceTree

OpenFetcher = Callable[[VideoAccess], Fetcher]
"""Opens a fetcher that may send the key to the API, and reaches nothing private besides."""


@record
class _Listing:
    """A channel and its videos."""

    channel: str
    videos: Sequence[Video]

    def revision(self, silent: bool, today: date) -> str:  # noqa: FBT001
        rows = [(video.id, video.title, video.published.isoformat()) for video in self.videos]
        day = today.isoformat() if silent else ""
        return hashlib.sha256(repr([self.channel, day, rows]).encode(errors="surrogatepass")).hexdigest()[:40]


class YoutubeReader:
    """Reads channels (`denizen.ports.source.SourceReader`).

    `access` is called each time and returns None where there is no key; `folder` is for the cached transcripts alone.
    """

    def __init__(
        self, access: Callable[[], VideoAccess | None], open_fetcher: OpenFetcher, folder: Path, clock: Clock
    ) -> None:
        self._access = access
        self._open_fetcher = open_fetcher
        self._folder = folder
        self._clock = clock

    async def look(self, source: Source) -> str:
        access = self._get_access()
        listing, today = await self._list(access, source), self._clock.now().date()
        kept = self._kept(source.id, access)
        return await to_thread.run_sync(_revision, listing, kept, today)

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Gives the documents of the channel. Raises NotFound for a channel without videos."""
        access = self._get_access()
        report(ReadingProgress("listing videos"))
        listing, kept = await self._list(access, source), self._kept(source.id, access)
        said = await self._fetch(access, listing, kept, report)
        is_silent = any(each.missing for each in said.values())
        documents = [
            (video.file, write_video(video, said[video.id], listing.channel))
            for video in listing.videos
            if not said[video.id].missing
        ]
        documents.append(("index.md", write_index(listing.channel, listing.videos, said)))
        yield SourceTree(listing.revision(is_silent, self._clock.now().date()), len(documents), map(_file, documents))
        await to_thread.run_sync(kept.drop_others, [video.id for video in listing.videos])

    async def forget(self, source_ids: Sequence[str]) -> None:
        for source_id in source_ids:
            await to_thread.run_sync(partial(rmtree, self._folder / source_id, ignore_errors=True))

    def _get_access(self) -> VideoAccess:
        access = self._access()
        if access is None:
            raise NeedsAttention(
                "Channels of YouTube are not read without an API key.",
                code="youtube_key_missing",
                fix="Make one for the YouTube Data API v3 and write knowledge.youtube.api_key: ${YOUTUBE_API_KEY}.",
            )
        return access

    def _kept(self, source_id: str, access: VideoAccess) -> TranscriptCache:
        return TranscriptCache(self._folder / source_id, access.languages)

    async def _list(self, access: VideoAccess, source: Source) -> _Listing:
        fetcher = self._open_fetcher(access)
        try:
            api = YoutubeDataApi(access, fetcher)
            uploads = await api.find_uploads(source.location)
            videos = await api.list_videos(uploads, source.max_videos)
        finally:
            await fetcher.aclose()
        if not videos:
            raise NotFound("The channel has no video that everybody may see.", code="source_empty")
        return _Listing(uploads.channel, videos)

    async def _fetch(
        self, access: VideoAccess, listing: _Listing, kept: TranscriptCache, report: ReportProgress
    ) -> dict[str, VideoTranscript]:
        """Fetches the transcripts one after the other: YouTube blocks whoever asks for many at once."""
        today = self._clock.now().date()
        known = {video.id: await to_thread.run_sync(kept.find, video.id, today) for video in listing.videos}
        found = {key: said for key, said in known.items() if said is not None}
        wanted = [key for key, said in known.items() if said is None]
        if not wanted:
            return found
        fetcher = self._open_fetcher(access)
        try:
            durations = await YoutubeDataApi(access, fetcher).find_durations(wanted)
        finally:
            await fetcher.aclose()
        transcripts = await to_thread.run_sync(TranscriptFetcher, access)
        try:
            # Each is cached at once, so that a block by YouTube loses nothing.
            for key in wanted:
                report(ReadingProgress("fetching transcripts", len(found), len(listing.videos)))
                said = await to_thread.run_sync(transcripts.fetch, key, durations.get(key, 0))
                await to_thread.run_sync(kept.put, key, said, today)
                found[key] = said
        finally:
            transcripts.close()
        return found


def _revision(listing: _Listing, kept: TranscriptCache, today: date) -> str:
    """Returns the revision by what the cache knows. A video that was not asked for today counts as one without a
    transcript, so that it is asked for again on another day.
    """
    said = [kept.find(video.id, today) for video in listing.videos]
    return listing.revision(any(each is None or each.missing for each in said), today)


def _file(document: tuple[str, str]) -> SourceFile:
    path, text = document
    data = text.encode(errors="replace")
    return SourceFile(path, len(data), lambda: data)
