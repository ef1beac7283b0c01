"""Chats about the administration: the part of this server that they may know, and change.

`ServerAdministration` is what the built-in skill `admin` works with. Secrets are left out here, so that no tool has to
think of them: by the views of the SQL reader, and by `mask_configuration`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from denizen.app.settings import CONFIG_FILE, parse_path
from denizen.app.settings.problem import KeyPath
from denizen.app.settings.yaml_document import find_value, write_document
from denizen.domain.agent_settings import find_active_set
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound
from denizen.domain.json import Json, JsonObject
from denizen.domain.log import LogEntry, LogFilter, LogStatistics
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.statistics import UsageRanking, UsageTotals
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Runtime
from denizen.engine.inspection.statistics import UsageStatistics
from denizen.ports.configuration import ConfigurationFiles, NewAgent
from denizen.ports.log import LogArchive
from denizen.ports.sql import SqlReader, SqlRows
from denizen.skill import UserOrder

EDITABLE_KEYS = frozenset({"description", "model", "reasoning", "show_reasoning", "look_up"})
EDITABLE_SECTIONS = frozenset({"style", "sampling", "limits", "timestamps"})
"""The keys below `agents.NAME` that a chat may change. Everything else stays in the hands of who edits the file: tools,
the gate, programs, files of personas (which could be any file), channels, keys and roles.
"""
MAX_CONFIGURATION_CHARS = 8000

_SECRET_KEY = re.compile(r"key|token|secret|passw|credential|authorization|cookie|webhook|dsn", re.IGNORECASE)
_SECRET_GROUPS = frozenset({"headers", "env"})
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_AGENT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_ALL_USERS = """
    SELECT principal, max(name) AS name, max(role) AS role, sum(messages) AS messages, sum(tokens) AS tokens,
           max(last_used) AS last_used
    FROM (
        SELECT principal, principal_name AS name, '' AS role, 1 AS messages,
               input_tokens + output_tokens AS tokens, opened_at AS last_used
        FROM all_turns
        UNION ALL SELECT principal, name, role, 0, 0, NULL FROM people
    ) AS uses
    GROUP BY principal
"""
_ORDERS: Mapping[UserOrder, str] = {
    "messages": "messages DESC, principal",
    "tokens": "tokens DESC, principal",
    "recent": "last_used IS NULL, last_used DESC, principal",
}
_CHATS = """
    SELECT c.conversation_id, c.owner, max(p.name) AS owner_name, c.agent, c.mode, c.created_at, c.updated_at,
           count(t.id) AS turns
    FROM all_chats AS c LEFT JOIN people AS p ON p.principal = c.owner
    LEFT JOIN all_turns AS t ON t.conversation_id = c.conversation_id
