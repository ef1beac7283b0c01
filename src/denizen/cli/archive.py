"""`denizen archive`: what is mirrored of the community's messages, and taking things out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo
from denizen.domain.errors import NotFound

if TYPE_CHECKING:
    from denizen.app.build import Denizen

PLATFORM = "discord"
SHOWN_ROOMS = 50


@click.group(cls=CommandGroup)
def command() -> None:
    """The mirror of the community's messages: how much there is, what is left out, and deleting for good.

    Everything here may be used while Denizen runs.
    """


@command.command()
@with_denizen
async def status(denizen: Denizen) -> None:
    """Show how much is mirrored, how far the backfill is, how many posts have embeddings, and who opted out."""
    from denizen.engine.archive.post_embedding import load_status

    community = denizen.platforms
    found = await load_status(denizen.services.store, community.mirror, community.post_embedder, PLATFORM)
    if not found.is_enabled:
        echo("The archive is switched off (archive.enabled).")
    done = sum(room.is_complete for room in found.rooms)
    echo(f"{found.posts} posts in {len(found.rooms)} rooms; {done} rooms are fetched to their beginning or limit")
    echo(f"{found.embedded} posts are found by meaning too")
    for room in found.rooms[:SHOWN_ROOMS]:
        echo(f"  #{room.name}: {room.fetched} older posts fetched{'' if room.is_complete else ', not complete'}")
    if len(found.rooms) > SHOWN_ROOMS:
        echo(f"  and {len(found.rooms) - SHOWN_ROOMS} more")
    out = found.opt_outs
    echo(f"opted out: {len(out.users)} users, {len(out.channels)} channels, {len(out.roles)} roles")


@command.command()
@with_denizen
async def rebuild(denizen: Denizen) -> None:
    """Fetch all messages again at the next start. Nothing that is mirrored is lost."""
    await denizen.platforms.backfiller.restart(PLATFORM)
    echo("Everything is fetched anew at the next start of `denizen run`.")


@command.command("reset-blocks")
@click.argument("room", metavar="CHANNEL")
@with_denizen
async def reset_cached_blocks(denizen: Denizen, room: str) -> None:
    """Forget the closed blocks of CHANNEL (the Discord id of a channel or thread), which agents that read whole rooms
    are sent from the provider's cache. The next turn there cuts them anew.
    """
    from denizen.engine.inspection.rooms import reset_blocks

    async with denizen.services.store.work(write=False) as work:
        found = await work.archive.find_room(PLATFORM, _id(room))
    if found is None:
        raise NotFound(f"There is no channel {room} in the archive.", fix="`denizen archive status` lists them.")
    blocks = await reset_blocks(denizen.services.store, found)
    echo(f"Forgotten: {blocks} blocks of #{found.name}. No post is lost.")


@command.command()
@click.argument("user")
@click.confirmation_option("--yes", prompt="Delete every mirrored message of this user, for good?")
@with_denizen
async def forget(denizen: Denizen, user: str) -> None:
    """Delete what USER (a Discord user id) wrote, with earlier versions and the copies in sessions, and everything else
    that is stored about them.
    """
    posts = await denizen.platforms.browser.forget(denizen.operator, _id(user))
    echo(f"Forgotten: {posts} posts.")


@command.command("opt-out")
@click.argument("kind", type=click.Choice(["user", "channel", "role"]))
@click.argument("key", metavar="ID")
@click.confirmation_option("--yes", prompt="Delete what is mirrored of it, and mirror no more from now on?")
@with_denizen
async def opt_out(denizen: Denizen, kind: str, key: str) -> None:
    """Stop mirroring a user, channel or role (by Discord id), and delete what is mirrored of it.

    Posts do not say which roles their author had, so a role opts out from now on only.
    """
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


@command.command("opt-in")
@click.argument("kind", type=click.Choice(["user", "channel", "role"]))
@click.argument("key", metavar="ID")
@with_denizen
async def opt_in(denizen: Denizen, kind: str, key: str) -> None:
    """Mirror a user, channel or role again from now on.

    What was deleted stays deleted; a channel is backfilled at the next start.
    """
    privacy = denizen.platforms.privacy
    ways = {"user": privacy.opt_in_user, "channel": privacy.opt_in_channel, "role": privacy.opt_in_role}
    await ways[kind](PLATFORM, _id(key))
    echo("Opted in.")


def _id(text: str) -> str:
    if not text.isdecimal():
        raise click.BadParameter(f"'{text}' is no Discord id. Ids are numbers; Discord shows them in developer mode.")
    return text
