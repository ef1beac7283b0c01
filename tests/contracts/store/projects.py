"""The project contract of the store: who may read projects, tasks and the search for them, comments, documents, and the
changes that wait for the task watcher.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from denizen.domain.project import (
    EVERYBODY,
    OWNERS,
    AudienceFilter,
    Editor,
    Project,
    ProjectDocument,
    ProjectStatus,
    Task,
    TaskAction,
    TaskChange,
    TaskComment,
    TaskQuery,
    TaskStatus,
    person_audience,
    room_audience,
)
from denizen.ports.store import Store
from tests.contracts.store.records import at

ANA = Editor("web_user:ana", "Ana \x00")
BEN = Editor("platform_user:discord:7", "Ben")
ROOM = room_audience("discord", "12")


def make_project(key: str, audience: str = EVERYBODY, **more: Any) -> Project:
    values: dict[str, Any] = {"id": key, "name": f"Project {key}", "audience": audience, "made_by": ANA}
    values |= {"created_at": at(0), "updated_at": at(0), **more}
    return Project(**values)


def make_task(key: str, project: str = "p", *, hours: float = 0, **more: Any) -> Task:
    values: dict[str, Any] = {"id": key, "project_id": project, "title": f"Task {key}", "made_by": ANA}
    values |= {"created_at": at(0), "updated_at": at(hours), **more}
    return Task(**values)


async def add_tasks(store: Store, *tasks: Task) -> None:
    async with store.work() as work:
        for name in dict.fromkeys(task.project_id for task in tasks):
            await work.projects.add(make_project(name))
        for task in tasks:
            assert await work.projects.add_task(task)


async def search(store: Store, projects: tuple[str, ...] = ("p",), **wanted: Any) -> list[str]:
    async with store.work(write=False) as work:
        return [task.id for task in await work.projects.search_tasks(TaskQuery(**wanted), projects)]


@pytest.mark.anyio
class ProjectContract:
    @pytest.mark.proves("T-store-projects")
    async def test_projects_and_tasks_come_back_as_they_were_written(self, store: Store) -> None:
        project = make_project(
            "p", ROOM, name="Sea \ud800", description="x\x00", status=ProjectStatus.COMPLETED, due_on="2026-12-24"
        )
        tasks = [
            make_task(f"t{number}", title="Ä", status=status, tags=("a", "bug"), assignee="Ben", due_on="2027-01-01")
            for number, status in enumerate(TaskStatus)
        ]
        async with store.work() as work:
            assert await work.projects.add(project)
            assert not await work.projects.add(replace(project, name="again"))
            for task in tasks:
                assert await work.projects.add_task(task)
                assert not await work.projects.add_task(task)
        said = [TaskComment(id=key, task_id="t0", text=f"{key} \x00", made_by=BEN, created_at=at(1)) for key in "ab"]
        async with store.work() as work:
            for comment in said:
                assert await work.projects.add_comment(comment)
            assert not await work.projects.add_comment(said[0])
        async with store.work(write=False) as work:
            assert await work.projects.find("p") == project
            assert [await work.projects.find_task(task.id) for task in tasks] == tasks
            assert await work.projects.list_comments("t0") == said
            assert await work.projects.list_comments("t1") == []
            assert await work.projects.find("q") is None
            assert await work.projects.find_task("q") is None
            assert (await work.projects.count(ROOM), await work.projects.count_tasks("p")) == (1, len(tasks))

    async def test_a_comment_is_written_anew_in_its_place_and_removed(self, store: Store) -> None:
        await add_tasks(store, make_task("a"))
        first, second = (
            TaskComment(id=key, task_id="a", text=f"{key} \x00", made_by=BEN, created_at=at(1)) for key in "bc"
        )
        changed = replace(first, text="anew \x00")
        async with store.work() as work:
            await work.projects.add_comment(first)
            await work.projects.add_comment(second)
            assert await work.projects.replace_comment(replace(changed, made_by=ANA, created_at=at(9)))
            assert not await work.projects.replace_comment(replace(changed, id="none"))
        async with store.work() as work:
            assert await work.projects.list_comments("a") == [changed, second]
            assert await work.projects.remove_comment("b")
            assert not await work.projects.remove_comment("b")
            assert await work.projects.list_comments("a") == [second]

    async def test_projects_are_listed_for_those_who_may_read_them(self, store: Store) -> None:
        mine, others = person_audience(ANA.author), person_audience(BEN.author)
        audiences = [OWNERS, EVERYBODY, mine, others, ROOM, room_audience("discord", "13")]
        async with store.work() as work:
            for number, audience in enumerate(audiences):
                await work.projects.add(make_project(str(number), audience))

        async def listed(readers: AudienceFilter) -> list[str]:
            async with store.work(write=False) as work:
                found = [each.audience for each in await work.projects.list_projects(readers)]
            assert found == [each for each in audiences if readers.allows(each)]
            return found

        assert await listed(AudienceFilter()) == []
        assert await listed(AudienceFilter(frozenset({mine, ROOM}))) == [mine, ROOM]
        assert await listed(AudienceFilter(frozenset({mine}), shared=True)) == [OWNERS, EVERYBODY, mine, *audiences[4:]]
        assert await listed(AudienceFilter(shared=True, personal=True)) == audiences
        async with store.work(write=False) as work:
            assert len(await work.projects.list_projects(AudienceFilter(shared=True), limit=2)) == 2

    async def test_what_is_changed_keeps_its_author_and_what_is_removed_takes_its_parts_along(
        self, store: Store
    ) -> None:
        await add_tasks(store, make_task("a"), make_task("b", "q"))
        document = ProjectDocument(
            id="d", project_id="p", name="Plan", text="# One", made_by=ANA, created_at=at(0), updated_at=at(0)
        )
        async with store.work() as work:
            await work.projects.add_comment(TaskComment(id="c", task_id="a", text="so", made_by=BEN, created_at=at(1)))
            changed = make_task("a", title="New", status=TaskStatus.DONE, tags=("x",), hours=2)
            assert await work.projects.replace_task(replace(changed, made_by=BEN, created_at=at(9)))
            assert not await work.projects.replace_task(make_task("none"))
            assert await work.projects.replace(make_project("p", name="New", made_by=BEN))
            await work.projects.put_document(document)
            await work.projects.put_document(replace(document, text="# Two", updated_at=at(1), made_by=BEN))
        async with store.work(write=False) as work:
            assert await work.projects.find_task("a") == changed
            assert await work.projects.find("p") == make_project("p", name="New")
            written = replace(document, text="# Two", updated_at=at(1))
            assert await work.projects.find_document("d") == written
            assert await work.projects.find_document("none") is None
            [entry] = await work.projects.list_documents("p")
            assert (entry.id, entry.name, entry.size_chars, entry.made_by) == ("d", "Plan", 5, ANA)
            assert (entry.project_id, entry.created_at, entry.updated_at) == ("p", at(0), at(1))
        async with store.work() as work:
            assert await work.projects.remove("p")
            assert not await work.projects.remove("p")
            assert not await work.projects.remove_task("a")
            assert not await work.projects.remove_document("d")
            assert await work.projects.list_comments("a") == []
            assert await work.projects.remove_task("b")

    @pytest.mark.proves("T-store-projects")
    async def test_tasks_are_found_by_status_author_tags_time_words_and_project(self, store: Store) -> None:
        await add_tasks(
            store,
            make_task("a", hours=1, title="Fix the Österreich page", tags=("bug", "web")),
            make_task("b", hours=2, status=TaskStatus.DONE, made_by=BEN, description="the 100% sure page"),
            make_task("c", hours=3, status=TaskStatus.ARCHIVED, tags=("bug",)),
            make_task("d", "q", hours=4, tags=("web-app",)),
        )
        both = ("p", "q")
        assert await search(store, both) == ["d", "b", "a"]
        assert await search(store) == ["b", "a"]
        assert await search(store, both, project_id="q") == ["d"]
        assert await search(store, ("p",), project_id="q") == []
        assert await search(store, both, statuses=frozenset({TaskStatus.ARCHIVED, TaskStatus.DONE})) == ["c", "b"]
        assert await search(store, both, author="ben") == await search(store, both, author=BEN.author) == ["b"]
        assert await search(store, both, tags=("web",)) == ["a"]
        assert await search(store, both, tags=("bug", "web-app")) == ["d", "a"]
        assert await search(store, both, updated_after=at(2)) == ["d"]
        assert await search(store, both, text="österreich FIX") == ["a"]
        assert await search(store, both, text="100%") == ["b"]
        assert await search(store, both, text="_") == []
        assert await search(store, both, limit=1, skip=1) == ["b"]

    async def test_what_somebody_made_and_the_texts_of_a_project_are_counted(self, store: Store) -> None:
        await add_tasks(store, make_task("a", title="Ä€", description="x\x00"), make_task("b", "q", description="long"))
        async with store.work() as work:
            await work.projects.add(make_project("r", OWNERS, made_by=BEN))
            await work.projects.add(make_project("s", OWNERS, made_by=BEN, is_default=True))
            for key in "cd":
                comment = TaskComment(id=key, task_id="a", text="so", made_by=BEN, created_at=at(1))
                await work.projects.add_comment(comment)
            document = ProjectDocument(
                id="e", project_id="p", name="Plan", text="# One", made_by=ANA, created_at=at(0), updated_at=at(0)
            )
            await work.projects.put_document(document)
        async with store.work(write=False) as work:
            assert [await work.projects.count_made(who.author) for who in (ANA, BEN)] == [2, 1]
            assert [await work.projects.count_comments(task) for task in "ab"] == [2, 0]
            assert await work.projects.measure("r") == 0
            assert await work.projects.measure("p") >= len("Ä€") + len("x\x00") + 2 * len("so") + len("# One")
            assert await work.projects.measure("q") == len("Task b") + len("long")

    async def test_the_version_differs_after_each_change_that_may_be_read(self, store: Store) -> None:
        await add_tasks(store, make_task("a"))
        seen: list[str] = []

        async def look() -> None:
            async with store.work(write=False) as work:
                seen.append(await work.projects.load_version(AudienceFilter(frozenset({EVERYBODY}))))

        await look()
        async with store.work() as work:
            await work.projects.replace_task(make_task("a", hours=1))
        await look()
        async with store.work() as work:
            await work.projects.add_comment(TaskComment(id="c", task_id="a", text="so", made_by=BEN, created_at=at(1)))
        await look()
        async with store.work() as work:
            await work.projects.remove_task("a")
        await look()
        assert len(set(seen)) == 4
        async with store.work() as work:
            await work.projects.add(make_project("q", OWNERS))
            await work.projects.add_task(make_task("b", "q", hours=5))
        await look()
        assert len(set(seen)) == 4

    async def test_changes_of_one_task_join_until_they_are_started_and_only_one_is(self, store: Store) -> None:
        await add_tasks(store, make_task("a"), make_task("b"))

        def change(key: str, task: str, due: float, action: TaskAction = TaskAction.UPDATED) -> TaskChange:
            return TaskChange(id=key, task_id=task, project_id="p", action=action, due_at=at(due))

        async with store.work() as work:
            assert await work.task_changes.find_next() is None
            await work.task_changes.note(change("1", "a", 1, TaskAction.CREATED), now=at(0))
            await work.task_changes.note(change("2", "a", 2), now=at(0))
            await work.task_changes.note(change("3", "b", 1.5), now=at(0))
        async with store.work() as work:
            assert await work.task_changes.find_next() == change("3", "b", 1.5)
            assert not await work.task_changes.start("3", now=at(1))
            assert await work.task_changes.start("3", now=at(2))
            assert not await work.task_changes.start("3", now=at(2))
            assert not await work.task_changes.start("1", now=at(3))
        async with store.work() as work:
            await work.task_changes.note(change("4", "b", 0), now=at(0))
            assert await work.task_changes.find_next() == replace(change("3", "b", 1.5), is_started=True)
            assert await work.task_changes.finish("3")
            assert not await work.task_changes.finish("3")
            assert await work.task_changes.find_next() == change("4", "b", 0)
            assert await work.task_changes.finish("4")
            assert await work.task_changes.find_next() == change("1", "a", 2, TaskAction.CREATED)
            assert await work.projects.remove_task("a")
            assert await work.task_changes.find_next() is None

    async def test_of_each_maker_the_change_that_is_due_the_longest_comes_first_and_joins_no_held_back_one(
        self, store: Store
    ) -> None:
        await add_tasks(store, make_task("a"), make_task("b"), make_task("c"))

        def change(key: str, task: str, due: float, made_by: str) -> TaskChange:
            action = TaskAction.UPDATED
            return TaskChange(id=key, task_id=task, project_id="p", action=action, due_at=at(due), made_by=made_by)

        async with store.work() as work:
            await work.task_changes.note(change("1", "a", 2, "ana"), now=at(0))
            await work.task_changes.note(change("2", "b", 1, "ana"), now=at(0))
            await work.task_changes.note(change("3", "c", 3, "ben"), now=at(0))
            assert await work.task_changes.list_due(now=at(0.5)) == []
            assert [each.id for each in await work.task_changes.list_due(now=at(4))] == ["2", "3"]
            await work.task_changes.note(change("4", "b", 5, "ben"), now=at(4))
            await work.task_changes.note(change("5", "b", 6, "ana"), now=at(7))
            await work.task_changes.start("3", now=at(4))
            found = await work.task_changes.list_due(now=at(9))
        assert [(each.id, each.due_at) for each in found] == [("1", at(2)), ("4", at(5))]

    async def test_a_person_is_forgotten_with_what_only_they_could_read_and_named_nowhere_else(
        self, store: Store
    ) -> None:
        await add_tasks(store, make_task("a"), make_task("b", made_by=BEN), make_task("c", "q"))
        async with store.work() as work:
            await work.projects.add(make_project("own", person_audience(ANA.author)))
            await work.projects.add_task(make_task("d", "own"))
            await work.projects.forget_author(ANA.author)
        async with store.work(write=False) as work:
            assert await work.projects.find("own") is None
            assert await work.projects.find_task("d") is None
            kept, others = await work.projects.find_task("a"), await work.projects.find_task("b")
            assert kept is not None
            assert (kept.made_by.author_name, kept.title) == ("", "Task a")
            assert kept.made_by.author != ANA.author
            assert others == make_task("b", made_by=BEN)
