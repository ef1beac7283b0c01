"""`/migrate`: owners see the database in use with the rows of each table, and move everything to Postgres.

Where it goes is in the configuration: an address with a password does not belong into a chat.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.store_move import MoveProgress, MoveStage, StoreStatus
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import private_reply
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.store_move import StoreMove

BAR_CHARS = 20
_DATABASES = {"sqlite": "SQLite", "postgresql": "Postgres"}
_STOPPABLE = "Until the switch, /migrate cancel stops it, and nothing has changed."


async def run_migrate_command(action: str, move: StoreMove | None) -> str:
    """Does one of `status`, `to-postgres` and `cancel`, and says what is then. Raises InvalidInput for another, and
    what moving raises.

    The terminal has commands of its own and calls this too, after it checked that an owner speaks.
    """
    if move is None:
        raise NeedsAttention("The store cannot be moved from this process.", code="move_missing")
    match action:
        case "status":
            return describe_store(await move.status())
        case "to-postgres":
            await move.start()
            return describe_progress(move.progress)
        case "cancel":
            move.cancel()
            return "The move is being stopped. The store stays where it is."
        case _:
            fix = "Write /migrate status, /migrate to-postgres or /migrate cancel."
            raise InvalidInput(f"/migrate has no '{action}'.", code="command_usage", fix=fix)


def describe_store(status: StoreStatus) -> str:
    """Returns the database in use, the rows of each table, and a move."""
    filled = sorted((each for each in status.tables if each.rows), key=lambda each: -each.rows)
    empty = ", ".join(each.table for each in status.tables if not each.rows)
    lines = [
        f"The store is in {_DATABASES[status.backend]}: `{status.place}`",
        f"{sum(each.rows for each in filled):,} rows in {len(status.tables)} tables:",
        "```",
        *(f"{each.rows:>12,}  {each.table}" for each in filled),
        "```",
    ]
    if empty:
        lines.append(f"Empty: {empty}")
    if status.move.stage is not MoveStage.IDLE:
        lines.append(describe_progress(status.move))
    elif status.begun:
        lines.append(f"A move to `{status.begun}` has begun. /migrate to-postgres goes on with it.")
    return "\n".join(lines)


def describe_progress(progress: MoveProgress) -> str:
    """Returns how far a move is, with a bar where something is counted."""
    match progress.stage:
        case MoveStage.IDLE:
            return "No move is under way."
        case MoveStage.DONE:
            return (
                f"The store has moved to `{progress.target}`. Nobody could write for {progress.pause_s:.2f} s. "
                "Denizen restarts itself."
            )
        case MoveStage.FAILED | MoveStage.CANCELLED:
            return f"The store was not moved.\n{progress.problem}"
        case _:
            counted = ""
            if progress.total:
                share = min(progress.done / progress.total, 1.0)
                full = round(share * BAR_CHARS)
                unit = "rows" if progress.stage is MoveStage.COPYING else "tables"
                bar = f"`{'█' * full}{'░' * (BAR_CHARS - full)}`"
                counted = f"\n{bar} {share:.0%}, {progress.done:,} of {progress.total:,} {unit}"
            target = f" to `{progress.target}`" if progress.target else ""
            table = f" `{progress.table}`" if progress.table else ""
            return f"Moving the store{target}: {progress.stage.value}{table}{counted}\n{_STOPPABLE}"


async def _migrate(context: CommandContext) -> CommandReply:
    action, move, services = context.command.group, context.services.store_move, context.services
    if action == "to-postgres" and move is not None and context.option("confirm") != "yes":
        target = await move.find_target()
        raise InvalidInput(
            f"This moves everything to {target or 'the database of store.move_to'}.",
            code="migrate_confirm",
            why="It takes a while, in which all goes on; then Denizen restarts itself, and the old database is closed.",
            fix="Write /migrate to-postgres confirm: yes.",
        )
    if action != "status":  # first, since the store is closed for writing when it has moved
        await AuditLog(services.store, services.clock).switch(context.caller.principal, "store", action)
    said = await run_migrate_command(action, move)
    if action != "to-postgres" or move is None:
        return private_reply(said)
    return CommandReply(said, updates=_describe_each(move))


async def _describe_each(move: StoreMove) -> AsyncGenerator[str]:
    async with aclosing(move.follow()) as steps:
        async for progress in steps:
            yield describe_progress(progress)


MIGRATE = CommandDefinition(
    CommandSpec(
        "migrate",
        "See the database in use, or move everything to Postgres (owners only).",
        groups=(
            CommandSpec("status", "See the database in use, and the rows of each table."),
            CommandSpec(
                "to-postgres",
                "Move everything to the database that store.move_to names.",
                (CommandOption("confirm", "Write yes if you mean it.", choices=("yes",)),),
            ),
            CommandSpec("cancel", "Stop a move before its switch."),
        ),
        admin_only=True,
    ),
    _migrate,
)
