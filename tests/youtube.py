"""YouTube on loopback, as far as a channel is read: the Data API v3, the page of a video, its player, its transcripts.

The answers have the form of the real ones. What it was asked is in `asked`; it hangs or fails when it is told to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.local_server import QuietServer, run_in_thread
from tests.timing import HANG_LIMIT_S

KEY = "AIza-a-key-for-tests-only-0123456789"
CHANNEL = "UC0123456789abcdefghijkl"
PLAYLIST = f"UU{CHANNEL[2:]}"
HANDLE = "@harbour"
FIRST = datetime(2026, 1, 1, 10, tzinfo=UTC)

PAGE = '<html><script>ytcfg.set({"INNERTUBE_API_KEY": "AIza-inner_key","X":1});</script></html>'


@dataclass(slots=True)
class FakeVideo:
    """A video. `lines` by language; `recognised` are languages of which a machine wrote them. `state` is what the
    player says when it does not play: status and reason.
    """

    id: str
    title: str
    published: datetime
    lines: dict[str, list[tuple[float, str]]] = field(default_factory=dict[str, list[tuple[float, str]]])
    recognised: frozenset[str] = frozenset()
    duration: str = "PT2M5S"
    state: tuple[str, str] = ("OK", "")
    is_private: bool = False


@dataclass(slots=True)
class YouTube:
    """One channel. `failures` are statuses and reasons by what is asked for, `hanging` videos that never answer;
    `elsewhere` stands in place of the address of transcripts.
    """

    port: int = 0
    title: str = "Harbour talks"
    films: list[FakeVideo] = field(default_factory=list[FakeVideo])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    failures: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    hanging: set[str] = field(default_factory=set[str])
    elsewhere: str = "https://www.youtube.com/api/timedtext?"
    reached: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.url}/youtube/v3"

    def add(self, name: str, title: str, *words: str, **more: Any) -> FakeVideo:
        """The newest from now on. `name` becomes an id of eleven characters."""
        lines = {"en": [(number * 45.0, each) for number, each in enumerate(words)]} if words else {}
        at = FIRST + timedelta(days=len(self.films))
        film = replace(FakeVideo(f"{name:_<11}"[:11], title, at, lines), **more)
        self.films.insert(0, film)
        return film

    def fetched(self) -> list[str]:
        """Videos whose page was asked for, by the words that their ids were made of."""
        return [which.rstrip("_") for what, which in self.asked if what == "watch"]

    def find(self, video_id: str) -> FakeVideo:
        return next(film for film in self.films if film.id == video_id)


class _Handler(BaseHTTPRequestHandler):
    youtube: YouTube

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        if parts.path.startswith("/youtube/v3/"):
            self._answer_api(parts.path.removeprefix("/youtube/v3/"), query)
        elif parts.path == "/watch":
            self._show(query["v"])
        elif parts.path == "/api/timedtext":
            self._send_transcript(query["v"], query["lang"])
        else:
            self._say(404, "", "text/html")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert urlsplit(self.path).path == "/youtubei/v1/player"
        film = self.youtube.find(body["videoId"])
        status, reason = film.state
        told: dict[str, Any] = {"playabilityStatus": {"status": status, **({"reason": reason} if reason else {})}}
        if film.lines:
            told["captions"] = {
                "playerCaptionsTracklistRenderer": {
                    "captionTracks": [_track(self.youtube, film, each) for each in film.lines],
                    "translationLanguages": [{"languageCode": "de", "languageName": {"runs": [{"text": "German"}]}}],
                }
            }
        self._say(200, json.dumps(told), "application/json")

    def _answer_api(self, what: str, query: Mapping[str, str]) -> None:
        youtube = self.youtube
        youtube.asked.append((what, query.get("pageToken") or query.get("id") or query.get("forHandle") or ""))
        assert "key" not in query
        failure = youtube.failures.get(what)
        if self.headers["X-Goog-Api-Key"] != KEY:
            failure = (400, "API_KEY_INVALID")
        if failure is not None:
            self._say(failure[0], json.dumps(_error(*failure)), "application/json")
            return
        rows = {"channels": self._channels, "playlistItems": self._items, "videos": self._videos}[what](query)
        self._say(200, json.dumps({"kind": f"youtube#{what}ListResponse", "etag": "x", **rows}), "application/json")

    def _channels(self, query: Mapping[str, str]) -> dict[str, Any]:
        is_known = query.get("forHandle") == HANDLE or query.get("id") == CHANNEL or query.get("forUsername") == "harb"
        row = {
            "kind": "youtube#channel",
            "id": CHANNEL,
            "snippet": {"title": self.youtube.title, "customUrl": HANDLE},
            "contentDetails": {"relatedPlaylists": {"likes": "", "uploads": PLAYLIST}},
        }
        return {"items": [row], "pageInfo": {"totalResults": 1}} if is_known else {"pageInfo": {"totalResults": 0}}

    def _items(self, query: Mapping[str, str]) -> dict[str, Any]:
        assert query["playlistId"] == PLAYLIST
        size, start = int(query["maxResults"]), int(query.get("pageToken", "0"))
        assert size <= 50
        films = self.youtube.films[start : start + size]
        token = {"nextPageToken": str(start + size)} if start + size < len(self.youtube.films) else {}
        return {"items": [_item(film) for film in films], "pageInfo": {"resultsPerPage": size}, **token}

    def _videos(self, query: Mapping[str, str]) -> dict[str, Any]:
        wanted = query["id"].split(",")
        assert len(wanted) <= 50
        films = [film for film in self.youtube.films if film.id in wanted]
        return {"items": [{"id": film.id, "contentDetails": {"duration": film.duration}} for film in films]}

    def _show(self, video_id: str) -> None:
        self.youtube.asked.append(("watch", video_id))
        if video_id.rstrip("_") in self.youtube.hanging:
            self.youtube.reached.set()
            self.youtube.closing.wait(HANG_LIMIT_S)
            return
        failure = self.youtube.failures.get("watch")
        self._say(failure[0] if failure else 200, PAGE, "text/html; charset=utf-8")

    def _send_transcript(self, video_id: str, language: str) -> None:
        lines = self.youtube.find(video_id).lines[language]
        told = (f'<text start="{at}" dur="4.5">{escape(escape(words))}</text>' for at, words in lines)
        text = f'<?xml version="1.0" encoding="utf-8" ?><transcript>{"".join(told)}</transcript>'
        self._say(200, text, "text/xml; charset=UTF-8")

    def _say(self, status: int, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests read `asked` instead."""


