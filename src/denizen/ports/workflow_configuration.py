"""The files of workflows, for people and tools that change them.

Implemented by `app/workflow_configuration`: it writes `workflows/NAME.yaml` of the home folder and loads it. What is
written holds when the call returns, or nothing was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.ports.configuration import ConfigurationChange, ConfigurationFault


@record
class WorkflowText:
    """The text of a workflow as its file has it, and the digest of that."""

    text: str
    digest: str


@record
class WorkflowExample:
    """A workflow that ships with Denizen, to begin from."""

    name: str
    description: str
    text: str


class WorkflowConfiguration(Protocol):
    """All that change raise InvalidInput (`config_invalid`) with everything that is wrong, by line."""

    async def read(self, name: str) -> WorkflowText:
        """Raises NotFound."""
        ...

    async def find_faults(self, name: str, text: str) -> Sequence[ConfigurationFault]:
        """Returns what would be wrong with this text as the workflow of that name; nothing is written."""
        ...

    async def add(self, by: Principal, name: str, text: str) -> ConfigurationChange:
        """Raises Conflict for a name that is taken, InvalidInput for one that cannot be a name."""
        ...

    async def put(self, by: Principal, name: str, text: str, *, expected: str = "") -> ConfigurationChange:
        """Replaces a workflow. `expected` is the digest of the text that was changed: raises Conflict for another one,
        and NotFound.
        """
        ...

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange:
        """Writes whether it begins by itself; comments stay. Raises NotFound."""
        ...

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        """Raises NotFound."""
        ...

    def list_examples(self) -> Sequence[WorkflowExample]: ...
