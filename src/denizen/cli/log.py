"""Where a command's log goes: to standard error, warnings only unless `-v` asks for more.

`run` knows better once it has read the configuration, and takes it from there.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path

import click

from denizen.app.logging import configure_logging

_LEVELS = ("warning", "info", "debug")


def open_log(home: Path, verbose: int) -> None:
    """`verbose` counts the -v."""

    def mask(text: str) -> str:
        return find_mask(home)(text)

    configure_logging(level=_level(verbose), style="console", mask=mask)


def choose_level(configured: str) -> str:
    """The configured level, or the one that `-v` asks for when that says more."""
    verbose = int(click.get_current_context().find_root().params["verbose"])
    asked = _level(verbose) if verbose else configured
    return min(configured, asked, key=lambda level: logging.getLevelNamesMapping()[level.upper()])


def leave_to_command(*loggers: str) -> None:
    """For a command that tells the state of these parts itself: their warnings would say it twice. `-v` lets them."""
    if not click.get_current_context().find_root().params["verbose"]:
        for name in loggers:
            logger = logging.getLogger(name)
            logger.setLevel(logging.ERROR)
            click.get_current_context().call_on_close(functools.partial(logger.setLevel, logging.NOTSET))


def _level(verbose: int) -> str:
    return _LEVELS[min(verbose, len(_LEVELS) - 1)]


@functools.cache
def find_mask(home: Path) -> Callable[[str], str]:
    """Returns what masks the secrets of a home folder; looked for once. What the configuration refers to counts as
    secret; where it cannot be read, what `secrets.env` and the environment name so; where not even those, the
    environment.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.home.secrets import load_secrets
    from denizen.app.settings import load_settings
    from denizen.domain.errors import DenizenError

    environment = read_environment()
    try:
        return load_settings(home, environment).secrets.mask
    except DenizenError:
        pass
    try:
        return load_secrets(home, environment).mask
    except DenizenError:
        return load_secrets(home / "no-such-folder", environment).mask
