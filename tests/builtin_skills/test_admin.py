"""The tools of chats about the administration, on a real store, log and home folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from denizen.app.administration import ConfigurationDesk, mask_configuration
from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.builtin_skills import load_builtin
from denizen.domain.audit import AuditKind
from denizen.domain.chat import Chat, ChatId, ChatMode
from denizen.domain.conversation import own_place
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.log import LogEntry, encode_entry
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.source import Source, SourceKind
from denizen.domain.tool import ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.user import User
from denizen.ports.store import AuditSearch
from tests.admin_chat_fixture import ADMIN, AdminChatFixture, open_admin_chat
from tests.app.home_folder import Home, open_home
from tests.contracts.store.records import make_step, make_turn, open_conversation
from tests.skill_fixture import run, scope

pytestmark = pytest.mark.anyio

SECRET = "hunter2-is-secret"


@pytest.fixture
async def fixture(tmp_path: Path) -> AsyncIterator[AdminChatFixture]:
    async with open_admin_chat(tmp_path) as opened:
        yield opened


async def ask(fixture: AdminChatFixture, tool: str, **args: Any) -> ToolResult:
    return await run(fixture.tools, tool, args, ADMIN)


def rows(result: ToolResult) -> list[list[Any]]:
    """The rows of a table, without the line of its columns."""
    assert not result.is_error, result.text
    return [json.loads(line) for line in result.text.splitlines() if line.startswith("[")][1:]


def data(result: ToolResult) -> Any:
    assert not result.is_error, result.text
    return json.loads(next(line for line in result.text.splitlines() if line.startswith(("{", "["))))


async def use(fixture: AdminChatFixture, name: str, *, turns: int, tokens: int, hours_ago: float = 0) -> None:
    """Makes a web user with so many turns of so many tokens each."""
    now = fixture.web.clock.now()
    await fixture.add_user(
        User(
            id=name,
            email=f"{name}@{SECRET}.org",
            name=name.title(),
            role=RoleName.MEMBER,
            created_at=now,
            password_hash=SECRET,
        )
    )
    principal = Principal(PrincipalKind.WEB_USER, name, name.title(), frozenset({"member"}))
    store = fixture.web.store
    conversation, session = await open_conversation(store, own_place("web", principal.key, f"chat-{name}"))
    at = now - timedelta(hours=hours_ago)
    async with store.work() as work:
        await work.chats.put(
            Chat(
                id=ChatId(f"chat-{name}"),
                conversation_id=conversation.id,
                owner=principal.key,
                agent=AgentName("denizen"),
                created_at=at,
                updated_at=at,
                mode=ChatMode.CHAT,
                title=SECRET,
                share_token=f"{SECRET}-{name}",
            )
        )
        for number in range(turns):
            turn = replace(make_turn(session, f"{name}{number}", principal=principal), opened_at=at)
            await work.turns.open(turn)
            used = Usage(input_tokens=tokens, output_tokens=0, requests=1)
            step = make_step(turn, 1, usage=used)
            await work.turns.add_step(replace(step, created_at=at))
            closed = replace(turn, status=TurnStatus.DONE, closed_at=at, result=replace(turn.result, usage=used))
            await work.turns.close(closed)


async def test_no_tool_works_outside_of_a_turn_about_the_administration(fixture: AdminChatFixture) -> None:
    needed: dict[str, JsonObject] = {
        "run_sql": {"query": "SELECT 1"},
        "admin_change": {"path": "agents.denizen.model", "value": "fast"},
        "admin_create_agent": {"name": "x", "description": "y"},
    }
    for tool in load_builtin("admin").tools:
        if tool.name != "chart":  # it draws what it is given
            result = await run(fixture.tools, tool.name, needed.get(tool.name, {}), scope())
            assert result.is_error and "chats about the administration" in result.text, tool.name
        assert tool.administration


@pytest.mark.proves("S-admin-tool-query-stats")
async def test_usage_of_1_to_365_days_is_summed_up_30_by_default(fixture: AdminChatFixture) -> None:
    await use(fixture, "ann", turns=2, tokens=100)
    found = data(await ask(fixture, "query_stats"))
    assert (found["total"]["messages"], found["total"]["input_tokens"], len(found["daily"])) == (2, 200, 30)
    assert [row["name"] for row in found["users"]] == ["Ann"]
    for days in (1, 365):
        assert len(data(await ask(fixture, "query_stats", days=days))["daily"]) == days
    for days in (0, 366):
        assert (await ask(fixture, "query_stats", days=days)).is_error


@pytest.mark.proves("S-admin-tool-list-users")
async def test_users_are_listed_by_messages_tokens_or_recent_use(fixture: AdminChatFixture) -> None:
    await use(fixture, "ann", turns=3, tokens=10, hours_ago=5)
    await use(fixture, "ben", turns=1, tokens=500, hours_ago=9)
    await use(fixture, "cem", turns=2, tokens=50, hours_ago=1)
    await use(fixture, "dan", turns=0, tokens=0)

    async def names(**args: Any) -> list[str]:
        result = await ask(fixture, "list_users", **args)
        assert SECRET not in result.text
        return [row[1] for row in rows(result)]

    assert await names() == ["Ann", "Cem", "Ben", "Dan"]
    assert await names(sort="tokens") == ["Ben", "Cem", "Ann", "Dan"]
    assert await names(sort="recent") == ["Cem", "Ann", "Ben", "Dan"]
    assert await names(limit=1) == ["Ann"]
    for number in range(25):
        await use(fixture, f"u{number}", turns=0, tokens=0)
    assert (len(await names()), len(await names(limit=50))) == (20, 29)
    for limit in (0, 51):
        assert (await ask(fixture, "list_users", limit=limit)).is_error


@pytest.mark.proves("S-admin-tool-list-sources")
async def test_sources_are_listed_without_their_addresses(fixture: AdminChatFixture) -> None:
    assert (await ask(fixture, "list_sources")).text == "There are no rows."
    now = fixture.web.clock.now()
    async with fixture.web.store.work() as work:
        kind = next(iter(SourceKind))
        await work.sources.put(
            Source(
                id="docs", kind=kind, location=f"https://u:{SECRET}@x.org", label="Docs", created_at=now, updated_at=now
            )
        )
    result = await ask(fixture, "list_sources")
    assert [row[0] for row in rows(result)] == ["docs"]
    assert SECRET not in result.text


@pytest.mark.proves("S-admin-tool-query-chats")
async def test_chats_are_listed_with_a_limit_and_by_user_without_what_was_said(fixture: AdminChatFixture) -> None:
    await use(fixture, "ann", turns=2, tokens=1, hours_ago=1)
    await use(fixture, "ben", turns=1, tokens=1, hours_ago=2)
    result = await ask(fixture, "query_chats")
    assert [(row[1], row[2], row[-1]) for row in rows(result)] == [
        ("web_user:ann", "Ann", 2),
        ("web_user:ben", "Ben", 1),
    ]
    assert SECRET not in result.text
    assert [row[2] for row in rows(await ask(fixture, "query_chats", limit=1))] == ["Ann"]
    for user in ("ben", "Ben", "web_user:ben"):
        assert [row[2] for row in rows(await ask(fixture, "query_chats", user=user))] == ["Ben"]
    for user in ("nobody", "x' OR '1'='1", "'; DROP TABLE chats; --"):
        assert (await ask(fixture, "query_chats", user=user)).text == "There are no rows."


@pytest.mark.proves("S-admin-tool-get-agent-config")
async def test_the_settings_of_agents_are_told(fixture: AdminChatFixture) -> None:
    (found,) = data(await ask(fixture, "get_agent_config"))
    assert (found["name"], found["is_default"], found["response_style"], found["language"]) == (
        "denizen",
        True,
        "concise",
        "en",
    )
    assert {"default_model", "citation_format"} <= found.keys()


@pytest.mark.proves("S-admin-tool-run-sql")
async def test_a_select_runs_and_nothing_else(fixture: AdminChatFixture) -> None:
    await use(fixture, "ann", turns=2, tokens=1)
    assert rows(await ask(fixture, "run_sql", query="SELECT count(*) FROM all_turns")) == [[2]]
    assert "all_turns(id, " in (await ask(fixture, "run_sql", query="views")).text
    for query in ("DELETE FROM turns", "SELECT password_hash FROM users", "SELECT 1; SELECT 2"):
        result = await ask(fixture, "run_sql", query=query)
        assert result.is_error and "may not run" in result.text and SECRET not in result.text


# --- the log ----------------------------------------------------------------------------------------------------------


def note(
    fixture: AdminChatFixture, level: str, event: str, *, hours_ago: float = 0.5, trace: str = "", **fields: Any
) -> None:
    at = fixture.web.clock.now() - timedelta(hours=hours_ago)
    fixture.logs.append([encode_entry(LogEntry(at, level, event, fields, trace))])


def request(fixture: AdminChatFixture, path: str, status: int, ms: int, **more: Any) -> None:
    level = "error" if status >= 500 else "info"
    note(fixture, level, "request", method="GET", path=path, status=status, duration_ms=ms, **more)


@pytest.mark.proves("S-admin-tool-query-logs")
async def test_the_log_is_searched_by_all_that_is_promised(fixture: AdminChatFixture) -> None:
    request(fixture, "/api/turns", 200, 5)
    request(fixture, "/api/chats", 404, 5)
    note(fixture, "warning", "disk nearly full", hours_ago=24.1)

    async def found(**args: Any) -> int:
        text = (await ask(fixture, "query_logs", **args)).text
        return sum(line.startswith("20") for line in text.splitlines())

    assert await found() == await found(hours=1) == 2
    assert await found(hours=168) == 3
    assert await found(hours=168, level="warning") == 1
    assert await found(path="turns") == 1
    assert await found(status="4xx") == await found(status="404") == 1
    assert (await found(method="get"), await found(method="POST")) == (2, 0)
    assert await found(hours=168, search="DISK") == 1
    assert await found(limit=1) == 1
    note(fixture, "info", "almost a day ago", hours_ago=23.9)
    assert await found() == 3
    for number in range(210):
        note(fixture, "info", f"event {number}")
    assert (await found(), await found(limit=200)) == (50, 200)
    for wrong in ({"hours": 0}, {"hours": 169}, {"limit": 0}, {"limit": 201}):
        assert (await ask(fixture, "query_logs", **wrong)).is_error


@pytest.mark.proves("S-admin-tool-log-stats")
async def test_the_log_is_summed_up(fixture: AdminChatFixture) -> None:
    for number in range(1, 101):
        request(fixture, f"/p{number % 13}", 500 if number % 8 == 0 else 200, number)
    found = data(await ask(fixture, "log_stats", hours=1))
    assert (found["requests"], found["error_rate"], found["status_classes"]) == (100, 0.12, {"2xx": 88, "5xx": 12})
    assert found["ms"] == {"p50": 50, "p95": 95, "p99": 99}
    assert [row["path"] for row in found["slowest"]] == [f"/p{number % 13}" for number in range(100, 90, -1)]
    assert [row["requests"] for row in found["busiest"]] == [8] * 9 + [7]
    assert [row["errors"] for row in found["failing"]] == [1] * 10


@pytest.mark.proves("S-admin-tool-query-errors")
async def test_errors_are_grouped_by_path_or_by_error_with_the_last_20_and_their_trend(
    fixture: AdminChatFixture,
) -> None:
    assert (await ask(fixture, "query_errors")).text == "There were no errors."
    for number in range(25):
        request(fixture, "/api/chats", 500, 1, number=number)
    note(fixture, "error", "fault", hours_ago=3.5, trace="Traceback\nValueError: no", path="/api/turns", status=500)
    by_error = data(await ask(fixture, "query_errors"))
    assert by_error["errors"] == 26
    assert by_error["groups"] == [{"error": "request 500", "count": 25}, {"error": "ValueError: no", "count": 1}]
    assert len(by_error["last"]) == 20
    assert [row["errors"] for row in by_error["trend"]] == [0] * 20 + [1, 0, 0, 25]
    by_path = data(await ask(fixture, "query_errors", group_by="path"))
    assert [row["path"] for row in by_path["groups"]] == ["/api/chats", "/api/turns"]
    assert data(await ask(fixture, "query_errors", path="turns", hours=168))["errors"] == 1


# --- charts -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("S-admin-tool-chart")
async def test_a_chart_has_30_days_by_default_whose_gaps_are_zero(
    fixture: AdminChatFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from denizen.builtin_skills import charts

    drawn: list[tuple[str, charts.Chart]] = []
    draw = charts._draw

    def look(kind: Any, chart: charts.Chart) -> bytes:
        drawn.append((kind, chart))
        return draw(kind, chart)

    monkeypatch.setattr(charts, "_draw", look)
    today = fixture.web.clock.now().date()
    data = [{"day": today.isoformat(), "n": 3}, {"day": (today - timedelta(days=2)).isoformat(), "n": 1}]
    given: dict[str, Any] = {"title": "Use", "data": data, "x_key": "day", "series": ["n"], "labels": ["messages"]}
    result = await ask(fixture, "chart", **given)
    assert not result.is_error and "data:image/png" in json.dumps(dict(result.data))
    kind, chart = drawn[0]
    assert (kind, len(chart.labels), chart.labels[-1]) == ("line", 30, today.isoformat())
    assert chart.series == (("messages", (*[0.0] * 27, 1.0, 0.0, 3.0)),)
    window = {
        "start_date": (today - timedelta(days=3)).isoformat(),
        "end_date": (today - timedelta(days=1)).isoformat(),
    }
    assert not (await ask(fixture, "chart", **given, **window)).is_error
    assert drawn[1][1].series[0][1] == (0.0, 1.0, 0.0)
    for wrong in ({"labels": ["a", "b"]}, {"start_date": "soon"}, {"start_date": "2030-01-01"}):
        assert (await ask(fixture, "chart", **{**given, **wrong})).is_error


# --- the configuration ------------------------------------------------------------------------------------------------


@pytest.fixture
async def server(fixture: AdminChatFixture, tmp_path: Path) -> AsyncIterator[Denizen]:
    """A home folder whose configuration the chats may change."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    async with open_home(home, OURS) as denizen:
        fixture.administration.open_configuration(HomeConfiguration(denizen, Reloader(denizen)))
        yield denizen


