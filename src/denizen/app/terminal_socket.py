"""The unix socket on which `denizen run` serves the terminals of its home folder.

Whoever can open the socket is the operator: it lies in the home folder and belongs to its owner only. It has an
application of its own, so that nothing in a request over TCP, whatever it claims, leads to what is served here; and a
request here needs no key and no check of its host or origin, since no browser can make one.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from denizen import __version__
from denizen.app.terminal import TerminalService
from denizen.app.terminal_messages import TerminalMessage, list_sockets
from denizen.web.api.chat import turn_id_for
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.errors import ErrorBoundary, answer_http_exception
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, encode_sse
from denizen.web.http.problems import describe_problem
from denizen.web.http.request import TURN_HEADER, read_object
from denizen_sdk.records import from_json
from denizen_sdk.turns import TurnFailedEvent, encode_event

_log = logging.getLogger("denizen.terminal")


class TerminalServer(uvicorn.Server):
    """Serves terminals until `should_exit` is set. Its caller minds the signals. It has none of the limits of
    `HttpServer`: they count and end the connections of addresses, and who is here is the operator, who may think for
    hours about an approval.
    """

    def __init__(self, service: TerminalService) -> None:
        options = uvicorn.Config(
            create_terminal_app(service),
            http="h11",  # which answers the HTTP 1.0 of `cli/terminal_client.py` as that says: without chunks
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        options.load()  # imports now what it would import only after the other server has said that it is ready
        super().__init__(options)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextmanager
def open_terminal_socket(path: Path) -> Generator[socket.socket | None]:
    """Listens on that socket until the block ends, and removes it then. A socket that a killed server left is replaced.
    None, with a warning in the log, where there can be none: another server has it, or the path is
    too long for a socket.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            if _find_listener(path) is not None:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            if path.is_socket():  # that of a killed server
                path.unlink()
            listener.bind(str(path))
            path.chmod(0o600)  # before anybody can connect
            listener.listen()
        except OSError as error:
            why = error.strerror or str(error)
            _log.warning("terminals cannot use this server", extra={"socket": str(path), "why": why})
            yield None
            return
        own = path.stat().st_ino
        try:
            yield listener
        finally:
            if path.exists() and path.stat().st_ino == own:
                path.unlink()


def find_server_process(home: Path) -> int | None:
    """Returns the id of the process that serves terminals of the home folder, 0 where that cannot be found out; None
    when there is no such process.
    """
    found = (_find_listener(path) for path in list_sockets(home))
    return next((process for process in found if process is not None), None)


def _find_listener(path: Path) -> int | None:
    if not path.is_socket():
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return None
        except OSError:  # another user's, perhaps
            return 0
        if sys.platform != "linux":
            return 0
        ids = struct.Struct("3i")
        return ids.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, ids.size))[0]


def create_terminal_app(service: TerminalService) -> Starlette:
    """Returns the application behind the socket. Its only client is `cli/terminal_client.py` of the same version."""
    timing = WebTiming()

    async def greet() -> str:
        service.check()
        return __version__

    async def cancel(**message: object) -> bool:
        return service.cancel(from_json(TerminalMessage, message))

    calls: Mapping[str, Callable[..., Awaitable[object]]] = {
        "greet": greet,
        "cancel": cancel,
        "decide": service.decide,
        "list_agents": service.list_agents,
        "get_agent": service.get_agent,
        "find_answering": service.find_answering,
        "hand_over": service.hand_over,
        "end_handover": service.end_handover,
        "list_models": service.list_models,
        "list_tools": service.list_tools,
        "list_context": service.list_context,
        "run_migrate": service.run_migrate,
        "report_move": service.report_move,
        "run_schedules": service.run_schedules,
        "start_workflow": service.start_workflow,
        "rerun_workflow": service.rerun_workflow,
        "run_observer": service.run_observer,
    }

    async def call(request: Request) -> Response:
        answer = await calls[request.path_params["name"]](**await read_object(request))
        return Response(json.dumps(answer, default=asdict), media_type="application/json")

    async def chat(request: Request) -> Response:
        message = from_json(TerminalMessage, await read_object(request))
        turn = turn_id_for(service.plan_turn(message))

        async def encode() -> Chunks:
            async with aclosing(service.stream(message)) as events:
                async for event in events:
                    yield encode_sse("turn", encode_event(event))

        options = StreamOptions(
            on_error=lambda error: encode_sse("turn", encode_event(TurnFailedEvent(turn, describe_problem(error)))),
            on_gone=lambda: None,
            start_after_s=timing.chat_start_s,
            keep_alive_s=timing.keep_alive_s,
        )
        return EventStream(encode(), options, {TURN_HEADER: turn})

    return Starlette(
        routes=[Route("/chat", chat, methods=["POST"]), Route("/calls/{name}", call, methods=["POST"])],
        middleware=[Middleware(ErrorBoundary)],
        exception_handlers={HTTPException: answer_http_exception},
    )
