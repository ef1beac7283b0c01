"""`cli.md`: the help of every command, as the program prints it."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import click

from denizen.cli import exit_codes
from denizen.cli.main import cli
from scripts.docs.table import format_table

WIDTH = 90

_EXIT_CODES = MappingProxyType(
    {
        exit_codes.DONE: "done",
        exit_codes.BUG: "a bug in Denizen",
        exit_codes.INVALID: "invalid input or configuration",
        exit_codes.NOT_ALLOWED: "not allowed, or waiting for approval",
        exit_codes.UNAVAILABLE: "something outside does not answer: provider, network, database",
        exit_codes.EXHAUSTED: "a budget or limit is used up",
        exit_codes.INTERRUPTED: "interrupted",
    }
)


def build_command_line() -> str:
    """The page."""
    codes = format_table(("code", "means"), ((str(code), text) for code, text in sorted(_EXIT_CODES.items())))
    parts = ["# Command line", *_describe(cli, "denizen", None), "## Exit codes", codes]
    return "\n\n".join(parts)


def _describe(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    given: dict[str, Any] = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **given)
    yield f"## {context.command_path}"
    yield f"```text\n{command.get_help(context).rstrip()}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                yield from _describe(found, each, context)
