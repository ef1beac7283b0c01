"""Who lives, and who has what: on a real Postgres."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio
import psycopg
import pytest

from denizen.adapters.fleet.nodes import (
    GIVE_UP_AFTER_S,
    TERM_S,
    FleetNodes,
    FleetTables,
    LeaseTable,
    find_living,
    list_nodes,
)
from denizen.app.fleet import open_fleet, open_presence, refuse_beside_fleet, refuse_turns_beside_fleet
from denizen.domain.errors import Conflict
from denizen.domain.fleet import FleetRole, HeldAccount
from denizen.domain.ids import AgentName
from tests.timing import HANG_LIMIT_S, poll

pytest_plugins = ["tests.postgres"]
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("postgres")]

HELD = HeldAccount("discord", AgentName("ada"), "7")


async def test_processes_see_each_other_until_they_leave(postgres_url: str) -> None:
    tables = FleetTables(postgres_url)
    one = FleetNodes(tables, "one", FleetRole.GATEWAY, "1.0", "s1")
    two = FleetNodes(tables, "two", FleetRole.WORKER, "1.0", "s2")
    one.list_accounts, two.count_runs = (lambda: (HELD,)), (lambda: 3)
    seen: list[set[str]] = []
    two.on_change = lambda nodes: seen.append({node.name for node in nodes if node.accounts == (HELD,)})
    await one.join()
    await two.join()
    async with anyio.create_task_group() as group:
        group.start_soon(one.run)
        group.start_soon(two.run)

        async def is_seen() -> bool:
            two.beat_now()
            return {"one"} in seen

        await poll(is_seen)
        group.cancel_scope.cancel()
    assert [(node.name, node.role, node.runs) for node in await list_nodes(tables)] == [
        ("one", FleetRole.GATEWAY, 0),
        ("two", FleetRole.WORKER, 3),
    ]
    await one.leave()
    assert [node.name for node in await list_nodes(tables)] == ["two"]


async def test_a_process_without_a_role_is_refused_beside_a_fleet_that_lives(postgres_url: str) -> None:
    await refuse_beside_fleet(postgres_url)
    with psycopg.connect(postgres_url) as other:
        assert other.execute("SELECT to_regnamespace('denizen_fleet')").fetchone() == (None,)
    node = FleetNodes(FleetTables(postgres_url), "one", FleetRole.WORKER, "1.0", "s1")
    await node.join()
    with pytest.raises(Conflict, match="A fleet works on this database") as told:
        await refuse_beside_fleet(postgres_url)
    assert "one" in told.value.why
    await node.leave()
    await refuse_beside_fleet(postgres_url)


async def test_a_fleet_is_refused_beside_a_process_without_a_role_until_that_ends(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denizen.adapters.fleet.nodes.LONE_PATIENCE_S", 0.1)
    async with open_presence(postgres_url), open_presence(postgres_url):  # several such may share a database
        with pytest.raises(Conflict, match="A process without a role works on this database"):
            async with open_fleet(postgres_url, FleetRole.WORKER, "one"):
                pass
        assert {node.role for node in await list_nodes(FleetTables(postgres_url))} == {FleetRole.ALL}
    async with open_fleet(postgres_url, FleetRole.WORKER, "one"):
        with pytest.raises(Conflict, match="A fleet works on this database"):
            async with open_presence(postgres_url):
                pass
    assert not await list_nodes(FleetTables(postgres_url))


async def test_a_process_without_a_role_tells_that_it_lives_and_of_a_fleet_beside_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("denizen.app.fleet.BEAT_S", 0.01)
    tables = FleetTables(postgres_url)
    async with open_presence(postgres_url) as presence, anyio.create_task_group() as group:
        for forget in ("UPDATE denizen_fleet.nodes SET seen_at = now() - interval '1 minute'", "DELETE FROM nodes"):
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("SET search_path = denizen_fleet")
                other.execute(forget)
        group.start_soon(presence.run)
        await poll(partial(find_living, tables, alone=True))
        await FleetNodes(tables, "one", FleetRole.WORKER, "1.0", "s1").join()

        async def is_told() -> bool:
            return "a fleet works on the database of this process" in caplog.text

        await poll(is_told)
        with pytest.raises(Conflict, match="A fleet works on this database"):
            await presence.check()
        group.cancel_scope.cancel()


async def test_a_command_runs_no_turn_beside_a_fleet(postgres_url: str) -> None:
    await refuse_turns_beside_fleet(postgres_url)
    async with open_fleet(postgres_url, FleetRole.WORKER, "one"):
        with pytest.raises(Conflict, match="A fleet works on this database") as told:
            await refuse_turns_beside_fleet(postgres_url)
        assert "--role web" in told.value.fix
    async with open_presence(postgres_url):
        await refuse_turns_beside_fleet(postgres_url)


async def test_a_lease_is_held_by_one_and_handed_on_at_its_end(postgres_url: str) -> None:
    tables, order = FleetTables(postgres_url), list[str]()
    await tables.create()
    first, second = (LeaseTable(tables, name, renew_s=0.01) for name in ("s1", "s2"))
    begun, done = anyio.Event(), anyio.Event()

    async def hold_first() -> str:
        order.append("first")
        begun.set()
        await done.wait()
        order.append("over")
        return "kept"

    async def hold_second() -> str:
        order.append("second")
        return "too"

    async with anyio.create_task_group() as group:

        async def run_first() -> None:
            assert await first.hold("account", hold_first, on_wait=order.append) == "kept"

        async def run_second() -> None:
            def wait(holder: str) -> None:
                assert holder == "s1"
                done.set()

            assert await second.hold("account", hold_second, on_wait=wait) == "too"

        group.start_soon(run_first)
        await begun.wait()
        group.start_soon(run_second)
    assert order == ["first", "over", "second"]


async def lose(leases: LeaseTable, lose_it: Callable[[], object]) -> None:
    """Holds something until `lose_it` was called, which must end the job."""
    begun, results = anyio.Event(), list[str | None]()

    async def work() -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    async def run() -> None:
        results.append(await leases.hold("x", work, on_wait=lambda _holder: None))

    with anyio.fail_after(HANG_LIMIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            lose_it()
    assert results == [None]


async def test_a_job_ends_when_its_lease_is_lost(postgres_url: str) -> None:
    tables = FleetTables(postgres_url)
    await tables.create()
    with psycopg.connect(postgres_url, autocommit=True) as other:
        await lose(
            LeaseTable(tables, "s1", renew_s=0.01),
            lambda: other.execute("UPDATE denizen_fleet.leases SET holder = 's2', until = now() + interval '1 hour'"),
        )
        assert other.execute("SELECT holder FROM denizen_fleet.leases").fetchall() == [("s2",)]


async def test_a_term_that_is_over_is_not_renewed_since_somebody_may_have_had_it(postgres_url: str) -> None:
    tables = FleetTables(postgres_url)
    await tables.create()
    with psycopg.connect(postgres_url, autocommit=True) as other:
        await lose(
            LeaseTable(tables, "s1", renew_s=0.01),
            lambda: other.execute("UPDATE denizen_fleet.leases SET until = now() - interval '1 second'"),
        )


async def test_a_job_ends_before_its_term_when_its_process_stood_still(postgres_url: str) -> None:
    tables, now_s = FleetTables(postgres_url), [0.0]
    await tables.create()

    def stand_still() -> None:
        now_s[0] += GIVE_UP_AFTER_S

    await lose(LeaseTable(tables, "s1", renew_s=0.01, elapsed_s=lambda: now_s[0]), stand_still)
    assert GIVE_UP_AFTER_S < TERM_S


async def test_each_time_that_something_is_held_has_a_token_of_its_own(postgres_url: str) -> None:
    tables, tokens = FleetTables(postgres_url), set[str]()
    await tables.create()
    leases = LeaseTable(tables, "s1")
    with psycopg.connect(postgres_url, autocommit=True) as other:

        async def look() -> None:
            tokens.update(row[0] for row in other.execute("SELECT holder FROM denizen_fleet.leases").fetchall())

        for _ in range(2):
            await leases.hold("x", look, on_wait=lambda _holder: None)
        assert other.execute("SELECT count(*) FROM denizen_fleet.leases").fetchone() == (0,)
    assert len(tokens) == 2
