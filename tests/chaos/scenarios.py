"""The faults, and what is expected of Denizen under each. Every scenario has a guild and a home of its own."""

from __future__ import annotations

import random
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import psycopg
from anyio import to_thread
from psycopg.sql import SQL, Identifier

from denizen.testing.model_server import FailedAnswer
from tests.chaos.busy_guild import BusyGuild, open_busy_guild
from tests.chaos.fleet import hurt_fleet, import_programs
from tests.chaos.killed_events import kill_while_events_come
from tests.chaos.killed_upgrades import kill_upgrades
from tests.chaos.network import is_possible
from tests.e2e.deployment import Denizen
from tests.e2e.home import Home
from tests.e2e.limited_disk import open_limited_disk
from tests.e2e.records import lock_database
from tests.postgres import new_database, open_postgres_server

ANSWERED_ONCE = "each question answered once, in order, whole; no preview left"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table."""

    fault: str
    expected: str
    observed: str
    holds: bool


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """What a scenario is given: `scale` multiplies how long or how often it happens, `logs` is where logs are kept."""

    seed: int
    scale: float
    logs: Path | None = None
    kills: int | None = None
    """How many faults there are, where a scenario counts them."""
    posts: int | None = None
    """How many posts there are, where a scenario counts them."""

    def times(self, count: int) -> int:
        return max(1, round(count * self.scale)) if self.kills is None else self.kills


async def kill_at_random(run: ChaosRun) -> Outcome:
    """`kill -9` at random moments, on SQLite."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure(preview=True)
        await guild.begin()
        kills = run.times(15)
        for _ in range(kills):
            async with guild.deployment.run(ready=None) as denizen:
                await guild.talk(guild.rng.uniform(0.3, 6), every_s=0.4)
                await denizen.kill()
        async with guild.deployment.run():
            await guild.settle()
        return _judge(guild, f"{kills} kills at random moments (SQLite)")


async def kill_one_of_two(run: ChaosRun) -> Outcome:
    """Two processes with one account on one Postgres; each is killed at random moments. What one leaves is taken up by
    the other some time later, so the order may change.
    """
    kills = 0

    async def keep_killing(guild: BusyGuild, home: Home, over: anyio.Event) -> None:
        nonlocal kills
        while not over.is_set():
            async with guild.deployment.run(home, ready=None) as denizen:
                with anyio.move_on_after(guild.rng.uniform(2, 12)):
                    await over.wait()
                await denizen.kill()
                kills += 1

    with open_postgres_server() as server, new_database(server) as url:
        async with open_busy_guild(run.seed, run.logs) as guild:
            homes = [guild.deployment.home, guild.deployment.make_home("other")]
            for home in homes:
                guild.configure(preview=True, home=home, store=url)
            await guild.begin()
            over = anyio.Event()
            async with anyio.create_task_group() as group:
                for home in homes:
                    group.start_soon(keep_killing, guild, home, over)
                await guild.talk(60 * run.scale, every_s=0.5)
                over.set()
            async with guild.deployment.run():
                await guild.settle()
            ledger = guild.count()
            return Outcome(
                f"two processes on one Postgres, {kills} kills",
                "each question answered once and whole; no preview left",
                ledger.describe(),
                ledger.faults == ledger.out_of_order,
            )


