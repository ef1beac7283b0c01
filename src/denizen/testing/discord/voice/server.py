"""The voice server: who is in which channel, their websockets and their packets.

A person speaks by `speak`; `utterances` has what bots said. Everybody in a channel hears everybody else. Packets are
encrypted with `aead_xchacha20_poly1305_rtpsize`; end-to-end encryption (DAVE) is never agreed upon.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from aiohttp import WSMsgType, web

from denizen.ports.speech import Sound
from denizen.testing.discord.actions.actions import SimActions
from denizen.testing.discord.state.access import has_permission
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import DiscordPermission

MODE = "aead_xchacha20_poly1305_rtpsize"
_PATH = "/voice/"
_BAD_SESSION = 4006
_BUFFER_BYTES = 4 * 1024 * 1024
_HEADER_BYTES = 12
_NONCE_BYTES = 4
_DISCOVERY_BYTES = 74
_PACE_S = 0.006
"""The pause between packets of a person: a third of real time, so that no buffer overflows and no test waits long."""
_LEVEL = bytes.fromhex("bede0001 10ff9000")
"""The extension that Discord adds to packets: four bytes in the clear, and then the loudness, which is encrypted."""


@dataclass(slots=True, eq=False)
class VoiceLine:
    """The connection of one bot to the voice server of a guild. `packets` are those of what it is saying now."""

    guild: SimGuild
    user: SimUser
    token: str
    ssrc: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    socket: web.WebSocketResponse | None = None
    address: tuple[str, int] | None = None
    packets: list[bytes] = field(default_factory=list[bytes])
    silent: int = 0
    ready: bool = False
    sent: int = 0
    max_dave_version: int = 0


@dataclass(frozen=True, slots=True)
class SimUtterance:
    """The sound of a bot without a pause."""

    user: SimUser
    channel: SimChannel
    sound: Sound


class VoiceServer(asyncio.DatagramProtocol):
    """One for all guilds."""

    def __init__(self, acts: SimActions, noticed: Callable[[], None]) -> None:
        self._acts = acts
        self._noticed = noticed
        self._lines: dict[tuple[int, int], VoiceLine] = {}
        self._ssrcs: dict[int, int] = {}
        self._sequences: dict[int, int] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self.endpoint = ""
        self.utterances: list[SimUtterance] = []
        self.lost_questions = 0
        """So many of the next questions for one's own address are lost on their way."""

    def mount(self, router: web.UrlDispatcher, url: str) -> None:
        self.endpoint = url.removeprefix("http://") + _PATH.rstrip("/")
        router.add_get(_PATH, self._serve)

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[None]:
        """Receives packets until the block ends."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        try:
            yield
        finally:
            transport.close()

    def move(self, guild: SimGuild, user: SimUser, channel: SimChannel | None, asked: Mapping[str, Any]) -> str:
        """Moves a bot. Returns the token of its new connection; nothing when it left, or may not connect there."""
        if channel is not None and not has_permission(self._acts.store, user, channel, DiscordPermission.CONNECT):
            return ""
        mute, deaf = bool(asked.get("self_mute")), bool(asked.get("self_deaf"))
        old = self._lines.pop((guild.id, user.id), None)
        token = secrets.token_hex(8) if channel is not None else ""
        if token:
            self._lines[guild.id, user.id] = VoiceLine(guild, user, token, self._ssrc(user))
        self._acts.guilds.set_voice(guild, user, channel, mute=mute, deaf=deaf)
        if old is not None and channel is None:
            self._noticed()
        return token

    def is_ready(self, user: SimUser, channel: SimChannel) -> bool:
        """Whether the bot is connected there and can speak and hear."""
        line = next((each for each in self._lines.values() if each.user is user), None)
        return line is not None and line.ready and self._find_channel(line) is channel

    async def speak(self, user: SimUser, channel: SimChannel, sound: Sound) -> None:
        """Lets a person say that in the channel. Raises ValueError for one who is not in it."""
        from denizen.adapters.discord.voice.codec import SILENCE, SILENT_PACKETS, encode_opus

        guild = self._acts.store.require_guild(channel)
        state = guild.voice.get(user.id)
        if state is None or state.channel is not channel:
            raise ValueError(f"{user.name} is not in {channel.name}")
        packets = [*encode_opus(sound), *([SILENCE] * SILENT_PACKETS)]
        lines = [each for each in self._lines.values() if each.ready and self._find_channel(each) is channel]
        for line in lines:
            if line.socket is not None:
                await _send(line.socket, 5, {"user_id": str(user.id), "ssrc": self._ssrc(user), "speaking": 1})
        for packet in packets:
            sequence = self._sequences[user.id] = (self._sequences.get(user.id, 0) + 1) & 0xFFFF
            for line in lines:
                if line.address is not None and self._transport is not None:
                    self._transport.sendto(self._encrypt(line, self._ssrc(user), sequence, packet), line.address)
            await anyio.sleep(_PACE_S)

    # --- the websocket ---

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        websocket = web.WebSocketResponse(compress=False)
        await websocket.prepare(request)
        await _send(websocket, 8, {"v": 8, "heartbeat_interval": 13750})
        line: VoiceLine | None = None
        async for message in websocket:
            if message.type is not WSMsgType.TEXT:
                break
            frame: dict[str, Any] = json.loads(message.data)
            data: Any = frame.get("d")
            if frame["op"] == 0:
                line = self._identify(data)
                if line is None:
                    await websocket.close(code=_BAD_SESSION)
                    break
                line.socket = websocket
                await self._greet(line)
            elif frame["op"] == 3:
                await _send(websocket, 6, {"t": data["t"]})
            elif frame["op"] == 1 and line is not None:
                await _send(
                    websocket,
                    4,
                    {"mode": data["data"]["mode"], "secret_key": list(line.key), "dave_protocol_version": 0},
                )
                line.ready = True
                self._noticed()
        if line is not None:
            line.ready = False
        return websocket

    def _identify(self, data: Mapping[str, Any]) -> VoiceLine | None:
        line = self._lines.get((int(data["server_id"]), int(data["user_id"])))
        if line is None or line.token != data["token"]:
            return None
        state = line.guild.voice.get(line.user.id)
        if state is None or state.session_id != data["session_id"]:
            return None
        line.max_dave_version = int(data.get("max_dave_protocol_version", 0))
        return line

    async def _greet(self, line: VoiceLine) -> None:
        if line.socket is None or self._transport is None:
            return
        host, port = self._transport.get_extra_info("sockname")
        ready = {"ssrc": line.ssrc, "ip": host, "port": port, "modes": ["aead_aes256_gcm_rtpsize", MODE]}
        await _send(line.socket, 2, ready)
        channel = self._find_channel(line)
        others = [str(each.user.id) for each in line.guild.voice.values() if each.channel is channel]
        await _send(line.socket, 11, {"user_ids": [each for each in others if each != str(line.user.id)]})

    # --- packets ---

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answers the question for one's own address, and takes what bots say."""
        if len(data) == _DISCOVERY_BYTES and data[:2] == b"\0\x01":
            if self.lost_questions:
                self.lost_questions -= 1
                return
            line = self._find_line(struct.unpack_from(">I", data, 4)[0])
            if line is not None and self._transport is not None:
                line.address = addr
                answer = struct.pack(">HHI64sH", 2, 70, line.ssrc, addr[0].encode(), addr[1])
                self._transport.sendto(answer, addr)
            return
        line = self._find_line(struct.unpack_from(">I", data, 8)[0])
        if line is not None and line.address == addr:
            self._take(line, self._decrypt(line, data))

    def _take(self, line: VoiceLine, packet: bytes) -> None:
        from denizen.adapters.discord.voice.codec import SILENCE, SILENT_PACKETS, OpusDecoder

        if packet != SILENCE:
            line.packets.append(packet)
            line.silent = 0
            return
        line.silent += 1
        channel = self._find_channel(line)
        if line.silent == SILENT_PACKETS and line.packets and channel is not None:
            decoder = OpusDecoder()
            sound = Sound(b"".join(map(decoder.decode, line.packets)))
            line.packets.clear()
            self.utterances.append(SimUtterance(line.user, channel, sound))
            self._noticed()

    def _encrypt(self, line: VoiceLine, ssrc: int, sequence: int, packet: bytes) -> bytes:
        from nacl.secret import Aead

        line.sent += 1
        header = struct.pack(">BBHII", 0x90, 0x78, sequence, sequence * 960, ssrc) + _LEVEL[:4]
        nonce = struct.pack(">I", line.sent)
        sealed = Aead(line.key).encrypt(_LEVEL[4:] + packet, header, nonce.ljust(24, b"\0")).ciphertext
        return header + sealed + nonce

    def _decrypt(self, line: VoiceLine, data: bytes) -> bytes:
        from nacl.secret import Aead

        header, sealed, nonce = data[:_HEADER_BYTES], data[_HEADER_BYTES:-_NONCE_BYTES], data[-_NONCE_BYTES:]
        return Aead(line.key).decrypt(sealed, header, nonce.ljust(24, b"\0"))

    def _find_line(self, ssrc: int) -> VoiceLine | None:
        return next((each for each in self._lines.values() if each.ssrc == ssrc), None)

    def _find_channel(self, line: VoiceLine) -> SimChannel | None:
        state = line.guild.voice.get(line.user.id)
        return state.channel if state else None

    def _ssrc(self, user: SimUser) -> int:
        return self._ssrcs.setdefault(user.id, 1000 + len(self._ssrcs))


async def _send(socket: web.WebSocketResponse, op: int, data: Mapping[str, Any]) -> None:
    await socket.send_str(json.dumps({"op": op, "d": data}))
