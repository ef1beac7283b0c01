"""`/api/store`: the database in use with the rows of each table, and moving everything elsewhere. For owners.

Where it goes is in the configuration, as for `/migrate` and the page.
"""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.store_move import MoveProgress
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import StoreServices
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.routing import Access
from denizen_sdk.store import StoreInfo, StoreMoveInfo, StoreTable


class StoreRoutes:
    """The routes that tell of the store and move it."""

    def __init__(self, services: StoreServices) -> None:
        self._move = services.move
        self._audit = services.audit

    @property
    def routes(self) -> list[ApiRoute]:
        path, start = "/api/store", Operation("Move the store to where the configuration says", answer=StoreMoveInfo)
        cancel = Operation("Stop a move of the store before its switch", answer=StoreMoveInfo)
        return [
            ApiRoute("GET", path, self.show, Access.OWNER, Operation("The database in use", answer=StoreInfo)),
            ApiRoute("POST", f"{path}/move", self.start, Access.OWNER, start),
            ApiRoute("POST", f"{path}/move/cancel", self.cancel, Access.OWNER, cancel),
        ]

    async def show(self, request: Request) -> Response:
        """Answers with the database in use, the rows of each table, and how far a move is."""
        del request
        status = await self._move.status()
        tables = tuple(StoreTable(each.table, each.rows) for each in status.tables)
        told = StoreInfo(
            backend=status.backend,
            place=status.place,
            tables=tables,
            move=move_to_wire(status.move),
            begun=status.begun,
        )
        return JSONResponse(asdict(told))

    async def start(self, request: Request) -> Response:
        """Begins a move, or goes on with one."""
        await self._audit.switch(get_principal(request), "store", "start")
        await self._move.start()
        return JSONResponse(asdict(move_to_wire(self._move.progress)))

    async def cancel(self, request: Request) -> Response:
        """Stops a move before its switch."""
        await self._audit.switch(get_principal(request), "store", "cancel")
        self._move.cancel()
        return JSONResponse(asdict(move_to_wire(self._move.progress)))


def move_to_wire(progress: MoveProgress) -> StoreMoveInfo:
    return StoreMoveInfo(
        stage=progress.stage.value,
        target=progress.target,
        table=progress.table,
        done=progress.done,
        total=progress.total,
        pause_s=progress.pause_s,
        problem=progress.problem,
    )
