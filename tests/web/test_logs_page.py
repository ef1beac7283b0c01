"""The log over HTTP and on its page: what requests leave in it, searching it, and purging it after a preview."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from denizen.adapters.log_files import LogFiles
from denizen.app.logging import ACCESS_LOG, LogKeeper
from denizen.domain.errors import Unavailable
from denizen.domain.json import Json
from denizen.domain.log import LogEntry, encode_entry
from denizen.web.http.dependencies import InstanceServices
from denizen.web.pages.logs import PATH
from tests.clock import NOON
from tests.web.admin_pages_fixture import KEYS, PageText, ask, read
from tests.web_fixture import ADA, ANN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

API = "/api/admin/logs"


@pytest.fixture
def logs(tmp_path: Path) -> LogFiles:
    return LogFiles(tmp_path / "logs")


@pytest.fixture
def keeper(logs: LogFiles) -> Generator[LogKeeper]:
    """Requests are kept while the test runs."""
    access, kept = logging.getLogger(ACCESS_LOG), LogKeeper(logs, lambda text: text.replace("s3cret", "***"))
    level, propagates = access.level, access.propagate
    access.addHandler(kept)
    access.setLevel(logging.INFO)
    yield kept
    access.removeHandler(kept)
    access.setLevel(level)
    access.propagate = propagates
    kept.close()


def entry(hours: float, level: str, event: str = "turn", **fields: Json) -> str:
    """An entry of so many hours before now."""
    return encode_entry(LogEntry(NOON - timedelta(hours=hours), level, event, fields))


def request(hours: float, path: str, status: int, took_ms: int = 10, method: str = "GET") -> str:
    level = "warning" if status >= 500 else "info"
    return entry(hours, level, "request", method=method, path=path, status=status, duration_ms=took_ms)


def fill(logs: LogFiles) -> None:
    for hours in (100, 30, 3, 2, 1):
        lines = [
            request(hours, "/api/chat", 200, took_ms=int(hours), method="POST"),
            request(hours, "/api/turns/{turn_id}", 503 if hours < 3 else 200, took_ms=1000),
            entry(hours, "error", "fault of <b>Eve</b>", why="the disk is full"),
        ]
        logs.append(lines)


async def get(web: WebFixture, path: str, who: str = "ada") -> list[str]:
    answer = await ask(web, who, "GET", path)
    assert answer.status_code == 200, answer.text
    return [f"{row['level']} {row['fields'].get('path', row['event'])}" for row in answer.json()]


def instance(logs: LogFiles) -> InstanceServices:
    return InstanceServices(logs=logs)


async def test_a_request_leaves_its_method_pattern_status_and_time_and_nothing_secret(
    logs: LogFiles, keeper: LogKeeper
) -> None:
    async with open_web(make_hello_model(), keys=[ADA, ANN], instance=instance(logs)) as web:
        async with web.client(**{"x-api-key": KEYS["ann"]}) as client:
            await client.post("/api/chat?token=s3cret", json={"message": "my s3cret"})
            await client.get("/api/turns/turn_with_a_secret?token=s3cret")
            await client.get("/nowhere/s3cret")
            await client.get("/static/frame.js")
            await client.get("/health")
            await client.get("/", headers={"hx-request": "true"})
        async with web.client() as client:
            await client.get("/api/approvals")
        keeper.flush()
        found = (await ask(web, "ada", "GET", API)).json()
    rows = [(row["fields"]["method"], row["fields"]["path"], row["fields"]["status"]) for row in reversed(found)]
    assert rows == [
        ("POST", "/api/chat", 200),
        ("GET", "/api/turns/{turn_id}", 404),
        ("GET", "(no such path)", 404),
        ("GET", "/api/approvals", 401),
    ]
    assert found[-1]["fields"]["stream"] is True
    assert all(row["fields"]["duration_ms"] == 0 for row in found)
    text = str(found)
    assert [word for word in ("s3cret", "turn_with", "token", "key-of") if word in text] == []


async def test_entries_are_found_by_level_path_status_method_words_and_hours(logs: LogFiles) -> None:
    fill(logs)
    async with open_web(keys=[ADA], instance=instance(logs)) as web:
        found = {
            query: await get(web, f"{API}?{query}")
            for query in (
                "level=error",
                "level=problems&hours=2",
                "path=turns&hours=3",
                "status=503",
                "status=5xx&hours=1",
                "method=POST&hours=1",
                "search=DISK&hours=1",
                "hours=1",
                "hours=168&limit=2",
            )
        }
        everything, usual = await get(web, f"{API}?hours=168"), await get(web, API)
    fault, turn, chat = "error fault of <b>Eve</b>", "/api/turns/{turn_id}", "info /api/chat"
    assert found == {
        "level=error": [fault] * 3,
        "level=problems&hours=2": [fault, f"warning {turn}"] * 2,
        "path=turns&hours=3": [f"warning {turn}"] * 2 + [f"info {turn}"],
        "status=503": [f"warning {turn}"] * 2,
        "status=5xx&hours=1": [f"warning {turn}"],
        "method=POST&hours=1": [chat],
        "search=DISK&hours=1": [fault],
        "hours=1": [fault, f"warning {turn}", chat],
        "hours=168&limit=2": [fault, f"warning {turn}"],
    }
    assert (len(everything), len(usual)) == (15, 9)


@pytest.mark.parametrize("query", ["hours=0", "hours=169", "limit=0", "limit=201", "level=loud", "status=abc"])
async def test_what_is_out_of_bounds_is_refused(logs: LogFiles, query: str) -> None:
    async with open_web(keys=[ADA], instance=instance(logs)) as web:
        assert (await ask(web, "ada", "GET", f"{API}?{query}")).status_code == 400


async def test_without_a_limit_there_are_fifty_entries_and_two_hundred_at_most(logs: LogFiles) -> None:
    logs.append([entry(1, "info", str(number)) for number in range(300)])
    async with open_web(keys=[ADA], instance=instance(logs)) as web:
        sizes = [len(await get(web, f"{API}{query}")) for query in ("", "?limit=200", "?limit=7")]
        newest = (await get(web, API))[0]
    assert (sizes, newest) == ([50, 200, 7], "info 299")


@pytest.mark.proves("S-http-admin-logs-stats-get")
async def test_an_admin_reads_error_rate_classes_percentiles_and_the_top_paths(logs: LogFiles) -> None:
    logs.append([request(1, "/a", 200, took_ms) for took_ms in range(1, 99)])
    logs.append([request(1, "/slow", 404, 5000), request(1, "/bad", 500, 7), request(30, "/old", 500, 9)])
    logs.append(
        [
            encode_entry(
                LogEntry(
                    NOON,
                    "info",
                    "request",
                    {"method": "GET", "path": "/s", "status": 200, "duration_ms": 90_000, "stream": True},
                )
            )
        ]
    )
    async with open_web(keys=[ADA, ANN], instance=instance(logs)) as web:
        told = (await ask(web, "ada", "GET", f"{API}/stats")).json()
        longer = (await ask(web, "ada", "GET", f"{API}/stats?hours=168")).json()
        assert (await ask(web, "ann", "GET", f"{API}/stats")).status_code == 403
    assert (told["requests"], told["errors"], told["error_rate"]) == (101, 1, round(1 / 101, 4))
    assert told["classes"] == {"2xx": 99, "4xx": 1, "5xx": 1}
    assert told["times"] == {"p50_ms": 49, "p95_ms": 94, "p99_ms": 98}
    assert [row["path"] for row in told["slowest"]][:2] == ["/slow", "/a"]
    assert told["busiest"][0] == {"path": "/a", "requests": 98, "errors": 0, "p95_ms": 94}
    assert told["failing"] == [{"path": "/bad", "requests": 1, "errors": 1, "p95_ms": 7}]
    assert (longer["requests"], longer["errors"], told["hours"], longer["hours"]) == (102, 2, 24, 168)


@pytest.mark.proves("S-http-admin-logs-count-get", "S-http-admin-logs-delete")
async def test_a_purge_deletes_exactly_what_the_count_said_by_date_and_level(logs: LogFiles) -> None:
    fill(logs)
    async with open_web(keys=[ADA, ANN], instance=instance(logs)) as web:
        query = "before=2026-11-21T09:30:00Z&level=error"
        count = (await ask(web, "ada", "GET", f"{API}/count?{query}")).json()
        assert (await ask(web, "ann", "DELETE", f"{API}?{query}")).status_code == 403
        assert (await ask(web, "ann", "GET", f"{API}/count?{query}")).status_code == 403
        assert len(await get(web, f"{API}?hours=168&limit=200")) == 15
        deleted = (await ask(web, "ada", "DELETE", f"{API}?{query}")).json()
        left = await get(web, f"{API}?hours=168&level=error")
        everything = (await ask(web, "ada", "DELETE", f"{API}?before=2026-11-20")).json()
        missing = await ask(web, "ada", "DELETE", API)
        rest = await get(web, f"{API}?hours=168")
    assert (count, deleted, len(left)) == ({"count": 3}, {"deleted": 3}, 2)
    assert everything == {"deleted": 2}
    assert missing.status_code == 400
    assert len(rest) == 10


@pytest.mark.proves("S-admin-logs")
async def test_the_page_shows_volume_requests_and_entries_and_goes_on_by_itself(logs: LogFiles) -> None:
    fill(logs)
    async with open_web(keys=[ADA], instance=instance(logs)) as web:
        page = await read(web, "ada", f"{PATH}?level=problems&search=turn")
        html = (await ask(web, "ada", "GET", PATH)).text
    assert "9 entries in 24 h" in page.text
    assert "2 warnings, 3 errors" in page.text
    assert "33.3 % of 6 requests failed" in page.text
    assert "Requests: 2xx 4, 5xx 2." in page.text
    assert [row[1:] for row in page.rows if len(row) == 3] == [
        ["warning", "request GET /api/turns/{turn_id} 503 1000 ms"],
        ["warning", "request GET /api/turns/{turn_id} 503 1000 ms"],
    ]
    assert ["/api/turns/{turn_id}", "3", "2", "1.0 s"] in page.rows
    assert "<b>Eve" not in html
    [live] = [attrs for _, attrs in page.tags if attrs.get("id") == "live"]
    assert live["hx-trigger"] == "every 3s"
    assert "level=problems" in str(live["hx-get"])


@pytest.mark.proves("S-admin-logs")
async def test_the_page_purges_only_after_a_preview_was_confirmed(logs: LogFiles) -> None:
    fill(logs)
    async with open_web(keys=[ADA, ANN], instance=instance(logs)) as web:
        form = {"before": "2026-11-21", "level": "error"}
        preview = await ask(web, "ada", "POST", f"{PATH}/purge", **form)
        assert len(await get(web, f"{API}?hours=168&level=error")) == 5
        assert (await ask(web, "ann", "POST", f"{PATH}/purge", **form, confirmed="yes")).status_code == 403
        done = await ask(web, "ada", "POST", f"{PATH}/purge", **form, confirmed="yes")
        after = await read(web, "ada", done.headers["location"])
        wrong = await ask(web, "ada", "POST", f"{PATH}/purge", before="yesterday")
        assert len(await get(web, f"{API}?hours=168&level=error")) == 3
    assert "2 entries before 2026-11-21 (UTC), level error, would be deleted." in PageText(preview.text).text
    assert "2 entries were deleted." in after.text
    assert wrong.status_code == 400
    assert "A purge needs the date before which entries go." in PageText(wrong.text).text


class BrokenLogs(LogFiles):
    async def search(self, wanted: object, *, limit: int) -> Sequence[LogEntry]:
        raise Unavailable("The log that is kept cannot be used.", why="it is full", fix="Make room.")


async def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    async with open_web(keys=[ADA, ANN], instance=instance(BrokenLogs(tmp_path))) as web:
        answer = await ask(web, "ada", "GET", API)
        assert (await ask(web, "ann", "GET", PATH)).status_code == 403
    assert (answer.status_code, answer.json()["error"]["fix"]) == (503, "Make room.")
