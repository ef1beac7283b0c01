"""Background tasks: work that agents gave to other agents without waiting for it. Times are ISO 8601."""

from __future__ import annotations

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import from_json, record


@record(kw_only=True)
class BackgroundTaskInfo:
    """A task that `delegator` gave to `agent`. `state` is running, completed or failed; `result` is the answer, or why
    there is none. `turn_id` is the turn that works on it, `parent_id` the one that gave it away.
    """

    id: str
    agent: str
    delegator: str
    task: str
    state: str
    result: str
    turn_id: str
    parent_id: str
    created_at: str
    finished_at: str | None = None


class BackgroundTaskCalls(ClientCalls):
    """The calls of `/api/background-tasks`. All raise ApiError and NetworkError."""

    async def list_background_tasks(self) -> list[BackgroundTaskInfo]:
        """Returns the caller's tasks, newest first: those that run, and those that ended within the hour."""
        return await self._list(BackgroundTaskInfo, "/api/background-tasks")

    async def get_background_task(self, task_id: str) -> BackgroundTaskInfo:
        return await self._get(BackgroundTaskInfo, f"/api/background-tasks/{quote_segment(task_id)}")

    async def cancel_background_task(self, task_id: str) -> BackgroundTaskInfo:
        """Stops a task that runs, and returns it as it was before."""
        path = f"/api/background-tasks/{quote_segment(task_id)}/cancel"
        return from_json(BackgroundTaskInfo, await self._connection.request("POST", path))
