"""`denizen users`: the people with accounts on the web, and invitations."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen, with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.user import User
    from denizen.web.http.dependencies import UserServices

ROLES = click.Choice(["member", "admin", "owner"])


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each person, a line each.")
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """List the people with an account on the web; invite, promote or remove them."""
    if ctx.invoked_subcommand is None:
        run_with_denizen(ctx.obj, partial(_list, as_json=as_json))


@command.command()
@click.option("--role", type=ROLES, default="member", show_default=True, help="What the person may do.")
@click.option("--email", default="", help="The only address that may use the link.")
@with_denizen
async def invite(denizen: Denizen, role: str, email: str) -> None:
    """Make a link with which one person may sign up within a week."""
    from denizen.engine.users.registration import read_role

    users = _build(denizen)
    text, _ = await users.registration.invite(denizen.operator, role=read_role(role), email=email)
    echo(f"{_find_address(denizen)}/sign-up?invite={text}")


@command.command()
@click.argument("person", metavar="EMAIL")
@click.argument("role", type=ROLES)
@with_denizen
async def role(denizen: Denizen, person: str, role: str) -> None:
    """Give a person, named by e-mail or id, another role."""
    from denizen.engine.users.registration import read_role

    users = _build(denizen)
    user = await _find(users, person)
    await users.accounts.change_role(denizen.operator, user.id, read_role(role))
    echo(f"{user.email} is {role} now.")


@command.command()
@click.argument("person", metavar="EMAIL")
@click.password_option("--password", help="The new one; asked for if it is left out.")
@with_denizen
async def password(denizen: Denizen, person: str, password: str) -> None:
    """Set the password of a person who has forgotten it. All sign-ins of that person end."""
    users = _build(denizen)
    user = await _find(users, person)
    await users.accounts.reset_password(denizen.operator, user, password)
    echo(f"{user.email} has a new password.")


@command.command("let-in")
@click.argument("person", metavar="EMAIL")
@with_denizen
async def let_in(denizen: Denizen, person: str) -> None:
    """Make a link to the sign-in for a person whose account strangers keep locked with wrong passwords.

    The password is asked for as ever. The link holds until the password changes.
    """
    from urllib.parse import urlencode

    from denizen.engine.users.accounts import make_browser_token

    user = await _find(_build(denizen), person)
    if not user.password_hash:
        raise InvalidInput(
            f"{user.email} has no password.", code="user_without_password", fix="Set one: denizen users password EMAIL"
        )
    query = urlencode({"email": user.email, "browser": make_browser_token(user)})
    echo(f"{_find_address(denizen)}/login?{query}")


@command.command()
@click.argument("person", metavar="EMAIL")
@click.confirmation_option(prompt="Everything that is stored about this person goes, for good. Delete?")
@click.pass_obj
def remove(home: Path, person: str) -> None:
    """Delete the account of a person, named by e-mail or id, with everything that is stored about it."""
    anyio.run(_remove, home, person)


async def _remove(home: Path, person: str) -> None:
    """Opens the durable log, too, which has steps of the person's turns."""
    from denizen.app.build import OpenOptions, open_denizen

    async with open_denizen(home, OpenOptions(needs_models=False)) as denizen:
        users = _build(denizen)
        user = await _find(users, person)
        await users.accounts.delete(denizen.operator, user.id)
        echo(f"{user.email} is deleted.")


async def _list(denizen: Denizen, *, as_json: bool) -> None:
    from denizen.web.api.user_records import user_to_wire

    found = await _build(denizen).accounts.list_users()
    for user in found:
        shown = f"{user.id}  {user.role:6}  {user.email}  {user.name}  since {user.created_at:%Y-%m-%d}"
        echo(printable_json(asdict(user_to_wire(user))) if as_json else shown)
    if not found and not as_json:
        echo("Nobody has an account. `denizen users invite --role owner` makes a link for the first one.")


async def _find(users: UserServices, person: str) -> User:
    """Returns the user with that e-mail or id. Raises NotFound."""
    everybody = await users.accounts.list_users()
    found = next((user for user in everybody if person.strip().lower() in (user.email, user.id)), None)
    return found or await users.accounts.get(person)


def _find_address(denizen: Denizen) -> str:
    server = denizen.settings.server
    return str(server.public_url) or f"http://127.0.0.1:{server.port}"


def _build(denizen: Denizen) -> UserServices:
    from denizen.app.users import build_users

    return build_users(denizen)
