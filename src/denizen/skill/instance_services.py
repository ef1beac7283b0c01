"""The services for Denizen itself: skills of the owner, spending, records, configuration, events and
workflows.

They are as `services` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from denizen.domain.json import Json, JsonObject
from denizen.domain.log import LogEntry, LogFilter, LogStatistics
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.ports.sql import SqlRows


@record
class SkillInfo:
    """One skill of the owner's folder. `state` is one of enabled, disabled, changed, failed, missing; `why` says
    what is wrong with it, if anything.
    """

    name: str
    kind: str
    state: str
    description: str
    why: str = ""


class SkillEditor(Protocol):
    """Edits the skills in the home's `skills/` folder. Whatever is written is disabled until the owner enables it.

    Raises NotFound for a skill or file that does not exist, InvalidInput for a name or content that is not allowed.
    """

    async def list_skills(self) -> Sequence[SkillInfo]: ...

    async def read(self, name: str) -> Mapping[str, str]:
        """Returns its files by path; of a binary file only the size."""
        ...

    async def create(self, name: str, files: Mapping[str, str], *, by: str) -> Sequence[str]:
        """Writes a new skill; `by` tells its owner who did. Returns what the check found; none of the skill's code
        runs. Raises Conflict for a name that is taken.
        """
        ...

    async def edit(self, name: str, file: str, text: str, *, by: str) -> Sequence[str]:
        """Writes one file. Returns what the check found, as `create` does."""
        ...

    async def delete(self, name: str) -> None: ...

    def guide(self) -> str:
        """Returns how a skill is written, with a whole example: for people and models who write one."""
        ...


@record
class SpendingSummary:
    """The money spent today and this month (UTC), with the number of requests."""

    day_usd: Decimal
    month_usd: Decimal
    day_requests: int
    month_requests: int


@record
class CacheUsage:
    """The input tokens of the last days, and how many of them the provider read from or wrote to its cache."""

    days: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class InstanceControl(Protocol):
    """The running instance of Denizen: its spending, its cache, and a restart."""

    async def spent(self) -> SpendingSummary: ...

    async def cache_usage(self) -> CacheUsage: ...

    def restart(self) -> None:
        """Ends this process gracefully and starts it again with the same command line. Raises NotAllowed where
        nothing runs for long, such as for one question in a terminal.
        """
        ...


UserOrder = Literal["messages", "tokens", "recent"]


ErrorGrouping = Literal["path", "error"]


class AdministrationAccess(Protocol):
    """The records of this server as owners and admins may read them, and its configuration.

    Nothing of it tells secrets, or what other people wrote. Tools that use it are declared with `administration`, so
    that the gate lets nobody else reach them.
    """

    async def sum_usage(self, days: int) -> JsonObject:
        """Returns the usage of the last days: totals, the same before, by day, hour, model, source and user."""
        ...

    async def list_users(self, *, order: UserOrder, limit: int) -> SqlRows: ...

    async def list_sources(self) -> SqlRows: ...

    async def list_chats(self, *, user: str = "", limit: int) -> SqlRows:
        """Returns the newest chats of the web, without their titles; `user` is a principal's key, or a name."""
        ...

    async def list_agent_settings(self) -> Sequence[JsonObject]:
        """Returns the settings of each agent as they hold now."""
        ...

    async def run_sql(self, query: str) -> SqlRows:
        """Runs one SELECT over views that hold no secrets. Raises InvalidInput, LimitExceeded or Unavailable."""
        ...

    def describe_views(self) -> str: ...

    async def search_log(self, wanted: LogFilter, *, limit: int) -> Sequence[LogEntry]:
        """Returns the newest entries first. Raises NotFound where no log is kept."""
        ...

    async def sum_log(self, wanted: LogFilter) -> LogStatistics: ...

    async def read_configuration(self, section: str) -> str:
        """Returns a section of the configuration in effect as YAML, without secrets; the names of the sections for an
        empty one. Raises NotFound.
        """
        ...

    async def change_configuration(self, by: Principal, path: str, value: Json) -> None:
        """Sets one value of `denizen.yaml`, which holds at once. Raises NotAllowed for a key that is not on the list of
        those that may be changed from a chat, InvalidInput for a value that it cannot have; nothing is written then.
        """
        ...

    async def create_agent(self, by: Principal, name: str, *, description: str, model: str) -> None:
        """Adds an agent without tools. Raises Conflict for a name that is taken, InvalidInput."""
        ...


