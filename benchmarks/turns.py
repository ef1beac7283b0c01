"""Turns over HTTP: what one costs beyond the model, how many fit into a second, and what memory they leave behind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.client import Client, ask_in_a_row, ask_side_by_side, stats
from benchmarks.figures import Figure, middle
from benchmarks.processes import Process, bare_python_mb, make_used_home, run_server

WARM_UP = 30
TURNS = 150
CLIENTS = 8
EACH = 30
LEFT_TURNS = 500
CHARS_PER_TOKEN = 4


def measure(folder: Path, model: Process) -> Iterator[Figure]:
    with run_server(make_used_home(folder / "turns", model.port)) as server:
        client = Client(server)
        ask_in_a_row(client, WARM_UP)
        yield from _prompt(client, model)
        yield from _one(client, server, model, "one turn over HTTP, overhead at the median", aim=10)
        streamed = Client(server, stream=True)
        yield from _one(streamed, server, model, "the same streamed", aim=None)
        done = WARM_UP + 2 * TURNS + 1
        yield from _many(server, model)
        done += CLIENTS * EACH
        ask_in_a_row(client, max(LEFT_TURNS - done, 0))
        yield Figure(
            f"resident memory after {LEFT_TURNS} turns", server.memory_mb(), "MB", aim=150, baseline=bare_python_mb()
        )


def _one(client: Client, server: Process, model: Process, name: str, *, aim: float | None) -> Iterator[Figure]:
    """The model's own time, as it noticed it, does not count."""
    straight = Client(model, model="instant")
    ask_in_a_row(straight, WARM_UP)
    round_trip_ms = middle(ask_in_a_row(straight, TURNS)) * 1e3
    straight.close()
    stats(model)
    before = server.cpu_ms()
    seconds = ask_in_a_row(client, TURNS)
    cpu_ms = (server.cpu_ms() - before) / TURNS
    own = stats(model)["seconds"]
    overhead_ms = middle(all_s - model_s for all_s, model_s in zip(seconds, own, strict=True)) * 1e3
    yield Figure(name, overhead_ms, "ms", aim=aim, baseline=round_trip_ms, note="baseline: straight at the model")
    yield Figure("  processor time of it", cpu_ms, "ms CPU", note=f"the model's own: {middle(own) * 1e3:.2f} ms")


def _many(server: Process, model: Process) -> Iterator[Figure]:
    straight = ask_side_by_side(model, CLIENTS, EACH, model="instant")
    before = server.cpu_ms()
    rate = max(ask_side_by_side(server, CLIENTS, EACH // 2) for _ in range(2))
    cpu_ms = (server.cpu_ms() - before) / (CLIENTS * (EACH // 2) * 2)
    yield Figure(f"turns a second, {CLIENTS} clients", rate, "/s", aim=100, baseline=straight, more_is_better=True)
    yield Figure("  processor time of each", cpu_ms, "ms CPU")


def _prompt(client: Client, model: Process) -> Iterator[Figure]:
    stats(model)
    client.ask("hello")
    body = json.loads(stats(model)["last"])
    system = [text for message in body["messages"] if message["role"] == "system" for text in _texts(message)]
    tools = json.dumps(body.get("tools", []), separators=(",", ":"), ensure_ascii=False)
    words = sum(len(text) for text in system)
    note = f"system {words // CHARS_PER_TOKEN}, {len(body.get('tools', []))} tools {len(tools) // CHARS_PER_TOKEN}"
    yield Figure("fixed prompt of a plain hello", (words + len(tools)) / CHARS_PER_TOKEN, "tokens", aim=1700, note=note)


def _texts(message: dict[str, Any]) -> Sequence[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content]
