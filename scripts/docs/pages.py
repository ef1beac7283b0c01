"""The pages of the generated reference, by file name. The same code gives the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scripts.docs.command_line import build_command_line
from scripts.docs.configuration import build_configuration
from scripts.docs.http_api import build_http
from scripts.docs.requirements import build_requirements
from scripts.docs.slash_commands import build_slash_commands
from scripts.docs.tools import build_tools

REFERENCE = "docs/reference"
NOTE = "<!-- Written by `make docs` from the code. Changes made here are lost. -->\n\n"

_BUILDERS: Mapping[str, Callable[[], str]] = {
    "cli.md": build_command_line,
    "commands.md": build_slash_commands,
    "configuration.md": build_configuration,
    "http.md": build_http,
    "requirements.md": build_requirements,
    "tools.md": build_tools,
}


def build_pages() -> dict[str, str]:
    """Every page with its text."""
    return {name: f"{NOTE}{build().rstrip()}\n" for name, build in _BUILDERS.items()}
