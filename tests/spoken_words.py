"""Texts that the engines which run here understand well, and whether what was understood is what was said."""

from __future__ import annotations

from difflib import SequenceMatcher

MEETING = "the meeting starts at nine o'clock tomorrow"
ECONOMY = "the president will speak about the economy on monday"


def sounds_like(heard: str, said: str) -> bool:
    """Whether at least half of the words were understood, in order: a busy machine loses packets, as networks do."""
    return SequenceMatcher(None, heard.split(), said.split()).ratio() >= 0.5


def sound_like(heard: list[str], said: list[str]) -> bool:
    """The same of several texts."""
    return len(heard) == len(said) and all(map(sounds_like, heard, said))
