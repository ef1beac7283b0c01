"""The YouTube Data API v3: which videos a channel has. Fifty videos cost three requests of the 10,000 a key has a day.

https://developers.google.com/youtube/v3/docs. The key goes in a header, so that no address, log or error holds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from denizen.domain.errors import DenizenError, LimitExceeded, NeedsAttention, NotFound, Unavailable
from denizen.domain.location import YOUTUBE
from denizen.domain.record import record
from denizen.domain.video import Video, VideoAccess, read_duration
from denizen.ports.fetch import FetchedPage, Fetcher

PAGE = 50
"""The most rows that the service gives at once."""
TIMEOUT_S = 30.0

_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_OVER = frozenset({"quotaExceeded", "dailyLimitExceeded", "rateLimitExceeded", "userRateLimitExceeded"})
_BAD_KEY = frozenset({"keyInvalid", "keyExpired", "API_KEY_INVALID"})

Row = Mapping[str, Any]


@record
class UploadsPlaylist:
    """A channel's title, and the playlist of all its videos."""

    channel: str
    playlist: str


class YoutubeDataApi:
    """Requests to the API. Raises NotFound for a channel that does not exist, NeedsAttention for a key that is
    refused, LimitExceeded when its quota is used up, Unavailable for what is worth another try.
    """

    def __init__(self, access: VideoAccess, fetcher: Fetcher) -> None:
        self._access = access
        self._fetcher = fetcher

    async def find_uploads(self, location: str) -> UploadsPlaylist:
        """Finds a channel. `location` has the form that `domain.location` gives it."""
        name, _, value = location.removeprefix(f"{YOUTUBE}/").rpartition("/")
        which = {"": "forHandle", "channel": "id", "user": "forUsername"}[name]
        rows = await self._list("channels", {"part": "snippet,contentDetails", which: value})
        for row in rows:
            playlist = _text(row, "contentDetails", "relatedPlaylists", "uploads")
            if playlist:
                return UploadsPlaylist(_text(row, "snippet", "title") or value, playlist)
        raise NotFound("There is no such channel on YouTube.", code="source_missing", fix="Check the location.")

    async def list_videos(self, uploads: UploadsPlaylist, most: int) -> list[Video]:
        """Returns at most so many videos, the newest first, without private and deleted ones (rows without a date)."""
        videos: dict[str, Video] = {}
        token = ""
        while len(videos) < most:
            asked = {"part": "snippet,contentDetails", "playlistId": uploads.playlist, "maxResults": str(PAGE)}
            answer = await self._ask("playlistItems", asked | ({"pageToken": token} if token else {}))
            for row in _rows(answer):
                video = _video(row)
                if video is not None:
                    videos.setdefault(video.id, video)
            token = _text(answer, "nextPageToken")
            if not token:
                break
        # The playlist is in the order of uploading, which is not always that of publishing.
        newest = sorted(videos.values(), key=lambda video: video.published, reverse=True)
        return newest[:most]

    async def find_durations(self, video_ids: Sequence[str]) -> dict[str, int]:
        """Returns seconds by id."""
        found: dict[str, int] = {}
        for start in range(0, len(video_ids), PAGE):
            chosen = video_ids[start : start + PAGE]
            rows = await self._list("videos", {"part": "contentDetails", "id": ",".join(chosen)})
            found |= {_text(row, "id"): read_duration(_text(row, "contentDetails", "duration")) for row in rows}
        return found

    async def _list(self, what: str, asked: Mapping[str, str]) -> list[Row]:
        return _rows(await self._ask(what, asked))

    async def _ask(self, what: str, asked: Mapping[str, str]) -> Row:
        got = await self._fetcher.fetch(
            f"{self._access.api_url.rstrip('/')}/{what}?{urlencode(asked)}",
            timeout_s=TIMEOUT_S,
            headers={"X-Goog-Api-Key": self._access.api_key},
        )
        if got.status != 200:
            raise _explain(got)
        answer = _parse(got)
        if answer is None:
            raise Unavailable("YouTube's response cannot be read.", code="source_unavailable", why="It is not JSON.")
        return answer


def _explain(got: FetchedPage) -> DenizenError:
    """Returns what an error response means. https://developers.google.com/youtube/v3/docs/errors"""
    error = cast("Row", (_parse(got) or {}).get("error") or {})
    reasons = {str(row.get("reason", "")) for key in ("errors", "details") for row in _rows(error, key)}
    why = f"HTTP {got.status} {', '.join(sorted(filter(None, reasons)))}".strip()
    if reasons & _OVER or got.status == 429:
        return LimitExceeded(
            "The quota of the YouTube API key is used up for now.",
            code="youtube_quota",
            why=why,
            fix="Wait: a day's quota begins anew at midnight in California. Sync less often, or ask Google for more.",
        )
    # After the quota: that is a 403 too.
    if reasons & _BAD_KEY or got.status in (401, 403):
        return NeedsAttention(
            "YouTube refused the API key.",
            code="youtube_key_refused",
            why=why,
            fix="Look at knowledge.youtube.api_key, and whether its project has the YouTube Data API v3 switched on.",
        )
    if got.status == 404:
        return NotFound("The channel has no list of videos.", code="source_empty", why=why)
    if got.status < 500:
        return NeedsAttention("YouTube refused the request.", code="youtube_refused", why=why)
    return Unavailable("YouTube could not be read.", code="source_unavailable", why=why)


def _parse(got: FetchedPage) -> Row | None:
    try:
        value: Any = json.loads(got.text)
    except (ValueError, RecursionError):
        return None
    return cast("Row", value) if isinstance(value, dict) else None


def _rows(answer: Row, key: str = "items") -> list[Row]:
    rows: Any = answer.get(key)
    return [row for row in cast("list[Any]", rows) if isinstance(row, dict)] if isinstance(rows, list) else []


def _text(row: Row, *path: str) -> str:
    """Returns the text at that path; empty for anything else."""
    found: Any = row
    for key in path:
        found = cast("Row", found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _video(row: Row) -> Video | None:
    key, published = _text(row, "contentDetails", "videoId"), _text(row, "contentDetails", "videoPublishedAt")
    try:
        at = datetime.fromisoformat(published)
    except ValueError:
        return None
    return Video(key, _text(row, "snippet", "title"), at) if _ID.fullmatch(key) and at.tzinfo else None
