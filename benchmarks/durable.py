"""Measures the cost of durable execution: processor time, latency, memory.

    python -m benchmarks durable [POSTGRES_URL]

Without a URL it uses SQLite in a temporary folder. Figures are for one process on an otherwise quiet machine.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import anyio

from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.json import Json, JsonObject

RUNS = 300
SIDE_BY_SIDE = 8
IDLE_S = 20.0


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def show(what: str, figure: str) -> None:
    print(f"{what:<44}{figure}")


class DurableBenchmark:
    def __init__(self, settings: DurableSettings) -> None:
        self.settings = settings
        self.durable = self.create()
        self.entered = anyio.Event()
        self.go = anyio.Event()

    def create(self) -> DbosExecution:
        durable = DbosExecution(self.settings)
        durable.register("steps", self.steps)
        durable.register("holds", self.holds)
        return durable

    async def steps(self, payload: JsonObject) -> Json:
        count = payload["count"]
        assert isinstance(count, int)
        for number in range(count):
            await self.durable.step(f"step {number}", self.answer)
        return {"count": count}

    async def answer(self) -> Json:
        return {"text": "x" * 200}

    async def holds(self, _payload: JsonObject) -> Json:
        self.entered.set()
        await self.go.wait()
        return None

    async def run(self, run_id: str, count: int) -> None:
        await self.durable.submit("steps", run_id, {"count": count})
        await self.durable.wait(run_id)

    async def one_after_the_other(self, count: int) -> None:
        for number in range(20):
            await self.run(f"warm-{count}-{number}", count)
        cpu, wall = cpu_s(), time.perf_counter()
        for number in range(RUNS):
            await self.run(f"seq-{count}-{number}", count)
        cpu, wall = (cpu_s() - cpu) / RUNS * 1e3, (time.perf_counter() - wall) / RUNS * 1e3
        show(f"run of {count} steps", f"{cpu:.2f} ms CPU, {wall:.2f} ms wall")

    async def side_by_side(self) -> None:
        async def run_in_turn(name: int) -> None:
            for number in range(RUNS // SIDE_BY_SIDE):
                await self.run(f"beside-{name}-{number}", 1)

        cpu, wall = cpu_s(), time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for name in range(SIDE_BY_SIDE):
                tasks.start_soon(run_in_turn, name)
        total = RUNS // SIDE_BY_SIDE * SIDE_BY_SIDE
        rate, cpu = total / (time.perf_counter() - wall), (cpu_s() - cpu) / total * 1e3
        show(f"{SIDE_BY_SIDE} side by side, 1 step each", f"{rate:.0f} runs/s, {cpu:.2f} ms CPU a run")

    async def restart(self) -> None:
        await self.durable.submit("holds", "held", {})
        await self.entered.wait()
        wall = time.perf_counter()
        await self.durable.aclose()
        show("closing with a run under way", f"{(time.perf_counter() - wall) * 1e3:.0f} ms")
        self.entered = anyio.Event()
        self.durable = self.create()
        wall = time.perf_counter()
        await self.durable.start()
        show("starting again", f"{(time.perf_counter() - wall) * 1e3:.0f} ms")
        await self.entered.wait()
        show(
            "until the run that was left is going again", f"{(time.perf_counter() - wall) * 1e3:.0f} ms from the start"
        )
        self.go.set()
        await self.durable.wait("held")

    async def idle(self) -> None:
        await anyio.sleep(2)
        cpu = cpu_s()
        await anyio.sleep(IDLE_S)
        show("idle", f"{(cpu_s() - cpu) / IDLE_S * 100:.2f} % of a core")

    async def main(self) -> None:
        before, cpu, wall = memory_mb(), cpu_s(), time.perf_counter()
        await self.durable.start()
        show(
            "first start, imports and schema included", f"{time.perf_counter() - wall:.2f} s, {cpu_s() - cpu:.2f} s CPU"
        )
        show("memory", f"{before:.0f} MB before, {memory_mb():.0f} MB open")
        for count in (0, 1, 3):
            await self.one_after_the_other(count)
        await self.side_by_side()
        await self.restart()
        await self.idle()
        show("memory", f"{memory_mb():.0f} MB in the end")
        await self.durable.aclose()


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        if url:
            settings = DurableSettings(database=url, schema=f"bench_{int(time.time())}")
        else:
            settings = DurableSettings(database=Path(folder) / "durable.db")
        anyio.run(DurableBenchmark(settings).main, backend_options={"use_uvloop": True})
