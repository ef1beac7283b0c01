"""The embedded runtime with the real small model: one child, alive when asked for, gone when it should be."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import httpx2
import psutil
import pytest

from denizen.adapters.models.embedded.catalogue import SMOLLM2_135M
from denizen.adapters.models.embedded.child_process import RestartPolicy
from denizen.adapters.models.embedded.runtime import EmbeddedEndpoint, EmbeddedRuntime, EmbeddedSettings
from denizen.adapters.models.embedded.weights import WeightsPlaces
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.installation import build_install_command
from tests.adapters.models.embedded.samples import ProgressRecorder
from tests.timing import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.anyio

_PARENT = """
import os, sys, anyio
from pathlib import Path
from denizen.adapters.models.embedded.catalogue import SMOLLM2_135M
from denizen.adapters.models.embedded.runtime import EmbeddedRuntime, EmbeddedSettings
from denizen.adapters.models.embedded.weights import WeightsPlaces

async def main():
    places = WeightsPlaces(home=Path(sys.argv[1]), hub_url=None)
    runtime = EmbeddedRuntime(EmbeddedSettings(places=places, environ=os.environ, entry=SMOLLM2_135M))
    await runtime.endpoint()
    print(runtime.pid, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


def _settings(home: Path, environ: Mapping[str, str] | None = None) -> EmbeddedSettings:
    return EmbeddedSettings(
        places=WeightsPlaces(home=home, hub_url=None),
        environ=os.environ if environ is None else environ,
        entry=SMOLLM2_135M,
        context_tokens=512,
        slots=1,
        threads=2,
    )


@asynccontextmanager
async def _running(settings: EmbeddedSettings) -> AsyncGenerator[EmbeddedRuntime]:
    runtime = EmbeddedRuntime(settings)
    try:
        yield runtime
    finally:
        await runtime.aclose()


async def _complete(endpoint: EmbeddedEndpoint) -> str:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    ask = {"model": endpoint.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    async with httpx2.AsyncClient(base_url=endpoint.base_url, headers=headers, timeout=HANG_LIMIT_S) as client:
        answer = (await client.post("/chat/completions", json=ask)).raise_for_status().json()
    assert answer["usage"]["completion_tokens"] == 4
    return answer["model"]


async def _wait_exit(pid: int) -> None:
    """Waits until the process has ended, without reaping it."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(HANG_LIMIT_S):
            await anyio.wait_readable(watched)
    finally:
        os.close(watched)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


async def test_many_who_ask_at_once_share_one_child(small_home: Path) -> None:
    endpoints: list[EmbeddedEndpoint] = []

    async with _running(_settings(small_home)) as runtime:

        async def ask() -> None:
            endpoints.append(await runtime.endpoint())

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)

        assert len(endpoints) == 5
        assert len(set(endpoints)) == 1
        assert await _complete(endpoints[0]) == SMOLLM2_135M.name


@pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd")
async def test_a_killed_child_is_replaced_by_a_fresh_one(small_home: Path) -> None:
    async with _running(_settings(small_home)) as runtime:
        first, first_pid = await runtime.endpoint(), runtime.pid
        assert first_pid is not None
        os.kill(first_pid, signal.SIGKILL)
        await _wait_exit(first_pid)

        second = await runtime.endpoint()

        assert runtime.pid != first_pid
        assert second.api_key != first.api_key
        assert await _complete(second) == SMOLLM2_135M.name


@pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd")
async def test_closing_ends_the_child_for_good(small_home: Path) -> None:
    before = _children()
    async with _running(_settings(small_home)) as runtime:
        await runtime.endpoint()
        assert runtime.pid in _children()

    assert _children() == before
    assert runtime.pid is None
    with pytest.raises(Unavailable) as caught:
        await runtime.endpoint()
    assert caught.value.code == "embedded_model_closed"


@pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd")
async def test_the_child_ends_when_its_parent_is_killed(small_home: Path) -> None:
    command = [sys.executable, "-c", _PARENT, str(small_home)]
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        child_pid = int(await parent.stdout.receive())
        assert psutil.pid_exists(child_pid)
        parent.kill()

    await _wait_exit(child_pid)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at another process")
async def test_the_child_sees_no_secrets_of_the_environment(small_home: Path) -> None:
    environ = {**os.environ, "OPENAI_API_KEY": "sk-secret", "DISCORD_TOKEN": "secret"}
    async with _running(_settings(small_home, environ)) as runtime:
        endpoint = await runtime.endpoint()
        seen = psutil.Process(runtime.pid).environ()

    assert "secret" not in str(seen)
    assert endpoint.api_key not in str(seen)
    assert endpoint.api_key not in repr(endpoint)
    assert seen["OMP_WAIT_POLICY"] == "passive"


async def test_without_the_runtime_the_error_names_the_command(small_home: Path, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ModuleNotFoundError('No module named xllamacpp')")
    async with _running(_settings(small_home, {**os.environ, "PYTHONPATH": str(tmp_path)})) as runtime:
        with pytest.raises(NeedsAttention) as caught:
            await runtime.endpoint()

    assert caught.value.code == "embedded_runtime_missing"
    assert build_install_command("local") in caught.value.fix


async def test_a_missing_library_of_the_system_is_named(small_home: Path, tmp_path: Path) -> None:
    missing = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({missing!r})")
    async with _running(_settings(small_home, {**os.environ, "PYTHONPATH": str(tmp_path)})) as runtime:
        with pytest.raises(NeedsAttention) as caught:
            await runtime.endpoint()

    assert (caught.value.code, caught.value.why) == ("embedded_library_missing", missing)
    assert "apt-get install libgomp1" in caught.value.fix


async def test_a_model_that_does_not_load_is_unavailable_with_the_end_of_the_log_and_then_left_alone(
    small_weights: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    with small_weights.open("rb") as whole:
        cut.write_bytes(whole.read(3_000_000))
    settings = replace(
        _settings(tmp_path),
        places=WeightsPlaces(home=tmp_path, own_file=cut, hub_url=None),
        restart=RestartPolicy(limit=2),
    )
    before = _children()
    async with _running(settings) as runtime:
        for _ in range(2):
            with pytest.raises(Unavailable) as caught:
                await runtime.endpoint()
            assert caught.value.code == "embedded_model_not_started"
            assert "model is corrupted or incomplete" in caught.value.why
            assert str(settings.log) in caught.value.fix

        with pytest.raises(Unavailable) as refused:
            await runtime.endpoint()

    assert refused.value.code == "embedded_model_keeps_dying"
    assert 0 < (refused.value.retry_after_s or 0) <= 600
    assert _children() == before


async def test_a_child_that_is_not_ready_in_time_is_ended(small_home: Path) -> None:
    before = _children()
    async with _running(replace(_settings(small_home), start_deadline_s=0.01)) as runtime:
        with pytest.raises(Unavailable) as caught:
            await runtime.endpoint()

    assert caught.value.why.startswith("It was not ready in time.")
    assert _children() == before


async def test_cancelling_the_start_leaves_no_child_and_the_next_one_succeeds(small_home: Path) -> None:
    before = _children()
    reports = ProgressRecorder()
    runtime = EmbeddedRuntime(_settings(small_home), reports)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.endpoint)
            await anyio.to_thread.run_sync(wait_until, lambda: _children() != before)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(wait_until, lambda: _children() == before)

        assert await _complete(await runtime.endpoint()) == SMOLLM2_135M.name
    finally:
        await runtime.aclose()

    assert [report.doing for report in reports] == [f"starting {SMOLLM2_135M.name}"] * 2
