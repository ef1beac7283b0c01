"""One websocket connection: HELLO, heartbeats, IDENTIFY, RESUME, member requests (op 8), close codes, compression."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import anyio
from aiohttp import WSMessage, WSMsgType, web
from anyio.abc import TaskGroup

from denizen.testing.discord.gateway.sessions import GatewayFaults, GatewaySession, GatewaySessions
from denizen.testing.discord.payloads.people import Payload, member_payload, presence_payload
from denizen.testing.discord.state import people as intent_bits
from denizen.testing.discord.state.guilds import SimGuild, SimMember, find_members
from denizen.testing.discord.state.people import GatewayIntent, SimApplication
from denizen.testing.discord.state.store import SimStore
from denizen.testing.discord.voice.server import VoiceServer

Pack = Callable[[bytes], bytes]

KNOWN = frozenset({"zlib-stream"} | ({"zstd-stream"} if find_spec("zstandard") else set[str]()))


def open_compression(name: str) -> Pack | None:
    """Returns a compressor by its name in KNOWN; None for an empty name, which means no compression."""
    if not name:
        return None
    if name == "zlib-stream":
        plain = zlib.compressobj()
        return lambda data: plain.compress(data) + plain.flush(zlib.Z_SYNC_FLUSH)
    import zstandard

    packer = zstandard.ZstdCompressor().compressobj()
    return lambda data: packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


_CHUNK = 1000


def chunk_members(store: SimStore, application: SimApplication, asked: Mapping[str, Any]) -> Iterator[Payload]:
    """Yields the chunks of an answer to op 8, of at most a thousand members; none for a guild that the bot
    is not in.
    """
    guild = store.guilds.get(int(asked["guild_id"]))
    if guild is None or application.id not in guild.members:
        return
    found, missing = _select(guild, asked)
    chunks = [found[at : at + _CHUNK] for at in range(0, len(found), _CHUNK)] or [[]]
    for index, members in enumerate(chunks):
        body: Payload = {
            "guild_id": str(guild.id),
            "members": [member_payload(each) for each in members],
            "chunk_index": index,
            "chunk_count": len(chunks),
            "not_found": missing,
        }
        if asked.get("nonce"):
            body["nonce"] = asked["nonce"]
        if asked.get("presences"):
            known = [each for each in members if each.user.presence is not None]
            body["presences"] = [presence_payload(each.user, guild.id) for each in known]
        yield body


def _select(guild: SimGuild, asked: Mapping[str, Any]) -> tuple[list[SimMember], list[str]]:
    ids = asked.get("user_ids")
    if ids:
        wanted = [int(each) for each in (ids if isinstance(ids, list) else [ids])]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        return [guild.members[each] for each in wanted if each in guild.members], [
            str(each) for each in wanted if each not in guild.members
        ]
    return find_members(guild, str(asked.get("query") or ""), int(asked.get("limit") or 0)), []


_VERSION = "10"
_MAX_FRAME_BYTES = 4096
_MAX_FRAMES = 120
_FRAMES_WINDOW_S = 60.0
_WRONG_VERSION = 4012
_TIMED_OUT = 4009
_CLOSE_S = 2.0
_SESSION_ENDS = frozenset({1000, 1001})
"""Close codes with which a client ends its session, too."""


class GatewayConnection:
    """Reads and writes one websocket. Frames go out in order, from one place."""

    def __init__(
        self, store: SimStore, sessions: GatewaySessions, faults: GatewayFaults, voice: VoiceServer, url: str
    ) -> None:
        self._store = store
        self._voice = voice
        self._sessions = sessions
        self._faults = faults
        self._url = url
        self._socket = web.WebSocketResponse(timeout=1.0, autoping=True, compress=False, max_msg_size=0)
        self._outbox: deque[str | int] = deque()
        self._frames_s: deque[float] = deque()
        self._wake = anyio.Event()
        self._pack: Pack | None = None
        self._transport: Any = None
        self._tasks: TaskGroup | None = None
        self.session: GatewaySession | None = None
        self.open = True
        self._closing = False

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serves the connection until it ends."""
        self._pack = open_compression(request.query.get("compress", ""))
        self._transport = request.transport
        await self._socket.prepare(request)
        if request.query.get("v", _VERSION) != _VERSION:
            await self._socket.close(code=_WRONG_VERSION)
            return self._socket
        self._send_op(10, {"heartbeat_interval": round(self._faults.heartbeat.total_seconds() * 1000), "_trace": []})
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._write)
                await self._read()
                if self._closing:
                    tasks.cancel_scope.deadline = anyio.current_time() + _CLOSE_S
                else:
                    tasks.cancel_scope.cancel()
        finally:
            self._leave()
        return self._socket

    def send(self, frame: str) -> None:
        if self.open:
            self._outbox.append(frame)
            self.stir()

    def close(self, code: int) -> None:
        """Closes the connection after everything queued is sent."""
        if self.open:
            self.open, self._closing = False, True
            self._outbox.append(code)
            self._wake.set()

    def cut(self) -> None:
        """Breaks the connection without a close frame."""
        self.open = False
        if self.session is not None and self.session.line is self:
            self.session.line = None
        if self._transport is not None:
            self._transport.abort()

    def stir(self) -> None:
        """Resumes writing, unless the gateway is frozen."""
        if not self._faults.frozen:
            self._wake.set()

    def reconnect(self) -> None:
        """Asks the client to reconnect (op 7)."""
        self._send_op(7, None)

    def invalidate(self, *, resumable: bool) -> None:
        """Tells the client that its session is over, or with `resumable` only this connection (op 9)."""
        if self.session is not None and not resumable:
            self._sessions.forget(self.session)
            self.session = None
        self._send_op(9, resumable)

    def _send_op(self, op: int, data: object) -> None:
        self.send(json.dumps({"op": op, "d": data, "s": None, "t": None}))

    async def _write(self) -> None:
        while True:
            while self._outbox and not self._faults.frozen:
                item = self._outbox.popleft()
                if isinstance(item, int):
                    await self._socket.close(code=item)
                    return
                try:
                    if self._pack is None:
                        await self._socket.send_str(item)
                    else:
                        await self._socket.send_bytes(self._pack(item.encode()))
                except ConnectionError:
                    return
            self._wake = anyio.Event()
            await self._wake.wait()

    async def _read(self) -> None:
        """Reads until either side ends the connection."""
        while True:
            message = await self._receive()
            if message is None:
                await self._refuse(_TIMED_OUT)
                return
            if message.type is WSMsgType.CLOSE and message.data in _SESSION_ENDS:
                self._end_session()
            if message.type is not WSMsgType.TEXT:
                return
            code = None if self._faults.frozen else self._handle(message.data)
            if code is not None:
                await self._refuse(code)
                return

    async def _receive(self) -> WSMessage | None:
        """Returns the next frame; None when the client has been silent for too long."""
        if not self._faults.zombie_check:
            return await self._socket.receive()
        with anyio.move_on_after(self._faults.heartbeat.total_seconds() * 1.5):
            return await self._socket.receive()
        return None

    async def _refuse(self, code: int) -> None:
        self.open = False
        self._end_session()
        await self._socket.close(code=code)

    def _handle(self, text: str) -> int | None:
        """Handles a frame. Returns the close code if the connection has to end."""
        if len(text.encode()) > _MAX_FRAME_BYTES:
            return 4002
        if not self._take_frame():
            return 4008
        try:
            frame: dict[str, Any] = json.loads(text)
            op = frame["op"]
        except (ValueError, KeyError, TypeError):
            return 4002
        data: Any = frame.get("d")
        match op:
            case 1:
                if self._faults.acks and self._tasks is not None:
                    self._tasks.start_soon(self._acknowledge)
                return None
            case 2:
                return 4005 if self.session is not None else self._identify(data)
            case 6:
                return 4005 if self.session is not None else self._resume(data)
            case 3 | 4 | 8 if self.session is None:
                return 4003
            case 3:
                self._set_presence(data)
                return None
            case 4:
                self._change_voice(data)
                return None
            case 8:
                return self._chunk(data)
            case _:
                return 4001

    def _take_frame(self) -> bool:
        """Counts a frame. Returns False when the client has sent too many within a minute."""
        now_s = self._store.clock.monotonic_s()
        while self._frames_s and self._frames_s[0] <= now_s - _FRAMES_WINDOW_S:
            self._frames_s.popleft()
        self._frames_s.append(now_s)
        return len(self._frames_s) <= _MAX_FRAMES

    async def _acknowledge(self) -> None:
        await anyio.sleep(self._faults.ack_delay_s)
        self._send_op(11, None)

    def _identify(self, data: Mapping[str, Any]) -> int | None:
        application = self._find_application(data)
        if application is None:
            return 4004
        number, count = data.get("shard") or (0, 1)
        wanted = data.get("intents")
        code = check_intents(application, wanted) or (None if 0 <= number < count else 4010)
        if code is not None or not isinstance(wanted, int):
            application.refused_logins.append(code or 4013)
            return code or 4013
        self.session = self._sessions.open(application, GatewayIntent(wanted), (number, count), self)
        presence: Mapping[str, Any] = data.get("presence") or {}
        self._sessions.set_presence(application, presence.get("status") or "online", _activities(presence))
        self._sessions.greet(self.session, self._url)
        return None

    def _resume(self, data: Mapping[str, Any]) -> int | None:
        application = self._find_application(data)
        if application is None:
            return 4004
        session = self._sessions.find(str(data.get("session_id")))
        if session is None or session.application is not application:
            self._send_op(9, data=False)
            return None
        after = data.get("seq")
        if not isinstance(after, int) or after > session.sequence:
            self._sessions.forget(session)
            return 4007
        if not session.can_replay(after):
            self._sessions.forget(session)
            self._send_op(9, data=False)
            return None
        self.session = session
        self._sessions.resume(session, self, after)
        return None

    def _find_application(self, data: Mapping[str, Any]) -> SimApplication | None:
        token = str(data.get("token", "")).removeprefix("Bot ")
        for application in self._store.applications.values():
            if application.token == token:
                return application
        return None

    def _set_presence(self, data: Mapping[str, Any]) -> None:
        if self.session is not None:
            status = str(data.get("status") or "online")
            self._sessions.set_presence(self.session.application, status, _activities(data))

    def _change_voice(self, data: Mapping[str, Any]) -> None:
        """Joins a voice channel, moves, or leaves, and names the voice server; nothing comes back where it may not."""
        session, guild = self.session, self._store.guilds.get(int(data["guild_id"]))
        if session is None or guild is None:
            return
        channel = self._store.channels.get(int(data["channel_id"] or 0))
        token = self._voice.move(guild, session.application.user, channel, data)
        if token:
            where = {"token": token, "guild_id": str(guild.id), "endpoint": self._voice.endpoint}
            session.push("VOICE_SERVER_UPDATE", where)

    def _chunk(self, data: Mapping[str, Any]) -> int | None:
        session = self.session
        if session is None:
            return 4003
        everybody = not data.get("user_ids") and not data.get("query") and not data.get("limit")
        if everybody and not session.intents & GatewayIntent.GUILD_MEMBERS:
            return 4014
        guild_id, nonce = str(data["guild_id"]), data.get("nonce")
        wait_s = self._sessions.take_members(session, guild_id) if everybody else 0.0
        if wait_s > 0:
            meta = {"guild_id": guild_id} | ({"nonce": nonce} if nonce else {})
            session.push("RATE_LIMITED", {"opcode": 8, "retry_after": wait_s, "meta": meta})
            return None
        for chunk in chunk_members(self._store, session.application, data):
            session.push("GUILD_MEMBERS_CHUNK", chunk)
        return None

    def _leave(self) -> None:
        self.open = False
        if self.session is not None and self.session.line is self:
            self.session.line = None

    def _end_session(self) -> None:
        """Detaches the session, unless another connection has taken it over."""
        if self.session is not None and self.session.line is self:
            self.session.line = None
            self._sessions.forget(self.session)


def check_intents(application: SimApplication, wanted: object) -> int | None:
    """Returns the close code for intents that do not exist (4013) or are not enabled in the portal (4014)."""
    if not isinstance(wanted, int) or wanted < 0 or wanted & ~intent_bits.KNOWN:
        return 4013
    return 4014 if GatewayIntent(wanted) & intent_bits.PRIVILEGED & ~application.intents else None


def _activities(presence: Mapping[str, Any]) -> list[Any]:
    given = presence.get("activities")
    if isinstance(given, list):
        return [each for each in given if each]  # pyright: ignore[reportUnknownVariableType] - JSON
    game = presence.get("game")
    return [game] if game else []
