"""Routes of application commands, global and of a guild."""

from __future__ import annotations

from typing import Any, cast

from denizen.testing.discord.payloads.commands import command_payload
from denizen.testing.discord.rest.call import Call, Created, Route
from denizen.testing.discord.state.commands import Command
from denizen.testing.discord.state.people import Application
from denizen.testing.discord.state.refusals import bad_form, missing_access

_GLOBAL = "/applications/{application_id}/commands"
_GUILD = "/applications/{application_id}/guilds/{guild_id}/commands"


def _own(call: Call) -> tuple[Application, int | None]:
    """The application itself, and the guild of the route. Of others nothing is shown."""
    application = call.application
    if call.id("application_id") != application.id:
        raise missing_access()
    if "guild_id" not in call.path:
        return application, None
    guild = call.realm.get_guild(call.id("guild_id"))
    if application.id not in guild.members:
        raise missing_access()
    return application, guild.id


def _fields(body: object) -> dict[str, Any]:
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _one(call: Call) -> tuple[Application, Command]:
    application, guild_id = _own(call)
    return application, call.acts.commands.get(application, guild_id, call.id("command_id"))


def list_commands(call: Call) -> object:
    return [command_payload(each) for each in call.acts.commands.list(*_own(call))]


def overwrite_commands(call: Call) -> object:
    application, guild_id = _own(call)
    if not isinstance(call.body, list):
        raise bad_form([("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")])
    bodies = [_fields(each) for each in cast("list[Any]", call.body)]
    return [command_payload(each) for each in call.acts.commands.overwrite(application, guild_id, bodies)]


def create_command(call: Call) -> object:
    application, guild_id = _own(call)
    command, new = call.acts.commands.create(application, guild_id, _fields(call.body))
    return Created(command_payload(command)) if new else command_payload(command)


def read_command(call: Call) -> object:
    return command_payload(_one(call)[1])


def edit_command(call: Call) -> object:
    application, command = _one(call)
    return command_payload(call.acts.commands.edit(application, command, _fields(call.body)))


def delete_command(call: Call) -> object:
    application, command = _one(call)
    call.acts.commands.delete(application, command)
    return None


COMMAND_ROUTES = tuple(
    route
    for base in (_GLOBAL, _GUILD)
    for route in (
        Route("GET", base, list_commands),
        Route("PUT", base, overwrite_commands),
        Route("POST", base, create_command),
        Route("GET", f"{base}/{{command_id}}", read_command),
        Route("PATCH", f"{base}/{{command_id}}", edit_command),
        Route("DELETE", f"{base}/{{command_id}}", delete_command),
    )
)
