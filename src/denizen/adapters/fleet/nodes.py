"""Which processes of a fleet live, and which of them has what: two tables in the Postgres that they share.

All times are the database's, so that clocks need not agree. A lease has a term: a process renews it well before its
end, and one that could not gives up what it has before others may take it, also when it was frozen meanwhile.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
import psycopg
from anyio import to_thread
from cryptography.fernet import Fernet
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from denizen.adapters.fleet.wire import from_json, to_json
from denizen.domain.clock import tell_elapsed_s
from denizen.domain.errors import Conflict, NeedsAttention, Unavailable
from denizen.domain.fleet import FleetNode, FleetRole, HeldAccount
from denizen.domain.ids import fresh

SCHEMA = "denizen_fleet"
BEAT_S = 3.0
DEAD_AFTER_S = 15.0
FORGET_AFTER_S = 3600.0
PATIENCE_S = 20.0
"""How long a process waits for its name: as long as an earlier one that was killed seems to live."""
LONE_PATIENCE_S = 20.0
"""The same for a process that does everything, and that was killed before a fleet begins."""
TERM_S = 20.0
RENEW_S = 4.0
GIVE_UP_AFTER_S = 12.0
"""Without a renewal for so long, a process lets go of what it holds: well before the term ends."""
CONNECT_TIMEOUT_S = 5

Result = TypeVar("Result")

_log = logging.getLogger("denizen.fleet")

_TABLES = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.nodes (
  name text PRIMARY KEY, session text NOT NULL, role text NOT NULL, version text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now(),
  accounts jsonb NOT NULL, runs int NOT NULL
);
CREATE TABLE IF NOT EXISTS {schema}.keys (id int PRIMARY KEY, key text NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.leases (name text PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL);
"""
_MAKE_KEY = "INSERT INTO {schema}.keys (id, key) VALUES (1, %(key)s) ON CONFLICT DO NOTHING"
_FIND_KEY = "SELECT key FROM {schema}.keys WHERE id = 1"
_JOIN = """
INSERT INTO {schema}.nodes (name, session, role, version, accounts, runs)
VALUES (%(name)s, %(session)s, %(role)s, %(version)s, '[]', 0)
ON CONFLICT (name) DO UPDATE
SET session = excluded.session, role = excluded.role, version = excluded.version, started_at = now(), seen_at = now(),
    accounts = '[]', runs = 0
WHERE nodes.session = excluded.session OR nodes.seen_at < now() - make_interval(secs => %(dead_s)s)
RETURNING name
"""
_BEAT = """
UPDATE {schema}.nodes SET seen_at = now(), accounts = %(accounts)s, runs = %(runs)s
WHERE name = %(name)s AND session = %(session)s RETURNING name
"""
_LEAVE = "DELETE FROM {schema}.nodes WHERE name = %(name)s AND session = %(session)s"
_FORGET = "DELETE FROM {schema}.nodes WHERE seen_at < now() - make_interval(secs => %(forget_s)s)"
_LIST = """
SELECT *, seen_at >= now() - make_interval(secs => %(dead_s)s) AS is_alive FROM {schema}.nodes ORDER BY name
"""
_HAS_TABLES = "SELECT to_regclass('{schema}.nodes') IS NOT NULL AS has_tables"
_TAKE = """
INSERT INTO {schema}.leases (name, holder, until)
VALUES (%(lease)s, %(holder)s, now() + make_interval(secs => %(term_s)s))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE leases.holder = excluded.holder OR leases.until < now()
RETURNING holder
"""
_RENEW = """
UPDATE {schema}.leases SET until = now() + make_interval(secs => %(term_s)s)
WHERE name = %(lease)s AND holder = %(holder)s AND until > now() RETURNING holder
"""
_HOLDER = "SELECT holder FROM {schema}.leases WHERE name = %(lease)s"
_GIVE_BACK = "DELETE FROM {schema}.leases WHERE name = %(lease)s AND holder = %(holder)s"


