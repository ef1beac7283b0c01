"""The fixtures of the simulation, and discord.py, whose import of `audioop` warns; here warnings are errors."""

import importlib
import warnings

from denizen.testing.discord.fixtures import discord_server, sim

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    importlib.import_module("discord")

__all__ = ["discord_server", "sim"]
