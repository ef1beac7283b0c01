"""A process that works on runs of three steps; `test_kill` starts it, kills it and reads what it says.

    python worker.py DATABASE JOURNAL [--submit N] [--wait N] [--hold] [--heartbeat S] [--expiry S]

Each step writes a line when it begins and when it ends to the journal, and with `--hold` the second one never ends.
On standard output: `ready`, `begun ID STEP`, `stopped ID STEP`, `result ID VALUE`, `closed`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from denizen.adapters.durable.durable import DbosExecution
from denizen.adapters.durable.settings import DurableSettings
from denizen.domain.json import Json, JsonObject


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Worker:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        database = arguments.database if "://" in arguments.database else Path(arguments.database)
        self.durable = DbosExecution(
            DurableSettings(database=database, heartbeat_s=arguments.heartbeat, expiry_s=arguments.expiry)
        )
        self.durable.register("work", self.work)

    def note(self, line: str) -> None:
        with Path(self.arguments.journal).open("a", encoding="utf-8") as journal:
            journal.write(f"{line} {os.getpid()}\n")

    def step(self, run: Json, number: int) -> Callable[[], Awaitable[Json]]:
        async def act() -> Json:
            self.note(f"begin {run} {number}")
            say(f"begun {run} {number}")
            if number == 2 and self.arguments.hold:
                try:
                    await anyio.sleep_forever()
                finally:
                    say(f"stopped {run} {number}")
            self.note(f"end {run} {number}")
            return number * 10

        return act

    async def work(self, payload: JsonObject) -> Json:
        run = payload["run"]
        return [await self.durable.step(f"step {number}", self.step(run, number)) for number in (1, 2, 3)]

    async def main(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            await self.durable.start()
            say("ready")
            for number in range(self.arguments.submit):
                await self.durable.submit("work", f"run-{number}", {"run": f"run-{number}"})
            for number in range(self.arguments.wait):
                say(f"result run-{number} {await self.durable.wait(f'run-{number}')}")
            if not self.arguments.wait:
                async for _ in signals:
                    break
            await self.durable.aclose()
            say("closed")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("journal")
    parser.add_argument("--submit", type=int, default=0)
    parser.add_argument("--wait", type=int, default=0)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--heartbeat", type=float, default=0.2)
    parser.add_argument("--expiry", type=float, default=30.0)
    anyio.run(Worker(parser.parse_args()).main, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
