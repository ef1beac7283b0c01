"""`denizen audit`: the log of what was done in whose name, in which every change shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen, with_denizen
from denizen.cli.terminal import echo
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.build import Denizen

SHOWN = 20
DIGEST = re.compile(r"[0-9a-f]{64}")


@click.group(cls=CommandGroup)
def command() -> None:
    """The audit log: calls of tools with their verdicts, decisions of people, and what was posted.

    Every entry is chained to the one before it by a digest. Note the newest digest somewhere else from time to time;
    `denizen audit verify --noted DIGEST` then tells whether the log still holds everything up to there.
    """


@command.command("list")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True, help="How many entries.")
@with_denizen
async def show(denizen: Denizen, count: int) -> None:
    """Show the newest entries, oldest of them first."""
    async with denizen.services.store.work(write=False) as work:
        head = await work.audit.head()
        entries = await work.audit.list_entries(after=max(head.number - count, 0), limit=count)
    for entry in entries:
        event = entry.event
        details = " ".join(f"{key}={_short(value)}" for key, value in event.details.items())
        what = f"{event.kind}  {event.subject}  by {event.actor}  {details}"
        echo(f"{entry.number}  {event.at:%Y-%m-%d %H:%M:%S}  {what}")
    if not entries:
        echo("The audit log is empty.")


@command.command()
@click.option("--noted", default="", metavar="DIGEST", help="A digest that you noted earlier.")
@click.pass_obj
def verify(home: Path, noted: str) -> None:
    """Check the chain from its beginning. If somebody changed an entry, says where and exits with 1."""
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

    run_with_denizen(home, act)


@command.command()
@click.option("--after", type=click.IntRange(0), default=0, help="Only entries with a higher number.")
@click.option(
    "--output", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="The file to write.  [default: -]"
)
@with_denizen
async def export(denizen: Denizen, after: int, output: TextIO) -> None:
    """Write entries as JSON, one a line, with all that is needed to verify them elsewhere."""
    from denizen.domain.audit import event_to_json
    from denizen.engine.audit.audit_log import read_log

    async for entry in read_log(denizen.services.store, after=after):
        chain = {"number": entry.number, "previous": entry.previous, "digest": entry.digest}
        output.write(json.dumps(chain | event_to_json(entry.event), sort_keys=True) + "\n")


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:16]}…"
