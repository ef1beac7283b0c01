"""Workflows over HTTP, in the SDK and on their pages: texts are checked, written with their comments, and drawn."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import httpx2
import pytest

from denizen.app.build import Denizen, open_denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.workflow_configuration import HomeWorkflows, find_example
from denizen.domain.ids import TurnId
from denizen.web.http.dependencies import WorkflowServices
from denizen_sdk import ApiError, DenizenClient
from tests.app.component_web_fixture import read_words
from tests.app.home_folder import LAB, Home
from tests.app.test_workflow_configuration import TEXT
from tests.web.knowledge_web_fixture import OWNER
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, LOCAL, WebFixture, open_web

pytestmark = pytest.mark.anyio


@dataclass
class Served:
    """A home folder whose workflows are served: `olga` is an owner, `ada` an admin."""

    home: Home
    denizen: Denizen
    web: WebFixture
    olga: Browser

    def client(self, key: str = "key-of-olga") -> DenizenClient:
        return DenizenClient(LOCAL, key, transport=httpx2.ASGITransport(self.web.app))

    async def finish(self, run: str) -> None:
        async for _ in self.denizen.turns.watch(TurnId(run)):
            pass

    def read(self, name: str) -> str:
        return (self.home.path / "workflows" / f"{name}.yaml").read_text(encoding="utf-8")


@asynccontextmanager
async def open_workflows(home: Home) -> AsyncGenerator[Served]:
    home.write(LAB)
    async with open_denizen(home.path) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        services = WorkflowServices(denizen.workflows, HomeWorkflows(home.path, denizen.runtime, files))
        async with (
            open_web(keys=[OWNER, ADA, ANN], configuration=files, workflows=services) as web,
            web.client() as client,
        ):
            yield Served(home, denizen, web, Browser(client, "key-of-olga"))


async def test_a_workflow_is_made_read_changed_switched_and_removed_over_http(home: Home) -> None:
    async with open_workflows(home) as server, server.client() as olga:
        made = await olga.add_workflow("hello", TEXT)
        assert (made.name, made.description, made.triggers) == ("hello", "Says hello", ("manual",))
        assert await olga.list_workflows() == [made]
        found = await olga.get_workflow("hello")
        assert (found.text, [each.id for each in found.nodes]) == (TEXT, ["go", "say"])
        assert [(each.port, each.target) for each in found.nodes[0].edges] == [("then", "say")]
        assert ET.fromstring(await olga.draw_workflow("hello")).attrib["aria-label"] == "Workflow hello"
        wrong = TEXT.replace("then: say", "then: sya")
        [fault, *_] = await olga.check_workflow("hello", wrong)
        assert fault.line == 4
        for call, status in (
            (olga.put_workflow("hello", wrong), 400),
            (olga.put_workflow("hello", TEXT, digest="other"), 409),
            (olga.add_workflow("hello", TEXT), 409),
            (olga.get_workflow("helo"), 404),
        ):
            with pytest.raises(ApiError) as refused:
                await call
            assert refused.value.status == status
        changed = await olga.put_workflow("hello", TEXT.replace("Hello", "Hi"), digest=found.text_digest)
        assert changed.digest != made.digest and "# by hand" in server.read("hello")
        assert not (await olga.switch_workflow("hello", enabled=False)).enabled
        assert (await olga.switch_workflow("hello", enabled=True)).enabled
        await olga.delete_workflow("hello")
        assert await olga.list_workflows() == []
        assert "welcome" in [each.name for each in await olga.list_workflow_examples()]


async def test_a_broken_workflow_is_listed_with_its_problem_and_mended_on_its_page(home: Home) -> None:
    async with open_workflows(home) as server, server.client() as client:
        olga, path = server.olga, "/admin/workflows/hello"
        await client.add_workflow("hello", TEXT)
        (home.path / "workflows/hello.yaml").write_text(TEXT.replace("then: say", "then: sya"), encoding="utf-8")
        await Reloader(server.denizen).reload()
        [listed] = await client.list_workflows()
        assert "line 4: there is no node 'sya'" in listed.problem and not listed.enabled
        shown = await client.get_workflow("hello")
        assert (shown.workflow, shown.nodes) == (listed, ()) and "sya" in shown.text
        with pytest.raises(ApiError) as refused:
            await client.run_workflow("hello")
        assert (refused.value.status, refused.value.problem.code) == (400, "workflow_broken")
        assert "These cannot be used" in await olga.read("/admin/workflows")
        page = await olga.read(path)
        assert "Until it is corrected, nothing starts it." in page and "sya" in page and "Run now" not in page
        await olga.send(path, text=TEXT)
        assert "Run now" in await olga.read(path) and server.read("hello") == TEXT


async def test_workflows_are_for_owners(home: Home) -> None:
    async with open_workflows(home) as server, server.client("key-of-ada") as ada, server.client("key-of-ann") as ann:
        for call in (ada.list_workflows(), ann.list_workflows(), ada.add_workflow("hello", TEXT)):
            with pytest.raises(ApiError) as refused:
                await call
            assert refused.value.status == 403
        assert not (home.path / "workflows").exists()


async def test_a_workflow_is_made_from_an_example_and_edited_on_its_page(home: Home) -> None:
    async with open_workflows(home) as server:
        olga, path = server.olga, "/admin/workflows/welcome"
        assert "There are none." in await olga.read("/admin/workflows")
        form = await olga.read("/admin/add-workflow?example=welcome")
        text = find_example("welcome").text
        assert 'value="welcome"' in form and "discord.member.join" in form
        checked = await olga.send("/admin/add-workflow", name="welcome", text=text, check="yes")
        assert checked.status_code == 200 and "Nothing is wrong" in checked.text
        wrong = await olga.send("/admin/add-workflow", name="welcome", text=text.replace("then: once", "then: twice"))
        assert wrong.status_code == 400 and re.search(r'data-line="\d+"', wrong.text) and "twice" in wrong.text
        added = await olga.send("/admin/add-workflow", name="welcome", text=text.replace("\n", "\r\n"))
        assert added.headers["location"] == f"{path}?done=added"
        assert server.read("welcome") == text
        assert "on_event" in read_words(await olga.read("/admin/workflows"))
        page = await olga.read(path)
        [digest] = re.findall(r'name="digest" value="([^"]*)"', page)
        assert f'src="{path}/picture.svg"' in page
        assert 'aria-label="Workflow welcome"' in await olga.read(f"{path}/picture.svg")
        changed = text.replace("Good to have you here.", "Nice.")
        assert (await olga.send(path, text=changed, digest=digest)).headers["location"] == f"{path}?done=changed"
        assert server.read("welcome") == changed
        assert (await olga.send(path, text=text, digest=digest)).status_code == 409
        assert (await olga.send(f"{path}/switch", off="yes")).headers["location"] == f"{path}?done=off"
        assert not server.denizen.runtime.current.workflows["welcome"].enabled
        assert (await olga.send(f"{path}/remove")).status_code == 303
        assert not server.denizen.runtime.current.workflows


GREETING = """\
description: Greets
nodes:
  go: {type: manual, input: {name: you}, then: say}
  say: {type: reply, text: "Hello, {{input.name}}!", then: note}
  note: {type: log, text: "{{say.text}}"}
