"""A group of commands whose help shows the first sentence of each, whole."""

from __future__ import annotations

import click


class CommandGroup(click.Group):
    """Wraps the descriptions of its commands, which click would cut at the width of the terminal."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: list[tuple[str, str]] = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
