"""The command group. Commands are imported when they are called, so that `--help` is quick."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from denizen import __version__
from denizen.app.home.environment import plan_home, read_environment
from denizen.cli.exit_codes import BUG, DONE, INTERRUPTED, exit_code
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, InvalidInput

COMMANDS: dict[str, str] = {
    "setup": "Create the home folder and connect a model; checks that it answers.",
    "run": "Start everything: agents, web page, API and Discord.",
    "ask": "Ask one question; the answer goes to standard output.",
    "chat": "Talk to an agent in the terminal.",
    "simulate": "Run a Discord server on this machine, to try without an account.",
    "service": "Run it in the background by systemd: install, status, logs, uninstall.",
    "doctor": "Check the installation and explain what is wrong.",
    "connect": "Let agents use an account at another site, such as Google.",
    "config": "Show or check the configuration.",
    "agents": "List the configured agents; change settings of one.",
    "sessions": "List the sessions that can be continued.",
    "models": "List models; fetch weights for the built-in one.",
    "tools": "List the tools that agents may use.",
    "shell": "Run read-only commands over the knowledge folders, as agents do.",
    "skill": "Manage your own skills: new, check, test, list, enable, disable.",
    "mcp": "List MCP servers with their state; test one.",
    "approvals": "List, approve or deny tool calls that wait for approval.",
    "questions": "List and answer what agents asked the owner.",
    "background": "List background tasks of agents; show or cancel one.",
    "archive": "Show what is mirrored of the community's messages; delete, opt out.",
    "memory": "Show what agents remember; add, export or forget it.",
    "audit": "List, verify or export the log of what was done, and for whom.",
    "sources": "Manage the sources of documents: repositories, folders, web sites.",
    "schedules": "Prompts that agents get at set times: list, run, switch, add, history.",
    "feeds": "Feeds whose items are posted in channels: list, add, remove.",
    "docs": "Search documents as agents do; update the index.",
    "gaps": "List questions that no document answers; review proposed answers.",
    "tasks": "List, add and change tasks; say something about one.",
    "projects": "List, add and change projects and their documents.",
    "events": "List what happened; emit an event; replay what failed.",
    "workflows": "Graphs of steps that events, times and people start: check, run, look at runs.",
    "listeners": "List what is done about events.",
    "fleet": "Show the processes that share the work on one Postgres.",
    "users": "List the people with accounts on the web; invite, promote or remove them.",
    "backup": "Make, list and check backups of the home folder.",
    "restore": "Restore a backup into a new home folder.",
    "upgrade": "Go back to the database of before an upgrade; show what was written since.",
    "db": "Show the database in use; move to another one.",
    "usage": "Show what was spent, by agent, model, user, channel, Discord server, source or day.",
    "prompt": "Show what would be sent to the model for a question.",
    "trace": "Show a turn: its prompt, steps, calls, verdicts and cost.",
    "replay": "Run a turn again on another model, without side effects.",
    "bench": "Measure Denizen on this machine, such as its gate against attacks.",
}


class LazyGroup(click.Group):
    """Finds `denizen.cli.<name>.command` when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            if near:
                raise click.UsageError(f"No such command '{cmd_name}'. Did you mean '{near[0]}'?", ctx)
            return None
        found = importlib.import_module(f"denizen.cli.{cmd_name}").command
        if not isinstance(found, click.Command):
            raise TypeError(f"denizen.cli.{cmd_name}.command is not a command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--home",
    type=click.Path(file_okay=False),
    default=None,
    help="Folder with the configuration and all data.  [default: ~/.denizen; env: DENIZEN_HOME]",
)
@click.option("-v", "--verbose", count=True, help="More of the log on standard error; twice for everything.")
@click.version_option(__version__, "-V", "--version", message="denizen %(version)s")
@click.pass_context
def cli(ctx: click.Context, home: str | None, verbose: int) -> None:
    """Denizen: a self-hosted AI that lives in a community.

    Start with `denizen setup`, then `denizen chat` or `denizen run`. Without a key and without setup, an agent on the
    built-in model answers. `denizen run --simulate` shows it in a Discord server, without an account.
    """
    from denizen.cli.log import open_log

    ctx.obj = plan_home(read_environment(), home)
    open_log(ctx.obj, verbose)


def run(args: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; errors are explained on standard error."""
    try:
        result: object = cli.main(list(args), prog_name="denizen", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError) or sys.stdin.isatty():
            click.echo("Stopped.", err=True)
            return INTERRUPTED
        click.echo(err=True)
        return _explain(InvalidInput("There is nobody to ask: standard input is no terminal.", fix="Add --yes."))
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
        return INTERRUPTED
    except DenizenError as error:
        return _explain(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BUG
    except BaseExceptionGroup as group:
        return _explain_group(group)
    return result if isinstance(result, int) else DONE


def _explain_group(group: BaseExceptionGroup[BaseException]) -> int:
    """The first error of ours inside a task group's error counts; anything else is a bug and shows itself."""
    mine, rest = group.split(DenizenError)
    if mine is None:
        interrupted, _ = group.split(KeyboardInterrupt)
        if interrupted is None:
            raise group
        click.echo("Stopped.", err=True)
        return INTERRUPTED
    first: BaseException = mine
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, DenizenError), rest
    return _explain(first)


def _explain(error: DenizenError) -> int:
    echo(f"error: {error.explain()}", err=True)
    return exit_code(error.family)
