"""Projects, tasks, comments and documents by the SDK, on the real routes, for callers who may read different ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest

from denizen.domain.principal import RoleName
from denizen.testing.scripted_model import ScriptedModel
from denizen.web.http.auth import ApiKey
from denizen_sdk import ApiError, DenizenClient
from tests.timing import HANG_LIMIT_S
from tests.web_fixture import LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio

KEYS = [
    ApiKey.from_text("ada", "key-of-ada-the-admin", [RoleName.ADMIN]),
    ApiKey.from_text("olga", "key-of-olga-the-owner", [RoleName.OWNER]),
    ApiKey.from_text("ann", "key-of-ann-the-member", [RoleName.MEMBER]),
    ApiKey.from_text("ben", "key-of-ben-the-member", [RoleName.MEMBER]),
]
ADA, OLGA, ANN, BEN = (
    "key-of-ada-the-admin",
    "key-of-olga-the-owner",
    "key-of-ann-the-member",
    "key-of-ben-the-member",
)


@asynccontextmanager
async def open_server() -> AsyncGenerator[WebFixture]:
    async with open_web(ScriptedModel(), keys=KEYS) as web:
        yield web


def client_of(web: WebFixture, key: str) -> DenizenClient:
    return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(web.app))


async def status_of(call: Awaitable[object]) -> int:
    with pytest.raises(ApiError) as refused:
        await call
    return refused.value.status


@pytest.mark.proves("T-http-projects")
async def test_tasks_comments_projects_and_documents_are_made_read_changed_and_deleted_over_http() -> None:
    async with open_server() as web, client_of(web, ADA) as ada:
        project = await ada.create_project("Website", description="The new one.", due_on="2026-12-24", key="once")
        assert await ada.create_project("Website", key="once") == project
        assert await status_of(ada.create_project("website")) == 409
        changed = await ada.change_project("Website", name="Site", status="completed")
        assert (changed.id, changed.name, changed.status) == (project.id, "Site", "completed")
        assert [each.name for each in await ada.list_projects()] == ["Site"]

        task = await ada.create_task("Fix it", project="Site", tags=["Bug", "#web"], status="blocked", assignee="Bo")
        assert (task.tags, task.status, task.project_id) == (("bug", "web"), "blocked", project.id)
        other = await ada.create_task("Else", key="k")
        assert [each.id for each in await ada.find_tasks(tags=["x", "bug"])] == [task.id]
        assert await ada.create_task("Else", key="k") == other
        assert await ada.change_task(task.id, status="done", tags=[]) == await get(ada, task.id)
        said = await ada.comment_on_task(task.id, "Well done.", key="c")
        assert await ada.comment_on_task(task.id, "Well done.", key="c") == said
        details = await ada.get_task(task.id)
        assert [each.text for each in details.comments] == ["Well done."]
        assert details.project == await ada.get_project(project.id)
        anew = await ada.change_comment(task.id, said.id, "Very well done.")
        assert (anew.id, anew.text, anew.created_at) == (said.id, "Very well done.", said.created_at)
        assert (await ada.get_task(task.id)).comments == (anew,)
        await ada.delete_comment(task.id, said.id)
        assert (await ada.get_task(task.id)).comments == ()
        assert await status_of(ada.change_comment(task.id, said.id, "Gone")) == 404
        assert [each.id for each in await ada.find_tasks(status="done")] == [task.id]
        assert [each.id for each in await ada.find_tasks(search="ELSE", author="ada")] == [other.id]
        assert await ada.find_tasks(project="Site", tags=["bug"]) == []
        assert len(await ada.find_tasks(updated_after="yesterday", limit=1)) == 1
        web.clock.advance(hours=48)
        assert await ada.find_tasks(updated_after="yesterday") == []
        assert [each.id for each in await ada.find_tasks(project="Site")] == [task.id]

        document = await ada.create_document("Site", "Plan", "# One")
        assert await status_of(ada.create_document("Site", "Plan", "again")) == 409
        await ada.change_document("Site", "Plan", text="# Two", name="Plans")
        [entry] = await ada.list_project_documents("Site")
        assert (entry.id, entry.name, entry.size_chars) == (document.id, "Plans", len("# Two"))
        found = await ada.get_document("Site", document.id)
        assert (found.name, found.text) == ("Plans", "# Two")
        await ada.delete_document("Site", "Plans")
        assert await ada.list_project_documents("Site") == []
        await ada.delete_task(other.id)
        await ada.delete_project("Site")
        assert [await status_of(ada.get_task(each)) for each in (task.id, other.id)] == [404, 404]
        assert await status_of(ada.get_document("Site", "Plans")) == 404


async def get(client: DenizenClient, task: str) -> object:
    return (await client.get_task(task)).task


async def test_what_a_member_makes_is_theirs_and_what_admins_make_is_for_them() -> None:
    async with (
        open_server() as web,
        client_of(web, ADA) as ada,
        client_of(web, OLGA) as olga,
        client_of(web, ANN) as ann,
        client_of(web, BEN) as ben,
    ):
        mine, theirs = await ann.create_task("Mine"), await ada.create_task("Of the staff")
        assert [each.title for each in await ann.find_tasks()] == ["Mine"]
        assert [each.title for each in await olga.find_tasks()] == ["Of the staff"]
        for call in (ben.get_task(mine.id), ada.get_task(mine.id), ann.get_task(theirs.id)):
            assert await status_of(call) == 404
        assert await status_of(ben.change_task(mine.id, status="done")) == 404
        assert await status_of(ben.comment_on_task(mine.id, "Hm")) == 404
        assert await status_of(ben.delete_task(mine.id)) == 404
        assert await status_of(ben.create_task("There", project=mine.project_id)) == 404


async def test_a_project_for_everybody_is_made_by_admins_and_worked_on_by_all() -> None:
    async with open_server() as web, client_of(web, ADA) as ada, client_of(web, ANN) as ann, client_of(web, BEN) as ben:
        assert await status_of(ann.create_project("All", for_everybody=True)) == 403
        project = await ada.create_project("All", for_everybody=True)
        assert project.readers == "everybody"
        task = await ann.create_task("Bring cake", project="all")
        assert (await ben.change_task(task.id, status="done")).author_name == "ann"
        assert await status_of(ben.delete_task(task.id)) == 403
        assert await status_of(ben.change_project("All", name="Mine")) == 403
        said = await ann.comment_on_task(task.id, "Two of them")
        assert await status_of(ben.change_comment(task.id, said.id, "None")) == 403
        assert await status_of(ben.delete_comment(task.id, said.id)) == 403
        assert (await ada.change_comment(task.id, said.id, "Three")).author_name == "ann"
        await ada.delete_comment(task.id, said.id)
        own = await ben.create_task("Own")
        assert await status_of(ben.change_task(own.id, project="All")) == 403
        await ada.delete_task(task.id)


async def test_wrong_values_are_refused_with_the_name_of_the_field() -> None:
    async with open_server() as web, client_of(web, ADA) as ada:
        for call in (
            ada.create_task(" "),
            ada.create_task("a" * 201),
            ada.create_task("A", status="begun"),
            ada.create_task("A", tags=["two words"]),
            ada.create_task("A", due_on="soon"),
            ada.create_task("A", colour="red"),
            ada.find_tasks(status="begun"),
            ada.find_tasks(updated_after="sometime"),
            ada.create_project("A", due_on="2026-02-30"),
        ):
            assert await status_of(call) == 400
        assert await ada.find_tasks() == []


async def test_a_watcher_is_told_of_each_change_of_what_it_may_read_whoever_makes_it() -> None:
    async with open_server() as web, web.serve() as url, DenizenClient(url, ANN) as ann, DenizenClient(url, ADA) as ada:
        watched = ann.watch_board()
        with anyio.fail_after(HANG_LIMIT_S):
            first = await anext(watched)
            await ada.create_task("For owners")
            await ada.create_project("All", for_everybody=True)
            assert (await anext(watched)).version != first.version
        await watched.aclose()
