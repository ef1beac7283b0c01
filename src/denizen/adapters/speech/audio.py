"""Sound at other rates and in files: resampling, decoding, and the one error of a missing extra."""

from __future__ import annotations

import io
import wave
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from denizen.domain.errors import NeedsAttention
from denizen.domain.installation import build_install_command
from denizen.ports.speech import SAMPLE_BYTES, SAMPLE_RATE_HZ, Sound


@contextmanager
def explain_missing_extra() -> Generator[None]:
    """Raises NeedsAttention for an import inside the block that fails."""
    try:
        yield
    except ImportError as error:
        raise NeedsAttention(
            "Speech is not installed.",
            code="voice_not_installed",
            why=f"The package {error.name} is missing.",
            fix=f"Run `{build_install_command('voice')}`.",
        ) from error


def resample(samples: bytes, from_hz: int, to_hz: int) -> bytes:
    """Returns mono 16-bit samples at another rate. Blocking."""
    with explain_missing_extra():
        import av
    if not samples or from_hz == to_hz:
        return samples
    frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples) // SAMPLE_BYTES)
    frame.sample_rate = from_hz
    frame.planes[0].update(samples)
    resampler = av.AudioResampler(format="s16", layout="mono", rate=to_hz)
    return _join([*resampler.resample(frame), *resampler.resample(None)])


def decode_file(data: bytes) -> Sound:
    """Decodes a file of sound, such as WAV, MP3 or Ogg. Blocking. Raises ValueError for what is none."""
    with explain_missing_extra():
        import av
        from av.error import FFmpegError
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    samples = bytearray()
    try:
        with av.open(io.BytesIO(data), mode="r") as container:
            for frame in container.decode(audio=0):
                samples += _join(resampler.resample(frame))
    except (FFmpegError, IndexError) as error:
        raise ValueError("this is no sound") from error
    if samples:
        samples += _join(resampler.resample(None))
    return Sound(bytes(samples))


def encode_wav(sound: Sound) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(SAMPLE_BYTES)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(sound.samples)
    return written.getvalue()


def _join(frames: Iterable[object]) -> bytes:
    import av

    joined = bytearray()
    for frame in frames:
        if isinstance(frame, av.AudioFrame):
            joined += bytes(frame.planes[0])[: frame.samples * SAMPLE_BYTES]
    return bytes(joined)
