"""Runs lines in the sandbox as a program of its own, for tests that need another user: JSON in, JSON out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio

from denizen.adapters.sandbox.pool import SandboxPool
from denizen.adapters.sandbox.process import SandboxLimits
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from denizen.ports.sandbox import ShellResult, ShellView

BATCH = 10


LIMIT_S = 3.0
"""For lines of which some have no end."""


async def run_all(tier: str, root: Path, commands: list[str], timeout_s: float = LIMIT_S) -> list[ShellResult]:
    """Raises Unavailable where that tier is not offered."""
    limits = SandboxLimits(workers=1, timeout_s=timeout_s, batch_timeout_s=timeout_s * BATCH)
    async with SandboxPool(SystemClock(), limits, tiers=(tier,)) as pool:
        results: list[ShellResult] = []
        for start in range(0, len(commands), BATCH):
            view = ShellView((("", root),))
            results += (await pool.run(commands[start : start + BATCH], view, owner="test")).results
        return results


def main() -> None:
    told: dict[str, Any] = json.load(sys.stdin)
    try:
        results = anyio.run(run_all, told["tier"], Path(told["root"]), told["commands"], told["timeout_s"])
        json.dump([asdict(result) for result in results], sys.stdout)
    except Unavailable as error:
        json.dump({"off": error.why}, sys.stdout)


if __name__ == "__main__":
    main()
