"""Settings of a community (a guild), made by those who manage it, inside what the operator allows. Pure.

Everything here narrows what the configuration says, or holds in that community alone: channels in which agents answer,
tools that they do without, money for a day, days for which posts are kept, the language, and words for the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import cast

from denizen.domain.agent import Agent
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.record import record

MAX_PERSONA_CHARS = 1000
MAX_TOOLS = 50
MAX_CHANNELS = 500
MAX_DAYS = 36_500
MAX_DAY_USD = Decimal(10_000)

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_TOOL = re.compile(r"[A-Za-z0-9_.*?-]{1,100}")
_USD = re.compile(r"[0-9]{1,5}(\.[0-9]{1,4})?")
_UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class GuildField(StrEnum):
    """A setting of a community, which the operator may leave to those who manage it."""

    LANGUAGE = "language"
    PERSONA = "persona"
    CHANNELS = "channels"
    TOOLS = "tools"
    BUDGET = "budget"
    RETENTION = "retention"


NARROWING = (GuildField.LANGUAGE, GuildField.CHANNELS, GuildField.TOOLS, GuildField.BUDGET, GuildField.RETENTION)
"""Those that may be left to communities without a thought: they give nobody more than they had."""


@record(kw_only=True)
class GuildSettings:
    """One value for each `GuildField`. Empty, 0 and None leave it to the configuration. `tools` are patterns of those
    that are not used there.
    """

    language: str = ""
    persona: str = ""
    channels: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    budget: Decimal | None = None
    retention: int = 0

    def keep(self, allowed: frozenset[GuildField]) -> GuildSettings:
        """Returns the settings without those that are not left to the community any more."""
        return GuildSettings(**{each: getattr(self, each) for each in GuildField if each in allowed})

    def admits(self, room: str, channel: str) -> bool:
        """Whether agents answer in a room, which belongs to that channel."""
        return not self.channels or room in self.channels or channel in self.channels

    def denies(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def apply_to_agent(self, agent: Agent) -> Agent:
        """Returns the agent as it is in that community."""
        instructions = agent.instructions
        extra = "\n".join(filter(None, (instructions.style.extra_instructions.strip(), self.persona)))
        style = replace(
            instructions.style, language=self.language or instructions.style.language, extra_instructions=extra
        )
        return replace(agent, instructions=replace(instructions, style=style))

    def apply_to_budgets(self, budgets: BudgetPolicy, key: str) -> BudgetPolicy:
        """Returns the budgets with that of the community, `platform:id`, where it is the smaller one."""
        if self.budget is None:
            return budgets
        scope = BudgetScope(BudgetScopeKind.GUILD, key)
        limits = budgets.get_limits(scope)
        per_day = self.budget if limits.per_day_usd is None else min(self.budget, limits.per_day_usd)
        return replace(budgets, special={**budgets.special, scope: BudgetLimits(per_day, limits.per_month_usd)})


def settings_to_json(settings: GuildSettings) -> Mapping[GuildField, Json]:
    """Returns the values that are set, None for the others; `settings_from_json` is the inverse."""
    budget = None if settings.budget is None else str(settings.budget)
    return {
        GuildField.LANGUAGE: settings.language or None,
        GuildField.PERSONA: settings.persona or None,
        GuildField.CHANNELS: list(settings.channels) or None,
        GuildField.TOOLS: list(settings.tools) or None,
        GuildField.BUDGET: budget,
        GuildField.RETENTION: settings.retention or None,
    }


def settings_from_json(stored: Mapping[str, Json]) -> GuildSettings:
    def listed(name: GuildField) -> tuple[str, ...]:
        value = stored.get(name)
        return tuple(map(str, value)) if isinstance(value, list) else ()

    budget = stored.get(GuildField.BUDGET)
    return GuildSettings(
        language=str(stored.get(GuildField.LANGUAGE) or ""),
        persona=str(stored.get(GuildField.PERSONA) or ""),
        channels=listed(GuildField.CHANNELS),
        tools=listed(GuildField.TOOLS),
        budget=None if budget is None else Decimal(str(budget)),
        retention=int(cast("int", stored.get(GuildField.RETENTION) or 0)),
    )


def read_settings(given: Mapping[GuildField, str], known_tools: Sequence[str]) -> GuildSettings:
    """Reads what people wrote: channels and tools are separated by blanks. Raises InvalidInput, also for a tool that
    there is none of.
    """
    language, persona = given.get(GuildField.LANGUAGE, "").strip(), given.get(GuildField.PERSONA, "").strip()
    channels = tuple(dict.fromkeys(given.get(GuildField.CHANNELS, "").split()))
    tools = tuple(dict.fromkeys(given.get(GuildField.TOOLS, "").replace(",", " ").split()))
    if language and not _LANGUAGE.fullmatch(language):
        raise _refuse(f"'{language[:50]}' is no language.", "Write its code, such as de or pt-BR.", GuildField.LANGUAGE)
    persona = persona.replace("\r\n", "\n")
    if len(persona) > MAX_PERSONA_CHARS or _UNSEEN.search(persona):
        raise _refuse("This cannot stand in the prompt.", f"Write at most {MAX_PERSONA_CHARS} characters.")
    if len(channels) > MAX_CHANNELS or not all(each.isascii() and each.isdecimal() for each in channels):
        raise _refuse("One of these is no channel.", "Choose among the channels that are listed.")
    if len(tools) > MAX_TOOLS:
        raise _refuse(f"At most {MAX_TOOLS} tools can be named.", "Use a pattern, such as discord_*.")
    for tool in tools:
        if not _TOOL.fullmatch(tool) or not any(fnmatchcase(name, tool) for name in known_tools):
            raise _refuse(f"There is no tool '{tool[:100]}'.", "Write its name or a pattern, such as search_*.")
    return GuildSettings(
        language=language,
        persona=persona,
        channels=channels,
        tools=tools,
        budget=_read_usd(given.get(GuildField.BUDGET, "").strip()),
        retention=_read_days(given.get(GuildField.RETENTION, "").strip()),
    )


def write_settings(settings: GuildSettings) -> Mapping[GuildField, str]:
    """Returns the settings as `read_settings` reads them."""
    return {
        GuildField.LANGUAGE: settings.language,
        GuildField.PERSONA: settings.persona,
        GuildField.CHANNELS: " ".join(settings.channels),
        GuildField.TOOLS: "\n".join(settings.tools),
        GuildField.BUDGET: "" if settings.budget is None else str(settings.budget),
        GuildField.RETENTION: str(settings.retention or ""),
    }


def _read_usd(text: str) -> Decimal | None:
    if not text:
        return None
    try:
        usd = Decimal(text) if _USD.fullmatch(text) else Decimal(-1)
    except InvalidOperation:
        usd = Decimal(-1)
    if not 0 <= usd <= MAX_DAY_USD:
        raise _refuse(f"'{text[:50]}' is no sum for a day.", f"Write US dollars from 0 to {MAX_DAY_USD}, such as 2.50.")
    return usd


def _read_days(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_DAYS)) and int(text) <= MAX_DAYS):
        raise _refuse(f"'{text[:50]}' is no number of days.", f"Write a number from 1 to {MAX_DAYS}, or nothing.")
    return int(text)


def _refuse(message: str, fix: str, key: str = "") -> InvalidInput:
    return InvalidInput(message, code="guild_settings_invalid", fix=fix, key=key)
