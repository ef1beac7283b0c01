"""The files of the configuration, for people who change it over the web: `denizen.yaml` and the persona files.

What is written holds when the call returns, or nothing was written: a text that cannot be used is refused.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from datetime import datetime
from typing import Protocol

from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal
from denizen.domain.record import record


@record
class ConfigurationText:
    """The text of `denizen.yaml`, and its digest. With `is_masked` secrets stood in it, which were replaced, so it must
    not be written back.
    """

    text: str
    digest: str
    is_masked: bool = False


@record(kw_only=True)
class ConfigurationFault:
    """Something that is wrong with the configuration. `line` and `column` count from 1; 0 is the file as a whole."""

    file: str
    line: int
    column: int
    path: str
    message: str
    fix: str


@record
class ConfigurationChange:
    """The result of a change. `needs_restart` names changed sections that hold from the next start only."""

    generation: int
    changed: bool
    needs_restart: Sequence[str] = ()


@record(kw_only=True)
class ConfigurationEdit:
    """Changes of the file by path: `values` that are set, or removed with None, and `blocks`, which are YAML as it is
    written below the key, with its comments.
    """

    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    blocks: Mapping[str, str] = field(default_factory=dict[str, str])


@record(kw_only=True)
class PlannedChange:
    """The change that an edit would make to the text with this `digest`: the difference, secrets masked, and what would
    be wrong then. `diff` is empty where nothing would change.
    """

    digest: str
    diff: str
    faults: Sequence[ConfigurationFault] = ()

    @property
    def changed_lines(self) -> str:
        """The difference without the lines around it, which are none of the business of those who are asked about the
        change.
        """
        return "\n".join(line for line in self.diff.splitlines() if line and not line.startswith(" "))


class ChangePlanned(Exception):  # noqa: N818 - it reports no error
    """Raised in place of a change of the configuration, in a block that only plans."""

    def __init__(self, planned: PlannedChange) -> None:
        super().__init__(planned.digest)
        self.planned = planned


_IS_PLANNING: ContextVar[bool] = ContextVar("_IS_PLANNING", default=False)


@contextmanager
def planning_changes() -> Generator[None]:
    """In the block no change of the configuration is written: whatever would write one raises `ChangePlanned`."""
    before = _IS_PLANNING.set(True)
    try:
        yield
    finally:
        _IS_PLANNING.reset(before)


def is_planning_changes() -> bool:
    """Whether this runs in such a block."""
    return _IS_PLANNING.get()


@record(kw_only=True)
class ConfigurationPart:
    """A part of the file, by its path: the JSON schema of what may stand there, whose references lead into
    `definitions`, what does, secrets masked, and the digest of the text. `line` is where it begins, or would.
    """

    path: str
    schema: JsonObject
    definitions: JsonObject
    value: Json
    digest: str
    line: int


@record
class ConfigurationKey:
    """A key that may stand in a map of the file, and what it is for."""

    name: str
    hint: str


@record
class KeptGeneration:
    """An accepted configuration. With `has_text` its text is kept, and can be brought back."""

    number: int
    source: str
    accepted_at: datetime
    has_text: bool


@record(kw_only=True)
class NewAgent:
    """An agent that is to be added: what stands below `agents.NAME`, and the Markdown files of its folder, by name."""

    name: str
    section: JsonObject
    files: Mapping[str, str] = field(default_factory=dict[str, str])


@record
class PersonaText:
    """A Markdown file of an agent, by its name. With `is_used` it stands in the prompt as it is configured now."""

    name: str
    text: str
    is_used: bool


class ConfigurationFiles(Protocol):
    """One for a process. Who changed something is in the audit log, without the words. Whoever does may give the digest
    of the text that the change was made on; another text there raises Conflict.
    """

    async def read(self) -> ConfigurationText:
        """Raises InvalidInput for a file that cannot be read."""
        ...

    async def find_faults(self, text: str) -> Sequence[ConfigurationFault]:
        """Returns what is wrong with a text, as if it were the file; nothing is written."""
        ...

    async def replace(self, by: Principal, text: str, *, expected: str = "") -> ConfigurationChange:
        """Makes this the configuration. Raises InvalidInput (`config_invalid`, with `problems` in its context) and what
        building a generation raises; the old text stays then, and what was in force too.
        """
        ...

    async def find_value(self, path: str) -> Json:
        """Returns what the file says at a path such as `agents.ada.model`, secrets masked. Raises NotFound, and
        InvalidInput for what is no path.
        """
        ...

    async def put_value(self, by: Principal, path: str, value: Json, *, expected: str = "") -> ConfigurationChange:
        """Sets one value, or removes it with None; comments around it stay. Raises as `replace` and `find_value`."""
        ...

    def list_effective(self) -> JsonObject:
        """Returns every setting in force, those that the file does not have too, with secrets masked."""
        ...

    async def describe(self, path: str) -> ConfigurationPart:
        """Returns a part of the file and what may stand there. Raises NotFound for a path that no setting has, and
        InvalidInput for what is no path.
        """
        ...

    def list_keys(self, path: str) -> Sequence[ConfigurationKey]:
        """Returns the keys that may stand in the map at a path, empty for the file itself; none for a map of names.
        Raises as `describe`.
        """
        ...

    async def read_block(self, path: str) -> str:
        """Returns the YAML below a key, comments included and secrets masked; empty where there is none."""
        ...

    async def plan(self, edit: ConfigurationEdit) -> PlannedChange:
        """Returns what an edit would change; nothing is written. Raises as `find_value`."""
        ...

    async def apply(self, by: Principal, edit: ConfigurationEdit, *, expected: str = "") -> ConfigurationChange:
        """Makes an edit; comments around it stay. Raises as `replace` and `find_value`."""
        ...

    async def list_generations(self) -> Sequence[KeptGeneration]:
        """Returns the newest, the latest first."""
        ...

    async def read_kept(self, number: int) -> str:
        """Returns the text of a generation, with what secrets stand in it. Raises NotFound where none is kept."""
        ...

    async def diff_kept(self, number: int) -> str:
        """Returns what bringing a generation back would change, with secrets masked. Raises as `read_kept`."""
        ...

    async def plan_agent(self, agent: NewAgent) -> PlannedChange:
        """Returns what `add_agent` would change, the files of the agent included; nothing is written. Raises as that
        does.
        """
        ...

    async def add_agent(self, by: Principal, agent: NewAgent, *, expected: str = "") -> ConfigurationChange:
        """Adds an agent and its files in one step. The agents that only the defaults know are written down with it, and
        which one is the default, so that both stay. Raises Conflict for one that is there, InvalidInput for a file name
        that leads elsewhere, and as `replace`.
        """
        ...

    async def remove_agent(self, by: Principal, name: str) -> ConfigurationChange:
        """Takes an agent out of the file; its folder stays. Raises NotFound, Conflict for the default agent, and as
        `replace`, such as for one that others give tasks to.
        """
        ...

    async def list_persona(self, agent: str) -> Sequence[PersonaText]:
        """Returns the Markdown files in an agent's own folder, by name."""
        ...

    async def put_persona(self, by: Principal, agent: str, name: str, text: str) -> ConfigurationChange:
        """Writes one of them, or removes it with an empty text. Raises InvalidInput for a name that leads elsewhere,
        and what building a generation raises; the old file stays then.
        """
        ...
