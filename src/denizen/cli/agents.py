"""`denizen agents`: who is configured, making, switching and removing one, and settings that lie over the configuration
of one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import run_with_denizen, with_denizen
from denizen.cli.terminal import can_prompt, echo, printable_json
from denizen.domain.agent_settings import FIELDS
from denizen.domain.errors import InvalidInput

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.json import Json
    from denizen.engine.agents.catalog import AgentCatalog

AS_CONFIGURED = ""
"""The value that sets a field back to the configured one."""


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the configured agents; the default one is marked. `denizen agents create` makes one, and `denizen agents
    settings` changes how one answers.
    """
    if ctx.invoked_subcommand is None:
        run_with_denizen(ctx.obj, _list)


async def _list(denizen: Denizen) -> None:
    default = denizen.runtime.current.default_agent
    for agent in denizen.queries.list_agents():
        mark = "*" if agent.name == default else " " if agent.enabled else "-"
        click.echo(f"{mark} {agent.name:<20} model {agent.model_word:<16} {agent.description}".rstrip())


@command.command()
@click.argument("name", required=False, default="")
@click.option("--description", default="", help="What it is for, in one sentence.")
@click.option("--identity", default="", help="Who it is: You are ...")
@click.option("--instructions", default="", help="What it does, and what it leaves.")
@click.option("--tool", "tools", multiple=True, help="A tool that it may use, or a pattern; may be repeated.")
@click.option("--model", default="", help="An alias, or provider/model.  [default: the usual one]")
@click.option("--yes", is_flag=True, help="Ask nothing, and write what the options say.")
@click.pass_obj
def create(  # noqa: PLR0913 - each is an option
    home: Path,
    *,
    name: str,
    description: str,
    identity: str,
    instructions: str,
    tools: tuple[str, ...],
    model: str,
    yes: bool,
) -> None:
    """Make an agent: asks what it needs to know, shows what would be written, and writes it when you agree.

    What the options say is offered as the answer. A running Denizen has the agent a moment later.
    """
    from denizen.domain.agent_draft import AgentDraft

    draft = AgentDraft(
        name=name, description=description, identity=identity, instructions=instructions, tools=tools, model=model
    )
    if not yes and not can_prompt():
        raise InvalidInput("There is no terminal to ask in.", fix="Give NAME, --description and --yes.")

    async def act(denizen: Denizen) -> None:
        from denizen.cli.agent_interview import ask_draft

        catalog, wanted = _open_catalog(denizen), draft
        choices = await catalog.load_choices()
        while True:
            wanted = wanted if yes else ask_draft(wanted, choices)
            planned = await catalog.plan(wanted)
            if not yes:
                echo(planned.diff)
                options = click.Choice(["write", "change", "quit"])
                answer = click.prompt("Write this, change an answer, or quit?", type=options, default="write")
                if answer == "change":
                    echo("Enter keeps an answer, - empties it.")
                    continue
                if answer == "quit":
                    echo("Nothing was written.")
                    return
            done = await catalog.create(denizen.operator, wanted, expected=planned.digest)
            echo(f"{wanted.name.strip()} is there: generation {done.generation}. Try `denizen ask -a {wanted.name}`.")
            return

    run_with_denizen(home, act)


@command.command()
@click.argument("name")
@with_denizen
async def enable(denizen: Denizen, name: str) -> None:
    """Switch an agent on again."""
    await _open_catalog(denizen).switch(denizen.operator, name, is_on=True)
    echo(f"{name} is on.")


@command.command()
@click.argument("name")
@with_denizen
async def disable(denizen: Denizen, name: str) -> None:
    """Switch an agent off: it answers nobody, and gets no tasks."""
    await _open_catalog(denizen).switch(denizen.operator, name, is_on=False)
    echo(f"{name} is off.")


@command.command()
@click.argument("name")
@with_denizen
async def remove(denizen: Denizen, name: str) -> None:
    """Take an agent out of the configuration. Its folder and what was said with it stay."""
    await _open_catalog(denizen).remove(denizen.operator, name)
    echo(f"{name} is removed. Its files are still in the home folder.")


