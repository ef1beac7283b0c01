"""Transcripts of videos, fetched by the library `youtube-transcript-api`, and the cache of those that were fetched.
Blocks.

YouTube has no supported way to ask for transcripts of other people's videos; the library follows YouTube's own player,
and its maintainers deal with YouTube's changes. It is given an HTTP session that goes to YouTube alone (or to the
configured site), with a deadline and a size limit for each response, and without proxies or credentials of the
environment.

The cache has a file for each video, so that a process that was killed goes on with the remaining videos. A video
without a transcript is asked for again on another day: YouTube makes many transcripts hours after the video.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from denizen.domain.errors import DenizenError, LimitExceeded, NeedsAttention, Unavailable
from denizen.domain.location import YOUTUBE
from denizen.domain.video import VideoAccess, VideoTranscript

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from youtube_transcript_api import TranscriptList, YouTubeTranscriptApi


TIMEOUT_S = 20.0
MAX_BYTES = 20 * 1024 * 1024

_DOMAIN = "youtube.com"


class TranscriptFetcher:
    """Fetches transcripts. Use it in one thread at a time."""

    def __init__(self, access: VideoAccess) -> None:
        from requests import Session
        from requests.adapters import HTTPAdapter
        from requests.exceptions import ContentDecodingError, InvalidURL
        from youtube_transcript_api import YouTubeTranscriptApi

        class SiteAdapter(HTTPAdapter):
            """Leads to the configured site, and nowhere else."""

            def send(self, request: PreparedRequest, *args: object, **kwargs: object) -> Response:
                request.url = _lead(request.url or "", access.site_url)
                if not request.url:
                    raise InvalidURL("it leads away from YouTube")
                answer = super().send(request, stream=True, timeout=TIMEOUT_S, verify=True)
                # One byte more than allowed tells a body that is too large from one that just fits.
                data = answer.raw.read(MAX_BYTES + 1, decode_content=True)
                if len(data) > MAX_BYTES:
                    raise ContentDecodingError("the answer is too large")
                answer.raw.close()
                answer.raw = io.BytesIO(data)
                return answer

        self._languages = access.languages
        self._session = Session()
        # Else requests would take proxies and passwords (.netrc) from the environment.
        self._session.trust_env = False
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, SiteAdapter())
        self._api: YouTubeTranscriptApi = YouTubeTranscriptApi(http_client=self._session)

    def fetch(self, video_id: str, duration_s: int) -> VideoTranscript:
        """Returns the transcript of a video, or one that says why there is none.

        Raises LimitExceeded when YouTube blocks this machine, Unavailable when it does not answer now, NeedsAttention
        when the library does not understand its pages.
        """
        from xml.etree.ElementTree import ParseError

        from requests import RequestException
        from youtube_transcript_api import CouldNotRetrieveTranscript

        try:
            chosen = _choose(self._api.list(video_id), self._languages)
            got = chosen.fetch()
        except CouldNotRetrieveTranscript as error:
            return VideoTranscript(duration_s, missing=_explain(error))
        except RequestException as error:
            raise Unavailable(
                "YouTube could not be read.", code="source_unavailable", why=type(error).__name__
            ) from error
        except ParseError:
            return VideoTranscript(duration_s, missing="its transcript is empty")
        lines = tuple((each.start, each.text) for each in got if each.text.strip())
        if not lines:
            return VideoTranscript(duration_s, missing="its transcript is empty")
        return VideoTranscript(duration_s, got.language_code, got.is_generated, lines)

    def close(self) -> None:
        self._session.close()


def _choose(found: TranscriptList, languages: Sequence[str]):  # noqa: ANN202
    """Prefers a written transcript to a generated one, and a wanted language to any other."""
    from youtube_transcript_api import NoTranscriptFound

    try:
        return found.find_transcript(languages)
    except NoTranscriptFound:
        for each in found:
            return each
        raise


def _explain(error: Exception) -> str:
    """Returns why a video has no transcript. Raises an error that ends the reading of the whole channel."""
    import youtube_transcript_api as library

    if isinstance(error, library.RequestBlocked):  # and IpBlocked, which is one
        raise LimitExceeded(
            "YouTube blocks this machine from transcripts at the moment.",
            code="youtube_blocked",
            why="YouTube takes it for a robot: it blocks addresses of data centres, and those that send many requests.",
            fix="Wait some hours, or run Denizen elsewhere. Transcripts that were fetched are not fetched again.",
        ) from error
    if isinstance(error, library.YouTubeRequestFailed):
        raise Unavailable("YouTube could not be read.", code="source_unavailable", why=_reason(error)) from error
    if isinstance(error, library.YouTubeDataUnparsable | library.FailedToCreateConsentCookie):
        raise _not_understood(error) from error
    for kind, why in (
        (library.TranscriptsDisabled, "it has no transcript"),
        (library.NoTranscriptFound, "it has no transcript"),
        (library.AgeRestricted, "it is for adults"),
        (library.VideoUnavailable, "it is not available"),
        (library.VideoUnplayable, "it cannot be played"),
        (library.PoTokenRequired, "its transcript is for YouTube's own player only"),
    ):
        if isinstance(error, kind):
            return why
    return "its transcript cannot be read"


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", "")).partition(" for url")[0][:200]


def _not_understood(error: Exception) -> DenizenError:
    return NeedsAttention(
        "YouTube's pages have changed and are not understood.",
        code="youtube_changed",
        why=type(error).__name__,
        fix="Upgrade Denizen, and `youtube-transcript-api` with it.",
    )


def _lead(url: str, site_url: str) -> str:
    """Returns where an address of YouTube leads; empty for any other."""
    site = site_url.rstrip("/")
    if url.startswith(f"{site}/"):
        return url
    if url.startswith(f"{YOUTUBE}/"):
        return f"{site}{url.removeprefix(YOUTUBE)}"
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    is_theirs = parts.scheme == "https" and (host == _DOMAIN or host.endswith(f".{_DOMAIN}"))
    return url if is_theirs and site == YOUTUBE else ""


class TranscriptCache:
    """The cached transcripts of one channel. `folder` need not exist."""

    def __init__(self, folder: Path, languages: Collection[str]) -> None:
        self._folder = folder
        self._languages = list(languages)

    def find(self, video_id: str, today: date) -> VideoTranscript | None:
        """Returns the cached transcript; None when the video is to be asked for."""
        try:
            told: dict[str, Any] = json.loads(self._place(video_id).read_bytes())
            asked_on, languages = told.pop("asked_on"), told.pop("languages")
            told["lines"] = tuple((float(at), str(words)) for at, words in told["lines"])
            said = VideoTranscript(**told)
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # or written by another version
            return None
        if languages != self._languages or (said.missing and asked_on != today.isoformat()):
            return None
        return said

    def put(self, video_id: str, said: VideoTranscript, today: date) -> None:
        """Writes the whole file or nothing."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._place(f".{secrets.token_hex(4)}")
        told = asdict(said) | {"asked_on": today.isoformat(), "languages": self._languages}
        try:
            beside.write_text(json.dumps(told), encoding="utf-8")
            beside.replace(self._place(video_id))
        finally:
            beside.unlink(missing_ok=True)

    def drop_others(self, video_ids: Collection[str]) -> None:
        """Removes all transcripts but these."""
        wanted = {self._place(each).name for each in video_ids}
        for place in list(self._folder.iterdir()) if self._folder.is_dir() else ():
            if place.name not in wanted:
                place.unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        return self._folder / f"{name}.json"
