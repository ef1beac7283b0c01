"""The ports of speech: text that is spoken, and sound that is written down.

Implemented by `adapters/speech`: eSpeak NG and PocketSphinx, which run here, and any server with OpenAI's
`/audio/speech` and `/audio/transcriptions`. Sound is only ever in memory.
"""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from denizen.domain.record import record

SAMPLE_RATE_HZ = 48_000
SAMPLE_BYTES = 2


@record
class Sound:
    """Mono sound as 16-bit little-endian samples, 48,000 in a second."""

    samples: bytes = field(repr=False)

    @property
    def duration_s(self) -> float:
        return len(self.samples) / (SAMPLE_RATE_HZ * SAMPLE_BYTES)


class SpeechSynthesizer(Protocol):
    """Speaks texts."""

    async def synthesize(self, text: str) -> Sound:
        """Returns the spoken text. Raises NeedsAttention when the operator has to fix something, and Unavailable when
        there is no answer now.
        """
        ...


class SpeechRecognizer(Protocol):
    """Writes down what is said."""

    async def transcribe(self, sound: Sound) -> str:
        """Returns the words, or nothing where no words were recognized. Raises as `SpeechSynthesizer` does."""
        ...


@record
class Speech:
    """A pair of engines: one speaks, the other writes down."""

    synthesizer: SpeechSynthesizer
    recognizer: SpeechRecognizer