OURS = "# ours\nagents:\n  ada:\n    description: Helps.\n    tools: [calculator]\n"
CONFIG = """\
agents:
  ada:
    description: Helps.
    model: lab/small
    tools: [calculator]
models:
  providers:
    lab:
      kind: openai
      base_url: https://lab.example/v1
      api_key: ${LAB_KEY}
mcp:
  servers:
    notes:
      url: https://notes.example/mcp
      headers: {X-Any: hunter2-is-secret}
"""


@pytest.mark.proves("T-tool-admin", "TW6")
async def test_the_configuration_is_read_in_sections_and_changed_by_keys_of_a_list_only(
    fixture: AdminChatFixture, server: Denizen
) -> None:
    file = server.home / "denizen.yaml"
    assert "agents" in (await ask(fixture, "admin")).text
    assert "description: Helps." in (await ask(fixture, "admin", section="agents.ada")).text
    assert "ada:" in (await ask(fixture, "admin", action="list_agents")).text
    assert (await ask(fixture, "admin", section="nowhere")).is_error
    made = await ask(fixture, "admin_create_agent", name="bob", description="Builds.", model="fast")
    assert not made.is_error, made.text
    current = server.runtime.current
    assert (current.agent("bob").description, current.agent("bob").tool_access.tools) == ("Builds.", ())
    assert current.default_agent == "ada"
    for path, value in (
        ("agents.ada.style.language", "de"),
        ("agents.bob.model", "balanced"),
        ("agents.ada.limits.max_steps", 5),
    ):
        changed = await ask(fixture, "admin_change", path=path, value=value)
        assert not changed.is_error, changed.text
    assert server.runtime.current.agent("ada").limits.steps == 5  # at once, without a watcher
    async with server.services.store.work(write=False) as work:
        made_by = {each.event.actor for each in await work.audit.search(AuditSearch(kind=AuditKind.SETTINGS))}
    assert made_by == {"api_key:ada"}
    text = file.read_text()
    assert text.startswith("# ours") and "language: de" in text and "max_steps: 5" in text and "tools: []" in text
    for path in (
        "agents.ada.tools",
        "agents.ada.tools[0]",
        "agents.ada.pinned_tools",
        "agents.ada.persona",
        "agents.ada",
        "agents.ada.answers_from",
        "agents.ada.planning",
        "agents",
        "agent_defaults.tools",
        "gate.mode",
        "gate.rules",
        "gate.tiers.exec",
        "gate.owners",
        "custom_tools.x.command",
        "tools.system.enabled",
        "tools.system.allow",
        "skills.x.enabled",
        "mcp.servers.x.command",
        "commands.x.text",
        "server.auth",
        "server.keys",
        "channels.web",
        "users.admins",
        "store.url",
        "models.providers.lab.api_key",
        "models.providers.lab.base_url",
        "folders.context",
        "sandbox.enabled",
        "budgets.server.day_usd",
        "logging.level",
        '"agents".ada.tools',
        'agents."ada".tools',
        "agents.ada.style.extra_instructions.x",
    ):
        refused = await ask(fixture, "admin_change", path=path, value="*")
        assert refused.is_error, path
    for path, value in (
        ("agents.ada.style.extra_instructions", "${LAB_KEY}"),
        ("agents.ada.limits.max_steps", "many"),
        ("agents.eve.model", "fast"),
    ):
        assert (await ask(fixture, "admin_change", path=path, value=value)).is_error
    for name in ("ada", "../x", "A B", ""):
        assert (await ask(fixture, "admin_create_agent", name=name, description="x")).is_error
    assert file.read_text() == text


