"""The files of workflows of the open home folder (`denizen.ports.workflows.WorkflowConfiguration`)."""

from __future__ import annotations

import re
from pathlib import Path

from anyio import to_thread

from denizen.app.configuration import HomeConfiguration
from denizen.app.settings.workflows import find_workflow_file, workflow_file
from denizen.domain.errors import NotFound
from denizen.domain.principal import Principal
from denizen.ports.configuration import ConfigurationChange

_ENABLED = re.compile(r"^enabled:.*$", re.MULTILINE)


class HomeWorkflows:
    """Implements `denizen.ports.workflows.WorkflowConfiguration`. A text is taken as it is, with its comments."""

    def __init__(self, home: Path, configuration: HomeConfiguration) -> None:
        self._home = home
        self._configuration = configuration

    async def read(self, name: str) -> str:
        file = await to_thread.run_sync(find_workflow_file, self._home, name)
        if file is None:
            raise NotFound(f"There is no workflow '{name[:64]}'.", code="workflow_unknown", fix="List them.")
        return await to_thread.run_sync(lambda: file.read_text(encoding="utf-8-sig"))

    async def put(self, by: Principal, name: str, text: str) -> ConfigurationChange:
        return await self._configuration.put_workflow(by, workflow_file(self._home, name), text)

    async def delete(self, by: Principal, name: str) -> ConfigurationChange:
        await self.read(name)
        return await self._configuration.put_workflow(by, workflow_file(self._home, name), None)

    async def set_enabled(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange:
        return await self.put(by, name, switch_text(await self.read(name), is_on=is_on))


def switch_text(text: str, *, is_on: bool) -> str:
    """Returns the text of a workflow that is on or off; all else in it stays."""
    line = f"enabled: {'true' if is_on else 'false'}"
    if _ENABLED.search(text):
        return _ENABLED.sub(line, text, count=1)
    return f"{line}\n{text}"
