"""Workflows as tools of owners see and change them (`denizen.skill.WorkflowAccess`)."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_run import WorkflowRunListing
from denizen.engine.workflows.catalog import RunOrder, Workflows, new_key
from denizen.ports.toolset import CallScope
from denizen.ports.workflow_configuration import WorkflowConfiguration
from denizen.ports.workflows import RunSearch
from denizen.skill import WorkflowAccess, WorkflowRunSummary, WorkflowStep, WorkflowSummary


class OwnerWorkflows:
    """One for a process. Without a server, as in a command, there are none: nothing could be changed or run."""

    def __init__(self) -> None:
        self._workflows: Workflows | None = None
        self._configuration: WorkflowConfiguration | None = None

    def connect(self, workflows: Workflows, configuration: WorkflowConfiguration) -> None:
        """Lets tools use these workflows from now on."""
        self._workflows = workflows
        self._configuration = configuration

    def open(self, scope: CallScope) -> WorkflowAccess | None:
        """Returns the workflows for the call of this scope; None for who is no owner, whatever the gate decided."""
        if self._workflows is None or self._configuration is None or RoleName.OWNER not in scope.principal.roles:
            return None
        return _ScopedWorkflows(self._workflows, self._configuration, scope)


@record
class _ScopedWorkflows:
    """`denizen.skill.WorkflowAccess`."""

    workflows: Workflows
    configuration: WorkflowConfiguration
    scope: CallScope

    async def list(self) -> Sequence[WorkflowSummary]:
        broken = [
            WorkflowSummary(name=each.name, description="", enabled=False, problem=each.problem)
            for each in self.workflows.list_broken()
        ]
        return [*[await self._summarize(each) for each in self.workflows.list_workflows()], *broken]

    async def read(self, name: str) -> str:
        return (await self.configuration.read(name)).text

    async def create(self, name: str, text: str) -> None:
        await self.configuration.add(self.scope.principal, name, text)

    async def change(self, name: str, old: str, new: str) -> None:
        file = await self.configuration.read(name)
        if (count := file.text.count(old)) != 1:
            raise InvalidInput(
                f"The text to replace is there {count} times.",
                code="workflow_part",
                fix="Read the workflow, and give a part of its text that is there once.",
            )
        text = file.text.replace(old, new)
        await self.configuration.put(self.scope.principal, name, text, expected=file.digest)

    async def delete(self, name: str) -> None:
        await self.configuration.remove(self.scope.principal, name)

    async def switch(self, name: str, *, is_on: bool) -> None:
        await self.configuration.switch(self.scope.principal, name, is_on=is_on)

    async def run(self, name: str, given: JsonObject) -> str:
        by = self.scope.principal
        order = RunOrder(key=self.scope.options.idempotency_key or new_key(by), by=by)
        return (await self.workflows.start(name, given, order)).id

    async def list_runs(self, name: str, *, limit: int) -> Sequence[WorkflowRunSummary]:
        return [_summarize_run(each) for each in await self.workflows.list_runs(RunSearch(workflow=name, limit=limit))]

    async def get_run(self, run: str) -> tuple[WorkflowRunSummary, Sequence[WorkflowStep]]:
        found = await self.workflows.get_run(TurnId(run))
        steps = [
            WorkflowStep(
                node=each.path,
                type=each.type,
                status=each.status.value,
                duration_s=each.duration_ms / 1000,
                output=dict(each.outputs) or None,
                error=each.error,
            )
            for each in found.nodes
        ]
        return _summarize_run(found), steps

    async def _summarize(self, workflow: Workflow) -> WorkflowSummary:
        newest = await self.workflows.list_runs(RunSearch(workflow=workflow.name, limit=1))
        return WorkflowSummary(
            name=workflow.name,
            description=workflow.description,
            enabled=workflow.enabled,
            triggers=[each.type for each in workflow.triggers],
            last_status=newest[0].status.value if newest else "",
        )


def _summarize_run(listing: WorkflowRunListing) -> WorkflowRunSummary:
    run = listing.run
    return WorkflowRunSummary(
        id=run.id,
        workflow=run.workflow,
        status=listing.status.value,
        started_at=run.started_at,
        ended_at=listing.ended_at,
        reason=listing.failure,
    )
