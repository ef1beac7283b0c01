"""Keeping definitions and runs of workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.ids import TurnId
from denizen.domain.record import record
from denizen.domain.workflow_run import NodeRun, WorkflowRun, WorkflowVersion


@record(kw_only=True)
class RunSearch:
    """A search for runs, the newest first: of one workflow, or of all. `before` is the id of a run."""

    workflow: str = ""
    before: str = ""
    limit: int = 20


class WorkflowRepository(Protocol):
    """Definitions by their digests, runs, and the nodes that ran. Part of a unit of work."""

    async def add_version(self, version: WorkflowVersion) -> None:
        """Keeps a definition; one that is kept already stays as it is."""
        ...

    async def find_version(self, digest: str) -> WorkflowVersion | None: ...

    async def add_run(self, run: WorkflowRun) -> bool:
        """Keeps a run, in the place of the oldest of its workflow where there are many, and of all that are very old.
        Runs that have not ended stay, and those that they repeat. False when it is there.
        """
        ...

    async def find_run(self, key: TurnId) -> WorkflowRun | None: ...

    async def list_runs(self, wanted: RunSearch) -> Sequence[WorkflowRun]: ...

    async def add_node(self, node: NodeRun) -> bool:
        """Keeps what a node did. False, and nothing changes, when its id is there already; but one that failed gives
        way to the same node that did it in a later try.
        """
        ...

    async def list_nodes(self, run: TurnId) -> Sequence[NodeRun]:
        """Returns the nodes of a run in the order in which they ended."""
        ...

    async def forget_starter(self, key: str) -> Sequence[TurnId]:
        """Removes the runs that a principal has started or caused, and what was given to their turns. Returns their
        ids: those that go on are to be ended.
        """
        ...

    async def forget_events(self, keys: Sequence[str]) -> Sequence[TurnId]:
        """Removes the runs that these events have started, as `forget_starter`. Called before the events go."""
        ...