async def burst(run: ChaosRun) -> Outcome:
    """Many questions in one room within ten seconds."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure(preview=True)
        guild.model.delay_s = 0.5
        room, count = guild.rooms[0], run.times(200)
        async with guild.deployment.run():
            began_s = anyio.current_time()
            for number in range(count):
                guild.ask(guild.people[number % len(guild.people)], room)
                await anyio.sleep(10 / count)
            await guild.settle()
            took_s = anyio.current_time() - began_s
        ledger, posts = guild.count(), guild.deployment.said(room)
        notices = sum("still busy" in post for post in posts)
        return Outcome(
            f"{count} questions in one room within 10 s",
            f"{ANSWERED_ONCE}, or refused with a sign; at most one notice a minute",
            f"{ledger.describe()}; {notices} notices in {took_s:.0f} s",
            not ledger.faults and notices <= 1 + took_s / 60,
        )


async def discord_away(run: ChaosRun) -> Outcome:
    """Neither REST nor the gateway of Discord answers for a while."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure()
        away_s = 90 * run.scale
        async with guild.deployment.run() as denizen:
            await guild.talk(5, every_s=0.5)
            faults = guild.deployment.discord.faults
            faults.fail(status=503, times=1_000_000)
            faults.refuse_gateway(1_000_000)
            faults.cut_gateway()
            await guild.talk(5, every_s=0.5)
            await anyio.sleep(away_s / 2)
            is_ready = await _get(denizen, "/ready") == 200
            await anyio.sleep(away_s / 2)
            faults.clear()
            back_s = anyio.current_time()
            number = guild.ask()
            await guild.reach(lambda: guild.is_settled(number), 600)
            heard_s = anyio.current_time() - back_s
            await guild.settle()
        ledger = guild.count()
        return Outcome(
            f"Discord away for {away_s:.0f} s",
            f"heard again within 30 s; not ready meanwhile; {ANSWERED_ONCE}",
            f"heard after {heard_s:.0f} s; {'ready' if is_ready else 'not ready'} meanwhile; {ledger.describe()}",
            heard_s <= 35 and not is_ready and not ledger.faults,
        )


async def model_hangs(run: ChaosRun) -> Outcome:
    """The model never answers one question; others ask in that room, and elsewhere."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure(preview=True)
        guild.model.hangs_on = {1}
        async with guild.deployment.run():
            here, elsewhere = guild.rooms[:2]
            guild.ask(guild.people[0], here)
            await anyio.sleep(2)
            asked_s = anyio.current_time()
            waiting = guild.questions[guild.ask(guild.people[1], here)]
            await guild.reach(lambda: waiting.state.reactions, 60)
            sign_s = anyio.current_time() - asked_s
            asked_s = anyio.current_time()
            number = guild.ask(guild.people[2], elsewhere)
            await guild.reach(lambda: guild.is_settled(number), 60)
            other_s = anyio.current_time() - asked_s
        return Outcome(
            "the model hangs on one question",
            "who waits behind it has a sign within 5 s; another room is answered within 10 s",
            f"sign after {sign_s:.1f} s, answer elsewhere after {other_s:.1f} s",
            sign_s <= 5 and other_s <= 10,
        )


async def model_fails(run: ChaosRun) -> Outcome:
    """The model answers with errors for a while."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure()
        server = guild.deployment.provider.server
        async with guild.deployment.run() as denizen:
            server.aside = lambda _: FailedAnswer(500)
            await guild.talk(15 * run.scale, every_s=0.5)
            await guild.settle()
            failed, warned = len(guild.questions), len(denizen.lines("[warning")) + len(denizen.lines("[error"))
            server.aside = guild.model.answer
            await guild.talk(5, every_s=0.5)
            await guild.settle()
        ledger = guild.count()
        return Outcome(
            f"the model fails for {failed} questions",
            "each is told so, and questions after it are answered; one warning a minute in the log",
            f"{ledger.describe()}; {warned} warnings",
            ledger.lost == 0 and ledger.failed <= failed and ledger.answered >= ledger.asked - failed and warned == 1,
        )


async def postgres_away(run: ChaosRun) -> Outcome:
    """Postgres ends all connections and takes none for a while."""
    away_s = 30 * run.scale
    with open_postgres_server() as server, new_database(server) as url:
        async with open_busy_guild(run.seed, run.logs) as guild:
            guild.configure(store=url)
            async with guild.deployment.run() as denizen:
                await guild.talk(5, every_s=0.5)
                await to_thread.run_sync(_shut, server, url)
                lines = len(denizen.log.splitlines())
                await guild.talk(away_s, every_s=1.0)
                is_ready = await _get(denizen, "/ready") == 200
                told = len(denizen.log.splitlines()) - lines
                await to_thread.run_sync(_reopen, server, url)
                await guild.talk(5, every_s=0.5)
                await guild.settle()
            ledger = guild.count()
            return Outcome(
                f"Postgres away for {away_s:.0f} s",
                f"not ready, at most 60 lines of log; {ANSWERED_ONCE}",
                f"{'ready' if is_ready else 'not ready'}, {told} lines; {ledger.describe()}",
                not is_ready and told <= 60 and not ledger.faults,
            )


