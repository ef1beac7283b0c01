"""Gateways, workers and a web process on one Postgres: together they do what one process does, and whichever of them is
killed, every message has one answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from anyio import to_thread

from tests.e2e.deployment import Denizen
from tests.e2e.discord import DiscordDeployment
from tests.e2e.home import get_completion_text

pytest_plugins = ["tests.postgres"]
pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.xdist_group("postgres")]


@asynccontextmanager
async def member(deployment: DiscordDeployment, role: str, name: str) -> AsyncGenerator[Denizen]:
    """A process of the fleet; it is dead at the end of the block."""
    serve = partial(deployment.home.serve, run=("--role", role, "--name", name))
    denizen = Denizen(await to_thread.run_sync(serve))
    deployment.denizens.append(denizen)
    try:
        yield denizen
    finally:
        with anyio.CancelScope(shield=True):
            await denizen.kill()


@pytest.fixture
def fleet(deployment: DiscordDeployment, postgres_url: str) -> DiscordDeployment:
    """The deployment, on Postgres."""
    deployment.configure(rest=f'store: {{url: "{postgres_url}"}}\n')
    return deployment


async def test_a_gateway_hears_a_worker_answers_and_the_web_shows(fleet: DiscordDeployment) -> None:
    async with member(fleet, "gateway", "gate"), member(fleet, "worker", "work"), member(fleet, "web", "page") as web:
        fleet.script("Hello, Ana.")
        fleet.ask(fleet.ana, "hello")
        await fleet.until(lambda: fleet.said() == ["Hello, Ana."])
        fleet.script("Hello, browser.")
        answered = await to_thread.run_sync(partial(web.server.ask, "hi", key="k1", agent="ada"))
        assert get_completion_text(answered) == "Hello, browser."
        told = await to_thread.run_sync(fleet.home.do, "fleet", "status")
        assert told.code == 0, told.err
        for words in ("gate", "work", "page", "discord account of ada"):
            assert words in told.out
