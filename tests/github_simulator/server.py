"""The simulated GitHub as a server on loopback.

async with open_github() as github:
ana = github.world.add_user("ana")
...  # see `world`
await github.until(lambda: len(issue.comments) == 2)
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
from aiohttp import web
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from denizen.domain.clock import Clock, SystemClock
from denizen.testing.discord.rest.request_log import FaultTime, LoggedRequest, RequestFault
from denizen.testing.discord.state.clock import ChangeSignal
from tests.github_simulator.access import RefusedError, find_caller
from tests.github_simulator.hooks import WebhookDelivery, make_ping, plan_deliveries, send
from tests.github_simulator.rest import RestRequest, RestResponse, handle_request
from tests.github_simulator.state import Hook, User
from tests.github_simulator.world import GitHubWorld, WebhookEvent
from tests.timing import HANG_LIMIT_S

LIMIT = 5000
_MAX_PAGE = 100
_MAX_WAITING = 1000


class NotReachedError(AssertionError, TimeoutError):
    """An awaited condition did not become true. The message has the last requests and webhooks."""


class GitHubServer:
    """A running simulator. `requests` and `deliveries` have all requests and webhooks, in order."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.world = GitHubWorld(clock)
        self.url = ""
        self.requests: list[LoggedRequest] = []
        self.deliveries: list[WebhookDelivery] = []
        self.sends_webhooks = True
        """False simulates lost webhooks: events are not delivered."""
        self._faults: list[RequestFault] = []
        self._headers: dict[int, dict[str, str]] = {}
        self._pulse = ChangeSignal()
        self._outgoing: MemoryObjectSendStream[WebhookDelivery] | None = None
        self.world.told.append(self._tell)

    @property
    def api_url(self) -> str:
        """Base of the REST API, without a slash at the end."""
        return self.url

    # --- for tests ---------------------------------------------------------------------------------------------------

    def requests_to(self, method: str, route: str) -> list[LoggedRequest]:
        """Returns the requests with this method whose path matches the regular expression."""
        return [each for each in self.requests if each.method == method and re.search(route, each.path)]

    async def until(self, predicate: Callable[[], object], timeout_s: float = HANG_LIMIT_S) -> None:
        """Waits until it holds. Raises `NotReachedError`."""
        with anyio.move_on_after(timeout_s):
            await self._pulse.until(predicate)
            return
        told = [str(each) for each in self.requests[-20:]]
        told += [f"webhook {each.event} -> {each.status} {each.answer[:200]}" for each in self.deliveries[-10:]]
        raise NotReachedError("\n".join([f"not reached within {timeout_s} s", *told]))

    def fail(
        self,
        method: str = "",
        route: str = "",
        *,
        status: int = 500,
        times: int = 1,
        when: FaultTime = "before",
        headers: dict[str, str] | None = None,
    ) -> RequestFault:
        """Answers the next requests with this status; `when` says whether they are applied all the same."""
        fault = RequestFault(method, re.compile(route), times, when, status)
        self._headers[id(fault)] = headers or {}
        self._faults.append(fault)
        return fault

    def limit(self, *, seconds: int = 60, is_secondary: bool = False, times: int = 1) -> RequestFault:
        """The next requests meet a rate limit."""
        if is_secondary:
            return self.fail(status=403, times=times, headers={"retry-after": str(seconds)})
        reset = int((self.clock.now() + timedelta(seconds=seconds)).timestamp())
        return self.fail(
            status=403, times=times, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset)}
        )

    def hold(self, method: str = "", route: str = "", *, times: int = 1, when: FaultTime = "before") -> RequestFault:
        """Keeps requests waiting until `release`."""
        fault = RequestFault(method, re.compile(route), times, when, gate=anyio.Event())
        self._faults.append(fault)
        return fault

    def ping(self, hook: Hook, by: User) -> WebhookDelivery:
        delivery = make_ping(hook, by)
        self._queue(delivery)
        return delivery

    def redeliver(self, delivery: WebhookDelivery) -> None:
        """The same webhook once more, with the same id."""
        delivery.status = 0
        self._queue(delivery)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _tell(self, happened: WebhookEvent) -> None:
        if self.sends_webhooks:
            for delivery in plan_deliveries(self.world, happened, self.url):
                self._queue(delivery)
        self._pulse.beat()

    def _queue(self, delivery: WebhookDelivery) -> None:
        if delivery not in self.deliveries:
            self.deliveries.append(delivery)
        if self._outgoing is not None:
            self._outgoing.send_nowait(delivery)

    async def send_webhooks(self, waiting: MemoryObjectReceiveStream[WebhookDelivery]) -> None:
        """Until it is cancelled; one after another."""
        async for delivery in waiting:
            await send(delivery)
            self._pulse.beat()

    def connect(self, outgoing: MemoryObjectSendStream[WebhookDelivery]) -> None:
        self._outgoing = outgoing

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body: Any = json.loads(raw) if raw else None
        seen = LoggedRequest(
            request.method, unquote(request.rel_url.raw_path), "", body=body, query=dict(request.query)
        )
        self.requests.append(seen)
        fault = next((each for each in self._faults if each.matches(seen)), None)
        if fault is not None:
            fault.left -= 1
            if fault.when == "before":
                refused = await self._apply_fault(fault, seen)
                if refused is not None:
                    return refused
        response = self._answer(request, seen)
        seen.applied = True
        self._pulse.beat()
        if fault is not None and fault.when == "after":
            refused = await self._apply_fault(fault, seen)
            if refused is not None:
                return refused
        seen.status = response.status
        self._pulse.beat()
        return response

    async def _apply_fault(self, fault: RequestFault, seen: LoggedRequest) -> web.Response | None:
        fault.met += 1
        fault.reached.set()
        self._pulse.beat()
        if fault.gate is not None:
            await fault.gate.wait()
            return None
        seen.status = fault.status or 500
        message = "You have exceeded a rate limit." if fault.status in (403, 429) else "Server Error"
        return web.json_response({"message": message}, status=seen.status, headers=self._headers.get(id(fault)))

    def _answer(self, request: web.Request, seen: LoggedRequest) -> web.Response:
        headers = {"x-ratelimit-limit": str(LIMIT), "x-ratelimit-remaining": str(max(LIMIT - len(self.requests), 1))}
        try:
            if not request.headers.get("user-agent"):
                raise RefusedError(403, "Request forbidden by administrative rules.")
            caller = find_caller(self.world, request.headers.get("authorization", ""))
            told = handle_request(
                RestRequest(self.world, caller, self.url, seen.method, seen.path, seen.query, seen.body)
            )
        except RefusedError as error:
            body: dict[str, Any] = {"message": error.message, "documentation_url": "https://docs.github.com/rest"}
            if error.errors:
                body["errors"] = error.errors
            return web.json_response(body, status=error.status, headers=headers)
        if told.location:
            headers["location"] = told.location + (f"?{request.query_string}" if request.query_string else "")
        if told.status == 204:
            return web.Response(status=204, headers=headers)
        answer = self._page(told, seen, headers)
        if seen.method == "GET":
            headers["etag"] = f'W/"{hashlib.sha256(json.dumps(answer).encode()).hexdigest()}"'
            if request.headers.get("if-none-match") == headers["etag"]:
                return web.Response(status=304, headers=headers)
        return web.json_response(answer, status=told.status, headers=headers)

    def _page(self, told: RestResponse, seen: LoggedRequest, headers: dict[str, str]) -> object:
        """A page of a list, with links to the others."""
        rows = told.body
        if not isinstance(rows, list):
            return rows
        size = min(int(seen.query.get("per_page", 30)), _MAX_PAGE)
        page, pages = int(seen.query.get("page", 1)), max((len(rows) + size - 1) // size, 1)
        links = {"next": page + 1, "last": pages} if page < pages else {}
        links |= {"prev": page - 1, "first": 1} if page > 1 else {}
        if links:
            headers["link"] = ", ".join(
                f'<{self.url}{seen.path}?{urlencode({**seen.query, "page": number})}>; rel="{rel}"'
                for rel, number in links.items()
            )
        part = rows[(page - 1) * size : page * size]
        return {"total_count": len(rows), told.key: part} if told.key else part


@asynccontextmanager
async def open_github(port: int = 0, *, clock: Clock | None = None) -> AsyncGenerator[GitHubServer]:
    """A running server on loopback; port 0 takes a free one."""
    server = GitHubServer(clock or SystemClock())
    # With the protocol named, asyncio switches Nagle's algorithm off; else each answer takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    application = web.Application(client_max_size=10_000_000)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    outgoing, waiting = anyio.create_memory_object_stream[WebhookDelivery](_MAX_WAITING)
    server.connect(outgoing)
    try:
        await web.SockSite(runner, listener).start()
        async with anyio.create_task_group() as group, outgoing, waiting:
            group.start_soon(server.send_webhooks, waiting)
            yield server
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
