"""Opus, the codec of voice channels, by PyAV: packets of 20 ms. Blocking; the extra `voice` brings it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
from av.error import FFmpegError

from denizen.ports.speech import SAMPLE_BYTES, SAMPLE_RATE_HZ, Sound

FRAME_SAMPLES = SAMPLE_RATE_HZ // 50
SILENCE = b"\xf8\xff\xfe"
"""The packet of silence. Five of them end a talk, so that decoders do not go on from what was said."""
SILENT_PACKETS = 5
_BITS_PER_S = 64_000


def encode_opus(sound: Sound) -> list[bytes]:
    """Returns the packets of a sound; the last one is filled up with silence."""
    encoder: Any = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format = SAMPLE_RATE_HZ, "mono", "s16"
    encoder.bit_rate, encoder.time_base = _BITS_PER_S, Fraction(1, SAMPLE_RATE_HZ)
    encoder.options = {"application": "voip", "frame_duration": "20"}
    packets: list[bytes] = []
    frame_bytes = FRAME_SAMPLES * SAMPLE_BYTES
    for start in range(0, len(sound.samples), frame_bytes):
        frame = av.AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
        frame.sample_rate = SAMPLE_RATE_HZ
        frame.planes[0].update(sound.samples[start : start + frame_bytes].ljust(frame_bytes, b"\0"))
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return [*packets, *(bytes(packet) for packet in encoder.encode(None))] if packets else []


class OpusDecoder:
    """Decodes the packets of one speaker, in order."""

    def __init__(self) -> None:
        decoder: Any = av.CodecContext.create("libopus", "r")
        decoder.sample_rate, decoder.layout = SAMPLE_RATE_HZ, "mono"
        self._decoder = decoder
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)

    def decode(self, packet: bytes) -> bytes:
        """Returns the samples. Raises ValueError for what is no packet of Opus."""
        try:
            frames = self._decoder.decode(av.Packet(packet))
        except FFmpegError as error:
            raise ValueError("this is no packet of Opus") from error
        plain = [plain for frame in frames for plain in self._resampler.resample(frame)]
        return b"".join(bytes(frame.planes[0])[: frame.samples * SAMPLE_BYTES] for frame in plain)
