"""The application of `denizen run` with everything that it is made of, for tests that call it in process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import httpx2
import pytest
from starlette.applications import Starlette

from denizen.app import serve
from denizen.app.build import Denizen
from denizen.web.http.dependencies import WebDependencies
from tests.app.home_folder import LAB, Home, open_home
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import LOCAL


@dataclass
class ServerFixture:
    """A server that runs, and its application."""

    denizen: Denizen
    app: Starlette

    def client(self, **headers: str) -> httpx2.AsyncClient:
        """A client in process. Answers arrive whole; faults are answered, as on a real server."""
        transport = httpx2.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx2.AsyncClient(transport=transport, base_url=LOCAL, headers=headers)


@asynccontextmanager
async def open_server(home: Home, text: str = LAB) -> AsyncGenerator[ServerFixture]:
    applications: list[Starlette] = []
    create = serve.create_app

    def keep(deps: WebDependencies) -> Starlette:
        applications.append(create(deps))
        return applications[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, "create_app", keep)
        async with open_home(home, text) as denizen, anyio.create_task_group() as tasks:
            ready = anyio.Event()

            async def run() -> None:
                await serve.serve(
                    denizen, host="127.0.0.1", port=0, on_ready=lambda _: ready.set(), on_link=lambda _: None
                )

            tasks.start_soon(run)
            with anyio.fail_after(HANG_LIMIT_S):
                await ready.wait()
            try:
                yield ServerFixture(denizen, applications[0])
            finally:
                denizen.restart.wanted.set()
