"""`denizen sources`: repositories, folders, web sites and channels with documents; syncs and webhooks."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
from collections.abc import Callable, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.exit_codes import exit_code
from denizen.cli.home import load_home_settings, run_with_denizen, with_denizen
from denizen.cli.log import leave_to_command
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from datetime import datetime

    from denizen.app.build import Denizen
    from denizen.app.home.secrets import SecretRef
    from denizen.domain.errors import DenizenError
    from denizen.domain.source import SourceChange
    from denizen.engine.knowledge.sources import SourceListing

UNAVAILABLE = "Unavailable"
_RUNS = " `denizen run` goes on with them, and so does `denizen docs index`."
VARIABLE = "SYNC_SECRET_"
"""How the names of the webhooks' secrets begin."""
NAMED = 3
"""So many of the files that were left out stand in the list; `show` names more of them."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Sources of documents: add repositories, folders, web sites and channels, and read them into a snapshot.

    Everything here may be used while Denizen runs.
    """


_OPTIONS = [
    click.option(
        "--kind",
        type=click.Choice(["git", "folder", "sitemap", "youtube", "archive"]),
        help="Its kind.  [default: from the location]",
    ),
    click.option("--label", help="The name that people read."),
    click.option("--branch", help="Branch or tag; empty for the repository's own choice."),
    click.option("--content-path", help="Read only what is below this path."),
    click.option("--output-path", help="Its folder below docs/ in the snapshot."),
    click.option("--readme-only/--everything", "readme_only", default=None, help="Read only the README."),
    click.option(
        "--max-videos", type=click.IntRange(1, 1000), help="How many of the newest videos of a YouTube channel to read."
    ),
    click.option(
        "--sync-every",
        "sync_every_minutes",
        type=click.IntRange(0, 10080),
        metavar="MINUTES",
        help="Read it at this interval; 0: as the configuration says for all.",
    ),
]


def source_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say what a source is and how it is read."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), function)


@command.command()
@click.argument("location")
@click.option("--id", "source_id", default="", help="The id of the source.  [default: from the location]")
@click.option("--guild", metavar="ID", help="Only for talk in this Discord server; not to be changed later.")
@source_options
@with_denizen
async def add(denizen: Denizen, location: str, source_id: str, **given: str | int | None) -> None:
    """Add a source. LOCATION is owner/repo on GitHub, an address for git, a path, the address of a sitemap, a YouTube
    channel (@name), or a channel of the archive (discord:ID).

    A path is a folder, or a repository with --kind git; an address that ends with .xml is a sitemap. It is read with
    the next `denizen sources sync`; a channel of the archive is read by a running Denizen.
    """
    source = await denizen.knowledge.catalog.add(_full(location, given["kind"]), _change(given), source_id=source_id)
    echo(f"Added {source.id}: {source.kind} {source.location}, to be found in {source.folder}/.")
    echo("`denizen sources sync` reads it.")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each source, a line each.")
@with_denizen
async def list_command(denizen: Denizen, *, as_json: bool) -> None:
    """List the sources with the state of each."""
    found = await denizen.knowledge.catalog.list_known()
    for known in found:
        echo(printable_json(_fields(known)) if as_json else _line(known))
    if as_json:
        return
    if not found:
        echo("There are no sources. `denizen sources add owner/repo` adds one.")
    progress = await denizen.knowledge.indexing.find_embedding_progress()
    if progress is not None and not progress.is_complete:
        echo(f"Search by meaning: {progress.describe()}.{_RUNS if progress.left_s is None else ''}")


