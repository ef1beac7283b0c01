"""`denizen schedules`: prompts that agents get at set times, their runs, and changes of them in the configuration."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import load_home_settings, run_with_denizen, with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from denizen.app.build import Denizen
    from denizen.app.settings import Settings
    from denizen.domain.json import Json
    from denizen.engine.schedules.catalog import RunListing, ScheduleListing

NEXT_LOOK = "The server takes it up within half a minute; without one it waits for an hour."


@click.group(cls=CommandGroup)
def command() -> None:
    """Prompts that agents get at set times: list, run, switch, add and remove them.

    They stand under `schedules` in denizen.yaml, and run while `denizen run` does. Everything here may be used then.
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each schedule, a line each.")
@with_denizen
async def list_command(denizen: Denizen, *, as_json: bool) -> None:
    """List the schedules, each with its next time and how it went last."""
    from denizen.engine.schedules.catalog import describe_listing

    found = await denizen.schedule_catalog.list_schedules()
    for each in found:
        echo(printable_json(_fields(each)) if as_json else describe_listing(each))
    if not found and not as_json:
        echo("There are no schedules. `denizen schedules add NAME --when 'every day at 9' --prompt TEXT` adds one.")


@command.command()
@click.argument("name")
@with_denizen
async def show(denizen: Denizen, name: str) -> None:
    """Show everything about a schedule."""
    for field, value in _fields(await denizen.schedule_catalog.get(name)).items():
        echo(f"{field}: {value if isinstance(value, str) else printable_json(value)}")