def _track(youtube: YouTube, film: FakeVideo, language: str) -> dict[str, Any]:
    return {
        "baseUrl": f"{youtube.elsewhere}v={film.id}&lang={language}&fmt=srv3",
        "name": {"runs": [{"text": language}]},
        "languageCode": language,
        "isTranslatable": True,
        **({"kind": "asr"} if language in film.recognised else {}),
    }


def _item(film: FakeVideo) -> dict[str, Any]:
    published = {} if film.is_private else {"videoPublishedAt": film.published.strftime("%Y-%m-%dT%H:%M:%SZ")}
    title = "Private video" if film.is_private else film.title
    return {
        "kind": "youtube#playlistItem",
        "id": f"item-{film.id}",
        "snippet": {"title": title, "resourceId": {"kind": "youtube#video", "videoId": film.id}},
        "contentDetails": {"videoId": film.id, **published},
    }


def _error(status: int, reason: str) -> dict[str, Any]:
    """As Google's services tell what is wrong."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}]
    errors = [{"message": "No.", "domain": "youtube.quota", "reason": reason}]
    return {"error": {"code": status, "message": "No.", "errors": errors, "details": details}}


@contextmanager
def open_youtube() -> Generator[YouTube]:
    """Answers on a free port of loopback until the block ends."""

    class Handler(_Handler):
        pass

    youtube = Handler.youtube = YouTube()
    with run_in_thread(QuietServer(("127.0.0.1", 0), Handler)) as youtube.port:
        try:
            yield youtube
        finally:
            youtube.closing.set()