"""


async def test_a_workflow_is_run_over_http_with_an_input_and_its_run_is_shown_and_repeated(home: Home) -> None:
    async with open_workflows(home) as server, server.client() as olga:
        await olga.add_workflow("greet", GREETING)
        run = await olga.run_workflow("greet", {"name": "Ana"}, idempotency_key="once")
        assert await olga.run_workflow("greet", {"name": "Ana"}, idempotency_key="once") == run
        await server.finish(run)
        found = await olga.get_workflow_run(run)
        assert (found.status, found.reply, found.origin.trigger, found.origin.scope) == (
            "done",
            "Hello, Ana!",
            "go",
            {"input": {"name": "Ana"}},
        )
        assert [(each.path, each.type, each.status) for each in found.nodes][-2:] == [
            ("say", "reply", "done"),
            ("note", "log", "done"),
        ]
        assert found.nodes[-1].inputs["text"] == "Hello, Ana!" and found.nodes[-1].duration_ms >= 0
        again = await olga.rerun_workflow(run, from_node="note")
        await server.finish(again)
        repeated = await olga.get_workflow_run(again)
        assert (repeated.origin.rerun_of, repeated.origin.from_node, repeated.status) == (run, "note", "done")
        assert [each.id for each in await olga.list_workflow_runs("greet")] == [again, run]
        assert await olga.list_workflow_runs("other") == []
        for call, status in (
            (olga.run_workflow("greet", {"nme": "Ana"}), 400),
            (olga.run_workflow("greet", trigger="other"), 404),
            (olga.get_workflow_run("turn_other"), 404),
            (olga.rerun_workflow(run, from_node="nowhere"), 400),
        ):
            with pytest.raises(ApiError) as refused:
                await call
            assert refused.value.status == status


async def test_a_run_is_begun_on_the_page_and_shows_times_outputs_and_a_picture(home: Home) -> None:
    async with open_workflows(home) as server, server.client() as sdk:
        await sdk.add_workflow("greet", GREETING)
        olga, path = server.olga, "/admin/workflows/greet"
        wrong = await olga.send(f"{path}/run", given="name")
        assert wrong.status_code == 400 and "no JSON object" in wrong.text and ">\nname</textarea>" in wrong.text
        begun = (await olga.send(f"{path}/run", given='{"name": "Ben"}')).headers["location"]
        run = begun.removesuffix("?done=begun")
        await server.finish(run.rpartition("/")[2])
        page = read_words(await olga.read(run))
        assert "Hello, Ben!" in page and "reply done" in page and " ms" in page
        assert "say: reply, done" in await olga.read(f"{run}/picture.svg")
        assert run in await olga.read(path) and run in await olga.read("/admin/workflows")
        again = (await olga.send(f"{run}/rerun", **{"from": "note"})).headers["location"]
        assert again.startswith("/admin/workflow-runs/") and run not in again
        await sdk.put_workflow("greet", GREETING.replace("Hello", "Hi"))
        assert "no picture of it" in await olga.read(run)
        assert (await olga.send(f"{path}/switch", off="yes")).status_code == 303
        off = await olga.send(f"{path}/run", given="")
        assert off.status_code == 409 and "is off" in off.text