@command.command()
@click.argument("name", required=False, default="")
@click.option("--limit", default=20, type=click.IntRange(1, 500), show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each run, a line each.")
@with_denizen
async def history(denizen: Denizen, name: str, limit: int, *, as_json: bool) -> None:
    """Show the runs of a schedule, or of all, the newest first: also those that were skipped or missed, and why."""
    from denizen.engine.schedules.catalog import describe_run

    found = await denizen.schedule_catalog.list_runs(name, limit=limit)
    for each in found:
        echo(printable_json(_run_fields(each)) if as_json else describe_run(each))
    if not found and not as_json:
        echo("There was no run yet.")


@command.command()
@click.argument("name")
@with_denizen
async def run(denizen: Denizen, name: str) -> None:
    """Run a schedule now, also one that is off. A running `denizen run` does it."""
    run = await denizen.schedule_catalog.run(name, denizen.operator)
    echo(f"Asked for a run of {name}: {run.id}. {NEXT_LOOK}")


@command.command()
@click.argument("name")
@click.pass_obj
def enable(home: Path, name: str) -> None:
    """Switch a schedule on. Its times count from now on."""
    _switch(home, name, is_on=True)


@command.command()
@click.argument("name")
@click.pass_obj
def disable(home: Path, name: str) -> None:
    """Switch a schedule off. It can still be run by hand."""
    _switch(home, name, is_on=False)


@command.command()
@click.argument("name")
@click.option("--when", help="When: 'every Monday at 9', 'every 2 hours', 'in 3 hours', 'tomorrow at 9'.")
@click.option("--cron", help="Or an expression: minute, hour, day, month and weekday, or a name such as @daily.")
@click.option("--prompt", help="What the agent is told.")
@click.option("--tool", help="Instead of a prompt: the tool that is called.")
@click.option("--workflow", help="Instead of a prompt: the workflow that is run.")
@click.option("--args", metavar="JSON", help="Arguments of the tool, or inputs of the workflow, as a JSON object.")
@click.option("--zone", help="Time zone of these times.  [default: that of the agent, or else UTC]")
@click.option("--agent", help="The agent that gets it.  [default: the default agent]")
@click.option("--session", help="Name of the session.  [default: cron:NAME]")
@click.option("--new-session", is_flag=True, help="Begin a new session with each run.")
@click.option("--model", help="Alias or provider/model for the runs.  [default: that of the agent]")
@click.option("--no-wake", is_flag=True, help="Leave the prompt in the session; the agent does not answer.")
@click.option("--discord", metavar="CHANNEL", help="Deliver into this channel, by its id.")
@click.option("--discord-dm", metavar="USER", help="Deliver to this person, by their id; `owner` for an owner.")
@click.option("--webhook", metavar="URL", help="Deliver to this address, as JSON signed with --secret.")
@click.option("--secret", metavar="NAME", help="The variable in secrets.env whose value signs webhooks.")
@click.option("--mail", metavar="ADDRESS", help="Deliver by mail, from the account of tools.mail.")
@click.option("--subject", help="Subject of the mail.  [default: the name of the schedule]")
@click.option("--jitter", metavar="SPAN", help="Let each time come later by up to so much, such as 5m.")
@click.option("--catch-up", type=click.Choice(["skip", "once"]), help="For times without a server.  [default: skip]")
@click.pass_obj
def add(  # noqa: PLR0913 - each is an option
    home: Path,
    *,
    name: str,
    when: str | None,
    cron: str | None,
    prompt: str | None,
    tool: str | None,
    workflow: str | None,
    args: str | None,
    zone: str | None,
    agent: str | None,
    session: str | None,
    new_session: bool,
    model: str | None,
    no_wake: bool,
    discord: str | None,
    discord_dm: str | None,
    webhook: str | None,
    secret: str | None,
    mail: str | None,
    subject: str | None,
    jitter: str | None,
    catch_up: str | None,
) -> None:
    """Add a schedule to the configuration, whose comments stay. The answers stay in the session unless a place for
    them is given.
    """
    if sum(map(bool, (discord, discord_dm, webhook, mail))) > 1:
        raise click.UsageError("Give one of --discord, --discord-dm, --webhook and --mail.")
    if bool(webhook) != bool(secret) or (subject and not mail):
        raise click.UsageError("--webhook needs --secret, and --subject needs --mail.")
    if bool(when) == bool(cron):
        raise click.UsageError("Give one of --when and --cron.")
    from denizen.app.schedule_configuration import schedule_exists

    settings = load_home_settings(home)
    if name in settings.schedules:
        raise schedule_exists(name)
    if discord:
        run_with_denizen(home, lambda denizen: denizen.schedule_catalog.check_channel("discord", discord))
    given: dict[str, Json] = {
        **(_read_times(settings, when, zone, agent) if when else {"cron": cron}),
        "zone": zone,
        "prompt": prompt,
        "tool": tool,
        "workflow": workflow,
        "args": _read_args(args),
        "agent": agent,
        "session": session,
        "new_session": new_session or None,
        "model": model,
        "wake_agent": False if no_wake else None,
        "delivery": _read_delivery(discord, discord_dm) or _read_sending(webhook, secret, mail, subject),
        "jitter": jitter,
        "catch_up": catch_up,
    }
    _write(home, (name,), {key: value for key, value in given.items() if value is not None})
    run_with_denizen(home, partial(_tell_added, name))


async def _tell_added(name: str, denizen: Denizen) -> None:
    from denizen.engine.schedules.catalog import describe_listing

    echo(f"Added {describe_listing(await denizen.schedule_catalog.get(name))}.")


@command.command()
@click.argument("name")
@click.pass_obj
def remove(home: Path, name: str) -> None:
    """Take a schedule out of the configuration. The history of its runs stays."""
    from denizen.app.home.environment import read_environment
    from denizen.app.schedule_configuration import SCHEDULES
    from denizen.app.settings import remove_value
    from denizen.builtin_skills import BUILTIN

    _check_known(home, name)
    remove_value(home, read_environment(), (*SCHEDULES, name), known_tools=BUILTIN)
    echo(f"Removed {name}.")


def _switch(home: Path, name: str, *, is_on: bool) -> None:
    _check_known(home, name)
    _write(home, (name, "enabled"), is_on)
    if is_on and not load_home_settings(home).schedules[name].enabled:
        _write(home, (name, "paused"), value=False)
    echo(f"{name} is {'on' if is_on else 'off'}.")


def _write(home: Path, path: tuple[str, ...], value: Json) -> None:
    from denizen.app.home.environment import read_environment
    from denizen.app.schedule_configuration import SCHEDULES
    from denizen.app.settings import set_value
    from denizen.builtin_skills import BUILTIN

    set_value(home, read_environment(), (*SCHEDULES, *path), value, known_tools=BUILTIN)


def _check_known(home: Path, name: str) -> None:
    """Raises NotFound, naming the nearest."""
    from denizen.engine.schedules.catalog import find_schedule

    find_schedule(load_home_settings(home).schedules, name)


def _read_times(settings: Settings, when: str, zone: str | None, agent: str | None) -> Mapping[str, Json]:
    """Returns the keys of the configuration that say what these words mean. Raises InvalidInput."""
    from denizen.adapters.cron import CroniterTimes
    from denizen.domain.clock import SystemClock
    from denizen.domain.ids import AgentName
    from denizen.domain.prompt_messages import agent_timezone

    known = settings.agents.get(AgentName(agent or "")) or settings.agents[settings.default_agent]
    where = zone or agent_timezone(known)
    return CroniterTimes().read(when, where, SystemClock().now()).list_keys(where)


def _read_delivery(channel: str | None, person: str | None) -> Json:
    if channel:
        return {"to": "discord", "target": channel}
    if person:
        return {"to": "discord-dm"} | ({} if person == "owner" else {"target": person})
    return None


def _read_args(text: str | None) -> Json:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise click.UsageError('--args is no JSON; write \'{"name": "value"}\'.') from error


def _read_sending(webhook: str | None, secret: str | None, mail: str | None, subject: str | None) -> Json:
    if webhook:
        return {"to": "webhook", "target": webhook, "secret": f"${{{secret}}}"}
    if mail:
        return {"to": "mail", "target": mail} | ({"subject": subject} if subject else {})
    return None


def _fields(listing: ScheduleListing) -> dict[str, Json]:
    schedule = listing.schedule.written
    conduct = schedule.conduct
    return {
        "name": schedule.name,
        "when": schedule.when,
        "cron": schedule.cron,
        "at": schedule.at.isoformat() if schedule.at else None,
        "zone": schedule.zone,
        "prompt": schedule.prompt,
        "agent": schedule.agent,
        "session": schedule.session_name,
        "new_session": conduct.new_session,
        "model": conduct.model,
        "enabled": schedule.enabled,
        "wake_agent": conduct.wake_agent,
        "delivery": {"to": conduct.delivery.name, "target": conduct.delivery.target},
        "catch_up": schedule.catch_up.value,
        "owner": schedule.owner,
        "next_at": listing.next_at.isoformat() if listing.next_at else None,
        "last": _run_fields(listing.last) if listing.last else None,
    }


def _run_fields(listing: RunListing) -> dict[str, Json]:
    run = listing.run
    return {
        "id": run.id,
        "schedule": run.schedule_name,
        "planned_at": run.planned_at.isoformat(),
        "outcome": listing.outcome,
        "reason": listing.reason,
        "turn_id": run.turn_id,
        "asked_by": run.asked_by,
        "cost_usd": None if listing.cost_usd is None else str(listing.cost_usd),
    }
