"""Packets of RTP as Discord sends them, and what is put together of them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from nacl.secret import Aead

from denizen.adapters.discord.voice.codec import SILENCE, encode_opus
from denizen.adapters.discord.voice.line import LOST_S, MAX_TALK_S, PAUSE_S, TalkReceiver, open_packet
from denizen.ports.speech import SAMPLE_RATE_HZ, Sound
from tests.clock import ManualClock

KEY = bytes(range(32))
SOURCE = 77


def seal(payload: bytes, *, extension: bytes = b"", sources: int = 0, padding: int = 0, source: int = SOURCE) -> bytes:
    first = 0x80 | (0x10 if extension else 0) | (0x20 if padding else 0) | sources
    header = struct.pack(">BBHII", first, 0x78, 1, 960, source) + bytes(4 * sources)
    header += struct.pack(">HH", 0xBEDE, len(extension) // 4) if extension else b""
    tail = bytes(padding - 1) + bytes([padding]) if padding else b""
    nonce = b"\0\0\0\x09"
    sealed = Aead(KEY).encrypt(extension + payload + tail, header, nonce.ljust(24, b"\0")).ciphertext
    return header + sealed + nonce


@pytest.mark.parametrize(
    "form", [{}, {"extension": b"loud" * 2}, {"sources": 3}, {"padding": 7}, {"extension": b"loud", "padding": 2}]
)
def test_a_packet_is_opened_whatever_its_header_holds(form: dict[str, Any]) -> None:
    assert open_packet(seal(b"opus", **form), KEY) == (SOURCE, b"opus")


@pytest.mark.parametrize("data", [b"", b"x" * 11, b"\x80\x78" + bytes(60), bytes(74), b"\x81\xc8" + bytes(40)])
def test_what_is_no_packet_of_ours_is_left_out(data: bytes) -> None:
    assert open_packet(data, KEY) is None
    assert open_packet(seal(b"opus"), bytes(32)) is None, "another key"
    assert open_packet(seal(b"opus"), b"") is None, "no key yet"


class Receiver(TalkReceiver):
    """A receiver that listens, by a clock that is set."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        super().__init__(self.clock, lambda: KEY, lambda user_id, payload: payload)
        self.listens = True


TONE = encode_opus(Sound(b"\x10\x27\xf0\xd8" * (SAMPLE_RATE_HZ // 4)))
"""Half a second."""


def test_a_talk_ends_a_moment_after_the_packets_of_silence_and_later_without_them() -> None:
    receiver = Receiver()
    receiver.note_speaker(SOURCE, 5)
    for packet in (*TONE, SILENCE):
        receiver.take(seal(packet))
    receiver.clock.advance(PAUSE_S / 2)
    assert receiver.take_finished() == []
    for packet in TONE:  # it goes on after a breath
        receiver.take(seal(packet))
    receiver.clock.advance(PAUSE_S + 0.1)
    assert receiver.take_finished() == [], "the packets of silence are missing"
    receiver.clock.advance(LOST_S)
    (talk,) = receiver.take_finished()
    assert (talk.user_id, round(talk.sound.duration_s, 1)) == (5, 1.0)
    assert receiver.take_finished() == []


def test_packets_that_come_before_it_is_known_whose_they_are_are_kept() -> None:
    receiver = Receiver()
    for packet in (*TONE, SILENCE):
        receiver.take(seal(packet))
    receiver.note_speaker(SOURCE, 5)
    receiver.clock.advance(PAUSE_S + 0.1)
    assert [talk.user_id for talk in receiver.take_finished()] == [5]


def test_a_broken_packet_is_silence_and_a_cough_is_nothing() -> None:
    receiver = Receiver()
    receiver.note_speaker(SOURCE, 5)
    receiver.note_speaker(SOURCE + 1, 6)
    receiver.take(seal(b"\xff\xff\xff no opus"))
    for packet in TONE:
        receiver.take(seal(packet))
    receiver.take(seal(TONE[0], source=SOURCE + 1))
    receiver.clock.advance(LOST_S + 0.1)
    assert [talk.user_id for talk in receiver.take_finished()] == [5]


def test_a_talk_without_end_is_cut_and_what_was_begun_is_dropped_when_listening_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = Receiver()
    receiver.note_speaker(SOURCE, 5)
    for _ in range(int(MAX_TALK_S * 2) + 20):
        for packet in TONE:
            receiver.take(seal(packet))
    (talk,) = receiver.take_finished()
    assert MAX_TALK_S <= talk.sound.duration_s < MAX_TALK_S + 0.1
    assert "13 s of talk were dropped" in caplog.text
    receiver.take(seal(TONE[0]))
    receiver.listens = False
    receiver.take(seal(TONE[0]))
    receiver.listens = True
    receiver.clock.advance(LOST_S + 0.1)
    assert receiver.take_finished() == []