@record(kw_only=True)
class SeenDelivery:
    """The delivery of an event to a listener. `status` is waiting, started, done, skipped or failed; `note`
    says why.
    """

    id: str
    event: str
    listener: str
    status: str
    note: str = ""


@record(kw_only=True)
class SeenEvent:
    """An event of the log. Its data is written by strangers."""

    key: str
    type: str
    time: datetime
    source: str
    subject: str
    data: JsonObject
    deliveries: tuple[SeenDelivery, ...] = ()


class EventAccess(Protocol):
    """The events of this server, and its listeners and sources. All but `emit` raises NotAllowed for all but owners.

    Entries are of the kinds listener, websocket, poll and webhook, with the keys of the configuration. What changes
    them returns the difference of the file, and raises InvalidInput for what cannot be used.
    """

    async def emit(self, name: str, data: JsonObject, *, subject: str = "") -> SeenEvent:
        """Emits an event of the type `local.NAME`. Raises InvalidInput."""
        ...

    async def search(self, *, type: str = "", words: str = "", limit: int = 20) -> Sequence[SeenEvent]:  # noqa: A002
        """Returns the newest events that fit; `*` in a type is anything."""
        ...

    async def list_failed(self) -> Sequence[SeenDelivery]: ...

    async def replay(self, delivery: str) -> SeenDelivery:
        """Has a delivery that failed or was skipped tried again. Raises NotFound and Conflict."""
        ...

    async def list_entries(self) -> Mapping[str, Mapping[str, Json]]:
        """Returns the entries by kind and name, and below `states` how the sources are."""
        ...

    async def put(self, kind: str, name: str, values: Mapping[str, Json]) -> str:
        """Adds an entry or sets these keys of it; None takes one out. Raises NotAllowed for one with headers."""
        ...

    async def switch(self, kind: str, name: str, *, is_on: bool) -> str:
        """Raises NotFound."""
        ...

    async def remove(self, kind: str, name: str) -> str:
        """Raises NotFound."""
        ...


@record(kw_only=True)
class WorkflowSummary:
    """A workflow. `triggers` are the types of its triggers; `last_status` is empty before its first run. `problem` says
    why it cannot be used.
    """

    name: str
    description: str
    enabled: bool
    triggers: Sequence[str] = ()
    last_status: str = ""
    problem: str = ""


@record(kw_only=True)
class WorkflowRunSummary:
    """A run of a workflow. `reason` says why it went so; `ended_at` is None while it goes on."""

    id: str
    workflow: str
    status: str
    started_at: datetime
    ended_at: datetime | None = None
    reason: str = ""


@record(kw_only=True)
class WorkflowStep:
    """How one node of a run went."""

    node: str
    type: str
    status: str
    duration_s: float | None = None
    output: Json = None
    error: str = ""


class WorkflowAccess(Protocol):
    """The workflows of this home, as an owner sees and changes them. Names that do not exist raise NotFound."""

    async def list(self) -> Sequence[WorkflowSummary]: ...

    async def read(self, name: str) -> str:
        """Returns the text of a workflow."""
        ...

    async def create(self, name: str, text: str) -> None:
        """Adds a workflow. Raises Conflict for a name that is taken, and InvalidInput with all that is wrong."""
        ...

    async def change(self, name: str, old: str, new: str) -> None:
        """Replaces a part of the text, which has to be there exactly once. Raises InvalidInput."""
        ...

    async def delete(self, name: str) -> None: ...

    async def switch(self, name: str, *, is_on: bool) -> None: ...

    async def run(self, name: str, given: JsonObject) -> str:
        """Begins a run, also of a workflow that is off. Returns its id. Raises InvalidInput."""
        ...

    async def list_runs(self, name: str, *, limit: int) -> Sequence[WorkflowRunSummary]:
        """Returns the runs of a workflow, or of all, the newest first."""
        ...

    async def get_run(self, run: str) -> tuple[WorkflowRunSummary, Sequence[WorkflowStep]]:
        """Returns a run with its nodes, in the order in which they ran."""
        ...