def _open_catalog(denizen: Denizen) -> AgentCatalog:
    """Returns the agents with the files of the configuration, which a running server reads again by itself."""
    from denizen.app.configuration import HomeConfiguration
    from denizen.app.reload import Reloader

    denizen.agents.open_configuration(HomeConfiguration(denizen, Reloader(denizen)))
    return denizen.agents


@command.command()
@click.option("-a", "--agent", default="", help="The settings of this agent.  [default: the configured one]")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="Change a setting; may be repeated.")
@click.option(
    "--name",
    default="",
    help="The set to change, which is created if needed and becomes active.  [default: the active one]",
)
@click.option("--use", default="", metavar="SET", help="Activate this set.")
@click.option("--delete", default="", metavar="SET", help="Delete a set; without an active one the file applies.")
@click.option("--reset", is_flag=True, help="Empty the set, so that the configuration file applies.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, as GET /api/agent-config gives it.")
@click.pass_obj
def settings(  # noqa: PLR0913 - each is an option
    home: Path, *, agent: str, given: tuple[str, ...], name: str, use: str, delete: str, reset: bool, as_json: bool
) -> None:
    """Show how an agent answers, or change it without touching the configuration file.

    Settings override the file. They are kept in named sets, of which one is active:

    \b
      additional_prompt     text at the end of its instructions
      response_style        concise, detailed, technical or friendly
      language              a code such as en, de or pt-BR
      default_model         a name from `denizen models`, provider/model, or auto
      max_steps_multiplier  0.5 to 3: how long it may work on a question
      temperature           0 to 2
      search_instructions   how it should look things up
      citation_format       inline, footnote or none

    \b
    For example:
      denizen agents settings --set response_style=friendly --set temperature=0.3
      denizen agents settings --set temperature=            as the file says
      denizen agents settings --name exam --set language=de
      denizen agents settings --use default

    A running Denizen applies changes within a minute.
    """
    if sum(map(bool, (given, use, delete, reset))) > 1:
        raise InvalidInput("That is more than one thing to do.", fix="Give one of --set, --use, --delete and --reset.")
    if name and not (given or reset):
        raise InvalidInput("--name belongs to --set or --reset.", fix="To activate a set, give --use.")

    async def act(denizen: Denizen) -> None:
        assistant, current, by = denizen.assistant, denizen.runtime.current, denizen.operator
        whose = current.agent(agent).name
        if given:
            await assistant.save(by, current, read_given(given), to=whose, name=name)
        elif use:
            await assistant.activate(by, whose, use)
        elif delete:
            await assistant.remove(by, whose, delete)
        elif reset:
            await assistant.reset(by, whose, name=name)
        await _show(denizen, whose, as_json=as_json)

    run_with_denizen(home, act)


def read_given(given: tuple[str, ...]) -> dict[str, Json]:
    """`name=value` pairs; numbers as numbers, nothing for the configured value. Raises InvalidInput."""
    values: dict[str, Json] = {}
    for pair in given:
        name, sign, text = pair.partition("=")
        if not sign:
            raise InvalidInput(f"'{pair}' says nothing.", fix="Write --set NAME=VALUE, such as --set temperature=0.3.")
        values[name.strip()] = None if text == AS_CONFIGURED else _value(name.strip(), text)
    return values


def _value(name: str, text: str) -> Json:
    if name not in {"max_steps_multiplier", "temperature"}:
        return text
    try:
        return float(text)
    except ValueError:
        return text  # which is refused, with what would do


async def _show(denizen: Denizen, name: str, *, as_json: bool) -> None:
    from denizen.domain.ids import AgentName
    from denizen.web.api.agents import config_to_wire

    whose = AgentName(name)
    agent = await denizen.assistant.agent(denizen.runtime.current, name)
    active = await denizen.assistant.load_active(whose)
    config = asdict(config_to_wire(agent, active, in_full=True))
    if as_json:
        echo(printable_json(config))
        return
    sets = await denizen.assistant.list_sets(whose)
    said = f"the set {active.name} lies over the configuration" if active and active.chosen.names else "as configured"
    echo(f"{name}: {said}")
    for field in FIELDS:
        value = config[field]
        told = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
        echo(f"  {field:<21} {told}{'  (set)' if field in config['changed'] else ''}")
    others = [each.name for each in sets if not each.is_active]
    if others:
        echo(f"other sets: {', '.join(others)}; --use activates one")
