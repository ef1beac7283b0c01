"""The settings of an assistant at `/admin/assistant`: a named set lies over the configuration of an agent.

What a set leaves open is as configured; `domain/agent_settings` has the rules of each field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.agent import Agent, CitationFormat, ResponseStyle
from denizen.domain.agent_settings import FIELDS, MAX_TEMPERATURE, AgentOverrides, SettingsSet, find_active_set
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.routing import AUTO, MAX_MULTIPLIER, MIN_MULTIPLIER, MODELS
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.ports.model import Models
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

ASSISTANT = "/admin/assistant"
_NOTICES = {
    "saved": "The settings are saved. They hold from the next question on, on other processes within a minute.",
    "reset": "The set is empty: the configuration holds again.",
    "activated": "The set is active now.",
    "removed": "The set is removed.",
}
LABELS: Mapping[str, str] = {
    "language": "Language",
    "default_model": "Model",
    "response_style": "Tone",
    "citation_format": "Citations",
    "temperature": "Creativity",
    "max_steps_multiplier": "Depth",
    "additional_prompt": "Instructions",
    "search_instructions": "How to search",
}
_NUMBERS = frozenset({"temperature", "max_steps_multiplier"})


@record
class SettingDifference:
    """A setting that differs from the configuration."""

    label: str
    configured: str
    now: str


@record(kw_only=True)
class AssistantPage:
    """The context of `assistant.html`. `values` are those of the set that is edited, `configured` what holds where they
    are empty. `edited` is the name of that set, empty where there is none yet.
    """

    frame: Frame
    agent: str
    agents: Sequence[tuple[str, str]]
    edited: str
    sets: Sequence[SettingsSet]
    values: Mapping[str, str]
    configured: Mapping[str, str]
    differences: Sequence[SettingDifference]
    models: Sequence[tuple[str, str]]
    styles: Sequence[tuple[str, str]]
    citations: Sequence[tuple[str, str]]
    bounds: Sequence[float]
    notice: str = ""
    problem: ProblemDetails | None = None


class AssistantPages:
    """The routes of the settings."""

    def __init__(self, deps: WebDependencies, assistant: AgentSettingsOverlay) -> None:
        self._deps = deps
        self._assistant = assistant
        self._runtime = deps.engine.runtime

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", ASSISTANT, self.show, Access.ADMIN),
            SitePageRoute("POST", ASSISTANT, self.save, Access.ADMIN),
            SitePageRoute("POST", f"{ASSISTANT}/activate", self.activate, Access.ADMIN),
            SitePageRoute("POST", f"{ASSISTANT}/reset", self.reset, Access.ADMIN),
            SitePageRoute("POST", f"{ASSISTANT}/remove", self.remove, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        agent = self._runtime.current.agent(request.query_params.get("agent", ""))
        return await self._render(request, agent, request.query_params.get("set", ""))

    async def save(self, request: Request) -> Response:
        form = await read_form(request)
        agent, current = self._runtime.current.agent(form.get("agent", "")), self._runtime.current
        name = form.get("name", "").strip()
        try:
            given = {field: _read(field, form.get(field, "")) for field in FIELDS}
            by, activate = get_principal(request), "activate" in form
            saved = await self._assistant.save(by, current, given, to=agent.name, name=name, activate=activate)
        except DenizenError as error:
            return await self._render(request, agent, name, form, error)
        return lead_to(ASSISTANT, agent=agent.name, set=saved.name, done="saved")

    async def activate(self, request: Request) -> Response:
        form = await read_form(request)
        agent = self._runtime.current.agent(form.get("agent", ""))
        await self._assistant.activate(get_principal(request), agent.name, form.get("name", ""))
        return lead_to(ASSISTANT, agent=agent.name, done="activated")

    async def reset(self, request: Request) -> Response:
        form = await read_form(request)
        agent = self._runtime.current.agent(form.get("agent", ""))
        await self._assistant.reset(get_principal(request), agent.name, name=form.get("name", ""))
        return lead_to(ASSISTANT, agent=agent.name, set=form.get("name", ""), done="reset")

    async def remove(self, request: Request) -> Response:
        form = await read_form(request)
        agent = self._runtime.current.agent(form.get("agent", ""))
        await self._assistant.remove(get_principal(request), agent.name, form.get("name", ""))
        return lead_to(ASSISTANT, agent=agent.name, done="removed")

    async def _render(
        self,
        request: Request,
        agent: Agent,
        name: str,
        typed: Mapping[str, str] | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        """Shows the named set, or the active one. `typed` is shown in the place of what is stored."""
        current, problem = self._runtime.current, find_problem(error)
        sets = await self._assistant.list_sets(agent.name)
        active = next((each for each in sets if each.is_active), None)
        edited = next((each for each in sets if each.name == name), None) if name else active
        if name and edited is None and typed is None:
            raise NotFound(f"{agent.name} has no settings named '{name[:100]}'.", code="settings_not_found")
        configured = _describe(find_active_set(agent))
        now = _describe(find_active_set(await self._assistant.agent(current, agent.name)))
        page = AssistantPage(
            frame=build_frame(request, self._deps),
            agent=agent.name,
            agents=[(each, each) for each in current.agents],
            edited=edited.name if edited else name,
            sets=sets,
            values={**_describe(edited.chosen if edited else AgentOverrides()), **(typed or {})},
            configured=configured,
            differences=[
                SettingDifference(LABELS[field], configured[field], now[field])
                for field in LABELS
                if configured[field] != now[field]
            ],
            models=_list_models(current.models),
            styles=[(each.value, each.value) for each in ResponseStyle],
            citations=[(each.value, each.value) for each in CitationFormat],
            bounds=(0, MAX_TEMPERATURE, MIN_MULTIPLIER, MAX_MULTIPLIER),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/assistant.html", page, status=problem.status if problem else 200)


def _describe(chosen: AgentOverrides) -> Mapping[str, str]:
    """Returns the fields as a form has them, empty where they are open."""
    values = {field: getattr(chosen, field) for field in FIELDS}
    return {
        field: "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for field, value in values.items()
    }


def _list_models(models: Models) -> Sequence[tuple[str, str]]:
    """Returns the choice for each question, the aliases by strength, and then every other name of a model."""
    known = models.list_models()
    aliases = [alias for info in known for alias in info.aliases]
    told = {alias: info.name for info in known for alias in info.aliases}
    strong = [(alias, f"{alias} ({told[alias]})") for alias in MODELS if alias in aliases]
    others = [(alias, f"{alias} ({told[alias]})") for alias in sorted(set(aliases) - set(MODELS))]
    names = [(info.name, info.name) for info in known]
    return [(AUTO, "auto: chosen for each question"), *strong, *others, *names]


def _read(field: str, typed: str) -> Json:
    """Returns the value of a field; None for an empty one, which is as configured. Raises InvalidInput."""
    typed = typed.strip()
    if not typed:
        return None
    if field not in _NUMBERS:
        return typed
    try:
        return float(typed.replace(",", "."))
    except ValueError:
        raise InvalidInput(
            f"'{typed[:40]}' is no number.", code="settings_invalid", fix="Write it like 0.7.", field=field
        ) from None