async def test_the_configuration_is_closed_where_no_server_runs(fixture: AdminChatFixture) -> None:
    for tool, args in (("admin", {}), ("admin_change", {"path": "agents.ada.model", "value": "fast"})):
        refused = await ask(fixture, tool, **args)
        assert refused.is_error and "while the server runs only" in refused.text


def test_secrets_of_the_configuration_are_masked() -> None:
    shown = mask_configuration(
        {
            "api_key": "sk-1",
            "other": {"token": "${NAME}", "headers": {"X-Any": "v"}, "env": {"A": "b"}},
            "url": "postgresql://u:p@host/db",
            "list": [{"password": "x"}],
            "max_tokens": 5,
        }
    )
    assert shown == {
        "api_key": "***",
        "other": {"token": "${NAME}", "headers": {"X-Any": "***"}, "env": {"A": "***"}},
        "url": "postgresql://***@host/db",
        "list": [{"password": "***"}],
        "max_tokens": 5,
    }


async def test_no_section_of_the_configuration_tells_a_secret(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add_file("secrets.env", "LAB_KEY=hunter2-is-secret\n", 0o600)
    async with open_home(home, CONFIG) as denizen:
        desk = ConfigurationDesk(HomeConfiguration(denizen, Reloader(denizen)))
        sections = desk.read("").removeprefix("Sections: ").split(", ")
        shown = "\n".join(desk.read(section) for section in sections)
    assert "lab.example" in shown and "hunter2-is-secret" not in shown
