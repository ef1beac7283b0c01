"""The connection to one voice channel: discord.py's, which only speaks, and beside it what is heard.

discord.py reads packets in a thread of its own, and so they are decrypted and decoded there. A talk is what one person
says without a pause; it is over when they have been silent for a moment. Discord's transport encryption is undone
first, and then the end-to-end encryption (DAVE), where the people in the channel have agreed on it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeAlias

import davey
import discord
from discord.voice_state import VoiceConnectionState
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from denizen.adapters.discord.voice.codec import FRAME_SAMPLES, SILENCE, OpusDecoder
from denizen.domain.clock import Clock
from denizen.domain.record import record
from denizen.ports.speech import SAMPLE_BYTES, SAMPLE_RATE_HZ, Sound

PAUSE_S = 0.8
"""A talk is over when nothing came for so long after the packets of silence with which clients end one."""
LOST_S = 3.0
"""The same where those packets are missing."""
MAX_TALK_S = 60.0
"""A longer talk is cut."""
MIN_TALK_S = 0.3
"""A shorter one is a cough."""
_MAX_EARLY_SOURCES, _MAX_EARLY_PACKETS = 20, 250
"""Packets that are kept while it is unknown whose they are."""
_SPEAKING = 5
"""The opcode that tells whose packets have which source."""
_SESSION_DESCRIPTION = 4
"""The opcode with the key, which comes when Discord has been told the address."""
_BUFFER_BYTES = 4 * 1024 * 1024
_HEADER_BYTES = 12
_NONCE_BYTES = 4
_KEPT_NONCE_BYTES = 24
_OPUS = 0x78
_EXTENSION, _PADDING = 0x10, 0x20

WebsocketHook: TypeAlias = Callable[[Any, dict[str, Any]], Coroutine[Any, Any, Any]]

_log = logging.getLogger("denizen.discord.voice")


@record
class Talk:
    """The sound of one person without a pause."""

    user_id: int
    sound: Sound


class _TalkBuffer:
    """The talk of one person while it goes on."""

    def __init__(self, user_id: int, now_s: float) -> None:
        self.user_id = user_id
        self.decoder = OpusDecoder()
        self.samples = bytearray()
        self.last_s = now_s
        self.is_silent = False
        self.dropped = 0

    @property
    def is_full(self) -> bool:
        return len(self.samples) >= MAX_TALK_S * SAMPLE_RATE_HZ * SAMPLE_BYTES

    def is_over(self, now_s: float) -> bool:
        return self.is_full or now_s - self.last_s > (PAUSE_S if self.is_silent else LOST_S)


def open_packet(data: bytes, key: bytes) -> tuple[int, bytes] | None:
    """Returns the source and the payload of an RTP packet with Opus in the mode `aead_xchacha20_poly1305_rtpsize`; None
    for any other packet, and for one that the key does not open.
    """
    if len(data) < _HEADER_BYTES + _NONCE_BYTES or data[0] >> 6 != 2 or data[1] & 0x7F != _OPUS:
        return None
    has_extension = bool(data[0] & _EXTENSION)
    clear = _HEADER_BYTES + 4 * (data[0] & 0x0F) + 4 * has_extension
    header, sealed, nonce = data[:clear], data[clear:-_NONCE_BYTES], data[-_NONCE_BYTES:]
    try:
        payload = Aead(key).decrypt(sealed, header, nonce.ljust(_KEPT_NONCE_BYTES, b"\0"))
    except (CryptoError, ValueError):
        return None
    if data[0] & _PADDING and payload:
        payload = payload[: -payload[-1]]
    words = struct.unpack_from(">H", header, clear - 2)[0] if has_extension else 0
    return struct.unpack_from(">I", data, 8)[0], payload[4 * words :]


class TalkReceiver:
    """Puts packets together to talks. `take` is called in a thread of discord.py."""

    def __init__(self, clock: Clock, key: Callable[[], bytes], unlock: Callable[[int, bytes], bytes | None]) -> None:
        self._clock = clock
        self._key = key
        self._unlock = unlock
        self._lock = threading.Lock()
        self._speakers: dict[int, int] = {}
        self._talks: dict[int, _TalkBuffer] = {}
        self._early: dict[int, deque[bytes]] = {}
        self._listens = False

    @property
    def listens(self) -> bool:
        return self._listens

    @listens.setter
    def listens(self, on: bool) -> None:
        """Whether packets are decoded. What was begun is dropped when it ends."""
        with self._lock:
            self._listens = on
            self._talks.clear()
            self._early.clear()

    def note_speaker(self, source: int, user_id: int) -> None:
        """Notes whose packets have this source. The first ones may have come before Discord told."""
        with self._lock:
            self._speakers[source] = user_id
            for payload in self._early.pop(source, ()):
                self._add(user_id, payload)

    def take(self, data: bytes) -> None:
        """Takes one packet, whatever it is."""
        if not self._listens:
            return
        opened = open_packet(data, self._key())
        if opened is None:
            return
        source, payload = opened
        with self._lock:
            if not self._listens:
                return
            if source in self._speakers:
                self._add(self._speakers[source], payload)
            elif source in self._early or len(self._early) < _MAX_EARLY_SOURCES:
                self._early.setdefault(source, deque(maxlen=_MAX_EARLY_PACKETS)).append(payload)

    def _add(self, user_id: int, payload: bytes) -> None:
        talk = self._talks.get(user_id)
        if payload == SILENCE:
            if talk is not None:
                talk.is_silent = True
            return
        if talk is not None and talk.is_full:  # until it is taken, which waits for the recognition of others
            talk.dropped += 1
            return
        plain = self._unlock(user_id, payload)
        if plain is None:
            return
        now_s = self._clock.monotonic_s()
        if talk is None:
            talk = self._talks[user_id] = _TalkBuffer(user_id, now_s)
        talk.last_s, talk.is_silent = now_s, False
        try:
            talk.samples += talk.decoder.decode(plain)
        except ValueError:
            talk.samples += bytes(FRAME_SAMPLES * SAMPLE_BYTES)

    def take_finished(self) -> list[Talk]:
        """Returns the talks that are over, once."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            over = [each for each in self._talks.values() if each.is_over(now_s)]
            for each in over:
                del self._talks[each.user_id]
        if dropped := sum(each.dropped for each in over):
            seconds = round(dropped * FRAME_SAMPLES / SAMPLE_RATE_HZ)
            _log.warning("recognition is too slow: %s s of talk were dropped", seconds)
        talks = [Talk(each.user_id, Sound(bytes(each.samples))) for each in over]
        return [each for each in talks if each.sound.duration_s >= MIN_TALK_S]


