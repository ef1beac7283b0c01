"""One filled context of each page about projects, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.issue_mirror import MirrorState
from denizen.domain.project import (
    OWNERS,
    Editor,
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectStatus,
    Task,
    TaskComment,
    TaskDetails,
    TaskStatus,
)
from denizen.web.pages.page import Frame
from denizen.web.pages.projects import BoardColumn, BoardPage, ProjectDocumentPage, ProjectPage, TaskPage
from denizen_sdk.errors import ProblemDetails
from tests.clock import NOON

PROBLEM = ProblemDetails("x", "No.", 400, why="Because.", fix="Do this.")
ANA = Editor("web_user:ana", "Ana")
PROJECT = Project(
    id="prj_1",
    name="Website",
    description="New.",
    due_on="2026-12-24",
    audience=OWNERS,
    made_by=ANA,
    created_at=NOON,
    updated_at=NOON,
)
TASK = Task(
    id="tsk_1",
    project_id="prj_1",
    title="Fix it",
    description="Soon.",
    tags=("bug",),
    assignee="Bo",
    due_on="2026-12-24",
    made_by=ANA,
    created_at=NOON,
    updated_at=NOON,
)
COMMENT = TaskComment(id="cmt_1", task_id="tsk_1", text="Yes.", made_by=ANA, created_at=NOON)
DOCUMENT = ProjectDocument(
    id="doc_1", project_id="prj_1", name="Plan", text="# One", made_by=ANA, created_at=NOON, updated_at=NOON
)
ENTRY = ProjectDocumentEntry(
    id=DOCUMENT.id,
    project_id=DOCUMENT.project_id,
    name=DOCUMENT.name,
    size_chars=len(DOCUMENT.text),
    made_by=DOCUMENT.made_by,
    created_at=DOCUMENT.created_at,
    updated_at=DOCUMENT.updated_at,
)
MIRROR = MirrorState(
    key="m",
    project_id="prj_1",
    repository="a/b",
    seen_at=NOON,
    heard_at=NOON,
    written_at=NOON,
    looked_at=NOON,
    imported=3,
    failure="Not today.",
)


def list_project_pages(frame: Frame) -> Mapping[str, object]:
    """Returns the context of each template."""
    bare = replace(TASK, id="tsk_2", tags=(), assignee="", due_on="", made_by=Editor("", ""))
    return {
        "projects.html": BoardPage(
            frame=frame,
            projects=[PROJECT],
            chosen=None,
            names={"prj_1": "Website"},
            columns=[BoardColumn(status=TaskStatus.BACKLOG, tasks=[TASK, bare])],
            statuses=list(TaskStatus),
            words="fix",
            archived=True,
            is_cut=True,
            may_share=True,
            draft={"title": "Else"},
            notice="Done.",
            problem=PROBLEM,
        ),
        "task.html": TaskPage(
            frame=frame,
            found=TaskDetails(TASK, PROJECT, [COMMENT]),
            readers="everybody",
            homes=[PROJECT],
            statuses=list(TaskStatus),
            comment="So.",
            notice="Done.",
            problem=PROBLEM,
        ),
        "project.html": ProjectPage(
            frame=frame,
            project=PROJECT,
            mirror=MIRROR,
            readers="everybody",
            statuses=list(ProjectStatus),
            documents=[ENTRY],
            draft={"document_name": "Plan"},
            notice="Done.",
            problem=PROBLEM,
        ),
        "project_document.html": ProjectDocumentPage(
            frame=frame, project=PROJECT, document=DOCUMENT, text="# One", notice="Done.", problem=PROBLEM
        ),
    }
