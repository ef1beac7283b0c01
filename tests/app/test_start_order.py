"""The order in which a home folder is opened."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from denizen.adapters.mcp import McpPool
from denizen.adapters.store import migrator
from denizen.app import build, generation
from denizen.app.accounts import AccountSupervisor
from denizen.app.serve import serve
from denizen.app.settings.gate import GateSection
from denizen.engine.event_bus.bus import EventBus
from tests.app.home_folder import Home, open_home
from tests.timing import HANG_LIMIT_S

STEPS: list[tuple[Any, str, str]] = [
    (build, "open_store", "store"),
    (migrator, "migrate", "migrations"),
    (generation, "load_builtin_skills", "built-in skills"),
    (generation, "load_own_tools", "user skills"),
    (generation, "build_catalog", "models"),
    (GateSection, "policy", "gate"),
    (McpPool, "open", "integrations"),
    (EventBus, "run", "event system"),
    (AccountSupervisor, "run", "accounts"),
]


@pytest.mark.anyio
@pytest.mark.proves("V2", "V2-events")
async def test_the_parts_are_opened_in_one_fixed_order_with_accounts_last(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def note(owner: Any, name: str, step: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **more: Any) -> Any:
            opened.append(step)
            return original(*args, **more)

        monkeypatch.setattr(owner, name, call)

    for owner, name, step in STEPS:
        note(owner, name, step)

    def stop(url: str) -> None:
        opened.append("ready")
        denizen.restart.wanted.set()

    def ignore(url: str) -> None:
        raise AssertionError(f"an open machine needs no link: {url}")

    with anyio.fail_after(HANG_LIMIT_S):
        async with open_home(home) as denizen:
            await serve(denizen, host="127.0.0.1", port=0, on_ready=stop, on_link=ignore)
    assert opened == [*(step for _, _, step in STEPS), "ready"]