class FleetTables:
    """The tables, through a connection for each statement: there is one every few seconds."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def create(self) -> None:
        """Raises Unavailable or NeedsAttention when the database is the reason."""
        await self.execute("SELECT pg_advisory_lock(hashtext('denizen:fleet'));" + _TABLES)

    async def load_key(self) -> str:
        """Returns the key of the fleet's messages, which its first process has made."""
        await self.execute(_MAKE_KEY, key=Fernet.generate_key().decode())
        return str((await self.execute(_FIND_KEY))[0]["key"])

    async def execute(self, statement: str, **bounds: object) -> list[dict[str, Any]]:
        """Returns the rows. Raises Unavailable while the database is away, and NeedsAttention when it refuses."""
        return await to_thread.run_sync(partial(self._execute, statement, bounds), abandon_on_cancel=True)

    def _execute(self, statement: str, bounds: Mapping[str, object]) -> list[dict[str, Any]]:
        query = SQL(statement).format(schema=Identifier(SCHEMA))  # pyright: ignore[reportArgumentType]
        try:
            with psycopg.Connection[dict[str, Any]].connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT_S,
                application_name="denizen-fleet",
                options="-c statement_timeout=5000",
                tcp_user_timeout=5000,
                row_factory=dict_row,
            ) as connection:
                done = connection.execute(query, bounds or None)
                return done.fetchall() if done.description else []
        except psycopg.OperationalError as error:
            raise Unavailable(
                "The fleet's database does not answer.",
                code="fleet_unreachable",
                why="This process cannot reach the Postgres of store.url, by which a fleet talks.",
                fix="Check that it runs and can be reached from this machine, then start the process again.",
                detail=str(error),
            ) from error
        except psycopg.Error as error:
            raise NeedsAttention(
                "The fleet's database refuses Denizen.",
                code="fleet_refused",
                why="The tables of the fleet cannot be made or used.",
                fix="The user of the database needs the right to create a schema.",
                detail=str(error),
            ) from error


class FleetNodes:
    """The processes, as one of them sees and tells them. `nodes` are those that live, as of the last beat."""

    def __init__(self, tables: FleetTables, name: str, role: FleetRole, version: str, session: str) -> None:
        self._tables = tables
        self._bounds: dict[str, object] = {"name": name, "session": session, "role": role.value, "version": version}
        self._name = name
        self.nodes: Sequence[FleetNode] = ()
        self.list_accounts: Callable[[], Sequence[HeldAccount]] = lambda: ()
        self.count_runs: Callable[[], int] = lambda: 0
        self.on_change: Callable[[Sequence[FleetNode]], None] = lambda _nodes: None
        """Called after each beat with the nodes that live."""
        self._wanted = anyio.Event()

    async def join(self) -> None:
        """Raises Conflict when another process that lives has the name, or one works on this database alone."""
        await self._tables.create()
        with anyio.move_on_after(PATIENCE_S):
            while True:
                if await self._enter():
                    return
                await anyio.sleep(BEAT_S)  # perhaps an earlier process of that name, which was killed
        raise Conflict(
            f"Another process of this fleet is called {self._name}.",
            code="fleet_name_taken",
            why="The name of a process tells it from the others, and that one was heard of a moment ago.",
            fix="Choose another --name.",
        )

    async def refuse_beside_lone(self) -> None:
        """Leaves and raises Conflict where a process that does everything lives: it would share nothing. Waits until
        one that was killed cannot seem to live any more.
        """
        living: Sequence[str] = ()
        with anyio.move_on_after(LONE_PATIENCE_S):
            while living := await find_living(self._tables, alone=True):  # noqa: ASYNC110 - no event comes of another
                await anyio.sleep(BEAT_S)
        if living:
            await self.leave()
            raise Conflict(
                "A process without a role works on this database, and a fleet cannot work beside it.",
                code="fleet_lone_alive",
                why=f"These processes were heard of a moment ago: {', '.join(living)}.",
                fix="Stop that one first. What it was doing goes on in the fleet.",
            )

    async def beat(self) -> None:
        """Tells once that this process lives. Raises as `execute`."""
        told = {"accounts": "[]", "runs": self.count_runs(), **self._bounds}
        if not await self._tables.execute(_BEAT, **told):
            await self._enter()

    async def _enter(self) -> bool:
        return bool(await self._tables.execute(_JOIN, dead_s=DEAD_AFTER_S, **self._bounds))

    async def run(self) -> None:
        """Tells of this process and looks for others, until it is cancelled."""
        while True:
            wanted = self._wanted
            try:
                accounts = json.dumps([to_json(each) for each in self.list_accounts()])
                told = {"accounts": accounts, "runs": self.count_runs(), **self._bounds}
                if not await self._tables.execute(_BEAT, **told) and not await self._enter():
                    _log.warning("another process has the name of this one", extra={"node": self._name})
                self.nodes = [each for each in await list_nodes(self._tables) if each.is_alive]
                self.on_change(self.nodes)
            except (Unavailable, NeedsAttention) as error:
                _log.warning("the fleet cannot be looked at: %s", error.message, extra=error.fields)
            with anyio.move_on_after(BEAT_S):
                await wanted.wait()

    def beat_now(self) -> None:
        """Tells at once what has changed."""
        wanted, self._wanted = self._wanted, anyio.Event()
        wanted.set()

    async def leave(self) -> None:
        try:
            await self._tables.execute(_LEAVE, **self._bounds)
        except (Unavailable, NeedsAttention) as error:
            _log.warning("the fleet was left without a word: %s", error.message, extra=error.fields)


