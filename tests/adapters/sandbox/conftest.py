"""Where there is no isolation, tests of the sandbox say so and are left out."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from denizen.adapters.sandbox.pool import TIERS, SandboxPool
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from tests.adapters.sandbox.sandbox_folder import SandboxFolder, make_sandbox_folder


def _find_tiers() -> dict[str, str]:
    """Each tier, with why it cannot be had; an empty text where it can."""

    async def ask(tier: str) -> str:
        async with SandboxPool(SystemClock(), tiers=(tier,)) as pool:
            try:
                await pool.check()
            except Unavailable as error:
                return error.why
            return ""

    return {tier: anyio.run(ask, tier) for tier in TIERS}


@pytest.fixture(scope="session")
def tiers() -> dict[str, str]:
    return _find_tiers()


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest, tiers: dict[str, str]) -> str:
    """Each way to shut programs in that this machine offers."""
    name = str(request.param)
    if tiers[name]:
        pytest.skip(f"{name} cannot be had here: {tiers[name]}")
    return name


@pytest.fixture
def best_tier(tiers: dict[str, str]) -> str:
    """The one that Denizen would take here."""
    for name, why in tiers.items():
        if not why:
            return name
    pytest.skip(f"nothing shuts programs in here ({sys.platform}): {tiers}")


@pytest.fixture
def documents(tmp_path: Path) -> SandboxFolder:
    return make_sandbox_folder(tmp_path / "documents")
