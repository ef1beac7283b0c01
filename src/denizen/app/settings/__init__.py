"""The configuration: `denizen.yaml`, the variables that it names, and the persona files.

What others may use is listed here. `load_settings` reads a home folder into `Settings`; `check` lists its problems;
`render_settings` shows what is in effect; `set_value`, `remove_value` and `write_setup` change the file, and
`preview_setup` returns what that would bring about.
"""

from denizen.app.settings.discord import DiscordLogin
from denizen.app.settings.edit import parse_path, remove_secret, remove_value, set_secret, set_value, set_values
from denizen.app.settings.effective import Settings, Simulation, render_settings
from denizen.app.settings.github import GitHubLogin
from denizen.app.settings.load import CONFIG_FILE, find_config_problems, load_settings
from denizen.app.settings.problem import ConfigProblem
from denizen.app.settings.setup import (
    SetupAnswers,
    SetupFile,
    SetupReport,
    plan_setup_files,
    preview_setup,
    write_setup,
)

__all__ = [
    "CONFIG_FILE",
    "ConfigProblem",
    "DiscordLogin",
    "GitHubLogin",
    "Settings",
    "SetupAnswers",
    "SetupFile",
    "SetupReport",
    "Simulation",
    "find_config_problems",
    "load_settings",
    "parse_path",
    "plan_setup_files",
    "preview_setup",
    "remove_secret",
    "remove_value",
    "render_settings",
    "set_secret",
    "set_value",
    "set_values",
    "write_setup",
]
