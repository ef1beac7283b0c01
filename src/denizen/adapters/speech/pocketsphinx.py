"""PocketSphinx: writes down English with the model that comes with its package.

It needs no download and no graphics card, and it mishears a lot. Who needs more names a server with Whisper.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from anyio import to_thread

from denizen.adapters.speech.audio import explain_missing_extra, resample
from denizen.ports.speech import SAMPLE_BYTES, SAMPLE_RATE_HZ, Sound

_RATE_HZ = 16_000
_SILENCE = bytes(_RATE_HZ * SAMPLE_BYTES // 5)
"""A fifth of a second: words at the very edge of a recording are not recognized."""
_QUIET = 200
"""Sound whose loudest sample is below that has no words; the model would find some."""
MAX_S = 120.0


class PocketsphinxRecognizer:
    """Recognizes English, one recording at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decoder: Any = None
        self._means = ""

    async def transcribe(self, sound: Sound) -> str:
        """Raises NeedsAttention when the extra is not installed."""
        return await to_thread.run_sync(self._recognize, sound)

    def _recognize(self, sound: Sound) -> str:
        kept = sound.samples[: int(MAX_S * SAMPLE_RATE_HZ) * SAMPLE_BYTES]
        samples = resample(kept, SAMPLE_RATE_HZ, _RATE_HZ)
        if max(map(abs, memoryview(samples).cast("h")), default=0) < _QUIET:
            return ""
        with self._lock:
            if self._decoder is None:
                with explain_missing_extra():
                    package: Any = import_module("pocketsphinx")
                # A little noise, the same each time: it learned from recordings, in which nothing is quite silent.
                made = package.Decoder(samprate=_RATE_HZ, loglevel="FATAL", dither=True, seed=7)
                self._decoder, self._means = made, str(made.get_cmn(update=False))
            decoder = self._decoder
            decoder.set_cmn(self._means)  # each recording may be of somebody else
            decoder.start_utt()
            try:
                decoder.process_raw(_SILENCE + samples + _SILENCE, no_search=False, full_utt=True)
            finally:
                decoder.end_utt()
            found = decoder.hyp()
        return found.hypstr.strip() if found is not None else ""
