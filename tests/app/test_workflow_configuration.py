"""The files of workflows, changed in a running home: checked, loaded at once, comments kept, or nothing is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.workflow_configuration import HomeWorkflows
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from tests.app.home_folder import LAB, Home, open_home
from tests.web.knowledge_web_fixture import OWNER

pytestmark = pytest.mark.anyio

BY = OWNER.principal
TEXT = """\
# Ours.
description: Says hello
nodes:
  go: {type: manual, then: say}  # by hand
  say: {type: log, text: Hello}
"""


@asynccontextmanager
async def open_workflows(home: Home) -> AsyncGenerator[tuple[Denizen, HomeWorkflows]]:
    async with open_home(home, LAB) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        yield denizen, HomeWorkflows(home.path, denizen.runtime, files)


async def test_a_workflow_is_added_changed_switched_and_removed_in_its_file(home: Home) -> None:
    async with open_workflows(home) as (denizen, workflows):
        file = home.path / "workflows/hello.yaml"
        await workflows.add(BY, "hello", TEXT)
        assert denizen.runtime.current.workflows["hello"].description == "Says hello"
        found = await workflows.read("hello")
        assert found.text == file.read_text() == TEXT
        await workflows.put(BY, "hello", TEXT.replace("Hello", "Good day"), expected=found.digest)
        assert denizen.runtime.current.workflows["hello"].nodes["say"].settings["text"] == "Good day"
        with pytest.raises(Conflict, match="meanwhile"):
            await workflows.put(BY, "hello", TEXT, expected=found.digest)
        await workflows.switch(BY, "hello", is_on=False)
        assert not denizen.runtime.current.workflows["hello"].enabled
        assert "# Ours." in file.read_text() and "# by hand" in file.read_text()
        await workflows.switch(BY, "hello", is_on=True)
        assert denizen.runtime.current.workflows["hello"].enabled
        await workflows.remove(BY, "hello")
        assert not file.exists() and not denizen.runtime.current.workflows


async def test_a_broken_file_is_read_mended_and_removed_and_nothing_else_may_break_a_workflow(home: Home) -> None:
    async with open_workflows(home) as (denizen, workflows):
        files = home.path / "workflows"
        await workflows.add(BY, "hello", TEXT)
        wrong = TEXT.replace("then: say", "then: sya")
        for name in ("one", "two"):
            (files / f"{name}.yaml").write_text(wrong)
        await Reloader(denizen).reload()
        current = denizen.runtime.current
        assert list(current.workflows) == ["hello"] and sorted(current.broken_workflows) == ["one", "two"]
        assert "line 4" in current.broken_workflows["one"].problem
        with pytest.raises(InvalidInput, match="cannot be used: line 4"):
            denizen.workflows.get("one")
        assert (await workflows.read("one")).text == wrong
        await workflows.put(BY, "one", TEXT)
        await workflows.remove(BY, "two")
        await workflows.add(BY, "outer", "nodes: {a: {type: manual, then: b}, b: {type: sub_workflow, workflow: one}}")
        assert list(denizen.runtime.current.workflows) == ["hello", "one", "outer"]
        with pytest.raises(InvalidInput, match="outer"):
            await workflows.remove(BY, "one")
        assert not denizen.runtime.current.broken_workflows


async def test_what_cannot_run_is_told_by_line_and_never_written(home: Home) -> None:
    async with open_workflows(home) as (denizen, workflows):
        await workflows.add(BY, "hello", TEXT)
        wrong = TEXT.replace("then: say", "then: sya")
        [fault, *_] = await workflows.find_faults("hello", wrong)
        assert (fault.file, fault.line) == ("hello.yaml", 4) and "say" in fault.fix
        assert await workflows.find_faults("hello", TEXT) == []
        for call in (workflows.put(BY, "hello", wrong), workflows.add(BY, "other", wrong)):
            with pytest.raises(InvalidInput):
                await call
        with pytest.raises(Conflict, match="already"):
            await workflows.add(BY, "hello", TEXT)
        with pytest.raises(InvalidInput, match="cannot be the name"):
            await workflows.add(BY, "../evil", TEXT)
        for missing in (workflows.read("helo"), workflows.remove(BY, "helo"), workflows.switch(BY, "helo", is_on=True)):
            with pytest.raises(NotFound, match="no workflow 'helo'"):
                await missing
        assert [each.name for each in (home.path / "workflows").iterdir()] == ["hello.yaml"]
        assert (await workflows.read("hello")).text == TEXT and list(denizen.runtime.current.workflows) == ["hello"]
