"""Projects with tasks, comments and documents, and the changes that the task watcher has to look at.

Revision ID: 1008
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "1008"
down_revision = "1007"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "projects",
        *_ids(),
        *_texts("name", "description", "status", "due_on", "audience"),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        *_texts("author", "author_name"),
        *_times("created_at", "updated_at"),
        sa.UniqueConstraint("id", name="uq_projects_id"),
    )
    op.create_index("ix_projects_audience", "projects", ["audience"])
    op.create_table(
        "tasks",
        *_ids(),
        *_texts("project_id", "title", "description", "status", "tags", "assignee", "due_on", "author", "author_name"),
        *_times("created_at", "updated_at"),
        *_texts("words"),
        sa.UniqueConstraint("id", name="uq_tasks_id"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_tasks_project_id_projects", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_tasks_project_id_updated_at", "tasks", ["project_id", "updated_at"])
    op.create_table(
        "task_comments",
        *_ids(),
        *_texts("task_id", "text", "author", "author_name"),
        *_times("created_at"),
        sa.UniqueConstraint("id", name="uq_task_comments_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_task_comments_task_id_tasks", ondelete="CASCADE"),
    )
    op.create_index("ix_task_comments_task_id", "task_comments", ["task_id"])
    op.create_table(
        "project_documents",
        *_ids(),
        *_texts("project_id", "name", "text", "author", "author_name"),
        *_times("created_at", "updated_at"),
        sa.UniqueConstraint("id", name="uq_project_documents_id"),
        sa.UniqueConstraint("project_id", "name", name="uq_project_documents_project_id_name"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_documents_project_id_projects", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "task_changes",
        *_ids(),
        *_texts("task_id", "project_id", "action"),
        *_times("due_at"),
        sa.Column("is_started", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("id", name="uq_task_changes_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_task_changes_task_id_tasks", ondelete="CASCADE"),
    )
    op.create_index("ix_task_changes_task_id", "task_changes", ["task_id"])
    started = sa.text("is_started")
    op.create_index(
        "uq_task_changes_is_started",
        "task_changes",
        ["is_started"],
        unique=True,
        sqlite_where=started,
        postgresql_where=started,
    )


def _ids() -> list[sa.Column[int] | sa.Column[str]]:
    return [sa.Column("position", POSITION, primary_key=True), sa.Column("id", sa.Text(), nullable=False)]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _times(*names: str) -> list[sa.Column[datetime]]:
    return [sa.Column(name, TIME, nullable=False) for name in names]
