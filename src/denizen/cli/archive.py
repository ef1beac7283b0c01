"""`denizen archive`: what is mirrored of the community's messages, and taking things out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.terminal import echo

if TYPE_CHECKING:
    from denizen.app.build import Denizen

PLATFORM = "discord"
SHOWN_ROOMS = 50


@click.group()
def command() -> None:
    """The mirror of the community's messages: how much there is, what is left out, and deleting for good.

    Everything here may be used while Denizen runs.
    """


@command.command()
@click.pass_obj
def status(home: Path) -> None:
    """Show how much is mirrored, how far the backfill came, what is found by meaning, and who opted out."""
    anyio.run(_with, home, _status)


@command.command()
@click.pass_obj
def rebuild(home: Path) -> None:
    """Fetch everything anew at the next start, whatever was fetched before. Nothing that is kept is lost."""
    anyio.run(_with, home, _rebuild)


@command.command()
@click.argument("user")
@click.confirmation_option("--yes", prompt="Delete every mirrored message of this user, for good?")
@click.pass_obj
def forget(home: Path, user: str) -> None:
    """Delete what USER (a Discord user id) wrote, with earlier versions and the copies in sessions."""

    async def act(denizen: Denizen) -> None:
        privacy = denizen.platforms.shared_services.user_data
        echo(f"Forgotten: {(await privacy.forget(PLATFORM, _id(user))).posts} posts.")

    anyio.run(_with, home, act)


@command.command("opt-out")
@click.argument("kind", type=click.Choice(["user", "channel", "role"]))
@click.argument("key", metavar="ID")
@click.confirmation_option("--yes", prompt="Delete what is mirrored of it, and mirror no more from now on?")
@click.pass_obj
def opt_out(home: Path, kind: str, key: str) -> None:
    """Mirror nothing more of a user, a channel or a role (by Discord id), and delete what is there.

    Posts do not say which roles their author had, so a role opts out from now on only.
    """

    async def act(denizen: Denizen) -> None:
        privacy = denizen.platforms.privacy
        match kind:
            case "user":
                gone = await privacy.opt_out_user(PLATFORM, _id(key))
            case "channel":
                gone = await privacy.opt_out_channel(PLATFORM, _id(key))
            case _:
                await privacy.opt_out_role(PLATFORM, _id(key))
                gone = 0
        echo(f"Opted out. Deleted: {gone} posts.")

    anyio.run(_with, home, act)


@command.command("opt-in")
@click.argument("kind", type=click.Choice(["user", "channel", "role"]))
@click.argument("key", metavar="ID")
@click.pass_obj
def opt_in(home: Path, kind: str, key: str) -> None:
    """Mirror it again from now on. What was deleted stays deleted; a channel is backfilled at the next start."""

    async def act(denizen: Denizen) -> None:
        privacy = denizen.platforms.privacy
        ways = {"user": privacy.opt_in_user, "channel": privacy.opt_in_channel, "role": privacy.opt_in_role}
        await ways[kind](PLATFORM, _id(key))
        echo("Opted in.")

    anyio.run(_with, home, act)


def _id(text: str) -> str:
    if not text.isdecimal():
        raise click.BadParameter(f"'{text}' is no Discord id. Ids are numbers; Discord shows them in developer mode.")
    return text


async def _with(home: Path, act: Callable[[Denizen], Awaitable[None]]) -> None:
    from denizen.app.build import OpenOptions, open_denizen

    async with open_denizen(home, OpenOptions(durable=False)) as denizen:
        await act(denizen)


async def _status(denizen: Denizen) -> None:
    from denizen.engine.archive.post_embedding import load_status

    community = denizen.platforms
    found = await load_status(denizen.services.store, community.mirror, community.post_embedder, PLATFORM)
    if not found.is_enabled:
        echo("The archive is switched off (archive.enabled).")
    done = sum(room.is_complete for room in found.rooms)
    echo(f"{found.posts} posts in {len(found.rooms)} rooms; {done} rooms are fetched to their beginning or limit")
    echo(f"{found.meant} posts are found by meaning too")
    for room in found.rooms[:SHOWN_ROOMS]:
        echo(f"  #{room.name}: {room.fetched} older posts fetched{'' if room.is_complete else ', not complete'}")
    if len(found.rooms) > SHOWN_ROOMS:
        echo(f"  and {len(found.rooms) - SHOWN_ROOMS} more")
    out = found.opt_outs
    echo(f"opted out: {len(out.users)} users, {len(out.channels)} channels, {len(out.roles)} roles")


async def _rebuild(denizen: Denizen) -> None:
    await denizen.platforms.backfiller.restart(PLATFORM)
    echo("Everything is fetched anew at the next start of `denizen run`.")
