"""The model server as a process: real weights, real HTTP. Only the plumbing is asserted, never what the model says."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import psutil
import pytest

from denizen.adapters.models.embedded.server import NOT_LOADED
from tests.adapters.models.embedded.conftest import KEY, RunningServer, server_settings, spawn_server
from tests.timing import HANG_LIMIT_S, wait_until

_ASK = {"messages": [{"role": "user", "content": "Name three colours."}], "temperature": 0, "max_tokens": 8}


@contextmanager
def _read_announcement(process: Any) -> Generator[dict[str, Any]]:
    with process:
        yield json.loads(process.stdout.readline())
        process.stdin.close()


def test_a_completion_reports_its_usage_and_why_it_ended(small_server: RunningServer) -> None:
    answer = small_server.client.post("/chat/completions", json=_ASK).json()

    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["usage"]["prompt_tokens"] > 8
    assert answer["model"] == "small"


def test_streaming_sends_the_answer_in_pieces_and_the_usage_last(small_server: RunningServer) -> None:
    ask = {**_ASK, "stream": True, "stream_options": {"include_usage": True}}
    with small_server.client.stream("POST", "/chat/completions", json=ask) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]

    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    pieces = [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk["choices"]]
    assert len([piece for piece in pieces if piece]) > 1
    assert chunks[-1]["usage"]["completion_tokens"] == 8


def test_output_constrained_by_a_schema_satisfies_it(small_server: RunningServer) -> None:
    schema = {
        "type": "object",
        "properties": {"tool": {"enum": ["search", "none"]}, "sure": {"type": "boolean"}},
        "required": ["tool", "sure"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "plan", "schema": schema, "strict": True}}
    ask = {**_ASK, "max_tokens": 60, "response_format": wanted}
    answer = small_server.client.post("/chat/completions", json=ask).json()

    jsonschema.validate(json.loads(answer["choices"][0]["message"]["content"]), schema)


def test_a_repeated_prompt_is_served_from_the_prefix_cache(small_server: RunningServer) -> None:
    ask = {**_ASK, "messages": [{"role": "user", "content": "Count the letters of the alphabet, please."}]}
    first, second = (small_server.client.post("/chat/completions", json=ask).json()["usage"] for _ in range(2))

    assert second["prompt_tokens_details"]["cached_tokens"] >= first["prompt_tokens"] - 1


def test_a_prompt_beyond_the_context_is_refused_and_not_cut(small_server: RunningServer) -> None:
    ask = {**_ASK, "messages": [{"role": "user", "content": "word " * 600}]}
    answer = small_server.client.post("/chat/completions", json=ask)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "exceed_context_size_error"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
def test_requests_without_the_key_are_refused(small_server: RunningServer, headers: dict[str, str]) -> None:
    url = str(small_server.client.base_url)

    assert httpx2.post(f"{url}chat/completions", json=_ASK, headers=headers).status_code == 401
    assert httpx2.get(f"{url}models", headers=headers).status_code == 401


def test_web_pages_of_others_get_no_permission(small_server: RunningServer) -> None:
    answer = small_server.client.options("/chat/completions", headers={"Origin": "https://example.org"})

    assert answer.headers.get("access-control-allow-origin", "") == ""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at another process")
def test_the_key_shows_neither_in_the_arguments_nor_in_the_environment(small_server: RunningServer) -> None:
    process = psutil.Process(small_server.process.pid)

    assert KEY not in " ".join(process.cmdline())
    assert KEY not in str(process.environ())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at another process")
def test_only_the_loopback_address_listens(small_server: RunningServer) -> None:
    listening = [
        connection.laddr.ip
        for connection in psutil.Process(small_server.process.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]

    assert listening == ["127.0.0.1"]


def test_the_end_of_stdin_ends_it(small_weights: Path) -> None:
    process = spawn_server(server_settings(small_weights))
    with _read_announcement(process) as said:
        assert said["port"] > 0

    assert process.returncode == 0


def test_stdout_carries_the_announcement_and_nothing_else(small_weights: Path) -> None:
    process = spawn_server(server_settings(small_weights))
    with _read_announcement(process):
        assert process.stdout is not None
        assert process.stdout.read() == b""


def test_weights_that_are_cut_short_are_announced_as_not_loaded(small_weights: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with small_weights.open("rb") as whole:
        cut.write_bytes(whole.read(3_000_000))
    process = spawn_server(server_settings(cut))
    with _read_announcement(process) as said:
        assert said["error"] == NOT_LOADED
        assert process.wait() == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks at another process")
def test_idle_weights_leave_memory_and_come_back_with_the_next_request(small_weights: Path) -> None:
    process = spawn_server(server_settings(small_weights, idle_s=1))
    with (
        _read_announcement(process) as said,
        httpx2.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=HANG_LIMIT_S) as client,
    ):
        seen = psutil.Process(process.pid)
        most_kb = int(Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0])

        wait_until(lambda: seen.memory_info().rss < most_kb * 1024 / 2)
        answer = client.post(f"http://127.0.0.1:{said['port']}/v1/chat/completions", json=_ASK).json()

        assert answer["usage"]["completion_tokens"] == 8


def test_the_child_imports_no_library_of_the_parent() -> None:
    code = (
        "import sys, denizen.adapters.models.embedded.server; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "denizen" in imported
    assert {"anyio", "httpx2", "pydantic", "pydantic_ai", "sqlalchemy"}.isdisjoint(imported)