async def database_locked(run: ChaosRun) -> Outcome:
    """Another process holds the SQLite database locked for a while."""
    locked_s = 20 * run.scale
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure()
        async with guild.deployment.run():
            await guild.talk(3, every_s=0.5)
            with lock_database(guild.deployment.home.folder / "denizen.db"):
                await guild.talk(locked_s, every_s=1.0)
            await guild.settle()
        return _judge(guild, f"the database is locked for {locked_s:.0f} s")


async def disk_full(run: ChaosRun) -> Outcome:
    """The disk is full for a while. Needs root, for a small file system."""
    full_s = 20 * run.scale
    with tempfile.TemporaryDirectory(prefix="chaos-disk-") as folder, open_limited_disk(Path(folder), "12m") as disk:
        if not disk.is_mounted:
            return Outcome("the disk is full", "", "not run: only root may mount a small file system", holds=True)
        async with open_busy_guild(run.seed, run.logs) as guild:
            guild.deployment.home.folder = disk.folder / "home"
            guild.configure()
            async with guild.deployment.run() as denizen:
                await guild.talk(3, every_s=0.5)
                disk.fill(denizen.server.running.pid)
                await guild.talk(full_s, every_s=1.0)
                is_ready = await _get(denizen, "/ready") == 200
                disk.make_room()
                await guild.talk(3, every_s=0.5)
                await guild.settle()
            ledger = guild.count()
            return Outcome(
                f"the disk is full for {full_s:.0f} s",
                "not ready; nothing lost or doubled: a question then is answered later, or told that it failed",
                f"{'ready' if is_ready else 'not ready'}; {ledger.describe()}",
                not is_ready and not ledger.lost + ledger.doubled + ledger.wrong + ledger.torn,
            )


async def database_damaged(run: ChaosRun) -> Outcome:
    """Pages in the middle of the SQLite database are overwritten while Denizen is stopped."""
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure()
        home = guild.deployment.home
        async with guild.deployment.run() as denizen:
            await guild.talk(8, every_s=0.2)
            await guild.settle()
            await denizen.stop()
        database = home.folder / "denizen.db"
        content = bytearray(database.read_bytes())
        middle = len(content) // 2 // 4096 * 4096
        content[middle : middle + 16 * 4096] = random.Random(run.seed).randbytes(16 * 4096)
        database.write_bytes(content)
        doctor = await to_thread.run_sync(home.do, "doctor")
        started = await to_thread.run_sync(home.do, "run", "--port", "0")
        is_told = ["damaged" in each.out + each.err and ".recover" in each.out + each.err for each in (doctor, started)]
        return Outcome(
            "16 pages of the database are damaged",
            "`doctor` and `run` say so with what to do, and `run` does not start",
            f"doctor {'tells' if is_told[0] else 'is silent'} (exit {doctor.code}), "
            f"run {'tells' if is_told[1] else 'is silent'} (exit {started.code})",
            all(is_told) and doctor.code != 0 and started.code != 0,
        )


async def asleep(run: ChaosRun) -> Outcome:
    """The process stands still for a while, as on a laptop that sleeps."""
    asleep_s = 60 * run.scale
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure(preview=True)
        async with guild.deployment.run() as denizen:
            await guild.talk(3, every_s=0.5)
            denizen.signal(signal.SIGSTOP)
            await guild.talk(asleep_s, every_s=5.0)
            denizen.signal(signal.SIGCONT)
            await guild.talk(3, every_s=0.5)
            await guild.settle()
        return _judge(guild, f"the process sleeps for {asleep_s:.0f} s")