@command.command()
@click.argument("source_id", metavar="ID")
@with_denizen
async def show(denizen: Denizen, source_id: str) -> None:
    """Show everything about a source."""
    for name, value in _fields(await denizen.knowledge.catalog.get(source_id)).items():
        echo(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")


@command.command()
@click.argument("source_id", metavar="ID")
@click.option("--location", help="Its new location.")
@source_options
@with_denizen
async def edit(denizen: Denizen, source_id: str, location: str | None, **given: str | int | None) -> None:
    """Change a source. What was read of it stays until the next sync."""
    change = _change(given, None if location is None else _full(location, given["kind"]))
    source = await denizen.knowledge.catalog.edit(source_id, change)
    echo(f"Changed {source.id}: {source.kind} {source.location}, to be found in {source.folder}/.")


@command.command()
@click.argument("source_id", metavar="ID")
@with_denizen
async def remove(denizen: Denizen, source_id: str) -> None:
    """Remove a source, and what was read of it from the snapshot."""
    await denizen.knowledge.catalog.remove(source_id)
    echo(f"Removed {source_id}.")


@command.command()
@click.argument("source_ids", metavar="[ID]...", nargs=-1)
@click.option("--reset", is_flag=True, help="Fetch everything again.")
@click.option(
    "--push/--no-push", default=True, help="Whether to push the snapshot to knowledge.remote.  [default: yes]"
)
@click.pass_context
def sync(ctx: click.Context, source_ids: tuple[str, ...], *, reset: bool, push: bool) -> None:
    """Read all sources, or those with these ids, and publish what agents see. What did not change is not read again.
    Sources that a Discord server added itself are read only by their ids.

    The exit code is 4 if a source could not be read; its last good state stays.
    """
    home: Path = ctx.obj
    leave_to_command("denizen.knowledge.reading", "denizen.knowledge.sync")
    try:
        ended = anyio.run(partial(_sync, home, source_ids, reset=reset, push=push))
    except KeyboardInterrupt:
        echo("Sources that were read stay so; `denizen sources sync` goes on with the others.", err=True)
        raise
    ctx.exit(ended)


@command.command()
@click.option("--verify", is_flag=True, help="Also compare every file of the snapshot with what was read.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_denizen
async def status(denizen: Denizen, *, verify: bool, as_json: bool) -> None:
    """Show which snapshot agents read, and whether a sync is needed."""
    snapshots = denizen.knowledge.snapshots
    found = await snapshots.status()
    faults = await snapshots.verify() if verify and found.current else ()
    embedding = await denizen.knowledge.indexing.find_embedding_progress()
    if as_json:
        told = {
            "current": found.current,
            "latest": found.latest,
            "latest_at": found.latest_at.isoformat() if found.latest_at else None,
            "last_sync_at": found.last_sync_at.isoformat() if found.last_sync_at else None,
            "needs_sync": found.needs_sync,
            "why": found.why,
            "embedding": None if embedding is None else dataclasses.asdict(embedding),
            **({"faults": list(faults)} if verify else {}),
        }
        echo(printable_json(told))
        return
    echo(f"current snapshot: {found.current or 'none'}")
    echo(f"latest snapshot: {found.latest or 'none'}{f', made {_time(found.latest_at)}' if found.latest_at else ''}")
    echo(f"last sync: {_time(found.last_sync_at) if found.last_sync_at else 'never'}")
    echo(f"a sync is needed: {f'yes. {found.why}' if found.needs_sync else 'no'}")
    if embedding is not None and embedding.total:
        echo(f"search by meaning: {embedding.describe()}")
    if verify and found.current:
        echo("\n".join(faults) if faults else "every file is as it was read")


async def _sync(home: Path, source_ids: tuple[str, ...], *, reset: bool, push: bool) -> int:
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.cli.docs import index_documents
    from denizen.cli.sync_progress import show_sync_progress
    from denizen.engine.knowledge.sync import REMOTE

    async with open_denizen(home, OpenOptions()) as denizen:
        sync = denizen.knowledge.sync
        run = await sync.start(source_ids, reset=reset, push=push)
        async with show_sync_progress(lambda: sync.progress(run.id)):
            ended = await sync.wait(run)
        await index_documents(denizen)
        known = {each.source.id: each for each in await denizen.knowledge.catalog.list_known()}
    for each, why in ended.failed.items():
        echo(f"{each}: {'not pushed' if each == REMOTE else 'not read'}. {why}")
    for each, why in ended.skipped.items():
        echo(f"{each}: skipped. {why}")
    for each in ended.sources:
        if each not in ended.failed and each not in ended.skipped:
            taken = state.taken if each in known and (state := known[each].state) else None
            files = f", {_files(taken.files)}" if taken else ""
            read = f"read{files}" if each in ended.changed else "unchanged"
            echo(f"{each}: {read}{f'; {ended.left_out[each]}' if each in ended.left_out else ''}")
    echo(f"The current snapshot is {ended.snapshot}." if ended.snapshot else "There is no snapshot yet.")
    return exit_code(UNAVAILABLE) if ended.failed else 0


def _full(location: str, kind: str | int | None) -> str:
    """People write paths relative to where they are. Raises InvalidInput for what may be a folder here or a repository
    on GitHub, and NotFound for a path where no folder is.
    """
    from denizen.domain.errors import InvalidInput
    from denizen.domain.location import is_shorthand

    is_path = location.startswith(("./", "../", "~", "/")) or location in (".", "..")
    if is_path and not Path(location).expanduser().is_dir():
        raise _no_folder(location)
    if is_path and not location.startswith("/"):
        return str(Path(location).expanduser().resolve())
    is_here = _is_here(location)
    if is_here and is_shorthand(location):
        raise InvalidInput(
            f"'{location}' is a folder here, and may be a repository on GitHub.",
            code="source_invalid",
            fix=f"Write ./{location} for the folder, or https://github.com/{location}.git.",
        )
    if is_here:
        return str(Path(location).resolve())
    if is_shorthand(location) and (kind == "folder" or (kind is None and _is_here(location.partition("/")[0]))):
        raise _no_folder(location, f" --kind git or https://github.com/{location}.git is the repository on GitHub.")
    if not is_shorthand(location) and _reads_like_a_path(location, kind):
        raise _no_folder(location, " A repository on GitHub is owner/repo; other places are given by their address.")
    return location


def _reads_like_a_path(location: str, kind: str | int | None) -> bool:
    """Whether it can be read as nothing but a folder, or a repository, of this machine."""
    from denizen.domain.errors import InvalidInput
    from denizen.domain.location import SourceKind, read_location

    if kind not in (None, "git", "folder") or not re.fullmatch(r"[\w.][\w./ -]*", location):
        return False
    try:
        read_location(location, SourceKind(kind) if kind else None)
    except InvalidInput:
        return True
    return False


def _no_folder(location: str, others: str = "") -> DenizenError:
    """`others` says how to name what is no folder of this machine."""
    from denizen.app.settings.problem import find_closest
    from denizen.domain.errors import NotFound

    path = Path(location).expanduser()
    try:
        near = find_closest(path.name, sorted(each.name for each in path.parent.iterdir() if each.is_dir()))
    except OSError:
        near = ""
    meant = f"Did you mean {path.parent / near}? " if near else ""
    fix = f"{meant}Correct the path, or make the folder first.{others}"
    return NotFound(f"There is no folder {location}.", code="source_missing", fix=fix)


def _is_here(location: str) -> bool:
    """Whether it is the name of something in the folder that the command is given in."""
    try:
        return bool(location) and "://" not in location and not location.startswith("/") and Path(location).exists()
    except OSError:  # too long for a name
        return False


def _change(given: Mapping[str, str | int | None], location: str | None = None) -> SourceChange:
    """Reads the options, which have the names of a source's settings."""
    from denizen.domain.source import SourceChange, SourceKind

    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "kind" in settings:
        settings["kind"] = SourceKind(settings["kind"])
    return SourceChange(location=location, **settings)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _line(known: SourceListing) -> str:
    from denizen.domain.source import describe_left_out

    source, state = known.source, known.state
    below = f" below {source.content_path}" if source.content_path else ""
    alone = f" for the server {source.guild}" if source.guild else ""
    branch = f" ({source.branch})" if source.branch else ""
    what = f"{source.id}  {source.kind} {source.location}{branch}{below}{alone}"
    if state is None:
        return f"{what}: not read yet"
    left_out = describe_left_out(state.taken, most=NAMED) if state.taken else ""
    taken = f"{_files(state.taken.files)}{f' ({left_out})' if left_out else ''}" if state.taken else "never read"
    read = f", {_time(state.synced_at)}" if state.synced_at else ""
    how = "it was skipped" if state.is_skipped else "the last attempt failed"
    return f"{what}: {taken}{read}{f'; {how}: {state.error}' if state.error else ''}"


def _fields(known: SourceListing) -> dict[str, str | int | bool | list[str] | None]:
    source, state = known.source, known.state
    taken = state.taken if state else None
    synced_at = state.synced_at if state else None
    settings: dict[str, str | int | bool] = {
        each.name: getattr(source, each.name)
        for each in dataclasses.fields(source)
        if each.name not in {"output_path", "created_at", "updated_at"}
    }
    return {
        **settings,
        "kind": source.kind.value,
        "folder": source.folder,
        "created_at": source.created_at.isoformat(),
        "updated_at": source.updated_at.isoformat(),
        "revision": state.revision if state else "",
        "synced_at": synced_at.isoformat() if synced_at else None,
        "files": taken.files if taken else 0,
        "documents": taken.documents if taken else 0,
        "size_bytes": taken.size_bytes if taken else 0,
        "skipped": taken.skipped if taken else 0,
        "left_out": list(taken.left_out) if taken else [],
        "error": state.error if state else "",
    }


@command.command()
@click.argument("source_id", metavar="ID")
@click.option("--remove", is_flag=True, help="Remove the webhook.")
@click.pass_obj
def webhook(home: Path, source_id: str, *, remove: bool) -> None:
    """Create the webhook of a source: shows a secret, with which a push starts a sync. It replaces an earlier one.

    It is kept in secrets.env, and knowledge.webhooks in denizen.yaml refers to it. A running Denizen applies it.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import remove_secret, remove_value, set_secret
    from denizen.builtin_skills import BUILTIN

    path = ("knowledge", "webhooks", source_id)
    run_with_denizen(home, lambda denizen: denizen.knowledge.catalog.get(source_id))  # raises NotFound
    known = load_home_settings(home).config.knowledge.webhooks
    if remove:
        variable = _webhook_variable(source_id, known)
        if variable.startswith(VARIABLE):
            remove_secret(home, read_environment(), path, variable, known_tools=BUILTIN)
        else:  # a secret that somebody wrote there, perhaps for more than this
            remove_value(home, read_environment(), path, known_tools=BUILTIN)
        echo(f"{source_id} has no webhook any more.")
        return
    secret = secrets.token_urlsafe(32)
    variable = _webhook_variable(source_id, known)
    set_secret(home, read_environment(), path, (variable, secret), known_tools=BUILTIN)
    echo(f"POST /api/sync/webhook/{source_id} has it read. Give this secret to the other side; it is not shown again:")
    echo(f"  {secret}")
    echo("On GitHub: Settings, Webhooks, content type application/json. Elsewhere: as `Authorization: Bearer SECRET`.")


def _webhook_variable(source_id: str, known: Mapping[str, SecretRef | None]) -> str:
    """That of its secret now, or one that no other source has."""
    mine = known.get(source_id)
    if mine is not None:
        return mine.name
    taken = {each.name for each in known.values() if each is not None}
    plain = f"{VARIABLE}{re.sub(r'[^A-Z0-9]+', '_', source_id.upper())}"
    names = (plain, *(f"{plain}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
