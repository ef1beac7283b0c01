"""A real server with a WebSocket on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serve_socket(talk: Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]) -> AsyncGenerator[int]:
    """Gives the port of a server with a WebSocket at `/stream`, and redirects to it at `/moved`."""

    async def stream(request: web.Request) -> web.WebSocketResponse:
        opened = web.WebSocketResponse()
        await opened.prepare(request)
        await talk(opened, request)
        await opened.close()
        return opened

    async def moved(request: web.Request) -> web.Response:
        del request
        raise web.HTTPFound("/stream")

    app = web.Application()
    app.add_routes([web.get("/stream", stream), web.get("/moved", moved)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
