"""A guild in which several people ask in several channels, and a ledger of what each question got.

The model answers `question 7` with `answer 7`, after a random time; every fourth answer has three pieces.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import anyio

from denizen.testing.discord import SimChannel, SimMessage, SimUser
from denizen.testing.discord.rest.limits import SimRateLimit
from denizen.testing.model_server import DelayedAnswer, ModelAnswer, ScriptEntry
from denizen.testing.model_wire import JsonBody
from tests.e2e.discord import DiscordDeployment, open_deployment
from tests.e2e.home import Home
from tests.e2e.provider import open_provider

PEOPLE = 6
ROOMS = 3
LONG_EVERY = 4
PIECES = 3
NO_LIMIT = SimRateLimit(1_000_000_000, 1.0)
_QUESTION = re.compile(r"question (\d+)")
_ROOM_TALK = "[What was said here"
_ANSWER = re.compile(r"answer (\d+) part (\d+)")


def build_answer(number: int) -> str:
    count = PIECES if number % LONG_EVERY == 0 else 1
    filler = "word " * 300 if count > 1 else ""
    return "\n".join(f"answer {number} part {part} {filler}".strip() for part in range(count))


@dataclass(slots=True)
class AnsweringModel:
    """Answers every request by the last question in it. `delay_s` is the longest time that one takes; `hangs_on` are
    questions that get no answer.
    """

    rng: random.Random
    delay_s: float = 1.0
    hangs_on: set[int] = field(default_factory=set[int])

    def answer(self, body: JsonBody) -> ScriptEntry:
        number = self.find_question(body)
        entry = DelayedAnswer(ModelAnswer(text=build_answer(number)), anyio.Event(), anyio.Event())
        if number not in self.hangs_on:
            asyncio.get_running_loop().call_later(self.rng.uniform(0, self.delay_s), entry.until.set)
        return entry

    def find_question(self, body: JsonBody) -> int:
        """Returns the number of the last question in a request; 0 where there is none."""
        told = [message for message in body["messages"] if not str(message["content"]).startswith(_ROOM_TALK)]
        asked = _QUESTION.findall(json.dumps(told))
        return int(asked[-1]) if asked else 0


@dataclass(slots=True)
class Ledger:
    """The fate of every question, as people see it."""

    asked: int = 0
    answered: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    refused: int = 0
    failed: int = 0
    unreachable: int = 0
    """Of the failed ones those whose reply says that the model cannot be reached."""
    torn: int = 0
    out_of_order: int = 0
    left_behind: int = 0

    @property
    def faults(self) -> int:
        return self.lost + self.doubled + self.wrong + self.failed + self.torn + self.out_of_order + self.left_behind

    def describe(self) -> str:
        parts = {
            "lost": self.lost,
            "doubled": self.doubled,
            "wrong": self.wrong,
            "failed": self.failed,
            "of them without a model": self.unreachable,
            "torn": self.torn,
            "out of order": self.out_of_order,
            "previews left": self.left_behind,
        }
        told = f"{self.answered} of {self.asked} answered"
        told += f", {self.refused} refused with a sign" if self.refused else ""
        return told + ", " + ", ".join(f"{count} {name}" for name, count in parts.items())


@dataclass(slots=True)
class BusyGuild:
    """The guild, its people and the questions so far, by number."""

    deployment: DiscordDeployment
    model: AnsweringModel
    rng: random.Random
    people: Sequence[SimUser]
    rooms: Sequence[SimChannel]
    questions: dict[int, SimMessage] = field(default_factory=dict[int, SimMessage])

    def configure(self, *, preview: bool = False, home: Home | None = None, store: str = "") -> None:
        """People may ask as often as they like."""
        rest = "gate: {rate_limits: {per_user_per_hour: 0}}\n" + (f"store: {{url: '{store}'}}\n" if store else "")
        self.deployment.configure(preview=preview, home=home, rest=rest)

    def ask(self, person: SimUser | None = None, room: SimChannel | None = None) -> int:
        """Somebody asks somewhere, with a mention. Returns the number of the question."""
        number = len(self.questions) + 1
        who, where = person or self.rng.choice(self.people), room or self.rng.choice(self.rooms)
        self.questions[number] = self.deployment.ask(who, f"question {number}", where)
        return number

    async def begin(self) -> None:
        """A process connects for the first time, and ends: what is said before that is not caught up on."""
        async with self.deployment.run() as denizen:
            for room in self.rooms:
                self.ask(room=room)
            await self.settle()
            await denizen.stop()

    async def talk(self, seconds: float, *, every_s: float) -> None:
        """People ask at random moments."""
        until_s = anyio.current_time() + seconds
        while anyio.current_time() < until_s:
            self.ask()
            await anyio.sleep(self.rng.uniform(0, 2 * every_s))

    def is_settled(self, number: int) -> bool:
        """Whether the question has a reply with words, or a sign that it gets none."""
        question = self.questions[number]
        return bool(self._replies(question)) or self._is_refused(question)

    async def settle(self, limit_s: float = 300.0) -> bool:
        """Waits until every question has its end. False when that takes too long."""
        is_settled = await self.reach(lambda: all(map(self.is_settled, self.questions)), limit_s)
        await anyio.sleep(3)  # the last pieces, and previews that go
        return is_settled

    async def reach(self, predicate: Callable[[], object], limit_s: float) -> bool:
        """Waits until it is so on Discord. False when that takes too long."""
        try:
            await self.deployment.discord.until(predicate, limit_s)
        except TimeoutError:
            return False
        return True

    def write_logs(self, folder: Path) -> None:
        """What everybody said, what the model was asked, and the log of each process."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"#{room.name} {message.timestamp:%H:%M:%S.%f} {message.id} {message}"
            for room in self.rooms
            for message in room.messages
        ]
        (folder / "transcript.txt").write_text("\n".join(lines), encoding="utf-8")
        requests = [json.dumps(each.body["messages"]) for each in self.deployment.requests]
        (folder / "requests.jsonl").write_text("\n".join(requests), encoding="utf-8")
        for number, denizen in enumerate(self.deployment.denizens, 1):
            (folder / f"process-{number}.log").write_text(denizen.log, encoding="utf-8")

    def count(self) -> Ledger:
        ledger = Ledger(asked=len(self.questions))
        for number, question in self.questions.items():
            self._count_question(ledger, number, question)
        for room in self.rooms:
            posts = self.deployment.posts(room)
            ledger.left_behind += sum(post.content.startswith("-# ") for post in posts)
            self._count_room(ledger, [found for post in posts for found in _ANSWER.findall(post.content)])
        return ledger

    def _count_question(self, ledger: Ledger, number: int, question: SimMessage) -> None:
        replies = self._replies(question)
        answers = [_ANSWER.search(reply.content) for reply in replies]
        numbers = [int(found[1]) for found in answers if found]
        if not replies:
            ledger.refused += self._is_refused(question)
            ledger.lost += not self._is_refused(question)
        elif not numbers:
            is_busy = any("still busy" in reply.content for reply in replies)
            ledger.refused += is_busy
            ledger.failed += not is_busy
            ledger.unreachable += any("cannot reach my model" in reply.content for reply in replies)
        else:
            ledger.answered += 1
            ledger.wrong += numbers[0] != number
            ledger.doubled += len(numbers) > 1

    def _count_room(self, ledger: Ledger, pieces: Sequence[tuple[str, str]]) -> None:
        """Of the pieces of a room in the order in which they stand there."""
        order = [int(number) for number, part in pieces if part == "0"]
        for person in self.people:
            theirs = [number for number in order if self.questions[number].author is person]
            ledger.out_of_order += sum(first > second for first, second in pairwise(theirs))
        counted = Counter(pieces)
        ledger.doubled += sum(count > 1 for (_, part), count in counted.items() if part != "0")
        for number in set(order):
            wanted = [(str(number), str(part)) for part in range(PIECES if number % LONG_EVERY == 0 else 1)]
            start = pieces.index(wanted[0])
            ledger.torn += list(pieces[start : start + len(wanted)]) != wanted

    def _replies(self, question: SimMessage) -> list[SimMessage]:
        """What refers to the question, previews left out."""
        room = self.deployment.world.get_channel_for(question)
        return [
            post
            for post in self.deployment.posts(room)
            if post.reference and post.reference.message_id == question.id and not post.content.startswith("-# ")
        ]

    def _is_refused(self, question: SimMessage) -> bool:
        """Whether the bot put its sign for messages without an answer on it."""
        own = self.deployment.ada.user
        return any("\N{WARNING SIGN}" in str(each.emoji) and own in each.users for each in question.state.reactions)


@asynccontextmanager
async def open_busy_guild(
    seed: int, logs: Path | None = None, *, model: AnsweringModel | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[BusyGuild]:
    """A fresh home, Discord and model, on that address. What happened is written to the folder `logs` in the end."""
    rng = random.Random(seed)
    model = model or AnsweringModel(random.Random(seed + 1))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, open_provider(host) as provider:
        provider.server.aside = model.answer
        async with open_deployment(Home(Path(folder) / "home"), provider, host=host) as deployment:
            deployment.discord.limits.default = NO_LIMIT
            people = [deployment.world.add_person(f"Person{number}") for number in range(PEOPLE)]
            for person in people:
                deployment.guild.join(person)
            rooms = [deployment.guild.add_channel(f"room-{number}") for number in range(ROOMS)]
            guild = BusyGuild(deployment, model, rng, people, rooms)
            yield guild
            if logs is not None:
                guild.write_logs(logs)
