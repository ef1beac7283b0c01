"""`denizen audit`: the log of what was done in whose name, which nobody can change unseen."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import anyio
import click

from denizen.cli.terminal import echo
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.audit import AuditEntry

SHOWN = 20
DIGEST = re.compile(r"[0-9a-f]{64}")


@click.group()
def command() -> None:
    """The audit log: calls of tools with their verdicts, decisions of people, and what was posted.

    Every entry is chained to the one before it by a digest. Note the newest digest somewhere else from time to time;
    `denizen audit verify --noted DIGEST` then tells whether the log still holds everything up to there.
    """


@command.command("list")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True, help="How many.")
@click.pass_obj
def show(home: Path, count: int) -> None:
    """Show the newest entries, oldest of them first."""

    async def act(denizen: Denizen) -> None:
        async with denizen.services.store.work(write=False) as work:
            head = await work.audit.head()
            entries = await work.audit.list_entries(after=max(head.number - count, 0), limit=count)
        for entry in entries:
            echo(_line(entry))
        if not entries:
            echo("The audit log is empty.")

    anyio.run(_with, home, act)


@command.command()
@click.option("--noted", default="", metavar="DIGEST", help="A digest that was the newest once.")
@click.pass_obj
def verify(home: Path, noted: str) -> None:
    """Follow the chain from its beginning. Ends with 1 and says where, when somebody has changed something."""
    noted = noted.strip().lower()
    if noted and not DIGEST.fullmatch(noted):
        raise InvalidInput(
            f"'{noted}' is no digest.", fix="It has 64 of the characters 0-9 and a-f, as this command prints it."
        )

    async def act(denizen: Denizen) -> None:
        from denizen.engine.audit.audit_log import verify_log

        found = await verify_log(denizen.services.store, noted=noted)
        if found.fault:
            raise click.ClickException(f"The audit log is not what was written. {found.fault}")
        echo(f"{found.head.number} entries, nothing was changed. The newest digest: {found.head.digest}")

    anyio.run(_with, home, act)


@command.command()
@click.option("--after", type=click.IntRange(0), default=0, help="Only entries with a higher number.")
@click.option("--output", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="A file.  [default: -]")
@click.pass_obj
def export(home: Path, after: int, output: TextIO) -> None:
    """Write entries as JSON, one a line, with all that is needed to verify them elsewhere."""

    async def act(denizen: Denizen) -> None:
        from denizen.engine.audit.audit_log import read_log

        async for entry in read_log(denizen.services.store, after=after):
            output.write(json.dumps(_fields(entry), sort_keys=True) + "\n")

    anyio.run(_with, home, act)


async def _with(home: Path, act: Callable[[Denizen], Awaitable[None]]) -> None:
    from denizen.app.build import OpenOptions, open_denizen

    async with open_denizen(home, OpenOptions(durable=False)) as denizen:
        await act(denizen)


def _line(entry: AuditEntry) -> str:
    event = entry.event
    details = " ".join(f"{key}={_short(value)}" for key, value in event.details.items())
    return f"{entry.number}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind}  {event.subject}  by {event.actor}  {details}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:16]}…"


def _fields(entry: AuditEntry) -> dict[str, object]:
    from denizen.domain.audit import event_to_json

    return {"number": entry.number, **event_to_json(entry.event), "previous": entry.previous, "digest": entry.digest}
