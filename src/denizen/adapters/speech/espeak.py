"""eSpeak NG: small, quick, speaks a hundred languages, and sounds like a machine.

Its library has one state for the process and speaks through a callback, so one text is spoken at a time.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from anyio import to_thread

from denizen.adapters.speech.audio import explain_missing_extra, resample
from denizen.domain.errors import NeedsAttention
from denizen.ports.speech import SAMPLE_RATE_HZ, Sound

DEFAULT_VOICE = "en-us+f2"
DEFAULT_WORDS_PER_MINUTE = 140
MAX_CHARS = 5000

# The constants of espeak-ng/speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS = 2
_DONT_EXIT = 0x8000
_CHARS_UTF8 = 1
_RATE = 1
_OK = 0

_OnSamples = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class _Library:
    """The loaded library, with its rate and the samples that it has made."""

    def __init__(self) -> None:
        with explain_missing_extra():
            import espeakng_loader
        self.calls: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path().encode()
        self.rate_hz: int = self.calls.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, data, _DONT_EXIT)
        if self.rate_hz <= 0:
            raise NeedsAttention(
                "eSpeak NG does not start.",
                code="voice_not_installed",
                why="Its data cannot be read.",
                fix="Install the extra `voice` anew.",
            )
        self.samples = bytearray()
        self._callback = _OnSamples(self._take)  # kept: the library does not
        self.calls.espeak_SetSynthCallback(self._callback)

    def _take(self, samples: int | None, count: int, events: int | None) -> int:
        del events
        if samples and count > 0:
            self.samples += ctypes.string_at(samples, count * ctypes.sizeof(ctypes.c_short))
        return 0


_lock = threading.Lock()
_loaded: list[_Library] = []


class EspeakSynthesizer:
    """Speaks with one voice of eSpeak NG, such as `en-us+f2` or `de`."""

    def __init__(self, voice: str = DEFAULT_VOICE, words_per_minute: int = DEFAULT_WORDS_PER_MINUTE) -> None:
        self._voice = voice
        self._words_per_minute = words_per_minute

    async def synthesize(self, text: str) -> Sound:
        """Raises NeedsAttention for a voice that does not exist, and when the extra is not installed."""
        return await to_thread.run_sync(self._speak, text[:MAX_CHARS])

    def _speak(self, text: str) -> Sound:
        with _lock:
            if not _loaded:
                _loaded.append(_Library())
            library = _loaded[0]
            if library.calls.espeak_SetVoiceByName(self._voice.encode()) != _OK:
                raise NeedsAttention(
                    f"eSpeak NG has no voice '{self._voice}'.",
                    code="voice_unknown",
                    fix="Write the code of a language such as en-us or de below tools.voice.voice.",
                )
            library.calls.espeak_SetParameter(_RATE, self._words_per_minute, 0)
            library.samples.clear()
            said = text.replace("\0", " ").encode() + b"\0"
            library.calls.espeak_Synth(said, ctypes.c_size_t(len(said)), 0, 0, 0, _CHARS_UTF8, None, None)
            library.calls.espeak_Synchronize()
            samples = bytes(library.samples)
            library.samples.clear()
        return Sound(resample(samples, library.rate_hz, SAMPLE_RATE_HZ))
