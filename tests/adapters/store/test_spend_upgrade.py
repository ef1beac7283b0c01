"""What was used before there were budgets counts in them after the upgrade."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from denizen.adapters.store import open_store
from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.postgres import Postgres
from denizen.adapters.store.schema import HISTORY, History, migrate
from denizen.adapters.store.sqlite import Sqlite
from denizen.domain.budget import SERVER, Scope, ScopeKind
from denizen.domain.clock import SystemClock
from denizen.domain.usage import Usage
from denizen.ports.usage import SpendRow

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.anyio

BEFORE = History(HISTORY.folder, "0003")
SINCE = datetime(2026, 11, 1, tzinfo=UTC)
USD = 10**12


def fill(dialect: Dialect) -> None:
    """Three steps as the version before has written them: two in a guild, one at the terminal."""
    migrate(dialect, BEFORE)
    tables = sa.MetaData()
    with dialect.engine.begin() as connection:
        tables.reflect(connection)

        def put(table: str, **values: object) -> None:
            columns = tables.tables[table].columns
            empty = {c.name: _empty(c) for c in columns if not c.nullable and c.name not in {"position", "lexemes"}}
            connection.execute(tables.tables[table].insert().values({**empty, **values}))

        put("rooms", platform="discord", id="10", guild="7")
        for number, (platform, channel, kind) in enumerate(
            [("discord", "10", "platform_user"), ("terminal", "main", "local")], 1
        ):
            here = {"conversation_id": f"c{number}", "session_id": f"s{number}"}
            put("conversations", id=f"c{number}", platform=platform, channel=channel)
            put("sessions", id=f"s{number}", conversation_id=f"c{number}", agent="ada")
            put("turns", id=f"t{number}", **here, agent="ada", principal_kind=kind, principal_id="ana")
        for turn, step, day, principal, usd in (
            ("t1", 1, "2026-11-21", "platform_user:discord:1", USD),
            ("t1", 2, "2026-11-22", "platform_user:discord:1", None),
            ("t2", 1, "2026-11-22", "local:ana", 2 * USD),
        ):
            own: dict[str, Any] = {"requests": 1, "input_tokens": 10, "cost_usd": usd}
            put("steps", turn_id=turn, number=step, day=day, agent="ada", principal=principal, **own)


def _empty(column: sa.Column[Any]) -> object:
    if isinstance(column.type, sa.DateTime):
        return SINCE
    if isinstance(column.type, sa.Boolean):
        return False
    return 0 if isinstance(column.type, sa.Integer) else ""


async def check(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    async with store.work(write=False) as work:
        rows = [row for kind in ScopeKind for row in await work.spending.list_spend(kind, since=SINCE)]
    await store.aclose()
    ada, ana = Scope(ScopeKind.AGENT, "ada"), Scope(ScopeKind.USER, "platform_user:discord:1")
    guild, channel = Scope(ScopeKind.GUILD, "discord:7"), Scope(ScopeKind.CHANNEL, "discord:10")
    dollar, unknown = Usage(10, cost_usd=Decimal(1), requests=1), Usage(10, requests=1)
    both = Usage(20, cost_usd=Decimal(2), requests=2)
    assert rows == [
        SpendRow("2026-11-22", SERVER, both),
        SpendRow("2026-11-21", SERVER, dollar),
        SpendRow("2026-11-22", guild, unknown),
        SpendRow("2026-11-21", guild, dollar),
        SpendRow("2026-11-22", channel, unknown),
        SpendRow("2026-11-21", channel, dollar),
        SpendRow("2026-11-22", Scope(ScopeKind.USER, "local:ana"), Usage(10, cost_usd=Decimal(2), requests=1)),
        SpendRow("2026-11-22", ana, unknown),
        SpendRow("2026-11-21", ana, dollar),
        SpendRow("2026-11-22", ada, both),
        SpendRow("2026-11-21", ada, dollar),
    ]


async def test_steps_of_before_count_in_sqlite(tmp_path: Path) -> None:
    fill(Sqlite(tmp_path / "store.db"))
    await check(f"sqlite:///{tmp_path}/store.db")


@pytest.mark.xdist_group("postgres")
async def test_steps_of_before_count_in_postgres(postgres_url: str) -> None:
    fill(Postgres(sa.make_url(postgres_url)))
    await check(postgres_url)
