"""Who asks: completions over one connection that stays open, timed; several at once; the same straight at the model."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.processes import Process

PATH = "/v1/chat/completions"
_HEADERS = {"content-type": "application/json"}


def build_body(text: str, *, model: str = "denizen", stream: bool = False) -> bytes:
    return json.dumps(
        {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream}, separators=(",", ":")
    ).encode()


class Client:
    """One connection. `session` keeps the talk in one session of the server."""

    def __init__(self, process: Process, *, session: str = "", stream: bool = False, model: str = "denizen") -> None:
        self._connection = process.connect()
        self._headers = _HEADERS | ({"x-denizen-session": session} if session else {})
        self._stream = stream
        self._model = model

    def ask(self, text: str = "hello") -> float:
        """One completion; seconds until its last byte. Raises RuntimeError when it is not one."""
        started = time.perf_counter()
        body = build_body(text, model=self._model, stream=self._stream)
        self._connection.request("POST", PATH, body, self._headers)
        response = self._connection.getresponse()
        content = response.read()
        took_s = time.perf_counter() - started
        if response.status != 200 or b"content" not in content:
            raise RuntimeError(f"{response.status}: {content[:300]!r}")
        return took_s

    def close(self) -> None:
        self._connection.close()


def ask_in_a_row(client: Client, count: int, *, pause_s: float = 0.0) -> Sequence[float]:
    seconds: list[float] = []
    for number in range(count):
        seconds.append(client.ask(f"hello {number}"))
        time.sleep(pause_s)
    return seconds


def ask_side_by_side(process: Process, clients: int, each: int, *, model: str = "denizen") -> float:
    """Answers a second."""

    def ask_in_turn(_: int) -> None:
        client = Client(process, model=model)
        ask_in_a_row(client, each)
        client.close()

    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(ask_in_turn, range(clients)))
    return clients * each / (time.perf_counter() - started)


def stats(model: Process) -> dict[str, Any]:
    """Returns the records of the instant model since the last call: `seconds` of each request, `last` body as text."""
    found = model.get("/stats")
    assert isinstance(found, dict)
    return found
