"""Tasks and issues brought together: which side wins by field, what is kept, and that nothing comes back as an echo."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from denizen.domain.issue_mirror import (
    Issue,
    IssueDraft,
    IssueMerge,
    IssueState,
    LostValue,
    fill_task,
    make_base,
    merge_issue,
    note_pushed,
    read_state,
    read_status,
    to_tags,
)
from denizen.domain.message import Author
from denizen.domain.project import MAX_TAGS, MAX_TEXT_CHARS, Editor, Task, TaskStatus, check_tags
from tests.clock import NOON

ISSUE = Issue(
    number=7,
    url="https://github.com/harbour/boats/issues/7",
    title="It leaks",
    text="Water comes in.",
    state=IssueState.OPEN,
    labels=("bug", "good first issue"),
    assignees=("ana",),
    author=Author("1", "ben"),
    created_at=NOON,
    updated_at=NOON,
)
BLANK = Task(id="tsk_1", project_id="p", title="", made_by=Editor("k", "ben"), created_at=NOON, updated_at=NOON)
TASK = fill_task(BLANK, ISSUE)
BASE = make_base(TASK, ISSUE)
LATER = NOON + timedelta(minutes=1)


def merge(task: Task = TASK, issue: Issue = ISSUE, *, goes_out: bool = True, rendered: str = "") -> IssueMerge:
    return merge_issue(BASE, task, issue, goes_out=goes_out, rendered=rendered or task.description)


def test_an_issue_becomes_a_task() -> None:
    assert (TASK.title, TASK.description, TASK.status) == ("It leaks", "Water comes in.", TaskStatus.BACKLOG)
    assert (TASK.tags, TASK.assignee, TASK.link) == (("bug", "good-first-issue"), "ana", ISSUE.url)
    assert check_tags(TASK.tags) == TASK.tags


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (TaskStatus.BACKLOG, IssueState.OPEN),
        (TaskStatus.IN_PROGRESS, IssueState.OPEN),
        (TaskStatus.BLOCKED, IssueState.OPEN),
        (TaskStatus.IN_REVIEW, IssueState.OPEN),
        (TaskStatus.DONE, IssueState.COMPLETED),
        (TaskStatus.ARCHIVED, IssueState.NOT_PLANNED),
    ],
)
def test_a_status_is_a_state_and_a_task_that_is_under_way_stays_so(status: TaskStatus, state: IssueState) -> None:
    assert read_state(status) is state
    assert read_status(state, status) is status
    assert read_status(IssueState.OPEN, TaskStatus.DONE) is TaskStatus.BACKLOG


def test_what_agrees_stays_as_it_is() -> None:
    found = merge()
    assert (found.task, found.draft, found.lost, found.base) == (TASK, IssueDraft(), (), BASE)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"title": "It sinks"}, {"title": "It sinks"}),
        ({"text": " Much water. \n"}, {"description": "Much water."}),
        ({"state": IssueState.COMPLETED}, {"status": TaskStatus.DONE}),
        ({"state": IssueState.NOT_PLANNED}, {"status": TaskStatus.ARCHIVED}),
        ({"assignees": ()}, {"assignee": ""}),
        ({"labels": ("bug", "help")}, {"tags": ("bug", "help")}),
    ],
)
@pytest.mark.parametrize("goes_out", [True, False])
def test_a_changed_issue_changes_its_task(changed: Any, expected: Any, *, goes_out: bool) -> None:
    issue = replace(ISSUE, **changed)
    found = merge(issue=issue, goes_out=goes_out)
    assert (found.task, found.draft, found.lost) == (replace(TASK, **expected), IssueDraft(), ())
    again = merge_issue(found.base, found.task, issue, goes_out=goes_out, rendered=found.task.description)
    assert (again.task, again.draft) == (found.task, IssueDraft())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"title": "It sinks"}, IssueDraft(title="It sinks")),
        ({"description": "Much."}, IssueDraft(text="Much.")),
        ({"status": TaskStatus.IN_PROGRESS}, IssueDraft()),
        ({"status": TaskStatus.DONE}, IssueDraft(state=IssueState.COMPLETED)),
        ({"assignee": ""}, IssueDraft(assignee="")),
        ({"tags": ("help",)}, IssueDraft(labels=("help",))),
        ({"tags": ("bug", "good-first-issue", "x")}, IssueDraft(labels=("bug", "good first issue", "x"))),
    ],
)
def test_a_changed_task_changes_its_issue_where_the_mirror_goes_out(changed: Any, expected: IssueDraft) -> None:
    task = replace(TASK, **changed)
    found = merge(task)
    assert (found.task, found.draft, found.lost) == (task, expected, ())
    assert merge(task, goes_out=False).draft == IssueDraft()


def test_after_it_was_written_a_text_that_stands_differently_there_is_no_change() -> None:
    task = replace(TASK, description="Ask @ben")
    found = merge(task, rendered="Ask `@ben`")
    written = replace(ISSUE, text="Ask `@ben`", updated_at=LATER)
    base = note_pushed(found, written)
    again = merge_issue(base, task, written, goes_out=True, rendered="Ask `@ben`")
    assert (again.task, again.draft) == (task, IssueDraft())
    # and where a process was killed before it could note that:
    killed = merge_issue(found.base, task, written, goes_out=True, rendered="Ask `@ben`")
    assert (killed.task, killed.draft, killed.lost) == (task, IssueDraft(), ())


@pytest.mark.parametrize("is_ours_later", [True, False])
def test_of_two_changes_of_one_field_the_later_wins_and_the_other_is_kept(*, is_ours_later: bool) -> None:
    task = replace(TASK, title="Ours", updated_at=LATER + timedelta(minutes=1 if is_ours_later else -1))
    issue = replace(ISSUE, title="Theirs", text="More water.", updated_at=LATER)
    found = merge(task, issue)
    assert found.task.description == "More water.", "a field that only one side changed has no winner"
    if is_ours_later:
        assert (found.task.title, found.draft, found.lost) == (
            "Ours",
            IssueDraft(title="Ours"),
            (LostValue("title", "Theirs"),),
        )
    else:
        assert (found.task.title, found.draft, found.lost) == ("Theirs", IssueDraft(), (LostValue("title", "Ours"),))


def test_tags_and_labels_of_both_sides_are_joined() -> None:
    task, issue = replace(TASK, tags=("bug", "mine")), replace(ISSUE, labels=("good first issue", "theirs"))
    found = merge(task, issue)
    assert (found.task.tags, found.draft.labels) == (("mine", "theirs"), ("theirs", "mine"))


def test_labels_that_could_not_be_written_are_written_later() -> None:
    task, issue = replace(TASK, tags=("bug", "mine")), replace(ISSUE, labels=("bug", "good first issue", "theirs"))
    failed = merge(task, issue)
    again = merge_issue(failed.base, failed.task, issue, goes_out=True, rendered=task.description)
    assert (again.task, again.draft) == (failed.task, failed.draft)
    assert again.draft == IssueDraft(labels=("bug", "theirs", "mine"))
    written = replace(issue, labels=("bug", "theirs", "mine"))
    for base in (note_pushed(again, written), again.base):  # and where a process was killed before it could note that
        settled = merge_issue(base, again.task, written, goes_out=True, rendered=task.description)
        assert (settled.task, settled.draft) == (again.task, IssueDraft())
        assert settled.base == make_base(again.task, written)


def test_labels_beyond_the_number_of_tags_stay_and_none_is_taken_away() -> None:
    issue = replace(ISSUE, labels=tuple(f"label {number:02}" for number in range(15)))
    task = fill_task(BLANK, issue)
    assert len(task.tags) == MAX_TAGS
    base = make_base(task, issue)
    found = merge_issue(base, replace(task, status=TaskStatus.DONE), issue, goes_out=True, rendered=task.description)
    assert found.draft == IssueDraft(state=IssueState.COMPLETED)
    assert to_tags(("!!", "C++")) == ("c",)


def test_a_text_that_was_cut_is_never_written_back() -> None:
    issue = replace(ISSUE, text="w" * (MAX_TEXT_CHARS + 1), title="t" * 250)
    task = fill_task(BLANK, issue)
    assert len(task.description) <= MAX_TEXT_CHARS
    changed = replace(task, description="short", title="short")
    found = merge_issue(make_base(task, issue), changed, issue, goes_out=True, rendered="short")
    assert (found.draft, found.task) == (IssueDraft(), changed)
