"""A local HTTP server with the APIs of model providers and a script instead of a model.

For tests of adapters, whole turns and skills. The wire formats are real (`model_wire`), JSON as well as event streams,
so that the production code runs unchanged; only the base URL differs. The server listens on a free port of loopback, in
the event loop of the test, or in a thread of its own for tests that are not async.

    async with model_server() as server:
        server.script(ModelAnswer(text="Hello."), FailedAnswer(529, headers={"retry-after": "1"}))
        ...  # OpenAI-compatible: server.openai_url; OpenRouter: server.openrouter_url; Anthropic, Google: server.url
        assert server.requests[0].body["model"] == "..."

With a `PromptCache` the server bills its answers by the rules of the vendors.

Each request takes the next entry of the script. A request after the last entry gets status 400, since clients do not
retry that.
"""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

import anyio
import anyio.from_thread
import anyio.lowlevel
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from denizen.testing.model_checks import check_request
from denizen.testing.model_wire import (
    AnswerTokens,
    JsonBody,
    ModelAnswer,
    ModelApi,
    ModelCall,
    error_body,
    error_frame,
    json_answer,
    stream_answer,
)
from denizen.testing.prompt_cache import PromptCache

__all__ = [
    "AnswerTokens",
    "BrokenAnswer",
    "DelayedAnswer",
    "FailedAnswer",
    "HangingAnswer",
    "ModelAnswer",
    "ModelCall",
    "ModelServer",
    "RawAnswer",
    "RecordedRequest",
    "StreamErrorAnswer",
    "model_server",
    "model_server_in_thread",
]

