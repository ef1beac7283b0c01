"""`denizen connect`: lets agents use an account at another site."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import load_home_settings
from denizen.cli.terminal import echo
from denizen.domain.errors import NeedsAttention
from denizen.ports.google import GoogleLogin, GoogleService


@click.group(cls=CommandGroup)
def command() -> None:
    """Let agents use an account at another site."""


@command.command()
@click.argument("services", nargs=-1, type=click.Choice([each.value for each in GoogleService]))
@click.option(
    "--client",
    "client_file",
    type=click.Path(path_type=Path),
    help="The JSON file of an OAuth client of the type Desktop app, from the Google Cloud console; needed once.",
)
@click.option("--paste", is_flag=True, help="For a browser on another machine: you paste the address where it ends.")
@click.pass_obj
def google(home: Path, services: tuple[str, ...], client_file: Path | None, *, paste: bool) -> None:
    """Connect a Google account for gmail, google_calendar and google_drive: all of these whose tools are on, and those
    that you name.

    The token that Google gives goes into secrets.env. A running Denizen takes it over.
    """
    from denizen.app.google import choose_token_variable, keep_client, list_google_services, read_client_file

    if client_file is not None:
        keep_client(home, read_client_file(client_file))
    settings = load_home_settings(home)
    login, enabled = settings.google_login, list_google_services(settings)
    wanted = [each for each in GoogleService if each in enabled or each.value in services]
    if login is None:
        raise NeedsAttention(
            "There is no OAuth client with which Denizen could ask Google.",
            code="google_client",
            fix="Make one of the type Desktop app in the Google Cloud console, and give its file with --client FILE.",
        )
    if not wanted:
        raise click.UsageError(f"Name what to connect: {', '.join(GoogleService)}.")
    choose_token_variable(settings.config.google)  # raises Conflict, before anybody is asked
    address = anyio.run(_connect, home, login, wanted, paste)
    echo(f"Connected{f' to {address}' if address else ''}: {', '.join(wanted)}.")
    if off := [each for each in wanted if each not in enabled]:
        echo(f"Agents cannot use {', '.join(off)} yet. In denizen.yaml, below tools, write for each `enabled: true`.")


async def _connect(home: Path, login: GoogleLogin, services: list[GoogleService], paste: bool) -> str:  # noqa: FBT001 - anyio.run passes positions only
    from denizen.adapters.google import HttpGoogleAccount
    from denizen.app.google import ask_consent, keep_consent
    from denizen.domain.clock import SystemClock

    def show(url: str) -> None:
        echo("Open this address, choose the account, and allow everything that is asked for:")
        echo(f"  {url}")
        if paste:
            echo("The browser then ends at a page that cannot be reached, at 127.0.0.1. That is right.")

    def read_address() -> str:
        return str(click.prompt("Paste the address of that page"))

    agreed = await ask_consent(login, services, show, read_address if paste else None)
    await keep_consent(home, load_home_settings(home).config.google, agreed)
    return await HttpGoogleAccount(agreed, SystemClock()).check(services)
