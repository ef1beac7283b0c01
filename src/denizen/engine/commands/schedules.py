"""`/schedules`: what agents do at set times, for owners and admins: seen, added, switched, run by hand and removed.

What is written goes to the configuration, and every text in it is plain: a `${NAME}` that somebody types names no
variable, so a command reads nothing of the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from denizen.domain.errors import NotFound
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import ParsedCommand, parse_text, private_reply, rank_suggestions, read_options
from denizen.engine.schedules.catalog import ScheduleListing, describe_listing, describe_run
from denizen.engine.schedules.own_schedules import OwnSchedules, deliver_to
from denizen.ports.channel import CommandCall, CommandOption, CommandReply, CommandSpec

SHOWN_RUNS = 10
HERE, NOWHERE = "here", "nowhere"
_MORE = "… and more: `denizen schedules` and the page Schedules show all."


@record(kw_only=True)
class ScheduleCaller:
    """Who gives the command, for which agent; `place` is the delivery to where they are, None where nothing can be
    delivered. `key` is the same for a command that is repeated.
    """

    principal: Principal
    agent: str
    key: str
    place: Json = None
    limit: int = 20_000


async def run_schedules_command(
    given: CommandCall | ParsedCommand, schedules: OwnSchedules, caller: ScheduleCaller
) -> str:
    """Does what the command says, whose options are checked, and returns what to tell. Raises what the changes raise.

    The terminal has commands of its own and calls this too.
    """
    name, catalog, by = given.options.get("name", ""), schedules.catalog, caller.principal
    match given.group:
        case "add":
            return await _add(given, schedules, caller)
        case "remove":
            await schedules.configuration.remove(by, name)
            return f"{name} is removed. The history of its runs stays."
        case "on" | "off":
            catalog.find(name)
            await schedules.configuration.edit(by, name, {"enabled": given.group == "on"})
            return _line(await catalog.get(name))
        case "run":
            await catalog.run(name, by, key=caller.key)
            return f"{name} begins in a moment, where the server runs. `/schedules history {name}` shows how it went."
        case "history":
            runs = await catalog.list_runs(name, limit=SHOWN_RUNS)
            return _fit((f"- {describe_run(each)}" for each in runs), caller.limit) or "There was no run yet."
        case _:
            found = await catalog.list_schedules()
            return _fit(map(_line, found), caller.limit) or "There are no schedules. `/schedules add` adds one."


async def _add(given: CommandCall | ParsedCommand, schedules: OwnSchedules, caller: ScheduleCaller) -> str:
    options = given.options
    is_here = options.get("deliver", HERE) == HERE
    values: dict[str, Json] = {
        "when": options["when"],
        "zone": options.get("zone"),
        "prompt": options["prompt"],
        "agent": options.get("agent") or caller.agent,
        "delivery": caller.place if is_here else None,
    }
    await schedules.configuration.add(caller.principal, options["name"], values, is_plain=True)
    stays = "" if is_here and caller.place else " Its answers stay in its session."
    return f"Added.{stays}\n{_line(await schedules.catalog.get(options['name']))}"


def _line(listing: ScheduleListing) -> str:
    return f"- {describe_listing(listing)}"


def _fit(lines: Iterable[str], limit: int) -> str:
    """Returns as many of the lines as a reply takes."""
    kept = list[str]()
    for line in lines:
        if sum(len(each) + 1 for each in (*kept, line, _MORE)) > limit:
            return "\n".join([*kept, _MORE])
        kept.append(line)
    return "\n".join(kept)


async def _run(context: CommandContext) -> CommandReply:
    said = await run_schedules_command(context.command, _open(context), _describe_caller(context))
    return private_reply(said)


def _describe_caller(context: CommandContext) -> ScheduleCaller:
    caller, room = context.caller, context.command.room
    place = None
    is_add = context.command.group == "add" and caller.principal.kind is PrincipalKind.PLATFORM_USER
    if is_add and _open(context).configuration.delivers_to(room.platform):
        person = context.command.author_id if room.kind is RoomKind.DIRECT else ""
        place = deliver_to(room.platform, room.place.thread or room.place.channel, person)
    return ScheduleCaller(
        principal=caller.principal,
        agent=caller.answering or caller.account,  # on a platform its account delivers the answers
        key=context.command.id,
        place=place,
        limit=context.message_limit,
    )


def _open(context: CommandContext) -> OwnSchedules:
    schedules = context.deps.catalogs.schedules
    if schedules is None:
        raise NotFound("There are no schedules here.", code="schedules_missing")
    return schedules


def read_schedules_command(typed: str) -> ParsedCommand:
    """Returns what was typed behind `/schedules`, with checked options. Raises InvalidInput."""
    parsed = parse_text(f"/schedules {typed or 'list'}", [SCHEDULES.spec])
    assert parsed is not None  # as it begins with the command
    return ParsedCommand(parsed.name, parsed.group, read_options(parsed, SCHEDULES.spec))


async def _suggest_name(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, list(context.generation.schedules))


async def _suggest_agent(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, list(context.generation.agents))


_NAME = CommandOption("name", "Its name.", required=True, suggests=True)

SCHEDULES = CommandDefinition(
    CommandSpec(
        "schedules",
        "See what agents do at set times, or change it (admins; changes: owners).",
        groups=(
            CommandSpec("list", "See the schedules, each with its next time and its last run."),
            CommandSpec(
                "add",
                "Have an agent told something at set times.",
                (
                    CommandOption("name", "Small letters, digits, - or _.", required=True),
                    CommandOption("when", "every Monday at 9, in 3 hours, or 0 9 * * mon.", required=True),
                    CommandOption("prompt", "What the agent is told each time.", required=True),
                    CommandOption("agent", "Who gets it.  [whoever answers here]", suggests=True),
                    CommandOption("zone", "Time zone, such as Europe/Berlin.  [the agent's]"),
                    CommandOption("deliver", "Where the answers go.  [here, on Discord]", choices=(HERE, NOWHERE)),
                ),
            ),
            CommandSpec("on", "Switch one on. Its times count from now on.", (_NAME,)),
            CommandSpec("off", "Switch one off. It can still be run by hand.", (_NAME,)),
            CommandSpec("run", "Run one now, also one that is off.", (_NAME,)),
            CommandSpec("remove", "Take one out. The history of its runs stays.", (_NAME,)),
            CommandSpec(
                "history",
                "See the last runs, also those that were skipped or missed, and why.",
                (CommandOption("name", "Those of this one.  [all]", suggests=True),),
            ),
        ),
        admin_only=True,
    ),
    _run,
    {"name": _suggest_name, "agent": _suggest_agent},
)
