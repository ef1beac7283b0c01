"""Transcripts that were fetched, a file for each video, so that none is asked for again. Blocks.

A process that is killed goes on with the videos that it had not come to. One without a transcript is asked for again on
another day: YouTube makes many of them hours after a video is there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from denizen.domain.video import Transcript


class TranscriptCache:
    """Those of one channel. `folder` need not exist."""

    def __init__(self, folder: Path, languages: Collection[str]) -> None:
        self._folder = folder
        self._languages = list(languages)

    def find(self, video_id: str, today: date) -> Transcript | None:
        """None for one that is to be asked for."""
        try:
            told: dict[str, Any] = json.loads(self._place(video_id).read_bytes())
            asked_on, languages = told.pop("asked_on"), told.pop("languages")
            told["lines"] = tuple((float(at), str(words)) for at, words in told["lines"])
            said = Transcript(**told)
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # or written by another version
            return None
        if languages != self._languages or (said.missing and asked_on != today.isoformat()):
            return None
        return said

    def put(self, video_id: str, said: Transcript, today: date) -> None:
        """At once, or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._place(f".{secrets.token_hex(4)}")
        told = asdict(said) | {"asked_on": today.isoformat(), "languages": self._languages}
        try:
            beside.write_text(json.dumps(told), encoding="utf-8")
            beside.replace(self._place(video_id))
        finally:
            beside.unlink(missing_ok=True)

    def drop_others(self, video_ids: Collection[str]) -> None:
        """All but these."""
        wanted = {self._place(each).name for each in video_ids}
        for place in list(self._folder.iterdir()) if self._folder.is_dir() else ():
            if place.name not in wanted:
                place.unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        return self._folder / f"{name}.json"