class _HearingConnectionState(VoiceConnectionState):
    """discord.py's, which hands packets to `hear`, with room for those of some seconds: a busy machine reads them late.

    discord.py asks for its own address and listens for the answer only then. Its thread does not read while nobody
    listens; with somebody else listening it may have read the answer before, and the connection never stands.
    """

    def __init__(self, line: VoiceConnection, hook: WebsocketHook, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        super().__init__(line, hook=hook)

    def listen(self) -> None:
        """Begins to hear, once the address is known."""
        self.remove_socket_listener(self._hear)
        self.add_socket_listener(self._hear)

    def _create_socket(self) -> None:
        self.remove_socket_listener(self._hear)
        super()._create_socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)


class VoiceConnection(discord.VoiceClient):
    """discord.py's connection, which also hears. `on_end` is called once when it has ended for good."""

    def __init__(
        self, client: discord.Client, channel: discord.abc.Connectable, clock: Clock, on_end: Callable[[], None]
    ) -> None:
        self.receiver = TalkReceiver(clock, self._get_key, self._unlock)
        self._on_end = on_end
        super().__init__(client, channel)

    def create_connection_state(self) -> VoiceConnectionState:
        self._hearing = _HearingConnectionState(self, self._read_frame, self.receiver.take)
        return self._hearing

    def cleanup(self) -> None:
        """Ends it. discord.py calls this whatever ends the connection, sometimes twice."""
        self.receiver.listens = False
        super().cleanup()
        self._on_end()

    async def speak(self, packets: list[bytes]) -> None:
        """Plays packets of Opus and returns when they are played, or stopped."""
        done = asyncio.Event()

        def end(error: Exception | None) -> None:
            if error is not None:
                _log.warning("speaking ended: %s", type(error).__name__)
            self.loop.call_soon_threadsafe(done.set)

        self.play(_OpusSource(packets), after=end)
        await done.wait()

    async def _read_frame(self, websocket: object, frame: Mapping[str, Any]) -> None:
        del websocket
        if frame["op"] == _SPEAKING:
            told = frame["d"]
            self.receiver.note_speaker(int(told["ssrc"]), int(told["user_id"]))
        elif frame["op"] == _SESSION_DESCRIPTION:
            self._hearing.listen()

    def _get_key(self) -> bytes:
        return bytes(self.secret_key) if self.secret_key else b""  # falsy until it is known

    def _unlock(self, user_id: int, payload: bytes) -> bytes | None:
        """Undoes the end-to-end encryption. None for a packet that cannot be read, such as one of a moment ago when
        the keys have just changed.
        """
        state = self._connection
        if state.dave_session is None or state.dave_protocol_version == 0:
            return payload
        try:
            return state.dave_session.decrypt(user_id, davey.MediaType.audio, payload)
        except ValueError as error:
            _log.debug("packet not decrypted: %s", error)
            return None


class _OpusSource(discord.AudioSource):
    """Packets of Opus as discord.py asks for them, one each 20 ms."""

    def __init__(self, packets: list[bytes]) -> None:
        self._packets: Iterator[bytes] = iter(packets)

    def read(self) -> bytes:
        return next(self._packets, b"")

    def is_opus(self) -> bool:
        return True
