"""A fleet on machines of its own, under faults at random moments: two gateways, three workers and a web process on one
Postgres, while people ask on Discord.

Processes are killed and frozen, and the links of machines to Discord, to the model and to the database are cut, several
at a time. Each process is started again when it ends, as a service manager does. The same seed gives the same faults at
the same moments.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import click
import psycopg
from anyio import to_thread
from psycopg.sql import SQL, Identifier

from denizen.adapters.fleet.nodes import SCHEMA, TERM_S
from denizen.testing.discord import SimChannel
from denizen.testing.discord.rest.request_log import LoggedRequest
from denizen.testing.model_server import ModelAnswer, ModelCall, ScriptEntry
from denizen.testing.model_wire import JsonBody
from tests.chaos.busy_guild import AnsweringModel, BusyGuild, Ledger, open_busy_guild
from tests.chaos.network import Link, Machine, Network, open_network
from tests.e2e.deployment import Denizen
from tests.e2e.fork_server import get_fork_server
from tests.e2e.home import Home, Server
from tests.e2e.process import start_soon
from tests.postgres import new_database, open_postgres_server

ROLES = {
    "gate-1": "gateway",
    "gate-2": "gateway",
    "work-1": "worker",
    "work-2": "worker",
    "work-3": "worker",
    "web-1": "web",
}
RESTART_S = 1.0
LONGEST_S = 40.0
"""The longest time for which a process is frozen, or a link cut."""
AT_ONCE = 3
"""So many machines have a fault at a time."""
EFFECT_EVERY = 5
LOOK_EVERY_S = 0.2
LIFE_S = 3600.0
WARM_UP_S = 600.0
SETTLES_WITHIN_S = 1200.0
"""On a machine without time, what was asked is answered late, and is not lost."""
REST = """\
tools: {discord: {enabled: true}}
gate:
  destinations: ["*"]
  tiers: {send_message: 1}
  rate_limits: {per_user_per_hour: 0, tool: {send_message: {calls: 100000, per_s: 60}}}
