"""Opens the home folder, or reads only its configuration, for commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import anyio
import click

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.app.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


def run_with_denizen(home: Path, act: Callable[[Denizen], Awaitable[R]]) -> R:
    """Opens the home folder without durable runs or the keys of models, and returns what `act` returns."""

    async def run() -> R:
        from denizen.app.build import OpenOptions, open_denizen

        async with open_denizen(home, OpenOptions(durable=False, needs_models=False)) as denizen:
            return await act(denizen)

    return anyio.run(run)


def with_denizen(act: Callable[Concatenate[Denizen, P], Awaitable[R]]) -> Callable[P, R]:
    """Makes the function of a command from a coroutine, whose first argument becomes the opened home folder."""

    @click.pass_obj
    @wraps(act)
    def command(home: Path, *args: P.args, **kwargs: P.kwargs) -> R:
        return run_with_denizen(home, lambda denizen: act(denizen, *args, **kwargs))

    return command


def load_home_settings(home: Path) -> Settings:
    """Reads the configuration; keys of models may be unset. Raises InvalidInput."""
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.builtin_skills import BUILTIN

    return load_settings(home, read_environment(), known_tools=BUILTIN, needs_models=False)