async def half_open_connections(run: ChaosRun) -> Outcome:
    """Clients open connections, send half a request, and stay."""
    count = run.times(1500)
    async with open_busy_guild(run.seed, run.logs) as guild:
        guild.configure()
        async with guild.deployment.run() as denizen:
            address = urlsplit(denizen.server.url)
            with ExitStack() as held:
                for _ in range(count):
                    client = socket.create_connection((str(address.hostname), address.port), 10, ("127.0.0.2", 0))
                    held.enter_context(client)
                    client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                asked_s = anyio.current_time()
                health = await _get(denizen, "/health")
                took_s = anyio.current_time() - asked_s
                await guild.talk(3, every_s=0.3)
                await guild.settle()
        ledger = guild.count()
        return Outcome(
            f"{count} half-open connections",
            f"others are served within 1 s; {ANSWERED_ONCE}",
            f"/health {health} after {took_s:.2f} s; {ledger.describe()}",
            health == 200 and took_s <= 1 and not ledger.faults,
        )


async def kill_while_events_arrive(run: ChaosRun) -> Outcome:
    """`kill -9` at random moments, while webhooks, a poll, a schedule, workflows and delegations are at work."""
    kills = run.times(200)
    effects = await kill_while_events_come(kills, run.seed)
    expected = "each webhook, item, tick and delegation has its post or answer once"
    return Outcome(f"{kills} kills while events come in", expected, effects.describe(), not effects.wrong)


async def upgrade(run: ChaosRun) -> Outcome:
    """`kill -9` at random moments of an upgrade from the first schema, and of undoing it, on SQLite."""
    return await _kill_upgrades(run, on_postgres=False)


async def upgrade_on_postgres(run: ChaosRun) -> Outcome:
    """The same on Postgres."""
    return await _kill_upgrades(run, on_postgres=True)


async def _kill_upgrades(run: ChaosRun, *, on_postgres: bool) -> Outcome:
    await to_thread.run_sync(import_programs)
    posts = run.posts or 100_000
    report = await kill_upgrades(posts, run.times(20), run.seed, on_postgres=on_postgres)
    where = "Postgres" if on_postgres else "SQLite"
    return Outcome(
        f"{report.upgrade_kills + report.undo_kills} kills of upgrades and of undoing them ({where})",
        "each post is there once, as the older or the newer schema has it, after every kill; the next start goes on",
        report.describe(),
        not report.wrong,
    )


async def fleet(run: ChaosRun) -> Outcome:
    """Kills, freezes and partitions of a fleet whose processes have a network namespace each. Needs root."""
    if not is_possible():
        return Outcome("faults of a fleet", "", "not run: only root may make network namespaces", holds=True)
    report = await hurt_fleet(run.times(300), run.seed, logs=run.logs)
    return Outcome(
        f"{sum(report.faults.values())} kills, freezes and partitions of a fleet",
        "each question answered once and whole; no side effect twice; no account held by two beyond the term",
        report.describe(),
        report.holds,
    )


Scenario = Callable[[ChaosRun], Awaitable[Outcome]]
SCENARIOS: Mapping[str, Scenario] = {
    each.__name__.replace("_", "-"): each
    for each in (
        kill_at_random,
        kill_one_of_two,
        burst,
        discord_away,
        model_hangs,
        model_fails,
        postgres_away,
        database_locked,
        disk_full,
        database_damaged,
        asleep,
        half_open_connections,
        kill_while_events_arrive,
        upgrade,
        upgrade_on_postgres,
        fleet,
    )
}


def _judge(guild: BusyGuild, fault: str) -> Outcome:
    ledger = guild.count()
    return Outcome(fault, ANSWERED_ONCE, ledger.describe(), not ledger.faults)


async def _get(denizen: Denizen, path: str) -> int:
    return (await to_thread.run_sync(denizen.server.get, path)).status


def _shut(server: str, url: str) -> None:
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(Identifier(name)))
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def _reopen(server: str, url: str) -> None:
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(Identifier(name)))