async def list_nodes(tables: FleetTables) -> Sequence[FleetNode]:
    """Returns the processes that live and those that were heard of in the last hour, by name. Raises as `execute`."""
    await tables.create()
    await tables.execute(_FORGET, forget_s=FORGET_AFTER_S)
    return [_read_node(row) for row in await tables.execute(_LIST, dead_s=DEAD_AFTER_S)]


async def find_living(tables: FleetTables, *, alone: bool = False) -> Sequence[str]:
    """Returns the names of the processes of a fleet that live, or of those that are each `alone`. Makes no tables where
    there are none. Raises as `execute`.
    """
    if not (await tables.execute(_HAS_TABLES))[0]["has_tables"]:
        return ()
    rows = await tables.execute(_LIST, dead_s=DEAD_AFTER_S)
    return [str(row["name"]) for row in rows if row["is_alive"] and (row["role"] == FleetRole.ALL) == alone]


def _read_node(row: Mapping[str, Any]) -> FleetNode:
    accounts = tuple(from_json(HeldAccount, each) for each in row["accounts"])
    told = {name: row[name] for name in ("name", "version", "started_at", "seen_at", "runs", "is_alive")}
    return FleetNode(role=FleetRole(row["role"]), accounts=accounts, **told)


class LeaseTable:
    """Implements `denizen.ports.fleet.FleetLeases`.

    Each time that something is held has a token of its own, and nothing is written but by that token: what comes late
    from an earlier time changes nothing. The term is the database's; the holder counts from before it asked, by its own
    clock, and so is done before the term ends.
    """

    def __init__(
        self,
        tables: FleetTables,
        holder: str,
        *,
        renew_s: float = RENEW_S,
        elapsed_s: Callable[[], float] = tell_elapsed_s,
    ) -> None:
        self._tables = tables
        self._holder = holder
        self._renew_s = renew_s
        self._elapsed_s = elapsed_s

    async def hold(
        self, name: str, job: Callable[[], Awaitable[Result]], *, on_wait: Callable[[str], None]
    ) -> Result | None:
        token = f"{self._holder}/{fresh('hold')}"
        asked_s = self._elapsed_s()
        while not await self._write(_TAKE, name, token):
            on_wait((await self._find_holder(name)).partition("/")[0])
            await anyio.sleep(self._renew_s)
            asked_s = self._elapsed_s()
        result: Result | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep, name, token, asked_s, group.cancel_scope)
                result = await job()
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CONNECT_TIMEOUT_S):
                await self._write(_GIVE_BACK, name, token)
        return result

    async def _keep(self, name: str, token: str, renewed_s: float, scope: anyio.CancelScope) -> None:
        """Renews the lease; cancels the scope when it is lost, or may soon be."""
        while True:
            await anyio.sleep(min(self._renew_s, max(renewed_s + GIVE_UP_AFTER_S - self._elapsed_s(), 0.0)))
            asked_s, is_mine = self._elapsed_s(), None
            with anyio.move_on_after(max(renewed_s + GIVE_UP_AFTER_S - asked_s, 0.0)):
                is_mine = await self._write(_RENEW, name, token)
            if is_mine:
                renewed_s = asked_s
            elif is_mine is False or self._elapsed_s() - renewed_s >= GIVE_UP_AFTER_S:
                _log.warning("lost to another process of the fleet, or may be soon", extra={"lease": name})
                scope.cancel()
                return

    async def _write(self, statement: str, name: str, token: str) -> bool | None:
        """Returns whether it was written: None when the database does not say."""
        try:
            return bool(await self._tables.execute(statement, lease=name, holder=token, term_s=TERM_S))
        except (Unavailable, NeedsAttention) as error:
            _log.warning("a lease waits for the database: %s", error.message, extra={"lease": name, **error.fields})
            return None

    async def _find_holder(self, name: str) -> str:
        """Returns who has it; empty when nobody does, or that cannot be known."""
        try:
            rows = await self._tables.execute(_HOLDER, lease=name)
        except (Unavailable, NeedsAttention):
            return ""
        return str(rows[0]["holder"]) if rows else ""
