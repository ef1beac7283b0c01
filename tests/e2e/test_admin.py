"""What owners and admins do over HTTP, on a server whose address, keys and store are those of the configuration."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.chats import NewChat
from denizen_sdk.knowledge import SnapshotRemoteInfo, SourceSettings
from denizen_sdk.turns import TurnFinishedEvent
from denizen_sdk.usage import TokenCounts
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.ports import hold_unused_port
from tests.timing import HANG_LIMIT_S, poll

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

KEYS = {role: f"a-long-key-of-the-{role}" for role in ("owner", "admin", "member")}
CONFIG = """\
server:
  host: localhost
  port: {port}
  api_keys:
    - {{name: olga, key: "${{OWNER_KEY}}", roles: [owner]}}
    - {{name: ada, key: "${{ADMIN_KEY}}", roles: [admin]}}
    - {{name: ann, key: "${{MEMBER_KEY}}", roles: [member]}}
store: {{url: "sqlite:///{store}"}}
"""


@pytest.fixture
def url(home: Home, provider: Provider, tmp_path: Path) -> Generator[str]:
    """The address of the server while it runs."""
    home.variables |= {f"{role.upper()}_KEY": key for role, key in KEYS.items()}
    with hold_unused_port() as port:
        home.configure(provider.server.openai_url, rest=CONFIG.format(port=port, store=tmp_path / "elsewhere.db"))
        with home.start("run") as running:
            found = running.err.await_text(r"Denizen is ready: (http://\S+)$")[1]
            assert found == f"http://localhost:{port}"
            yield found
            running.kill()
    assert (tmp_path / "elsewhere.db").exists() and not (home.folder / "denizen.db").exists()


@pytest.mark.proves(
    "S-http-sources-get",
    "S-http-sources-post",
    "S-http-sources-id-put",
    "S-http-sources-id-delete",
    "S-http-sync-post",
    "S-http-sync-source-post",
    "S-http-snapshot-status-get",
    "S-http-snapshot-sync-post",
    "S-http-sandbox-snapshot-post",
    "S-http-snapshot-config-get",
    "T-config-database",
    "T-config-server",
    "T-http-auth",
)
async def test_sources_and_snapshots_are_managed_by_the_roles_of_the_keys(url: str, tmp_path: Path) -> None:
    (notes := tmp_path / "notes").mkdir()
    (notes / "a.md").write_text("A\n", encoding="utf-8")
    async with (
        DenizenClient(url, KEYS["owner"]) as owner,
        DenizenClient(url, KEYS["admin"]) as admin,
        DenizenClient(url, KEYS["member"]) as member,
        DenizenClient(url) as stranger,
    ):
        for caller, status in ((stranger, 401), (member, 403), (admin, 403)):
            with pytest.raises(ApiError) as refused:
                await caller.add_source(str(notes))
            assert refused.value.status == status
        await owner.add_source(str(notes), source_id="notes")
        await owner.edit_source("notes", SourceSettings(label="Notes"))
        for started in (await admin.sync(), await admin.sync_source("notes")):
            assert (await admin.wait_for_sync(started.run)).failed == {}
        [source] = await member.list_sources()
        assert (source.settings.label, source.sync_state.documents) == ("Notes", 1)
        snapshot = await admin.get_snapshot()
        assert snapshot.current == await admin.publish_snapshot() != ""
        assert (await admin.wait_for_sync((await admin.create_snapshot()).run)).status == "done"
        assert await admin.get_snapshot_remote() == SnapshotRemoteInfo("")
        await admin.remove_source("notes")
        assert await member.list_sources() == []


@pytest.mark.proves(
    "S-http-agent-config-get",
    "S-http-agent-config-put",
    "S-http-agent-config-reset-post",
    "S-http-agent-config-public-get",
    "S-kv-agent-config",
    "S-http-stats-get",
    "S-http-stats-me-get",
    "S-http-stats-usage-post",
    "S-http-stats-compute-post",
    "T-http-chat",
)
async def test_settings_are_in_effect_at_once_and_usage_is_counted(url: str, provider: Provider) -> None:
    provider.script(ModelAnswer(text="Sehr wohl."))
    async with DenizenClient(url, KEYS["admin"]) as admin, DenizenClient(url, KEYS["member"], source="ci") as member:
        await admin.save_agent_config({"temperature": 0.25, "search_instructions": "Look in the attic."})
        assert (await member.ask("hi")).reply == "Sehr wohl."
        assert provider.server.bodies[-1]["temperature"] == 0.25
        seen = await member.get_agent_config()
        assert (seen.temperature, seen.search_instructions) == (0.25, None)
        assert (await admin.reset_agent_config()).temperature is None
        await member.report_usage(TokenCounts(7, 3))
        mine, everybody = await member.get_own_statistics(days=2), await admin.get_statistics(days=2)
        assert mine.totals == everybody.totals
        assert {row.key: row.messages for row in mine.by_source} == {"web": 1, "ci": 1}
        assert (await admin.compute_statistics()).date < everybody.last_day


@pytest.mark.proves(
    "S-admin-tool-query-chats",
    "S-admin-tool-query-logs",
    "S-admin-tool-run-sql",
    "S-admin-tool-query-stats",
    "S-admin-tool-list-sources",
)
async def test_an_admin_chat_looks_into_chats_log_store_usage_and_sources(url: str, provider: Provider) -> None:
    calls = [
        ModelCall("query_chats", {"user": "api_key:ann"}),
        ModelCall("query_logs", {"path": "/api/agents"}),
        ModelCall("run_sql", {"query": "SELECT count(*) AS turns FROM all_turns"}),
        ModelCall("run_sql", {"query": "DELETE FROM turns"}),
        ModelCall("query_stats"),
        ModelCall("query_stats", {"days": 365}),
        ModelCall("query_stats", {"days": 366}),
        ModelCall("list_sources"),
    ]
    provider.script(ModelAnswer(text="Hello."), ModelAnswer(calls=calls), ModelAnswer(text="One."))
    async with DenizenClient(url, KEYS["admin"]) as admin, DenizenClient(url, KEYS["member"]) as member:
        for client, chat in ((member, NewChat(id="anns")), (admin, NewChat(id="adas", mode="admin"))):
            await client.create_chat(chat)
            await client.change_chat(chat.id, title="Use")  # else the model would be asked for a title, too
        await member.list_agents()
        await admin.add_source("lab/handbook")
        headers = {"x-api-key": KEYS["admin"]}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=HANG_LIMIT_S) as browser:
            await poll(lambda: _find_request(browser, "/api/agents"))
        assert [event async for event in member.send_to_chat("anns", "hi")]
        events = [event async for event in admin.send_to_chat("adas", "How is it going?")]
    assert isinstance(events[-1], TurnFinishedEvent) and events[-1].reply == "One."
    told = [each["content"] for each in provider.server.bodies[-1]["messages"] if each["role"] == "tool"]
    chats, log, turns, refused, month, year, longer, sources = told
    assert "api_key:ann" in chats and "api_key:ada" not in chats
    assert "method=GET path=/api/agents status=200" in log
    assert "[2]" in turns
    assert "may not run" in refused
    assert [len(_read_usage(each)["daily"]) for each in (month, year)] == [30, 365]
    assert _read_usage(month)["total"]["messages"] == 1 and "365" in longer and '"daily"' not in longer
    assert "handbook" in sources


@pytest.mark.proves("S-http-admin-logs-count-get", "S-http-admin-logs-delete", "S-admin-logs")
async def test_the_log_of_a_running_server_is_shown_counted_and_purged(url: str) -> None:
    api, page = "/api/admin/logs", "/admin/logs"
    purge = {"before": "2999-01-01", "level": "info"}
    async with httpx2.AsyncClient(base_url=url, headers={"x-api-key": KEYS["admin"]}, timeout=HANG_LIMIT_S) as client:
        assert (await client.get("/api/agents")).status_code == 200
        await poll(lambda: _find_request(client, "/api/agents"))
        shown = (await client.get(page)).text
        assert "GET /api/agents 200" in shown and "entries in 24 h" in shown
        preview = (await client.post(f"{page}/purge", data=purge)).text
        assert "would be deleted" in preview and await _find_request(client, "/api/agents")
        count = (await client.get(f"{api}/count", params=purge)).json()["count"]
        deleted = (await client.delete(api, params=purge)).json()["deleted"]
        assert deleted >= count >= 1 and not await _find_request(client, "/api/agents")
        await client.get("/api/models")
        await poll(lambda: _find_request(client, "/api/models"))
        purged = await client.post(f"{page}/purge", data={**purge, "confirmed": "yes"})
        assert purged.status_code == 303 and not await _find_request(client, "/api/models")


@pytest.mark.proves(
    "S-admin-tool-chart",
    "S-admin-tool-get-agent-config",
    "S-admin-tool-log-stats",
    "S-admin-tool-query-errors",
    "S-http-admin-logs-stats-get",
)
async def test_an_admin_chat_tells_settings_and_figures_of_the_log_and_draws_them(url: str, provider: Provider) -> None:
    pytest.importorskip("matplotlib")
    rows = [{"day": "2026-01-01", "requests": 1}]
    calls = [
        ModelCall("get_agent_config", {}),
        ModelCall("log_stats", {}),
        ModelCall("query_errors", {}),
        ModelCall("chart", {"title": "Use", "data": rows, "x_key": "day", "series": ["requests"]}),
    ]
    provider.script(ModelAnswer(calls=calls), ModelAnswer(text="Here."))
    headers = {"x-api-key": KEYS["admin"]}
    async with (
        DenizenClient(url, KEYS["admin"]) as admin,
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=HANG_LIMIT_S) as browser,
    ):
        await admin.create_chat(NewChat(id="adas", mode="admin"))
        await admin.change_chat("adas", title="Use")
        await admin.save_agent_config({"language": "de"})
        await admin.list_agents()
        await poll(lambda: _find_request(browser, "/api/agents"))
        stats = (await browser.get("/api/admin/logs/stats")).json()
        events = [event async for event in admin.send_to_chat("adas", "How is it going?")]
    assert isinstance(events[-1], TurnFinishedEvent) and events[-1].reply == "Here."
    told = [each["content"] for each in provider.server.bodies[-1]["messages"] if each["role"] == "tool"]
    settings, log, errors, drawn = told
    assert '"is_default"' in settings and '"de"' in settings
    assert '"/api/agents"' in log and "/api/agents" in [row["path"] for row in stats["busiest"]]
    assert "There were no errors." in errors
    assert "The line chart is shown" in drawn
    assert "data:image/png" in str(events)


@pytest.mark.proves("T-ui-dashboard")
async def test_a_running_server_tells_what_works_and_keeps_its_log_without_secrets(url: str, home: Home) -> None:
    async with httpx2.AsyncClient(base_url=url, headers={"x-api-key": KEYS["admin"]}, timeout=HANG_LIMIT_S) as client:
        assert (await client.get("/api/agents?key=hidden")).status_code == 200
        overview = await client.get("/admin?examined=wait")
        tools = await client.get("/admin/tools")
        kept = await poll(lambda: _find_request(client, "/api/agents"))
    assert "python and disk: Python 3" in overview.text
    assert "tools.moderation.enabled: true" in tools.text
    assert kept["fields"]["status"] == 200
    files = list((home.folder / "logs").glob("*.jsonl"))
    text = "".join(path.read_text() for path in files)
    assert [word for word in ("hidden", *KEYS.values()) if word in text] == []
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


async def _find_request(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = (await client.get("/api/admin/logs", params={"path": path})).json()
    return rows[0] if rows else {}


def _read_usage(told: str) -> Any:
    """The figures in the result of `query_stats`."""
    return json.loads(next(line for line in told.splitlines() if line.startswith("{")))
