"""The real small model, assembled once, and one model server over it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest

from denizen.adapters.models.embedded.catalogue import SMOLLM2_135M
from denizen.adapters.models.embedded.server import ServerSettings
from denizen.adapters.models.embedded.weights import WeightsPlaces, load_weights
from tests.timing import HANG_LIMIT_S

KEY = "key-for-tests"


@dataclass(frozen=True, slots=True)
class RunningServer:
    process: subprocess.Popen[bytes]
    client: httpx2.Client


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with the weights of the smallest model, from its installed package."""
    home = tmp_path_factory.mktemp("home")
    places = WeightsPlaces(home=home, hub_url=None)
    anyio.run(partial(load_weights, SMOLLM2_135M, places))
    return home


@pytest.fixture(scope="session")
def small_weights(small_home: Path) -> Path:
    return small_home / "models" / f"{SMOLLM2_135M.name}.gguf"


def server_settings(weights: Path, *, idle_s: int = 600) -> ServerSettings:
    return ServerSettings(
        weights=str(weights),
        model="small",
        api_key=KEY,
        context_tokens=512,
        slots=1,
        threads=2,
        idle_s=idle_s,
        answer_tokens=64,
        temperature=0,
    )


def spawn_server(settings: ServerSettings) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "denizen.adapters.models.embedded.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(settings.encode())
    process.stdin.flush()
    return process


@pytest.fixture(scope="session")
def small_server(small_weights: Path) -> Iterator[RunningServer]:
    """A server with the small model; the client sends its key."""
    with spawn_server(server_settings(small_weights)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        headers = {"Authorization": f"Bearer {KEY}"}
        limits = httpx2.Limits(
            max_keepalive_connections=0
        )  # the server closes after a stream, as `ProviderConnection` knows
        base_url = f"http://127.0.0.1:{port}/v1"
        with httpx2.Client(base_url=base_url, headers=headers, timeout=HANG_LIMIT_S, limits=limits) as client:
            yield RunningServer(process, client)
        process.stdin.close()
