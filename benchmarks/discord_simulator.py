"""A simulated Discord in a process of its own, with people who talk as fast as they are answered.

    python -m benchmarks.discord_simulator

Speaks JSON, one line each way: first its addresses, then an answer to each line of `{"do": NAME, ...}`. Its rate limits
are off. What it costs itself is part of every figure, and of the baseline beside it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
from anyio import to_thread

from benchmarks.model import WORDS
from denizen.testing.discord import DiscordServer, SimApplication, SimChannel, SimMessage, SimUser, open_discord
from denizen.testing.discord.rest.limits import SimRateLimit
from denizen.testing.discord.state.changes import MessageSent, SimChange

ANSWER = "".join(WORDS)
NO_LIMIT = SimRateLimit(1_000_000_000, 1.0)
ANSWERED_WITHIN_S = 60.0
ALL_ANSWERED_WITHIN_S = 300.0
SAID_AT_ONCE = 50
"""So many messages are said before the server looks at what else is to do."""
PLAIN = "The gateway fell over again at noon, and nobody has looked at the logs of the worker yet. #{}"


class SimulatedGuild:
    """One guild. `fill`, `say` and `ask` work in the channels that were made last."""

    def __init__(self, server: DiscordServer) -> None:
        self._world = server.world
        self._server = server
        self._ana = self._world.add_person("Ana")
        self._guild = self._world.add_guild("SimulatedGuild", owner=self._ana)
        self._channels: Sequence[SimChannel] = ()
        self._ada: SimApplication = self._admit("Ada")
        self._waiting: dict[int, anyio.Event] = {}
        self._answered_s: dict[int, float] = {}
        self._talkers: list[tuple[SimChannel, Sequence[SimUser]]] = []
        self._wrong = ""
        server.store.subscribe(self._notice)

    def admit(self, name: str) -> str:
        """Another bot takes the place of the one before; its token."""
        self._guild.leave(self._ada.user)
        self._ada = self._admit(name)
        return self._ada.token

    def fill(self, rooms: int, each: int) -> list[int]:
        """New channels with so many messages in each; their ids."""
        known = len(self._guild.channels)
        self._channels = [self._guild.add_channel(f"room-{known + number}") for number in range(rooms)]
        for channel in self._channels:
            for number in range(each):
                self._world.say(self._ana, channel, PLAIN.format(number))
        return [channel.id for channel in self._channels]

    def grow(self, guilds: int, members: int) -> None:
        """Further guilds, with the bot and so many members and one channel in each, which are then those of `talk`."""
        for number in range(guilds):
            people = [self._world.add_person(f"Person {number}-{each}") for each in range(members)]
            guild = self._world.add_guild(f"Guild {number}", owner=people[0])
            for member in (*people[1:], self._ada.user):
                guild.join(member)
            self._talkers.append((guild.add_channel("general"), people))

    async def talk(self, for_s: float, per_s: float, asked_every: int) -> dict[str, float]:
        """Members of all guilds say so much a second, every so many-th of it a question. Returns the counts when each
        question is answered, and how many seconds the answers took in the middle and at most.
        """
        began_s, count, asked = time.monotonic(), int(for_s * per_s), dict[int, float]()
        for number in range(count):
            channel, people = self._talkers[number % len(self._talkers)]
            who = people[number // len(self._talkers) % len(people)]
            if number % asked_every:
                self._world.say(who, channel, PLAIN.format(number))
            else:
                said = self._world.say(who, channel, f"{self._ada.mention} hello {number}")
                asked[said.id] = time.monotonic()
            await anyio.sleep(max(0.0, began_s + number / per_s - time.monotonic()))
        with anyio.move_on_after(ALL_ANSWERED_WITHIN_S):
            for key in asked:
                await self._waiting.setdefault(key, anyio.Event()).wait()
        took_s = sorted(self._answered_s[key] - at_s for key, at_s in asked.items() if key in self._answered_s)
        middle_s, most_s = (took_s[len(took_s) // 2], took_s[-1]) if took_s else (0.0, 0.0)
        said_s = {"said": count, "asked": len(asked), "answered": len(took_s)}
        return {**said_s, "middle_s": middle_s, "most_s": most_s, "took_s": time.monotonic() - began_s}

    async def say(self, rooms: int, each: int) -> float:
        """Plain messages in the first so many channels, all at once; when it began, on the clock of the machine."""
        began_s = time.monotonic()
        for number in range(each):
            for channel in self._channels[:rooms]:
                self._world.say(self._ana, channel, PLAIN.format(number))
            if number % SAID_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
        return began_s

    async def ask(self, rooms: int, each: int) -> float:
        """Each channel asks so many questions, each as soon as the one before is answered; seconds."""

        async def ask_in_turn(channel: SimChannel) -> None:
            for number in range(each):
                await self._answered(self._question(channel, number))

        started_s = time.monotonic()
        with anyio.fail_after(ANSWERED_WITHIN_S):
            async with anyio.create_task_group() as group:
                for channel in self._channels[:rooms]:
                    group.start_soon(ask_in_turn, channel)
        return time.monotonic() - started_s

    def question(self) -> int:
        """A question in the first channel, for which nobody waits here; its id."""
        return self._question(self._channels[0], 0).id

    async def answered(self, message: int) -> float:
        """When it was answered, on the clock of the machine."""
        if message not in self._answered_s:
            with anyio.fail_after(ANSWERED_WITHIN_S):
                await self._waiting.setdefault(message, anyio.Event()).wait()
        return self._answered_s[message]

    async def connected(self, count: int) -> None:
        """Waits until so many bots are logged in."""
        await self._server.until(
            lambda: sum(line.session is not None for line in self._server.connections) == count, ANSWERED_WITHIN_S
        )

    async def do(self, order: dict[str, Any]) -> object:
        answer = await self._do(order.pop("do"), order)
        if self._wrong:
            raise RuntimeError(f"this is not the model's answer: {self._wrong}")
        return answer

    async def _do(self, name: str, order: dict[str, Any]) -> object:
        match name:
            case "admit":
                return self.admit(**order)
            case "fill":
                return self.fill(**order)
            case "say":
                return await self.say(**order)
            case "grow":
                return self.grow(**order)
            case "talk":
                return await self.talk(**order)
            case "ask":
                return await self.ask(**order)
            case "question":
                return self.question()
            case "answered":
                return await self.answered(**order)
            case "connected":
                return await self.connected(**order)
            case other:
                raise ValueError(other)

    def _admit(self, name: str) -> SimApplication:
        application = self._world.add_application(name, owner=self._ana)
        self._guild.join(application.user)
        return application

    def _question(self, channel: SimChannel, number: int) -> SimMessage:
        return self._world.say(self._ana, channel, f"{self._ada.mention} hello {number}")

    async def _answered(self, question: SimMessage) -> None:
        await self._waiting.setdefault(question.id, anyio.Event()).wait()

    def _notice(self, change: SimChange) -> None:
        """Whoever answers with other words than the model's ends the benchmark: a notice of a fault is quick."""
        if isinstance(change, MessageSent) and change.message.reference and change.message.author is self._ada.user:
            if change.message.content != ANSWER:
                self._wrong = change.message.content
            asked = change.message.reference.message_id or 0
            self._answered_s[asked] = time.monotonic()
            self._waiting.setdefault(asked, anyio.Event()).set()


async def serve() -> None:
    async with open_discord() as server:
        server.limits.default = NO_LIMIT
        guild = SimulatedGuild(server)
        tell({"api_url": server.api_url, "gateway_url": server.gateway_url})
        while line := await to_thread.run_sync(sys.stdin.readline):
            tell(await guild.do(json.loads(line)))


def tell(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    anyio.run(serve, backend_options={"use_uvloop": True})
