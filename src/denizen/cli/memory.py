"""`denizen memory`: what agents remember, for the operator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen, with_denizen
from denizen.cli.terminal import echo
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.memory import CORE, ID_CHARS, Memory, MemoryOrigin

if TYPE_CHECKING:
    from denizen.app.build import Denizen

EVERYTHING = 1_000_000
LISTED = 200

_agent = click.option("-a", "--agent", default="", help="Only memories of this agent.")
_user = click.option(
    "-u", "--user", default=None, help="Only memories about this user, by key, such as platform_user:discord:1234."
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Memories of agents: about users, and core memories, which apply to everybody.

    What people write for agents to know is in files: agents/AGENT/CORE_MEMORY.md for all conversations of an agent, and
    agents/AGENT/users/KEY/MEMORY.md for those with one user. Everything here may be used while Denizen runs.
    """


@command.command("list")
@_agent
@_user
@click.option("--core", is_flag=True, help="Core memories only.")
@click.option("--history", is_flag=True, help="Also those that another one supersedes, which agents do not use.")
@with_denizen
async def list_command(denizen: Denizen, agent: str, user: str | None, *, core: bool, history: bool) -> None:
    """Show memories, the newest first."""
    found = await _load(denizen, agent, CORE if core else user, history=history)
    for memory in found[:LISTED]:
        echo(f"{memory.id}  {memory.agent}  {memory.owner or 'core'}  {_dates(memory)}  {memory.text}")
    if len(found) > LISTED:
        echo(f"and {len(found) - LISTED} more; `denizen memory export` has all")
    if not found:
        echo("Nothing is remembered.")


@command.command()
@click.argument("memory")
@with_denizen
async def show(denizen: Denizen, memory: str) -> None:
    """Show everything about one MEMORY, by its id or the beginning of it."""
    found = await _get(denizen, memory)
    echo(f"{found.id}  {'core' if found.is_core else f'about {found.owner}'}, agent {found.agent}")
    echo(f"told by {found.told_by} {_where(found)}, on {found.created_at:%Y-%m-%d %H:%M} UTC")
    if found.superseded_at is not None:
        echo(f"superseded by {found.superseded_by} on {found.superseded_at:%Y-%m-%d %H:%M} UTC")
    if found.turn_id:
        echo(f"in {found.turn_id} (see `denizen trace`)")
    echo(found.text)


@command.command()
@click.argument("text")
@click.option("-a", "--agent", default="", help="Which agent remembers it.  [default: the configured one]")
@click.option("-u", "--user", default=CORE, help="About this user, by key; without it a core memory.")
@click.pass_obj
def add(home: Path, text: str, agent: str, user: str) -> None:
    """Let an agent remember TEXT, for all its conversations or for those with one user."""
    if user and ":" not in user:
        raise InvalidInput(
            f"'{user}' is no user's key.",
            fix="Keys are such as platform_user:discord:1234; `denizen usage --by user` shows them.",
        )

    async def act(denizen: Denizen) -> None:
        from denizen.domain.ids import fresh

        now, whom = denizen.services.clock.now(), denizen.runtime.current.agent(agent)
        memory = Memory(
            id=fresh("mem")[:ID_CHARS],
            agent=whom.name,
            owner=user,
            text=text,
            told_at=MemoryOrigin(),
            told_by=denizen.operator.key,
            created_at=now,
        )
        echo(f"Remembered as {(await denizen.generation_deps.skills.memories.add(memory)).id}.")

    run_with_denizen(home, act)


@command.command()
@click.argument("memory", required=False)
@click.option("-u", "--user", default="", help="Delete everything that this user told, by key.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(home: Path, memory: str | None, user: str, *, yes: bool) -> None:
    """Delete one MEMORY with its history, by its id or the beginning of it, or everything that a user told."""
    if bool(memory) == bool(user):
        raise InvalidInput("Which memory?", fix="Name one by its id, or a user with --user.")

    async def act(denizen: Denizen) -> None:
        found = None if user else await _get(denizen, memory or "")
        if not yes:
            echo(f"{found.id}  {found.text}" if found else f"Everything that {user} told.", err=True)
            if not click.confirm("Delete it for good?", err=True):
                echo("Nothing was changed.", err=True)
                return
        browser = denizen.memories
        gone = await (
            browser.forget(denizen.operator, found.id) if found else browser.forget_teller(denizen.operator, user)
        )
        echo(f"Forgotten: {gone}.")

    run_with_denizen(home, act)


@command.command()
@_agent
@_user
@click.pass_obj
def export(home: Path, agent: str, user: str | None) -> None:
    """Write memories as Markdown to standard output, by agent and user, with those that are superseded."""

    async def act(denizen: Denizen) -> None:
        def key(memory: Memory) -> tuple[str, str]:
            return memory.agent, memory.owner

        found = sorted(
            await _load(denizen, agent, user, history=True), key=lambda memory: (key(memory), memory.created_at)
        )
        for (whose, owner), memories in groupby(found, key):
            echo(f"# {whose}: {owner or 'core'}\n")
            for memory in memories:
                echo(f"- {memory.text} ({memory.id}, {_dates(memory)})")
            echo("")

    run_with_denizen(home, act)


async def _load(denizen: Denizen, agent: str, owner: str | None, *, history: bool) -> Sequence[Memory]:
    name = denizen.runtime.current.agent(agent).name if agent else None
    async with denizen.services.store.work(write=False) as work:
        return await work.memories.list_memories(agent=name, owner=owner, history=history, limit=EVERYTHING)


async def _get(denizen: Denizen, name: str) -> Memory:
    """By its id or the beginning of it. Raises NotFound, and InvalidInput for a beginning that several have."""
    async with denizen.services.store.work(write=False) as work:
        found = await work.memories.find(name)
    if found is not None:
        return found
    begun = [each for each in await _load(denizen, "", None, history=True) if each.id.startswith(name)]
    if len(begun) > 1:
        raise InvalidInput(f"'{name}' begins {len(begun)} memories.", fix="Write more of the id.")
    if not begun:
        fix = "`denizen memory list` shows them."
        raise NotFound(f"There is no memory '{name}'.", code="memory_not_found", fix=fix)
    return begun[0]


def _dates(memory: Memory) -> str:
    until = f" to {memory.superseded_at:%Y-%m-%d}" if memory.superseded_at is not None else ""
    return f"{memory.created_at:%Y-%m-%d}{until}"


def _where(memory: Memory) -> str:
    told = memory.told_at
    if not told.platform:
        return "on the command line, for everybody"
    return f"{'in private ' if told.private else ''}in {told.platform} {told.room}"
