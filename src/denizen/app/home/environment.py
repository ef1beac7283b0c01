"""The process environment and the place of the home folder. No other module reads `os.environ`.

The command line reads the environment once, before anything else, and passes the mapping on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

HOME_VARIABLE = "DENIZEN_HOME"
DEFAULT_HOME = ".denizen"
"""The name below the user's home folder."""
DISCORD_API_VARIABLE = "DENIZEN_DISCORD_API_URL"
DISCORD_GATEWAY_VARIABLE = "DENIZEN_DISCORD_GATEWAY_URL"
"""The variables that point the Discord accounts at another server: its REST address and its websocket."""


def read_environment() -> Mapping[str, str]:
    """Returns the environment as it is now, immutable."""
    return MappingProxyType(dict(os.environ))


def plan_home(environment: Mapping[str, str], given: str | Path | None = None) -> Path:
    """Returns where everything of this Denizen lives: `--home`, else DENIZEN_HOME, else `~/.denizen`. An absolute path;
    it need not exist.
    """
    user_home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    chosen = str(given or environment.get(HOME_VARIABLE) or "")
    if not chosen:
        return user_home.absolute() / DEFAULT_HOME
    if chosen == "~" or chosen.startswith("~/"):
        return user_home.absolute() / chosen[2:]
    return Path(chosen).absolute()
