"""The board and its pages without a script: forms that work, errors that keep what was typed, and who sees what."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from denizen.domain.principal import RoleName
from denizen.testing.scripted_model import ScriptedModel
from tests.web.people import SignedIn, add_user, sign_in
from tests.web_fixture import open_web

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def open_people() -> AsyncGenerator[tuple[SignedIn, SignedIn, SignedIn]]:
    """An owner, and two members, each in a browser."""
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(open_web(ScriptedModel()))
        users = [await add_user(web, "olga"), await add_user(web, "ann"), await add_user(web, "ben")]
        assert users[0].role is RoleName.OWNER
        olga, ann, ben = [await stack.enter_async_context(sign_in(web, user)) for user in users]
        yield olga, ann, ben


async def read(who: SignedIn, path: str) -> str:
    answer = await who.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def find_task(who: SignedIn) -> str:
    found = re.search(r'data-task="(\w+)"', await read(who, "/projects"))
    assert found is not None
    return f"/projects/tasks/{found[1]}"


async def test_a_task_is_made_moved_changed_discussed_and_deleted_by_forms() -> None:
    async with open_people() as (_, ann, _ben):
        made = await ann.submit("/projects/new-task", title="Buy tea", tags="shop, tea", due_on="2026-12-24")
        assert made.headers["location"] == "/projects?done=made"
        task = await find_task(ann)
        assert "#shop #tea" in await read(ann, "/projects")
        await ann.submit(f"{task}/move", status="blocked")
        assert '<option value="blocked" selected>' in await read(ann, task)
        changed = await ann.submit(task, title="Buy milk", status="done", tags="", description="Two.", due_on="")
        assert changed.headers["location"] == f"{task}?done=saved"
        await ann.submit(f"{task}/comment", text="They are out of it.")
        page = await read(ann, task)
        assert "They are out of it." in page
        assert "Buy milk" in page
        await ann.submit(f"{task}/delete")
        assert (await ann.client.get(task)).status_code == 404


async def test_a_wrong_form_says_what_is_wrong_and_keeps_what_was_typed() -> None:
    async with open_people() as (_, ann, _ben):
        wrong = await ann.submit("/projects/new-task", title="Buy tea", due_on="soon")
        assert wrong.status_code == 400
        assert "is no date" in wrong.text
        assert 'value="Buy tea"' in wrong.text
        await ann.submit("/projects/new-task", title="Buy tea")
        task = await find_task(ann)
        long = await ann.submit(f"{task}/comment", text="a" * 10_001)
        assert long.status_code == 400
        assert "a" * 10_001 in long.text
        assert (await ann.submit(task, title="", status="done")).status_code == 400


async def test_documents_of_a_project_are_written_and_deleted_by_forms() -> None:
    async with open_people() as (_, ann, _ben):
        made = await ann.submit("/projects/new-project", name="Trip")
        project = f"/projects/{made.headers['location'].partition('project=')[2].partition('&')[0]}"
        taken = await ann.submit("/projects/new-project", name="trip")
        assert taken.status_code == 409
        written = await ann.submit(f"{project}/documents", document_name="Plan", text="# One")
        document = written.headers["location"].partition("?")[0]
        assert "# One" in await read(ann, document)
        await ann.submit(document, name="Plans", text="# Two")
        assert "Plans" in await read(ann, project)
        await ann.submit(f"{document}/delete")
        assert "There is none yet." in await read(ann, project)
        await ann.submit(project, name="Journey", status="completed", description="", due_on="")
        assert "Journey" in await read(ann, "/projects")
        await ann.submit(f"{project}/delete")
        assert (await ann.client.get(project)).status_code == 404


async def test_nobody_sees_or_changes_what_others_made_for_themselves() -> None:
    async with open_people() as (olga, ann, ben):
        await ann.submit("/projects/new-task", title="Mine alone")
        task = await find_task(ann)
        await olga.submit("/projects/new-task", title="Of the owners")
        theirs = await find_task(olga)
        for who in (olga, ben):
            assert "Mine alone" not in await read(who, "/projects")
            assert (await who.client.get(task)).status_code == 404
            for path in (f"{task}/comment", f"{task}/delete", task):
                assert (await who.submit(path, text="x", title="x", status="done")).status_code == 404
        assert (await ann.client.get(theirs)).status_code == 404
        assert "Of the owners" not in await read(ann, "/projects")
        assert "For everybody" not in await read(ann, "/projects")
        refused = await ann.submit("/projects/new-project", name="All", for_everybody="yes")
        assert refused.status_code == 403


async def test_a_form_without_the_token_of_the_page_changes_nothing() -> None:
    async with open_people() as (_, ann, _ben):
        del ann.client.headers["x-csrf-token"]
        assert (await ann.client.post("/projects/new-task", data={"title": "Buy tea"})).status_code == 403
        assert "Buy tea" not in await read(ann, "/projects")