_PATHS: Mapping[str, ModelApi] = {
    "/v1/chat/completions": "chat",
    "/api/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
_GENERATE = (":generateContent", ":streamGenerateContent")
"""The ends of Google's paths, which name the model."""
_OPENROUTER = "/api/v1/"
_CLOSE_DEADLINE_S = 2.0


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An error status of the provider."""

    status: int
    message: str = "scripted failure"
    kind: str = "scripted_error"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class HangingAnswer:
    """An answer that never ends: the server stops sending after `after_frames` frames and keeps the connection open."""

    answer: ModelAnswer | None = None
    after_frames: int = 0


@dataclass(frozen=True, slots=True)
class BrokenAnswer:
    """An answer whose connection ends after `after_frames` frames; with `cleanly` as the end of a whole stream does."""

    answer: ModelAnswer
    after_frames: int = 1
    cleanly: bool = False


@dataclass(frozen=True, slots=True)
class StreamErrorAnswer:
    """An answer whose stream reports an error after `after_frames` frames."""

    answer: ModelAnswer
    after_frames: int = 0
    message: str = "Overloaded"
    kind: str = "overloaded_error"
    code: str | None = None


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """Any bytes, such as the HTML page of a proxy."""

    body: bytes
    content_type: str = "text/html"
    status: int = 200


@dataclass(frozen=True, slots=True)
class DelayedAnswer:
    """An answer that waits after `after_frames` frames until `until` is set. `reached` is set when it waits."""

    answer: ModelAnswer
    until: anyio.Event
    reached: anyio.Event
    after_frames: int = 0


ScriptEntry = ModelAnswer | FailedAnswer | HangingAnswer | BrokenAnswer | StreamErrorAnswer | RawAnswer | DelayedAnswer


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that the server received. Header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: JsonBody
    client_port: int
    """The port of the client, to tell connections apart."""


class ModelServer:
    """The ASGI application with its script and the requests that it received. With `strict` it checks prompts as the
    vendors do; with a `cache` it bills answers by the cache's rules instead of the script's token counts.
    """

    def __init__(self, *, strict: bool = True, cache: PromptCache | None = None) -> None:
        self.requests: list[RecordedRequest] = []
        self.models: Sequence[str] = ("scripted",)
        self.url = ""
        self.aside: Callable[[JsonBody], ScriptEntry | None] = lambda _: None
        """Answers requests that are no part of the script, such as those made in the background."""
        self._strict = strict
        self._cache = cache
        self._script: deque[ScriptEntry] = deque()
        self._closing = anyio.Event()

    @property
    def openai_url(self) -> str:
        """The base URL of OpenAI's API and of compatible ones."""
        return f"{self.url}/v1"

    @property
    def openrouter_url(self) -> str:
        return f"{self.url}/api/v1"

    @property
    def bodies(self) -> Sequence[JsonBody]:
        return [request.body for request in self.requests]

    @property
    def left(self) -> int:
        """The number of entries that no request has taken yet."""
        return len(self._script)

    def script(self, *entries: ScriptEntry) -> None:
        """Adds entries to the script."""
        self._script.extend(entries)

    def close(self) -> None:
        """Ends every entry that waits."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method == "GET" and request.url.path.endswith("/models"):
            rows = [{"id": name, "object": "model", "created": 0, "owned_by": "scripted"} for name in self.models]
            await JSONResponse({"object": "list", "data": rows})(scope, receive, send)
            return
        api = "generate" if request.url.path.endswith(_GENERATE) else _PATHS.get(request.url.path)
        if api is None:
            await JSONResponse(error_body("chat", "no such route", "not_found", None), 404)(scope, receive, send)
            return
        body: JsonBody = json.loads(await request.body())
        port = request.client.port if request.client else 0
        self.requests.append(RecordedRequest(request.url.path, dict(request.headers), body, port))
        await self._play(self._next(api, body), _Exchange(api, body, scope, receive, send))

    def _next(self, api: ModelApi, body: JsonBody) -> ScriptEntry:
        if self._strict and (refusal := check_request(api, body)):
            return FailedAnswer(400, refusal, "invalid_request_error")
        entry = self.aside(body)
        if entry is None and not self._script:
            return FailedAnswer(400, "The script of the model server has no entry left.", "script_exhausted")
        entry = entry or self._script.popleft()
        if self._cache is not None and isinstance(entry, ModelAnswer):
            billed = self._cache.take(api, body)
            return replace(entry, tokens=billed.tokens((entry.tokens or AnswerTokens()).output))
        return entry

    async def _play(self, entry: ScriptEntry, exchange: _Exchange) -> None:
        match entry:
            case FailedAnswer():
                await exchange.fail(entry)
            case RawAnswer(content, content_type, status):
                await exchange.respond(Response(content, status, media_type=content_type))
            case ModelAnswer():
                await exchange.answer(entry)
            case HangingAnswer(None):
                await self._closing.wait()
            case HangingAnswer(answer, after_frames):
                await exchange.stream(answer or ModelAnswer(), after_frames)
                await self._closing.wait()
            case BrokenAnswer(answer, after_frames, cleanly):
                await exchange.stream(answer, after_frames)
                if cleanly:
                    await exchange.end()
            case StreamErrorAnswer(answer, after_frames, message, kind, code):
                await exchange.stream(answer, after_frames)
                await exchange.write(error_frame(exchange.api, message, kind, code))
                await exchange.end()
            case DelayedAnswer():
                await exchange.begin()
                frames = list(exchange.frames(entry.answer))
                for frame in frames[: entry.after_frames]:
                    await exchange.write(frame)
                entry.reached.set()
                await entry.until.wait()
                for frame in frames[entry.after_frames :]:
                    await exchange.write(frame)
                await exchange.end()


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request and its response, sent frame by frame. Without `end` the connection breaks."""

    api: ModelApi
    request: JsonBody
    scope: Scope
    receive: Receive
    send: Send

    @property
    def openrouter(self) -> bool:
        return str(self.scope["path"]).startswith(_OPENROUTER)

    @property
    def is_stream(self) -> bool:
        return bool(self.request.get("stream")) or str(self.scope["path"]).endswith(":streamGenerateContent")

    def frames(self, answer: ModelAnswer) -> Generator[bytes, None, None]:
        yield from stream_answer(self.api, answer, self.request, openrouter=self.openrouter)

    async def answer(self, answer: ModelAnswer) -> None:
        if not self.is_stream:
            await self.respond(JSONResponse(json_answer(self.api, answer, self.request, openrouter=self.openrouter)))
            return
        await self.stream(answer, None)
        await self.end()

    async def fail(self, entry: FailedAnswer) -> None:
        body = error_body(self.api, entry.message, entry.kind, entry.code)
        await self.respond(JSONResponse(body, entry.status, headers=dict(entry.headers)))

    async def respond(self, response: Response) -> None:
        await response(self.scope, self.receive, self.send)

    async def stream(self, answer: ModelAnswer, frames: int | None) -> None:
        """The head and the first `frames` frames (None: all)."""
        await self.begin()
        for frame in list(self.frames(answer))[:frames]:
            await self.write(frame)

    async def begin(self) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def write(self, frame: bytes) -> None:
        await self.send({"type": "http.response.body", "body": frame, "more_body": True})

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


@asynccontextmanager
async def model_server(
    *, strict: bool = True, cache: PromptCache | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[ModelServer, None]:
    """A running server, on loopback or another address of this machine. What still hangs when the block ends is let
    go.
    """
    app = ModelServer(strict=strict, cache=cache)
    # With the protocol named, asyncio switches Nagle's algorithm off; else each answer takes 40 ms longer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((host, 0))
    app.url = f"http://{host}:{listener.getsockname()[1]}"
    config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none")
    server = _Uvicorn(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await server.up.wait()
        try:
            yield app
        finally:
            app.close()
            server.down.set()


@contextmanager
def model_server_in_thread(*, strict: bool = True) -> Generator[ModelServer, None, None]:
    """The same for code that is not async, or that starts other processes. Script it before the requests come."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(model_server(strict=strict)) as server,
    ):
        yield server


class _Uvicorn(uvicorn.Server):
    """uvicorn that starts and stops by events instead of polling, and leaves the signals of the process alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = anyio.Event()
        self.down = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.up.set()
        await self.down.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        with anyio.move_on_after(_CLOSE_DEADLINE_S):
            while self.server_state.connections:
                for connection in list(self.server_state.connections):
                    connection.shutdown()
                await anyio.lowlevel.checkpoint()