"""
_BY_CHAT = "GROUP BY c.conversation_id, c.owner, c.agent, c.mode, c.created_at, c.updated_at"
_SOURCES = "SELECT * FROM all_sources ORDER BY id"


@record
class ServerRecords:
    """The records of what was done on this server."""

    statistics: UsageStatistics
    sql: SqlReader
    logs: LogArchive


class ServerAdministration:
    """Implements `denizen.skill.AdministrationAccess`."""

    def __init__(self, runtime: Runtime, assistant: AgentSettingsOverlay, records: ServerRecords) -> None:
        self._configuration: ConfigurationDesk | None = None
        self._runtime = runtime
        self._assistant = assistant
        self._statistics = records.statistics
        self._sql = records.sql
        self._logs = records.logs

    # --- use ---------------------------------------------------------------------------------------------------------

    async def sum_usage(self, days: int) -> JsonObject:
        found = await self._statistics.overview(days)
        return {
            "first_day": found.span.first.isoformat(),
            "last_day": found.span.last.isoformat(),
            "total": _totals(found.total),
            "same_time_before": _totals(found.before),
            "feedback_score": found.feedback_score,
            "models": _ranking(found.models),
            "sources": _ranking(found.sources),
            "users": _ranking(found.users or ()),
            "daily": _ranking(found.daily),
            "hourly_utc": _ranking(found.hourly or ()),
        }

    async def list_users(self, *, order: UserOrder, limit: int) -> SqlRows:
        return await self._sql.select(
            f"SELECT * FROM ({_ALL_USERS}) AS found ORDER BY {_ORDERS[order]} LIMIT {limit:d}"  # noqa: S608 - ours
        )

    async def list_sources(self) -> SqlRows:
        return await self._sql.select(_SOURCES)

    async def list_chats(self, *, user: str = "", limit: int) -> SqlRows:
        whose = ""
        if user:
            text = "'" + user.replace("'", "''") + "'"
            whose = f"WHERE c.owner = {text} OR lower(p.name) = lower({text})"
        return await self._sql.select(f"{_CHATS} {whose} {_BY_CHAT} ORDER BY c.updated_at DESC LIMIT {limit:d}")

    async def run_sql(self, query: str) -> SqlRows:
        return await self._sql.select(query)

    def describe_views(self) -> str:
        return self._sql.describe()

    async def list_agent_settings(self) -> Sequence[JsonObject]:
        generation = self._runtime.current
        agents = [await self._assistant.agent(generation, name) for name in generation.agents]
        rows: list[JsonObject] = []
        for agent in agents:
            chosen = {name: value for name, value in asdict(find_active_set(agent)).items() if value is not None}
            is_default = agent.name == generation.default_agent
            rows.append({"name": agent.name, "description": agent.description, "is_default": is_default, **chosen})
        return rows

    # --- the log -----------------------------------------------------------------------------------------------------

    async def search_log(self, wanted: LogFilter, *, limit: int) -> Sequence[LogEntry]:
        return await self._logs.search(wanted, limit=limit)

    async def sum_log(self, wanted: LogFilter) -> LogStatistics:
        return await self._logs.sum_up(wanted)

    # --- the configuration -------------------------------------------------------------------------------------------

    def open_configuration(self, files: ConfigurationFiles) -> None:
        """Lets chats read and change these files from now on; without, as in a command, they do neither."""
        self._configuration = ConfigurationDesk(files)

    async def read_configuration(self, section: str) -> str:
        return self._find_desk().read(section)

    async def change_configuration(self, by: Principal, path: str, value: Json) -> None:
        await self._find_desk().change(by, path, value)

    async def create_agent(self, by: Principal, name: str, *, description: str, model: str) -> None:
        await self._find_desk().create_agent(by, name, description=description, model=model)

    def _find_desk(self) -> ConfigurationDesk:
        if self._configuration is None:
            raise NotAllowed("The configuration is open while the server runs only.", code="configuration_closed")
        return self._configuration


class ConfigurationDesk:
    """The configuration as far as chats may read and change it: without secrets, and only how agents write and think.

    Changes go through `files`, so that they hold at once or are refused.
    """

    def __init__(self, files: ConfigurationFiles) -> None:
        self._files = files

    def read(self, section: str) -> str:
        """Returns a section in effect as YAML, masked, or the names of the sections. Raises NotFound."""
        tree = self._files.list_effective()
        if not section:
            return "Sections: " + ", ".join(tree)
        node = find_value(mask_configuration(tree), parse_path(section))
        if node is None:
            raise NotFound(
                f"There is no section {section[:100]}.", code="section_unknown", fix=f"There are: {', '.join(tree)}."
            )
        text = write_document(node, (2, 2)).removesuffix("...\n")
        return text if len(text) <= MAX_CONFIGURATION_CHARS else f"{text[:MAX_CONFIGURATION_CHARS]}\n[cut]"

    async def change(self, by: Principal, path: str, value: Json) -> None:
        """Sets one value. Raises NotAllowed, NotFound, InvalidInput."""
        parts = parse_path(path)
        if not _may_change(parts):
            sections = ", ".join(f"{name}.*" for name in sorted(EDITABLE_SECTIONS))
            raise NotAllowed(
                f"{path[:100]} cannot be changed from a chat.",
                code="setting_not_editable",
                why="only how agents write and think may be, not what they are allowed to do",
                fix=f"Below agents.NAME there may be changed: {', '.join(sorted(EDITABLE_KEYS))}, {sections}."
                f" The rest is changed in {CONFIG_FILE}.",
            )
        _check_value(value)
        if find_value(self._files.list_effective(), parts[:2]) is None:
            raise NotFound(f"There is no agent {str(parts[1])[:100]}.", code="agent_not_found")
        await self._files.put_value(by, path, value)

    async def create_agent(self, by: Principal, name: str, *, description: str, model: str) -> None:
        """Adds an agent without tools: which ones it may use is for those to say who edit the file."""
        if not _AGENT_NAME.fullmatch(name):
            raise InvalidInput("An agent's name has 1 to 32 small letters, digits, - or _.", code="agent_name_invalid")
        for value in (description, model):
            _check_value(value)
        given: JsonObject = {"description": description, "model": model, "tools": []}
        section = {key: value for key, value in given.items() if value != ""}
        await self._files.add_agent(by, NewAgent(name=name, section=section))


def _may_change(path: KeyPath) -> bool:
    match path:
        case ("agents", str(), str() as key):
            return key in EDITABLE_KEYS
        case ("agents", str(), str() as section, str()):
            return section in EDITABLE_SECTIONS
        case _:
            return False


def _check_value(value: Json) -> None:
    """Raises InvalidInput for a group of values, and for text that stands for a secret: it would end up in a prompt."""
    if isinstance(value, Mapping | list):
        raise InvalidInput("Set one value at a time.", code="setting_value_invalid", fix="Give a text, number or flag.")
    if isinstance(value, str) and "${" in value:
        raise InvalidInput(
            "A value set from a chat must not refer to a variable.",
            code="setting_value_invalid",
            why="`${NAME}` stands for a secret",
            fix=f"Write it into {CONFIG_FILE} yourself.",
        )


def mask_configuration(node: Json, key: str = "") -> Json:
    """Returns a part of the configuration in which what may be a secret is hidden; references to variables stay."""
    if isinstance(node, Mapping):
        inner = key if key in _SECRET_GROUPS else ""
        return {name: mask_configuration(value, inner or name) for name, value in node.items()}
    if isinstance(node, list):
        return [mask_configuration(value, key) for value in node]
    is_secret = key in _SECRET_GROUPS or _SECRET_KEY.search(key) is not None
    if isinstance(node, str) and node and is_secret and not _REFERENCE.fullmatch(node):
        return "***"
    return _USER_INFO.sub("***@", node) if isinstance(node, str) else node


def _totals(found: UsageTotals) -> JsonObject:
    used = found.usage
    return {
        "messages": found.messages,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cost_usd": None if used.cost_usd is None else round(float(used.cost_usd), 4),
    }


def _ranking(rows: Sequence[UsageRanking]) -> list[Json]:
    shown: list[Json] = []
    for row in rows:
        name: JsonObject = {"name": row.name} if row.name else {}
        shown.append(cast("Json", {"key": row.key, **name, **_totals(row.used)}))
    return shown
