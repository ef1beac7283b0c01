"""The skills that ship with Denizen, one module each, written against `denizen.skill` only.

The composition root calls `load_builtin`; a skill that is not enabled is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from denizen.skill import Skill

BUILTIN: tuple[str, ...] = (
    "time",
    "calculator",
    "web",
    "weather",
    "memory",
    "notes",
    "conversation",
    "archive",
    "knowledge",
    "shell",
    "files",
    "system",
    "skill_manager",
    "skill_agent",
    "tables",
    "charts",
    "cards",
    "discord",
    "components",
    "moderation",
    "server",
    "members",
    "voice",
    "reminders",
    "feeds",
    "apis",
    "projects",
    "schedules",
    "event_system",
    "github",
    "workflows",
    "web_search",
    "admin",
    "questions",
    "browser",
    "mail",
    "calendar",
    "gmail",
    "google_calendar",
    "google_drive",
    "coding_agent",
)
"""The names of the modules here, each with a `skill` of the same name; prompts list tools in this order."""

OPT_IN: frozenset[str] = frozenset(
    {
        "files",
        "system",
        "skill_manager",
        "skill_agent",
        "tables",
        "charts",
        "cards",
        "discord",
        "components",
        "moderation",
        "server",
        "members",
        "voice",
        "feeds",
        "apis",
        "projects",
        "schedules",
        "event_system",
        "github",
        "workflows",
        "questions",
        "browser",
        "mail",
        "calendar",
        "gmail",
        "google_calendar",
        "google_drive",
        "coding_agent",
    }
)
"""Skills that can harm, or that not everybody wants to pay for in every prompt: they are there only where the
configuration says `enabled: true`.
"""


def load_builtin(name: str) -> Skill:
    """Returns the skill with that name. Raises NotFound for a name that is not in `BUILTIN`."""
    if name not in BUILTIN:
        from denizen.skill import NotFound

        raise NotFound(f"there is no built-in skill `{name}`", fix=f"built in are: {', '.join(BUILTIN)}")
    skill: Skill = import_module(f"denizen.builtin_skills.{name}").skill
    return skill
