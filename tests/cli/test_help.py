"""The help of every command is readable in a terminal of 80 columns."""

from collections.abc import Iterator

import click

from denizen.cli.main import cli

WIDTH = 80


def list_helps(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yields the path and the help of a command, then of those under it."""
    yield ctx.command_path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            under = command.get_command(ctx, name)
            assert under is not None
            yield from list_helps(under, click.Context(under, ctx, name, terminal_width=WIDTH))


def test_help_of_every_command_is_whole_at_80_columns() -> None:
    helps = dict(list_helps(cli, click.Context(cli, info_name="denizen", terminal_width=WIDTH)))
    assert "denizen workflows check" in helps
    too_long = [line for text in helps.values() for line in text.splitlines() if len(line) > WIDTH]
    cut = [line for text in helps.values() for line in text.partition("\nCommands:")[2].splitlines() if "..." in line]
    assert (too_long, cut) == ([], [])
