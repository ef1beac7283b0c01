"""Workflows at `/admin/workflows`: graphs as pictures, texts with what is wrong with them by line, and runs with the
time and the output of each step. For owners: runs hold what events tell of people.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.record import record
from denizen.web.http.request import QueryParameter
from denizen.web.pages.page import Frame
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.workflows import WorkflowEffect, WorkflowFault, WorkflowInfo, WorkflowRunInfo

WORKFLOWS = "/admin/workflows"
RUNS = "/admin/workflow-runs"
ADD = "/admin/add-workflow"
SHOWN_RUNS = 30
MAX_SHOWN_CHARS = 4000
"""So much is shown of what went into a step, and of what came out."""
_EXAMPLE = QueryParameter(name="example", max_chars=64)
_NOTICES = {
    "added": "The workflow was added.",
    "changed": "The workflow was changed. Runs that have begun go on as they began.",
    "same": "Nothing was changed.",
    "checked": "Nothing is wrong with this text. It is not saved yet.",
    "on": "The workflow is on.",
    "off": "The workflow is off. It can still be run by hand.",
    "removed": "The workflow was removed. The history of its runs stays.",
    "begun": "The run begins.",
}


@record(kw_only=True)
class WorkflowsPage:
    """The context of `workflows.html`."""

    frame: Frame
    workflows: Sequence[WorkflowInfo]
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class NewWorkflowPage:
    """The context of `workflow_new.html`. `examples` have their names and descriptions."""

    frame: Frame
    examples: Sequence[tuple[str, str]]
    name: str = ""
    text: str = ""
    faults: Sequence[WorkflowFault] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class WorkflowPage:
    """The context of `workflow.html`. `text` is what stands in the editor, made on the text with this `digest`; `input`
    is what was typed for a run, and `planned` what that would do.
    """

    frame: Frame
    workflow: WorkflowInfo
    runs: Sequence[WorkflowRunInfo]
    text: str
    digest: str
    input: str = ""
    planned: Sequence[WorkflowEffect] = ()
    faults: Sequence[WorkflowFault] = ()
    notice: str = ""
    problem: ProblemDetails | None = None
