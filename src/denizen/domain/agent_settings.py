"""Settings that an owner makes besides the configuration: named sets per agent, of which one may be active.

A set lies over the agent as configured; what it leaves open is as in the file. Pure: the rules of each field, and what
comes of an agent with a set. `ports/store.py` keeps sets, and `engine/configuration/agent_settings.py` joins both.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from denizen.domain.agent import Agent, CitationFormat, ResponseStyle
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.routing import AUTO, MAX_MULTIPLIER, MIN_MULTIPLIER, USUAL

DEFAULT_SET = "default"
"""The set that is written to when none is active and none is named."""
MAX_NAME_CHARS = 60
MAX_PROMPT_CHARS = 20_000
MAX_SEARCH_CHARS = 4000
MAX_TEMPERATURE = 2.0

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")

T = TypeVar("T")


@record(kw_only=True)
class AgentOverrides:
    """The fields of a set; None is as configured. `default_model` is an alias, `provider/model`, or `auto` to have it
    chosen for each question.
    """

    additional_prompt: str | None = None
    response_style: ResponseStyle | None = None
    language: str | None = None
    default_model: str | None = None
    max_steps_multiplier: float | None = None
    temperature: float | None = None
    search_instructions: str | None = None
    citation_format: CitationFormat | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields that are set."""
        return tuple(name for name in FIELDS if getattr(self, name) is not None)


FIELDS: tuple[str, ...] = tuple(each.name for each in fields(AgentOverrides))


@record
class SettingsSet:
    """At most one of an agent is active."""

    agent: AgentName
    name: str
    created_at: datetime
    updated_at: datetime
    chosen: AgentOverrides = field(default_factory=AgentOverrides)
    is_active: bool = False


def check_set_name(name: str) -> str:
    """Without the blanks around it. Raises InvalidInput."""
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(
            f"A set's name has 1 to {MAX_NAME_CHARS} printable characters.", code="settings_name_invalid"
        )
    return name


def change_set(chosen: AgentOverrides, given: Mapping[str, Json]) -> AgentOverrides:
    """With the given fields, of which None brings the configured value back. Raises InvalidInput for a field that does
    not exist, naming the nearest, and for a value out of its range.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is None:
            near = difflib.get_close_matches(name, FIELDS, n=1)
            fix = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(FIELDS)}."
            raise InvalidInput(f"There is no setting '{name[:100]}'.", code="settings_unknown", fix=fix)
        values[name] = None if value is None else check(name, value)
    return replace(chosen, **values)


def apply_overrides(agent: Agent, chosen: AgentOverrides, *, with_model: bool = True) -> Agent:
    """The agent with the set over it; `with_model` off leaves its model as it is."""
    style, sampling, limits = agent.instructions.style, agent.sampling, agent.limits
    style = replace(
        style,
        response=_or(chosen.response_style, style.response),
        language=_or(chosen.language, style.language),
        citations=_or(chosen.citation_format, style.citations),
        extra_instructions=_or(chosen.additional_prompt, style.extra_instructions),
        search_instructions=_or(chosen.search_instructions, style.search_instructions),
    )
    sampling = replace(sampling, temperature=_or(chosen.temperature, sampling.temperature))
    limits = replace(limits, max_steps_multiplier=_or(chosen.max_steps_multiplier, limits.max_steps_multiplier))
    agent = replace(agent, instructions=replace(agent.instructions, style=style), sampling=sampling, limits=limits)
    model = chosen.default_model if with_model else None
    return agent if model is None else replace(agent, model=USUAL if model == AUTO else model, is_routed=model == AUTO)


def find_active_set(agent: Agent) -> AgentOverrides:
    """The settings that hold for an agent. A field is None where nobody set it."""
    style = agent.instructions.style
    return AgentOverrides(
        additional_prompt=style.extra_instructions or None,
        response_style=style.response,
        language=style.language,
        default_model=agent.model_word,
        max_steps_multiplier=agent.limits.max_steps_multiplier,
        temperature=agent.sampling.temperature,
        search_instructions=style.search_instructions or None,
        citation_format=style.citations,
    )


def overrides_to_json(chosen: AgentOverrides) -> JsonObject:
    """Only what it says."""
    return {name: getattr(chosen, name) for name in chosen.names}


def overrides_from_json(row: Mapping[str, Any]) -> AgentOverrides:
    """The inverse; what a later version may have written besides is left out."""
    known: dict[str, Any] = {name: value for name, value in row.items() if name in FIELDS and value is not None}
    if "response_style" in known:
        known["response_style"] = ResponseStyle(known["response_style"])
    if "citation_format" in known:
        known["citation_format"] = CitationFormat(known["citation_format"])
    return AgentOverrides(**known)


def _or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def _text(limit: int) -> Callable[[str, Json], str]:
    def check(name: str, value: Json) -> str:
        if not isinstance(value, str):
            raise _invalid(name, "it is no text", "Give a text, or null for the configured one.")
        if len(value) > limit:
            raise _invalid(name, f"it has {len(value)} characters", f"Shorten it to {limit}.")
        return value.strip()

    return check


def _number(low: float, high: float) -> Callable[[str, Json], float]:
    def check(name: str, value: Json) -> float:
        fix = f"Give a number from {low:g} to {high:g}, or null for the configured one."
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _invalid(name, "it is no number", fix)
        if not low <= value <= high:
            raise _invalid(name, f"{value:g} is out of range", fix)
        return float(value)

    return check


def _style(name: str, value: Json) -> ResponseStyle:
    if not isinstance(value, str) or value not in list(ResponseStyle):
        raise _invalid(name, "it is none of the known ones", f"Give one of: {', '.join(ResponseStyle)}.")
    return ResponseStyle(value)


def _citations(name: str, value: Json) -> CitationFormat:
    if not isinstance(value, str) or value not in list(CitationFormat):
        raise _invalid(name, "it is none of the known ones", f"Give one of: {', '.join(CitationFormat)}.")
    return CitationFormat(value)


def _language(name: str, value: Json) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise _invalid(name, "it is no language code", "Write it like en, de or pt-BR.")
    return value


def _model(name: str, value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _invalid(name, "it is no name", f"Name an alias, provider/model, or {AUTO}; null for the configured one.")
    return value.strip()


def _invalid(name: str, why: str, fix: str) -> InvalidInput:
    return InvalidInput(f"'{name}' cannot be that.", code="settings_invalid", why=why, fix=fix, field=name)


_CHECKS: Mapping[str, Callable[[str, Json], object]] = {
    "additional_prompt": _text(MAX_PROMPT_CHARS),
    "response_style": _style,
    "language": _language,
    "default_model": _model,
    "max_steps_multiplier": _number(MIN_MULTIPLIER, MAX_MULTIPLIER),
    "temperature": _number(0.0, MAX_TEMPERATURE),
    "search_instructions": _text(MAX_SEARCH_CHARS),
    "citation_format": _citations,
}
