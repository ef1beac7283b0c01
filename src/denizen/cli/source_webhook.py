"""`denizen sources webhook`: a secret with which others have one source read as soon as they have changed it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.screen import say

if TYPE_CHECKING:
    from denizen.app.home.secrets import SecretRef


@click.command()
@click.argument("source_id", metavar="ID")
@click.option("--remove", is_flag=True, help="Take it away: nobody may have the source read that way any more.")
@click.pass_obj
def webhook(home: Path, source_id: str, *, remove: bool) -> None:
    """Make a secret with which a push has this source read, in place of an earlier one, and show it.

    It is kept in secrets.env, and knowledge.webhooks in denizen.yaml refers to it. A Denizen that runs takes it over.
    """
    anyio.run(_check, home, source_id)
    if remove:
        _remove(home, source_id)
        say(f"{source_id} has no webhook any more.")
        return
    secret = secrets.token_urlsafe(32)
    _put(home, source_id, secret)
    say(f"POST /api/sync/webhook/{source_id} has it read. Give this secret to the other side; it is not shown again:")
    say(f"  {secret}")
    say("On GitHub: Settings, Webhooks, content type application/json. Elsewhere: as `Authorization: Bearer SECRET`.")


async def _check(home: Path, source_id: str) -> None:
    """Raises NotFound."""
    from denizen.app.build import OpenOptions, open_denizen

    async with open_denizen(home, OpenOptions(durable=False)) as denizen:
        await denizen.knowledge.catalog.get(source_id)


def _put(home: Path, source_id: str, secret: str) -> None:
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings, set_secret
    from denizen.skills import BUILTIN

    environment = read_environment()
    known = load_settings(home, environment, known_tools=BUILTIN).config.knowledge.webhooks
    path = ("knowledge", "webhooks", source_id)
    set_secret(home, environment, path, (_variable(source_id, known), secret), known_tools=BUILTIN)


def _remove(home: Path, source_id: str) -> None:
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import remove_value
    from denizen.skills import BUILTIN

    remove_value(home, read_environment(), ("knowledge", "webhooks", source_id), known_tools=BUILTIN)


def _variable(source_id: str, known: Mapping[str, SecretRef | None]) -> str:
    """That of its secret now, or one that no other source has."""
    mine = known.get(source_id)
    if mine is not None:
        return mine.name
    taken = {each.name for each in known.values() if each is not None}
    plain = f"SYNC_SECRET_{re.sub(r'[^A-Z0-9]+', '_', source_id.upper())}"
    names = (plain, *(f"{plain}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
