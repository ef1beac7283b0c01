"""Issues of the simulated GitHub as tasks: both ways over real HTTP, once across kills, with its limits honoured."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from denizen.adapters.github.issues import GitHubIssues
from denizen.adapters.github.settings import GitHubAccountSettings
from denizen.domain.errors import NeedsAttention, NotAllowed
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror, MirrorState
from denizen.domain.project import (
    MAX_COMMENTS,
    OWNERS,
    ProjectDraft,
    Task,
    TaskAction,
    TaskComment,
    TaskDraft,
    TaskQuery,
    TaskStatus,
    TaskWatcherPolicy,
)
from denizen.engine.projects.issue_mirrors import IssueMirrors
from denizen.ports.issues import IssueTracker
from tests.engine.projects.project_fixture import ADA, BEN, OLGA, ProjectFixture, open_projects
from tests.github_simulator import App, GitHubServer, Issue, Repository, User, open_github

pytestmark = pytest.mark.anyio

ISSUES = r"/issues$"


@dataclass
class MirrorFixture:
    """The project `Boats` mirrors `harbour/boats`, in which Ana works; Eve is a stranger."""

    engine: ProjectFixture
    github: GitHubServer
    stack: AsyncExitStack
    ana: User = field(init=False)
    eve: User = field(init=False)
    boats: Repository = field(init=False)
    app: App = field(init=False)
    mirrors: IssueMirrors = field(init=False)

    def __post_init__(self) -> None:
        world = self.github.world
        self.ana, self.eve = world.add_user("ana"), world.add_user("eve")
        self.boats = world.add_repository("harbour/boats", owner=self.ana)
        self.app = world.add_app("denizen")
        world.install(self.app, self.boats)
        self.restart()

    @property
    def board(self) -> Any:
        return self.engine.boards.open_for(OLGA)

    def restart(self) -> None:
        """Begins anew, as another process does after this one was killed."""
        account = GitHubAccountSettings(
            ADA, self.github.api_url, app_id=str(self.app.id), private_key=self.app.private_key
        )
        tracker = GitHubIssues(account, self.engine.clock)
        self.stack.push_async_callback(tracker.aclose)
        self.mirrors = IssueMirrors(self.engine.boards, lambda _: tracker)

    async def mirror(self, project: str = "Boats", *, goes_out: bool = True, **more: Any) -> None:
        mirror = IssueMirror(
            project=project, platform="github", repository="harbour/boats", account=ADA, goes_out=goes_out, **more
        )
        await self.engine.runtime.swap(replace(self.engine.runtime.current, issue_mirrors=(mirror,)))
        await self.mirrors.look()

    async def look(self, *, told: bool = True) -> None:
        """Lets a minute pass, and looks; as a webhook makes it, unless that never came."""
        self.engine.clock.advance(minutes=1)
        if told:
            self.mirrors.tell("Harbour/Boats")
        await self.mirrors.look()

    async def tasks(self) -> list[Task]:
        found = await self.board.find_tasks(TaskQuery(statuses=frozenset(TaskStatus), project_id="Boats", limit=500))
        return sorted(found, key=lambda each: (each.link or "~", each.title))

    async def task(self) -> Task:
        [task] = await self.tasks()
        return task

    async def comments(self) -> list[TaskComment]:
        return list((await self.board.get_task((await self.task()).id)).comments)

    async def state(self) -> MirrorState:
        async with self.engine.store.work(write=False) as work:
            [state] = await work.issue_mirrors.list_states()
        return state

    def open(self, title: str = "It leaks", body: str = "Water comes in.", **more: Any) -> Issue:
        return self.github.world.open_issue(self.ana, self.boats, title, body, **more)

    def change(self, issue: Issue, action: str = "edited", **fields: Any) -> None:
        self.github.world.change_issue(self.ana, issue, action, **fields)

    def count_writes(self) -> int:
        return sum(len(self.github.requests_to(method, r"^/repos/")) for method in ("POST", "PATCH"))


@pytest.fixture
async def sim() -> AsyncGenerator[MirrorFixture]:
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_projects())
        github = await stack.enter_async_context(open_github(clock=engine.clock))
        yield MirrorFixture(engine, github, stack)


async def test_the_first_look_takes_open_issues_with_their_comments_and_tells_how_far_it_is(sim: MirrorFixture) -> None:
    issue = sim.open(labels=("bug", "good first issue"))
    sim.change(issue, "assigned", assignees=(sim.ana,))
    sim.github.world.comment(sim.eve, issue, "Here too.")
    sim.github.world.open_pull(sim.ana, sim.boats, "A patch")
    sim.change(sim.open("Done"), "closed", closed="completed")
    for number in range(110):
        sim.open(f"Issue {number}")
    await sim.mirror()
    tasks = await sim.tasks()
    assert len(tasks) == 111
    task = next(each for each in tasks if each.title == "It leaks")
    assert (task.description, task.status, task.assignee) == ("Water comes in.", TaskStatus.BACKLOG, "ana")
    assert (task.tags, task.link) == (("bug", "good-first-issue"), "https://github.com/harbour/boats/issues/1")
    assert task.made_by.author == f"platform_user:github:{sim.ana.id}"
    [comment] = (await sim.board.get_task(task.id)).comments
    assert (comment.text, comment.made_by.author_name) == ("Here too.", "eve")
    state = await sim.state()
    assert (state.is_imported, state.imported, state.failure) == (True, 111, "")
    project = await sim.board.get_project("Boats")
    assert project.audience == OWNERS
    assert sim.count_writes() == 0, "what has come from there is not written there"


async def test_what_happens_to_an_issue_happens_to_its_task(sim: MirrorFixture) -> None:
    await sim.mirror()
    issue = sim.open()
    await sim.look()
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"title": "It sinks"}, {"title": "It sinks"}),
        ({"body": "Fast."}, {"description": "Fast."}),
        ({"labels": ("bug",)}, {"tags": ("bug",)}),
        ({"assignees": (sim.ana,)}, {"assignee": "ana"}),
        ({"closed": "completed"}, {"status": TaskStatus.DONE}),
        ({"closed": ""}, {"status": TaskStatus.BACKLOG}),
        ({"closed": "not_planned"}, {"status": TaskStatus.ARCHIVED}),
    ]
    for fields, expected in cases:
        sim.change(issue, **fields)
        await sim.look()
        task = await sim.task()
        assert {name: getattr(task, name) for name in expected} == expected
    said = sim.github.world.comment(sim.eve, issue, "One.")
    await sim.look()
    sim.github.world.edit(sim.eve, issue, said, "Two.")
    await sim.look()
    assert [(each.text, each.made_by.author_name) for each in await sim.comments()] == [("Two.", "eve")]
    assert sim.count_writes() == 0, "nothing of it goes back"


async def test_a_webhook_that_never_came_is_made_up_for_and_unchanged_lists_cost_nothing(sim: MirrorFixture) -> None:
    await sim.mirror()
    sim.open()
    await sim.look(told=False)
    assert await sim.tasks() == []
    sim.engine.clock.advance(minutes=5)
    await sim.look(told=False)
    assert len(await sim.tasks()) == 1
    await sim.look()
    sim.github.requests.clear()
    await sim.look()
    [listing] = sim.github.requests_to("GET", ISSUES)
    assert listing.status == 304


async def test_what_happens_to_a_task_happens_to_its_issue(sim: MirrorFixture) -> None:
    issue = sim.open(labels=("good first issue", "bug"))
    await sim.mirror()
    task = await sim.task()
    for draft, expected in (
        (TaskDraft(title="It sinks"), {"title": "It sinks"}),
        (TaskDraft(description="Ask @eve.\n/close"), {"body": "Ask `@eve`.\n\\/close"}),
        (TaskDraft(tags=("good-first-issue", "urgent")), {"labels": ("good first issue", "urgent")}),
        (TaskDraft(assignee="ana"), {"assignees": (sim.ana,)}),
        (TaskDraft(assignee="somebody"), {"assignees": (sim.ana,)}),
        (TaskDraft(assignee=""), {"assignees": (sim.ana,)}),
        (TaskDraft(status=TaskStatus.IN_REVIEW), {"closed": ""}),
        (TaskDraft(status=TaskStatus.DONE), {"closed": "completed"}),
        (TaskDraft(status=TaskStatus.BLOCKED), {"closed": ""}),
        (TaskDraft(status=TaskStatus.ARCHIVED), {"closed": "not_planned"}),
    ):
        await sim.board.change_task(task.id, draft)
        await sim.look(told=False)
        if draft.assignee == "":
            assert issue.assignees == ()
        else:
            assert {name: getattr(issue, name) for name in expected} == expected
    written = sim.count_writes()
    await sim.look()
    await sim.look()
    assert sim.count_writes() == written, "what was written is no change when it is read"
    assert (await sim.task()).description == "Ask @eve.\n/close"
    assert [each.text for each in await sim.comments()] == []


async def test_a_task_and_what_is_said_of_it_become_an_issue_with_comments_that_name_their_author(
    sim: MirrorFixture,
) -> None:
    await sim.mirror()
    task = await sim.board.create_task(TaskDraft(title="Paint", description="Blue.", tags=("deck",)), "Boats")
    said = await sim.board.comment(task.id, "Which *blue*, @ana?")
    done = await sim.board.create_task(TaskDraft(title="Old", status=TaskStatus.DONE), "Boats")
    await sim.look(told=False)
    [issue] = sim.boats.issues.values()
    assert (issue.title, issue.labels, issue.user) == ("Paint", ("deck",), sim.app.user)
    assert issue.body == f"Blue.\n\n<!-- denizen:{task.id} -->"
    [comment] = issue.comments
    assert comment.body == f"**Olga**:\n\nWhich *blue*, `@ana`?\n\n<!-- denizen:{said.id} -->"
    assert [each.link for each in await sim.tasks()] == [f"https://github.com/harbour/boats/issues/{issue.number}", ""]
    await sim.board.change_comment(task.id, said.id, "Dark blue?")
    await sim.look()
    assert comment.body.startswith("**Olga**:\n\nDark blue?")
    sim.github.world.comment(sim.ana, issue, "Yes.")
    await sim.look()
    found = (await sim.board.get_task(task.id)).comments
    assert [(each.text, each.made_by.author_name) for each in found] == [("Dark blue?", "Olga"), ("Yes.", "ana")]
    assert len(issue.comments) == 2
    assert len(sim.boats.issues) == 1
    assert (await sim.board.get_task(done.id)).task.link == ""


@pytest.mark.parametrize("route", [ISSUES, r"/comments$"])
async def test_what_was_written_just_before_a_kill_is_found_again_and_not_written_twice(
    sim: MirrorFixture, route: str
) -> None:
    await sim.mirror()
    task = await sim.board.create_task(TaskDraft(title="Paint"), "Boats")
    await sim.board.comment(task.id, "Blue.")
    lost = sim.github.fail("POST", route, status=502, when="after")
    await sim.look(told=False)
    assert lost.met == 1
    assert "github_server_error" not in (await sim.state()).failure
    assert (await sim.state()).failure
    sim.engine.clock.advance(minutes=10)
    sim.restart()
    await sim.look(told=False)
    await sim.look()
    [issue] = sim.boats.issues.values()
    assert len(issue.comments) == 1
    assert [each.id for each in await sim.tasks()] == [task.id]
    assert len((await sim.board.get_task(task.id)).comments) == 1
    assert (await sim.state()).failure == ""


async def test_a_reading_that_was_cut_short_begins_again_without_doubles(sim: MirrorFixture) -> None:
    for number in range(150):
        sim.open(f"Issue {number}")
    sim.github.world.comment(sim.eve, sim.boats.issues[1], "Here too.")
    await sim.mirror(every=timedelta(minutes=1))
    state = await sim.state()
    async with sim.engine.store.work() as work:  # as it stands after the first page
        await work.issue_mirrors.put_state(replace(state, is_imported=False, imported=100))
    sim.restart()
    await sim.look()
    tasks = await sim.tasks()
    assert len(tasks) == 150
    commented = next(each for each in tasks if each.link.endswith("/issues/1"))
    assert len((await sim.board.get_task(commented.id)).comments) == 1


@pytest.mark.parametrize("is_first", [True, False])
async def test_comments_that_could_not_be_read_with_their_issue_are_read_later(
    sim: MirrorFixture, *, is_first: bool
) -> None:
    if not is_first:
        await sim.mirror()
    issue = sim.open()
    if not is_first:
        sim.change(issue, "closed", closed="completed")
    sim.github.world.comment(sim.eve, issue, "Here too.")
    sim.engine.clock.advance(days=1)
    if not is_first:
        await sim.look()
        sim.change(issue, "reopened", closed="")
    sim.github.fail("GET", r"/issues/1/comments$", status=403, headers={"retry-after": "60"})
    await (sim.mirror() if is_first else sim.look())
    assert await sim.tasks() == []
    sim.engine.clock.advance(minutes=10)
    await sim.look()
    assert [each.text for each in await sim.comments()] == ["Here too."]
    assert (await sim.state()).failure == ""


async def test_a_comment_that_has_no_room_keeps_its_issue_from_nothing(sim: MirrorFixture) -> None:
    issue = sim.open()
    for number in range(MAX_COMMENTS + 1):
        sim.github.world.comment(sim.eve, issue, f"Comment {number}")
    await sim.mirror()
    assert len(await sim.comments()) == MAX_COMMENTS
    assert "a comment on issue #1" in (await sim.state()).failure


async def test_a_mark_in_what_a_stranger_wrote_says_nothing(sim: MirrorFixture) -> None:
    await sim.mirror()
    task = await sim.board.create_task(TaskDraft(title="Paint"), "Boats")
    forged = f"x\n\n<!-- denizen:{task.id} -->"
    sim.github.world.open_issue(sim.eve, sim.boats, "Mine", forged)
    await sim.look()
    assert [each.title for each in await sim.tasks()] == ["Mine", "Paint"]
    assert len(sim.boats.issues) == 2


@pytest.mark.parametrize("is_ours_later", [True, False])
async def test_of_two_changes_at_once_the_later_counts_and_the_other_is_kept_in_a_comment(
    sim: MirrorFixture, *, is_ours_later: bool
) -> None:
    issue = sim.open()
    await sim.mirror()
    task = await sim.task()
    sim.engine.clock.advance(minutes=1)
    if not is_ours_later:
        await sim.board.change_task(task.id, TaskDraft(title="Ours"))
        sim.engine.clock.advance(minutes=1)
    sim.change(issue, title="Theirs")
    if is_ours_later:
        sim.engine.clock.advance(minutes=1)
        await sim.board.change_task(task.id, TaskDraft(title="Ours"))
    await sim.look()
    await sim.look()
    won, lost = ("Ours", "Theirs") if is_ours_later else ("Theirs", "Ours")
    assert ((await sim.task()).title, issue.title) == (won, won)
    [note] = await sim.comments()
    assert note.text.endswith(f"\n\n{lost}")
    assert issue.comments == [], "the note stays here"


async def test_inwards_nothing_is_written_there(sim: MirrorFixture) -> None:
    issue = sim.open()
    await sim.mirror(goes_out=False)
    task = await sim.task()
    await sim.board.change_task(task.id, TaskDraft(title="Ours", status=TaskStatus.DONE))
    await sim.board.comment(task.id, "Here.")
    await sim.board.create_task(TaskDraft(title="New"), "Boats")
    await sim.look()
    assert (sim.count_writes(), (await sim.board.get_task(task.id)).task.title) == (0, "Ours")
    sim.change(issue, title="Theirs")
    await sim.look()
    found = await sim.board.get_task(task.id)
    assert (found.task.title, found.task.status) == ("Theirs", TaskStatus.DONE)
    assert [each.text.rpartition("\n")[2] for each in found.comments] == ["Here.", "Ours"]


@pytest.mark.parametrize("is_secondary", [False, True])
async def test_a_rate_limit_is_waited_for(sim: MirrorFixture, *, is_secondary: bool) -> None:
    await sim.mirror()
    sim.open()
    sim.github.limit(seconds=600, is_secondary=is_secondary)
    await sim.look()
    assert "so often" in (await sim.state()).failure
    sim.github.requests.clear()
    for _ in range(8):
        await sim.look()
    assert sim.github.requests == []
    sim.engine.clock.advance(minutes=3)
    await sim.look()
    assert len(await sim.tasks()) == 1


async def test_labels_that_github_did_not_take_are_written_later(sim: MirrorFixture) -> None:
    issue = sim.open(labels=("bug", "deck"))
    await sim.mirror()
    await sim.board.change_task((await sim.task()).id, TaskDraft(tags=("deck", "urgent")))
    sim.github.fail("PATCH", r"/issues/1$", status=502)
    await sim.look(told=False)
    assert issue.labels == ("bug", "deck")
    sim.engine.clock.advance(minutes=10)
    await sim.look()
    assert (issue.labels, (await sim.task()).tags) == (("deck", "urgent"), ("deck", "urgent"))
    written = sim.count_writes()
    await sim.look()
    assert sim.count_writes() == written


async def test_what_is_refused_is_told_tried_again_and_keeps_nothing_from_the_rest(sim: MirrorFixture) -> None:
    locked, other = sim.open("Locked"), sim.open("Other")
    locked.locked = True
    await sim.mirror()
    first, second = await sim.tasks()
    await sim.board.comment(first.id, "Hm.")
    await sim.board.comment(second.id, "Hm.")
    for _ in range(4):
        await sim.look()
    assert (len(locked.comments), len(other.comments)) == (0, 1)
    assert len(sim.github.requests_to("POST", r"/issues/1/comments$")) == 1, "not with every look"
    assert first.id in (await sim.state()).failure
    sim.engine.clock.advance(minutes=5)
    await sim.look()
    sim.engine.clock.advance(minutes=5)
    await sim.look()
    assert len(sim.github.requests_to("POST", r"/issues/1/comments$")) == 2, "later each time"
    locked.locked = False
    sim.engine.clock.advance(minutes=5)
    await sim.look()
    await sim.look()
    assert (len(locked.comments), len(other.comments), (await sim.state()).failure) == (1, 1, "")


async def test_a_refused_task_that_changes_is_tried_at_once(sim: MirrorFixture) -> None:
    locked = sim.open()
    locked.locked = True
    await sim.mirror()
    task = await sim.task()
    await sim.board.comment(task.id, "Hm.")
    await sim.look(told=False)
    locked.locked = False
    await sim.board.comment(task.id, "Well.")
    await sim.look(told=False)
    assert len(locked.comments) == 2


async def test_an_account_that_may_open_no_issue_is_not_asked_for_every_task(sim: MirrorFixture) -> None:
    await sim.mirror()
    sim.app.permissions["issues"] = "read"
    for title in ("One", "Two", "Three"):
        await sim.board.create_task(TaskDraft(title=title), "Boats")
    for _ in range(4):
        await sim.look()
    assert len(sim.github.requests_to("POST", ISSUES)) == 1
    assert "may not open an issue" in (await sim.state()).failure
    sim.app.permissions["issues"] = "write"
    sim.engine.clock.advance(minutes=5)
    await sim.look()
    await sim.look()
    assert sorted(each.title for each in sim.boats.issues.values()) == ["One", "Three", "Two"]
    assert (await sim.state()).failure == ""


async def test_a_deleted_task_does_not_come_back_and_an_issue_that_is_gone_leaves_its_task(sim: MirrorFixture) -> None:
    issue, other = sim.open(), sim.open("Other")
    await sim.mirror()
    first, second = await sim.tasks()
    await sim.board.delete_task(first.id)
    sim.change(issue, title="Changed")
    del sim.boats.issues[other.number]
    await sim.board.change_task(second.id, TaskDraft(title="Mine"))
    await sim.look()
    await sim.look()
    assert [each.title for each in await sim.tasks()] == ["Mine"]
    assert issue.closed == ""


@pytest.mark.parametrize("taken", [0, 1], ids=["the same number there", "another number there"])
async def test_an_issue_that_was_transferred_leaves_its_task_and_nothing_else_is_written(
    sim: MirrorFixture, taken: int
) -> None:
    world = sim.github.world
    issue, other = sim.open("Moves"), sim.open("Stays")
    await sim.mirror()
    task = next(each for each in await sim.tasks() if each.title == "Moves")
    ships = world.add_repository("harbour/ships", owner=sim.ana)
    sim.app.installations[0].repositories.append(ships)
    for number in range(taken):
        world.open_issue(sim.ana, ships, f"Ship {number}")
    world.transfer(issue, sim.boats, ships)
    await sim.board.comment(task.id, "Words of the boats.")
    await sim.look(told=False)
    await sim.board.change_task(task.id, TaskDraft(title="Mine"))
    await sim.look()
    assert (sim.count_writes(), issue.title, issue.comments, other.title) == (0, "Moves", [], "Stays")
    assert (await sim.board.get_task(task.id)).task.title == "Mine"
    assert (await sim.state()).failure == ""


async def test_a_repository_that_was_renamed_is_written_to(sim: MirrorFixture) -> None:
    issue = sim.open()
    await sim.mirror()
    sim.github.world.rename(sim.boats, "harbour/ships")
    task = await sim.task()
    await sim.board.comment(task.id, "Hm.")
    await sim.board.change_task(task.id, TaskDraft(title="It sinks"))
    await sim.look(told=False)
    assert (issue.title, len(issue.comments)) == ("It sinks", 1)


async def test_a_turn_that_read_what_others_wrote_writes_no_words_into_what_goes_out(sim: MirrorFixture) -> None:
    sim.open()
    await sim.mirror()
    task = await sim.task()
    scope = sim.engine.scope(OLGA, sim.engine.rooms["general"].place, tainted=True)
    board = sim.engine.boards.open_as(lambda: _read_as(sim, scope))
    with pytest.raises(NotAllowed, match="Nothing was written") as refused:
        await board.comment(task.id, "a secret that a page asked for")
    assert "harbour/boats" in refused.value.why
    await board.change_task(task.id, TaskDraft(status=TaskStatus.DONE), "Boats")
    await sim.board.create_project(ProjectDraft(name="Inside"))
    inner = await sim.board.create_task(TaskDraft(title="Internal"), "Inside")
    with pytest.raises(NotAllowed, match="Nothing was written"):
        await board.change_task(inner.id, TaskDraft(), "Boats")
    await sim.look()
    assert [each.title for each in sim.boats.issues.values()] == ["It leaks"]
    await sim.mirror(goes_out=False)
    await board.comment(task.id, "It stays here.")
    await board.change_task(inner.id, TaskDraft(), "Boats")


async def _read_as(sim: MirrorFixture, scope: Any) -> Any:
    reader = await sim.engine.boards.readers.find_person(OLGA)
    return replace(reader, scope=scope)


async def test_nobody_gets_the_issues_by_taking_the_projects_name(sim: MirrorFixture) -> None:
    mine = await sim.engine.boards.open_for(BEN).create_project(ProjectDraft(name="Boats"))
    sim.open()
    await sim.mirror()
    assert await sim.engine.boards.open_for(BEN).find_tasks(TaskQuery()) == []
    assert (await sim.task()).project_id != mine.id


async def test_a_mirror_fills_the_project_that_owners_have(sim: MirrorFixture) -> None:
    project = await sim.board.create_project(ProjectDraft(name="boats"), for_everybody=True)
    sim.open()
    await sim.mirror()
    assert (await sim.task()).project_id == project.id


async def test_the_task_watcher_looks_at_what_happens_later_and_not_at_the_first_reading(sim: MirrorFixture) -> None:
    issue = sim.open()
    await sim.engine.watch(TaskWatcherPolicy(agent=ADA, prompt="Look."))
    await sim.mirror()
    async with sim.engine.store.work(write=False) as work:
        assert await work.task_changes.find_next() is None
    sim.github.world.comment(sim.eve, issue, "Here too.")
    await sim.look()
    async with sim.engine.store.work(write=False) as work:
        change = await work.task_changes.find_next()
    assert change is not None
    assert (change.task_id, change.action) == ((await sim.task()).id, TaskAction.UPDATED)


async def test_a_deleted_project_ends_its_mirror_which_is_told_once_and_begins_anew_with_another(
    sim: MirrorFixture, caplog: pytest.LogCaptureFixture
) -> None:
    sim.open()
    await sim.mirror()
    await sim.board.delete_project("Boats")
    for _ in range(3):
        await sim.look()
    assert "their project was deleted" in (await sim.state()).failure
    assert len([each for each in caplog.records if "a mirror has ended" in each.message]) == 1
    assert await sim.board.list_projects() == []
    await sim.mirror("Ships")
    [task] = await sim.board.find_tasks(TaskQuery(project_id="Ships"))
    assert task.title == "It leaks"


async def test_an_account_without_a_login_is_told(sim: MirrorFixture) -> None:
    def find(account: AgentName) -> IssueTracker:
        raise NeedsAttention(f"The GitHub account of '{account}' has no login.", code="mirror_login")

    sim.mirrors = IssueMirrors(sim.engine.boards, find)
    await sim.mirror()
    assert (await sim.state()).failure == "The GitHub account of 'ada' has no login."
