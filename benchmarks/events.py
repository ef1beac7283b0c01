"""Turns of people beside 1,000 schedules and 10,000 webhooks a minute, and idle memory with what is switched off."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from benchmarks.client import Client, ask_in_a_row
from benchmarks.figures import Figure, middle
from benchmarks.processes import Process, bare_python_mb, make_home, run_server

SCHEDULES = 1000
EVENTS_A_MINUTE = 10_000
SENDERS = 4
TURNS = 150
WARM_UP = 30
IDLE_S = 5.0
SECRET = "the-secret-of-the-route"
LISTENING = """\
webhooks:
  enabled: true
  routes:
    hub: {scheme: github, secret: "${HOOK_SECRET}", action: log}
listeners:
  keep: {on: "github.*", action: log}
schedules:
"""
OFF = "events:\n  websockets:\n"


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    plain = _make_home(folder / "plain", model, "")
    off = "".join(f"    s{n}: {{url: wss://example.org/{n}, enabled: false}}\n" for n in range(20))
    switched_off = _make_home(folder / "off", model, OFF + off)
    with run_server(plain) as server:
        ask_in_a_row(Client(server), WARM_UP)
        alone_ms = middle(ask_in_a_row(Client(server), TURNS)) * 1e3
        idle_mb = server.memory_mb()
    with run_server(switched_off) as server:
        ask_in_a_row(Client(server), WARM_UP + TURNS)
        off_mb, note = server.memory_mb(), f"beside {idle_mb:.0f} MB without any; baseline: bare Python"
    yield Figure("memory with 20 sources of events that are off", off_mb, "MB", baseline=bare_python_mb(), note=note)
    rows = "".join(
        f'  s{n}: {{cron: "{n % 60} * * * *", prompt: "hello {n}", wake_agent: true}}\n' for n in range(SCHEDULES)
    )
    with run_server(_make_home(folder / "busy", model, LISTENING + rows)) as server:
        ask_in_a_row(Client(server), WARM_UP)
        before = server.cpu_ms()
        time.sleep(IDLE_S)
        yield Figure(f"processor time of {SCHEDULES} schedules that wait", (server.cpu_ms() - before) / IDLE_S, "ms/s")
        with _Senders(server) as senders:
            busy_ms = middle(ask_in_a_row(Client(server), TURNS, pause_s=0.05)) * 1e3
        yield Figure(
            "events that were taken a minute", senders.rate_a_minute, "/min", aim=EVENTS_A_MINUTE, more_is_better=True
        )
        yield Figure(
            "one turn over HTTP meanwhile, at the median", busy_ms, "ms", baseline=alone_ms, note="baseline: alone"
        )
        yield Figure("memory then", server.memory_mb(), "MB")


def _make_home(folder: Path, model: Process, rest: str) -> Path:
    """A home folder whose databases exist, with these sections too."""
    home = make_home(folder, model.port)
    config = home / "denizen.yaml"
    config.write_text(config.read_text(encoding="utf-8") + rest, encoding="utf-8")
    secrets = home / "secrets.env"
    secrets.write_text(f"HOOK_SECRET={SECRET}\n", encoding="utf-8")
    secrets.chmod(0o600)
    with run_server(home):
        pass
    return home


class _Senders:
    """Threads that send webhooks at the wanted pace, as far as the server takes them, until the end of the block."""

    def __init__(self, server: Process) -> None:
        self._server = server
        self._over = threading.Event()
        self._taken = [0] * SENDERS
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(SENDERS)]
        self._began_s = 0.0
        self.rate_a_minute = 0.0

    def __enter__(self) -> Self:
        self._began_s = time.perf_counter()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.rate_a_minute = sum(self._taken) / (time.perf_counter() - self._began_s) * 60

    def _send(self, number: int) -> None:
        connection, pause_s = self._server.connect(), 60 * SENDERS / EVENTS_A_MINUTE
        following_s = time.perf_counter()
        while not self._over.is_set():
            body = json.dumps({"sender": number, "number": self._taken[number]}).encode()
            signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {
                "X-Hub-Signature-256": f"sha256={signature}",
                "X-GitHub-Event": "push",
                "X-GitHub-Delivery": f"{number}-{self._taken[number]}",
            }
            connection.request("POST", "/api/hooks/hub", body, headers)
            answer = connection.getresponse()
            answer.read()
            self._taken[number] += answer.status in (200, 202)
            following_s += pause_s
            time.sleep(max(following_s - time.perf_counter(), 0))
        connection.close()
