"""The Google account of the configuration, for the skills that use it."""

from __future__ import annotations

from denizen.skill import GoogleAccount, ToolContext, ToolError

TIMEOUT_S = 60.0


def get_google(context: ToolContext) -> GoogleAccount:
    """Raises ToolError where no account is connected."""
    if context.google is None:
        raise ToolError("No Google account is connected: the owner runs `denizen connect google`.", is_own=True)
    return context.google
