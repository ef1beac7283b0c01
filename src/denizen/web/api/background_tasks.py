"""`/api/background-tasks`: the tasks that agents gave to other agents for the caller, without waiting for them.

Everybody sees and stops their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.delegation import BackgroundTask
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.routing import Access
from denizen_sdk.background import BackgroundTaskInfo

if TYPE_CHECKING:
    from denizen.engine.delegation.delegations import Delegations

PATH = "/api/background-tasks"


class BackgroundTaskRoutes:
    """The routes of background tasks."""

    def __init__(self, open_delegations: Callable[[], Delegations]) -> None:
        self._open = open_delegations

    @property
    def routes(self) -> list[ApiRoute]:
        one = f"{PATH}/{{task_id}}"
        return [
            ApiRoute(
                "GET",
                PATH,
                self.list_tasks,
                Access.MEMBER,
                Operation(
                    "The caller's background tasks, newest first: those that run, and those that ended within the hour",
                    answer=list[BackgroundTaskInfo],
                ),
            ),
            ApiRoute(
                "GET",
                one,
                self.show,
                Access.MEMBER,
                Operation("A background task of the caller's, with its result", answer=BackgroundTaskInfo),
            ),
            ApiRoute(
                "POST",
                f"{one}/cancel",
                self.cancel,
                Access.MEMBER,
                Operation("Stop a background task; answers with it as it was", answer=BackgroundTaskInfo),
            ),
        ]

    async def list_tasks(self, request: Request) -> Response:
        tasks = await self._open().list_tasks(get_principal(request).key)
        return JSONResponse([asdict(task_to_wire(task)) for task in tasks])

    async def show(self, request: Request) -> Response:
        task = await self._open().get_task(request.path_params["task_id"], get_principal(request).key)
        return JSONResponse(asdict(task_to_wire(task)))

    async def cancel(self, request: Request) -> Response:
        task = await self._open().cancel(request.path_params["task_id"], get_principal(request).key)
        return JSONResponse(asdict(task_to_wire(task)))


def task_to_wire(task: BackgroundTask) -> BackgroundTaskInfo:
    return BackgroundTaskInfo(
        id=task.id,
        agent=task.agent,
        delegator=task.delegator,
        task=task.task,
        state=task.state,
        result=task.result,
        turn_id=task.turn_id,
        parent_id=task.parent.id,
        created_at=task.created_at.isoformat(),
        finished_at=task.finished_at.isoformat() if task.finished_at else None,
    )