"""
FAULTS = {"kill": 50, "freeze": 20, "no database": 10, "no platforms": 10, "no network": 8, "database gone": 2}
"""The kinds, and how often each comes among a hundred."""
_EFFECT = re.compile(r"effect (\d+)")
_CUT = {
    "no database": (Link.DATABASE,),
    "no platforms": (Link.PLATFORMS,),
    "no network": (Link.DATABASE, Link.PLATFORMS),
}


@dataclass(slots=True)
class ActingModel(AnsweringModel):
    """Has a message posted elsewhere before it answers every fifth question."""

    effects: str = ""

    def answer(self, body: JsonBody) -> ScriptEntry:
        entry = AnsweringModel.answer(self, body)
        number = self.find_question(body)
        is_effect = self.effects and number and number % EFFECT_EVERY == 0
        if is_effect and not self.has_result(body):
            return ModelAnswer(calls=[ModelCall("send_message", {"channel": self.effects, "text": f"effect {number}"})])
        return entry

    def has_result(self, body: JsonBody) -> bool:
        """Whether a tool was called for the last question. A note, such as that of the day, may follow the result."""
        for message in reversed(body["messages"]):
            if message["role"] == "tool":
                return True
            if self.find_question({"messages": [message]}):
                return False
        return False


@dataclass(slots=True)
class Member:
    """A process of the fleet on its machine, for as long as `run` runs: it is started anew whenever it ends."""

    machine: Machine
    guild: BusyGuild
    denizen: Denizen | None = None
    own_ends: Counter[int] = field(default_factory=Counter[int])
    """The exit codes with which it ended without a kill."""

    async def run(self) -> None:
        name = self.machine.name
        home: Home = self.guild.deployment.home
        args = ["--home", str(home.folder), "run", "--port", "0", "--role", ROLES[name], "--name", name]
        while True:
            start = partial(start_soon, args, home.environment, network=self.machine.network, limit_s=LIFE_S)
            running = await to_thread.run_sync(start)
            denizen = self.denizen = Denizen(Server(running, f"http://{name}"))
            self.guild.deployment.denizens.append(denizen)
            try:
                while (code := running.poll()) is None:  # noqa: ASYNC110 - the end of a process sets no event
                    await anyio.sleep(LOOK_EVERY_S)
            finally:
                with anyio.CancelScope(shield=True):
                    await denizen.kill()
            if code != -signal.SIGKILL:
                self.own_ends[code] += 1
            await anyio.sleep(RESTART_S)

    def is_ready(self) -> bool:
        """Whether it holds the account."""
        return self.denizen is not None and bool(self.denizen.lines("account ready"))

    def signal(self, number: signal.Signals) -> None:
        if self.denizen is not None:
            self.denizen.signal(number)


@dataclass(slots=True)
class LeaseWatch:
    """Who had an account by the table, and who wrote to Discord all the same. `overlap_s` is the longest time for which
    a process went on writing after another one had taken the account; `strays` counts such requests.
    """

    addresses: dict[str, str]
    """The names of the gateways by their addresses."""
    requests: Sequence[LoggedRequest]
    holder: str = ""
    taken_s: float = 0.0
    handovers: int = 0
    strays: int = 0
    overlap_s: float = 0.0
    _seen: int = 0
    _first_stray_s: dict[str, float] = field(default_factory=dict[str, float])

    async def run(self, server: str, database: str) -> None:
        url = server.replace("/postgres?", f"/{database}?")
        query = SQL(
            "SELECT nodes.name FROM {schema}.leases JOIN {schema}.nodes ON leases.holder LIKE nodes.session || '/%%' "
            "WHERE leases.name LIKE 'account:%%' AND leases.until > now()"
        ).format(schema=Identifier(SCHEMA))
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                    while True:
                        row = await (await connection.execute(query)).fetchone()
                        self._look(str(row[0]) if row else "")
                        await anyio.sleep(LOOK_EVERY_S)
            except psycopg.Error:
                await anyio.sleep(LOOK_EVERY_S)

    def _look(self, holder: str) -> None:
        now_s = anyio.current_time()
        if holder and holder != self.holder:
            self.handovers += bool(self.holder)
            self.holder, self.taken_s = holder, now_s
            self._first_stray_s.pop(holder, None)
        new, self._seen = self.requests[self._seen :], len(self.requests)
        if now_s - self.taken_s < 2 * LOOK_EVERY_S:
            return  # these may be of before
        for request in new:
            writer = self.addresses.get(request.remote, "")
            if request.method != "GET" and writer and holder and writer != holder:
                self.strays += 1
                self.overlap_s = max(self.overlap_s, now_s - self._first_stray_s.setdefault(writer, now_s))


@dataclass(slots=True)
class FleetReport:
    """What came of it."""

    faults: Counter[str]
    ledger: Ledger
    effects: Counter[str]
    wanted: int
    own_ends: Counter[str]
    watch: LeaseWatch
    took_s: float

    @property
    def doubled_effects(self) -> int:
        return sum(count > 1 for count in self.effects.values())

    @property
    def holds(self) -> bool:
        # What one worker leaves is taken up by another some time later, so the order may change. Whose worker is cut
        # off from the model is told so.
        wrong = self.ledger.faults - self.ledger.out_of_order - self.ledger.unreachable
        return not wrong and not self.doubled_effects and self.watch.overlap_s <= TERM_S

    def describe(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        ends = ", ".join(f"{count} of {what}" for what, count in sorted(self.own_ends.items())) or "none"
        return (
            f"{sum(self.faults.values())} faults in {self.took_s:.0f} s ({kinds}); {self.ledger.describe()}; "
            f"{len(self.effects)} of {self.wanted} effects, {self.doubled_effects} twice; "
            f"{self.watch.handovers} handovers, {self.watch.strays} requests of a former holder, within "
            f"{self.watch.overlap_s:.1f} s; ended by themselves: {ends}"
        )


@dataclass(slots=True)
class FleetChaos:
    """The faults of one run."""

    rng: random.Random
    network: Network
    members: Sequence[Member]
    guild: BusyGuild
    done: Counter[str] = field(default_factory=Counter[str])
    _hurt: set[str] = field(default_factory=set[str])

    async def run(self, count: int) -> None:
        """Brings about so many faults, and waits until the last of them is over."""
        async with anyio.create_task_group() as group:
            for number in range(1, count + 1):
                await anyio.sleep(self.rng.uniform(0.5, 6))
                while len(self._hurt) >= AT_ONCE:  # noqa: ASYNC110 - a look now and then is exact enough
                    await anyio.sleep(LOOK_EVERY_S)
                kind = self.rng.choices(list(FAULTS), list(FAULTS.values()))[0]
                member = self.rng.choice([each for each in self.members if each.machine.name not in self._hurt])
                for_s = min(LONGEST_S, 1 + self.rng.expovariate(1 / 10))
                told = f"fault {number}: {kind}, {member.machine.name}, {for_s:.1f} s"
                click.echo(f"{told}; {len(self.guild.questions)} questions", err=True)
                self.done[kind] += 1
                self._hurt.add(member.machine.name)
                group.start_soon(self._hurt_member, member, kind, for_s)

    async def _hurt_member(self, member: Member, kind: str, for_s: float) -> None:
        if kind == "kill":
            member.signal(signal.SIGKILL)
        elif kind == "freeze":
            victim = member.denizen
            member.signal(signal.SIGSTOP)
            await anyio.sleep(for_s)
            if victim is not None:
                victim.signal(signal.SIGCONT)
        else:
            machines = [each.machine for each in self.members] if kind == "database gone" else [member.machine]
            links = _CUT.get(kind, (Link.DATABASE,))
            for machine in machines:
                for link in links:
                    await to_thread.run_sync(self.network.cut, machine, link)
            await anyio.sleep(for_s)
            for machine in machines:
                for link in links:
                    await to_thread.run_sync(self.network.mend, machine, link)
        self._hurt.discard(member.machine.name)


async def hurt_fleet(count: int, seed: int, *, every_s: float = 1.5, logs: Path | None = None) -> FleetReport:
    """Runs a fleet under so many faults. Raises what keeps the network from being made."""
    await to_thread.run_sync(import_programs)
    with ExitStack() as stack:
        network = stack.enter_context(open_network(list(ROLES)))
        server = stack.enter_context(open_postgres_server(network.hosts[Link.DATABASE]))
        url = stack.enter_context(new_database(server))
        database = re.sub(r".*/(\w+)\?.*", r"\1", url)
        model = ActingModel(random.Random(seed + 1), delay_s=0.5)
        async with open_busy_guild(seed, logs, model=model, host=network.hosts[Link.PLATFORMS]) as guild:
            store = f"postgresql://postgres@{network.hosts[Link.DATABASE]}:5432/{database}"
            guild.deployment.configure(rest=f"store: {{url: '{store}'}}\n{REST}")
            effects = guild.deployment.guild.add_channel("effects")
            members = [Member(machine, guild) for machine in network.machines]
            gateways = {each.addresses[Link.PLATFORMS]: each.name for each in network.machines if "gate" in each.name}
            watch = LeaseWatch(gateways, guild.deployment.discord.requests)
            chaos = FleetChaos(random.Random(seed), network, members, guild)
            began_s = anyio.current_time()
            async with anyio.create_task_group() as group:
                for member in members:
                    group.start_soon(member.run)
                await guild.reach(lambda: any(each.is_ready() for each in members), 300)
                for room in guild.rooms:
                    guild.ask(room=room)
                await guild.settle()
                model.effects = effects.name
                group.start_soon(watch.run, server, database)
                async with anyio.create_task_group() as talking:
                    talking.start_soon(partial(guild.talk, LIFE_S, every_s=every_s))
                    await chaos.run(count)
                    talking.cancel_scope.cancel()
                await guild.settle(SETTLES_WITHIN_S)
                group.cancel_scope.cancel()
            return _report(guild, chaos, watch, effects, anyio.current_time() - began_s)


def import_programs() -> None:
    """Has everything imported that the processes need, however busy the machine is."""
    child = get_fork_server().start(["--version"], {"PATH": os.environ["PATH"]}, limit_s=WARM_UP_S)
    child.wait(WARM_UP_S)


def _report(guild: BusyGuild, chaos: FleetChaos, watch: LeaseWatch, effects: SimChannel, took_s: float) -> FleetReport:
    ends = Counter(
        {f"{each.machine.name} with {code}": n for each in chaos.members for code, n in each.own_ends.items()}
    )
    posts = [found for post in guild.deployment.said(effects) for found in _EFFECT.findall(post)]
    wanted = sum(number % EFFECT_EVERY == 0 for number in guild.questions)
    return FleetReport(chaos.done, guild.count(), Counter(posts), wanted, ends, watch, took_s)
