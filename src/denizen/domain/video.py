"""Videos of a channel and the documents that are made of their transcripts. Pure.

They are asked for by `adapters/youtube`; how that is done is in `VideoAccess`, which the configuration gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime

from denizen.domain.document import clock_time, front_matter, one_line, slug
from denizen.domain.location import YOUTUBE
from denizen.domain.record import record

PARAGRAPH_S = 60.0
"""So much of what is said stands in one paragraph, which begins with its time."""

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


@record
class VideoAccess:
    """How YouTube is asked. `languages` are those of transcripts, the best first; where none of them is there, any
    other is taken.
    """

    api_key: str = field(repr=False)
    api_url: str = "https://www.googleapis.com/youtube/v3"
    site_url: str = YOUTUBE
    languages: tuple[str, ...] = ("en",)


@record
class Video:
    """As the list of its channel tells it."""

    id: str
    title: str
    published: datetime

    @property
    def url(self) -> str:
        return f"{YOUTUBE}/watch?v={self.id}"

    @property
    def file(self) -> str:
        return f"{self.id}-{slug(self.title)}.md"


@record
class VideoTranscript:
    """The spoken words of a video: seconds from its beginning, and words. Without any, `missing` says why."""

    duration_s: int = 0
    language: str = ""
    is_generated: bool = False
    lines: tuple[tuple[float, str], ...] = ()
    missing: str = ""


def read_duration(text: str) -> int:
    """Seconds, from `PT1H2M3S`; 0 for what is none, such as a stream that goes on."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def write_video(video: Video, said: VideoTranscript, channel: str) -> str:
    """The document of one video."""
    head = front_matter(
        {
            "title": one_line(video.title),
            "video_id": video.id,
            "url": video.url,
            "published": video.published.date().isoformat(),
            "duration": clock_time(said.duration_s),
            "channel": one_line(channel),
            "language": said.language,
        }
    )
    how = "The words were recognised by a machine.\n\n" if said.is_generated else ""
    paragraphs: list[list[str]] = []
    begun_s = -PARAGRAPH_S
    for at_s, words in said.lines:
        if at_s - begun_s >= PARAGRAPH_S or not paragraphs:
            begun_s = at_s
            paragraphs.append([f"[{clock_time(at_s)}]({video.url}&t={int(at_s)}s)"])
        paragraphs[-1].append(one_line(words))
    text = "\n\n".join(" ".join(filter(None, words)) for words in paragraphs)
    return f"{head}\n# {one_line(video.title)}\n\n{how}{text}\n"


def write_index(channel: str, videos: Sequence[Video], said: Mapping[str, VideoTranscript]) -> str:
    """The list of a channel's videos, those without a transcript too."""
    spoken = [video for video in videos if not said[video.id].missing]
    silent = [video for video in videos if said[video.id].missing]
    head = front_matter({"title": one_line(channel), "videos": len(videos), "without_transcript": len(silent)})
    text = f"{head}\n# {one_line(channel)}\n\n{len(videos)} videos, newest first.\n"
    if spoken:
        text += "\n" + "\n".join(_entry(video, said[video.id]) for video in spoken) + "\n"
    if silent:
        lines = (
            f"- {video.published:%Y-%m-%d} [{_label(video)}]({video.url}): {said[video.id].missing}" for video in silent
        )
        text += f"\n## Without a transcript: {len(silent)}\n\n" + "\n".join(lines) + "\n"
    return text


def _entry(video: Video, said: VideoTranscript) -> str:
    return f"- {video.published:%Y-%m-%d} [{_label(video)}]({video.file}) ({clock_time(said.duration_s)})"


def _label(video: Video) -> str:
    return one_line(video.title).replace("[", "(").replace("]", ")")
