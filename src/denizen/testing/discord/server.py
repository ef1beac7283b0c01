"""The simulated Discord as a server on loopback: REST, gateway, CDN and the page for people on one port.

async with open_discord() as discord:
    ana = discord.world.add_person("Ana")
    guild = discord.world.add_guild("Harbour", owner=ana)
    general = guild.add_channel("general")
    ada = discord.world.add_application("Ada")
    guild.join(ada.user)
    ...  # start a bot with ada.token against discord.api_url and discord.gateway_url
    discord.world.say(ana, general, f"{ada.mention} hello")
    await discord.until(lambda: any(each.author is ada.user for each in general.messages))
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from aiohttp import web

from denizen.domain.clock import Clock, SystemClock
from denizen.testing.discord.actions.actions import build_actions
from denizen.testing.discord.faults import DiscordFaults
from denizen.testing.discord.gateway.connection import KNOWN, GatewayConnection
from denizen.testing.discord.gateway.sessions import GatewayFaults, GatewaySession, GatewaySessions
from denizen.testing.discord.page.site import PageSite
from denizen.testing.discord.rest.api import PREFIX, SimRestApi
from denizen.testing.discord.rest.limits import SimRateLimits
from denizen.testing.discord.rest.request_log import LoggedRequest
from denizen.testing.discord.rest.routes import ROUTES
from denizen.testing.discord.state.changes import SimChange, TypingStarted
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.clock import ChangeSignal, SnowflakeGenerator
from denizen.testing.discord.state.store import SimStore
from denizen.testing.discord.voice.server import VoiceServer
from denizen.testing.discord.world.world import SimWorld

_TRANSCRIPT = 30
_MAX_BODY = 64 * 1024 * 1024


class NotReachedError(AssertionError, TimeoutError):
    """A condition did not come true in time. The message has the transcripts of all channels."""


class DiscordServer:
    """One running simulation. The world exists before the server starts, and without it too."""

    def __init__(self, clock: Clock) -> None:
        self.store = SimStore(clock, SnowflakeGenerator(clock))
        self.acts = build_actions(self.store)
        self.world = SimWorld(self.acts)
        self.gateway_faults = GatewayFaults()
        self.limits = SimRateLimits(clock)
        self.changes: list[SimChange] = []
        self.url = ""
        self._pulse = ChangeSignal()
        self._lines: list[GatewayConnection] = []
        self.voice = VoiceServer(self.acts, self._pulse.beat)
        self.sessions = GatewaySessions(self.store, self.gateway_faults, self._pulse.beat)
        self.faults = DiscordFaults(self.gateway_faults, self.sessions, lambda: list(self._lines))
        self._api = SimRestApi(self.acts, self.limits, self.faults.rest, self._pulse.beat)
        self.store.subscribe(self.changes.append)

    @property
    def api_url(self) -> str:
        """The base URL of the REST API, without a slash at the end."""
        return self.url + PREFIX

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http://", "ws://") + "/gateway"

    @property
    def cdn_url(self) -> str:
        return self.url + "/cdn"

    @property
    def requests(self) -> list[LoggedRequest]:
        """Every REST request so far, in order."""
        return self._api.requests

    @property
    def connections(self) -> list[GatewayConnection]:
        """The gateway connections that are up."""
        return list(self._lines)

    def requests_to(self, method: str, route: str) -> list[LoggedRequest]:
        """Returns the requests with this method and this text in their route, such as
        `/channels/{channel_id}/messages`.
        """
        return [each for each in self.requests if each.method == method and (each.route == route or route in each.path)]

    def get_session(self, name: str) -> GatewaySession:
        """The newest session of the application of that name. Raises KeyError."""
        for session in reversed(self.sessions.all):
            if session.application.name == name:
                return session
        raise KeyError(name)

    def typing(self, channel: SimChannel) -> list[TypingStarted]:
        """Returns who was seen typing there, and when, in order."""
        return [each for each in self.changes if isinstance(each, TypingStarted) and each.channel is channel]

    async def until(self, predicate: Callable[[], object], timeout_s: float = 30) -> None:
        """Waits until the predicate holds, which is tried after each change, request and connection. Raises
        `NotReachedError`.
        """
        with anyio.move_on_after(timeout_s):
            await self._pulse.until(predicate)
            return
        raise NotReachedError(f"not reached within {timeout_s} s\n{self.transcript()}")

    def transcript(self) -> str:
        """Returns the messages of each channel and the last requests, for people to read."""
        lines: list[str] = []
        for channel in self.store.channels.values():
            if channel.messages:
                lines.append(f"#{channel.name or ' and '.join(each.name for each in channel.recipients)}")
                lines += [f"  {message}" for message in channel.messages[-_TRANSCRIPT:]]
        lines.append(f"gateway: {len(self._lines)} connections, {len(self.sessions.all)} sessions")
        lines += [f"  {each}" for each in self.requests[-_TRANSCRIPT:]]
        return "\n".join(lines)

    def application(self, url: str) -> web.Application:
        """Returns the web application at that address."""
        self.url = url
        self.store.files.cdn_url = self.cdn_url
        self._api.gateway_url = self.gateway_url
        application = web.Application(client_max_size=_MAX_BODY)
        self._api.mount(application.router, ROUTES)
        PageSite(self.world).mount(application)
        self.voice.mount(application.router, url)
        application.router.add_get("/gateway", self._connect)
        application.router.add_get("/gateway/", self._connect)
        application.router.add_get(r"/cdn/attachments/{channel_id:\d+}/{file_id:\d+}/{name}", self._download)
        return application

    def hang_up(self) -> None:
        """Ends what is open, so that the server can stop."""
        self.faults.clear()
        for line in list(self._lines):
            line.cut()

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        if self.gateway_faults.refusals > 0:
            self.gateway_faults.refusals -= 1
            return web.Response(status=503)
        if request.query.get("compress", "zlib-stream") not in KNOWN or request.query.get("encoding", "json") != "json":
            return web.Response(status=400, text="Only JSON is spoken here, plain or compressed.")
        connection = GatewayConnection(self.store, self.sessions, self.gateway_faults, self.voice, self.gateway_url)
        self._lines.append(connection)
        self._pulse.beat()
        try:
            return await connection.serve(request)
        finally:
            self._lines.remove(connection)
            self._pulse.beat()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        file = self.store.files.by_id.get(int(request.match_info["file_id"]))
        if file is None or file.filename != request.match_info["name"]:
            return web.Response(status=404)
        headers = {"Content-Type": file.content_type or "application/octet-stream"}
        return web.Response(body=file.content, headers=headers)


@asynccontextmanager
async def open_discord(
    port: int = 0, *, host: str = "127.0.0.1", clock: Clock | None = None
) -> AsyncGenerator[DiscordServer, None]:
    """Runs a server on loopback, or on another address of this machine; port 0 takes a free one. What is still open
    when the block ends is cut.
    """
    server = DiscordServer(clock or SystemClock())
    # asyncio disables Nagle's algorithm only if the protocol is named; with it each answer takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    application = server.application(f"http://{host}:{listener.getsockname()[1]}")
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        async with server.voice.listen():
            yield server
    finally:
        server.hang_up()
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
