"""Serves the page and `/sim` on the simulator's port, to its own page and to programs of this machine only.

Nobody signs in, so the danger is another site's page in the same browser. Requests must be addressed to a loopback
name, and changes must be JSON from this page or from no browser at all. Uploaded files come from the same port, so
they are served without the right to run scripts.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from aiohttp import web

from denizen.testing.discord.page.feed import PageFeeds, frame
from denizen.testing.discord.page.requests import Handler, PageRequest, find_person, read_body, tell
from denizen.testing.discord.page.routes import TALK_ROUTES, USE_ROUTES
from denizen.testing.discord.state.errors import RefusedError, forbidden
from denizen.testing.discord.world.world import SimWorld

KEEP_ALIVE_S = 15.0
PREFIX = "/sim"

_STATIC = Path(__file__).parent / "static"
_FILES = MappingProxyType({"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": _POLICY,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)
_SENT_FILES = MappingProxyType(
    {
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
        "X-Content-Type-Options": "nosniff",
    }
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageSite:
    """The page of one world. Made once; `mount` adds it to an application."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._feeds = PageFeeds(world.store)

    def mount(self, application: web.Application) -> None:
        router = application.router
        router.add_get("/", self._guarded(self._index))
        router.add_get(r"/page/{name:[a-z]+\.(?:js|css|svg)}", self._guarded(self._file))
        router.add_get(f"{PREFIX}/events", self._guarded(self._stream))
        for route in (*TALK_ROUTES, *USE_ROUTES):
            router.add_route(route.method, PREFIX + route.path, self._guarded(self._answering(route.handler)))
        application.on_response_prepare.append(_harden)
        application.on_shutdown.append(self._close)

    def _guarded(self, serve: Serve) -> Serve:
        """Wraps a handler: refusals become answers, and requests of other sites or to other names are refused."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                if urlsplit(f"//{request.host}").hostname not in _LOOPBACK:
                    raise forbidden(0, "This answers to loopback names only: use http://127.0.0.1.")
                site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
                own = site in ("same-origin", "none") if site else origin in (None, f"http://{request.host}")
                if not own and (request.path != "/" or request.method != "GET"):
                    raise forbidden(0, "A page of another site made this request.")
                return await serve(request)
            except RefusedError as refusal:
                return web.json_response(tell(refusal), status=refusal.status)

        return guarded

    def _answering(self, handler: Handler) -> Serve:
        async def answer(request: web.Request) -> web.StreamResponse:
            person = find_person(self._world, request.query.get("as"))
            form = await read_body(request)
            asked = PageRequest(self._world, person, request.match_info, request.query, form)
            body = handler(asked)
            if inspect.isawaitable(body):
                body = await body
            return web.Response(status=204) if body is None else web.json_response(body)

        return answer

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Streams server-sent events until the page or the server ends. See `feed`."""
        person = find_person(self._world, request.query.get("as"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        feed, take_off = self._feeds.open(person)
        try:
            while not feed.closed:
                events = await feed.wait(KEEP_ALIVE_S)
                await response.write(b"".join(map(frame, events)) or b": still here\n\n")
        except ConnectionResetError:
            pass  # the page was closed
        finally:
            take_off()
        return response

    async def _index(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=(_STATIC / "index.html").read_bytes(), content_type="text/html", charset="utf-8")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = _STATIC / request.match_info["name"]
        if not file.is_file():
            return web.Response(status=404)
        return web.Response(body=file.read_bytes(), content_type=_FILES[file.suffix[1:]], charset="utf-8")

    async def _close(self, _: web.Application) -> None:
        self._feeds.close_all()


async def _harden(request: web.Request, response: web.StreamResponse) -> None:
    """Adds headers for what browsers open. Bots get what Discord sends."""
    if request.path.startswith("/cdn/"):
        response.headers.update(_SENT_FILES)
    elif not request.path.startswith(("/api/", "/gateway")):
        response.headers.update(_HEADERS)
