"""Language models as the configuration has them: the catalog of a generation, the embedded runtimes, a check."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from denizen.adapters.models.catalog import ModelCatalog, ModelsSpec, build_models
from denizen.adapters.models.embedded.catalogue import DEFAULT, WeightsEntry, get_entry
from denizen.adapters.models.embedded.progress import ReportLoadProgress
from denizen.adapters.models.embedded.runtime import EmbeddedRuntime, EmbeddedSettings
from denizen.adapters.models.embedded.weights import WeightsPlaces
from denizen.adapters.models.providers import PROVIDERS, AliasSpec, ModelSpec, ProviderSpec
from denizen.app.home.secrets import FileSecrets
from denizen.app.model_choice import ModelChoice
from denizen.app.settings import Settings
from denizen.app.settings.agents import MODEL_CHAIN
from denizen.app.settings.models import ProviderSection
from denizen.domain.agent import Agent
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.message import Role, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.usage import TokenPrice, Usage
from denizen.ports.model import ModelReply, ModelRequest, Models

CHOSEN = "chosen"
"""The name of the provider that a command line describes."""


class EmbeddedRuntimePool:
    """The embedded runtimes of this process. A reload that does not touch one does not restart it."""

    def __init__(self, home: Path, environment: Mapping[str, str], report: ReportLoadProgress) -> None:
        self._home = home
        self._environment = environment
        self._report = report
        self._runtimes: dict[tuple[object, ...], EmbeddedRuntime] = {}

    def get(self, section: ProviderSection) -> EmbeddedRuntime:
        """Returns the runtime with these settings, made at the first call. Raises NotFound for unknown weights."""
        key = (section.model, section.weights, section.threads, section.context_tokens)
        if key not in self._runtimes:
            self._runtimes[key] = EmbeddedRuntime(
                EmbeddedSettings(
                    places=weights_places(self._home, section),
                    environ=self._environment,
                    entry=weights_entry(section),
                    context_tokens=section.context_tokens,
                    threads=section.threads or None,
                ),
                self._report,
            )
        return self._runtimes[key]

    async def aclose(self) -> None:
        for runtime in self._runtimes.values():
            await runtime.aclose()


def weights_entry(section: ProviderSection) -> WeightsEntry:
    """Returns the catalogue entry of the section's weights. Raises NotFound."""
    return get_entry(section.model) if section.model else DEFAULT


def weights_places(home: Path, section: ProviderSection | None = None) -> WeightsPlaces:
    """Returns where weights are looked for. A relative path of the user's own file starts at the home folder."""
    own = (home / Path(section.weights).expanduser()) if section and section.weights else None
    return WeightsPlaces(home=home, own_file=own)


@record
class ChosenModel:
    """The model that a command line asks for: one more provider, and the model of every agent."""

    provider: ProviderSection | None
    model: str


def resolve_choice(choice: ModelChoice) -> ChosenModel:
    """Returns what a choice means. The key is read from the named variable, or else from the provider's usual one.

    Raises InvalidInput.
    """
    if not choice.is_provider:
        return ChosenModel(None, choice.model)
    fields: dict[str, object] = {"kind": choice.kind, "base_url": choice.base_url}
    variable = choice.api_key_env or PROVIDERS[choice.kind].key_variable
    if variable:
        fields["api_key"] = f"${{{variable}}}" if choice.api_key_env or not choice.base_url else f"${{{variable}:-}}"
    if choice.kind == "embedded":
        fields = {"kind": "embedded", "model": choice.model}
    try:
        section = ProviderSection.model_validate(fields)
    except ValidationError as error:
        told = "; ".join(str(each["msg"]) for each in error.errors())
        raise InvalidInput(
            "The model named on the command line cannot be used.",
            code="choice_invalid",
            why=told,
            fix="Correct --provider, --model, --base-url or --api-key-env.",
        ) from None
    return ChosenModel(section, f"{CHOSEN}/{choice.model or 'default'}")


def apply_choice(agents: Iterable[Agent], chosen: ChosenModel) -> list[Agent]:
    """Returns the agents with the chosen model, if there is one."""
    return [replace(agent, model=chosen.model, is_routed=False) if chosen.model else agent for agent in agents]


def build_catalog(settings: Settings, chosen: ChosenModel, pool: EmbeddedRuntimePool) -> ModelCatalog:
    """Builds the models of a generation. Raises InvalidInput for names or overrides that do not fit, NotFound for
    unknown embedded weights.
    """
    sections = dict(settings.models.providers)
    if chosen.provider is not None:
        sections[CHOSEN] = chosen.provider
    # The name of a provider, which stands for its usual model, is for the configuration only.
    aliases = [
        AliasSpec(
            name,
            each.model,
            tuple(each.fallbacks),
            is_offered=(name not in sections and MODEL_CHAIN not in name)
            or settings.document.has(("models", "aliases", name)),
        )
        for name, each in settings.models.aliases.items()
    ]
    overrides: dict[str, dict[str, object]] = {}
    for name, section in sections.items():
        if section.kind == "embedded" and not section.weights:
            # The catalogue of weights knows these capabilities better than the name of a model tells them.
            entry = weights_entry(section)
            overrides[f"{name}/{section.model or 'default'}"] = {
                "native_tools": entry.native_tools,
                "small": entry.small,
                "context_tokens": section.context_tokens or entry.context_tokens,
            }
    for name, each in settings.models.overrides.items():
        overrides[name] = each.model_dump(exclude_none=True, exclude={"price"})
    default = chosen.model or settings.agents[settings.default_agent].model
    spec = ModelsSpec(
        providers=[
            replace(provider_spec(name, section, settings.secrets), prices=list_prices(settings, name))
            for name, section in sections.items()
        ],
        models=[ModelSpec(name, fields) for name, fields in overrides.items()],
        aliases=aliases,
        default=default,
    )
    endpoints = {name: pool.get(section) for name, section in sections.items() if section.kind == "embedded"}
    return build_models(spec, endpoints=endpoints)


def list_prices(settings: Settings, provider: str) -> Mapping[str, TokenPrice]:
    """Returns the prices of a provider's models that the configuration has, by the model's name without the
    provider's.
    """
    own = {name.partition("/"): each.price for name, each in settings.models.overrides.items()}
    return {model: price.price for (first, _, model), price in own.items() if price and first == provider}


def provider_spec(name: str, section: ProviderSection, secrets: FileSecrets) -> ProviderSpec:
    """Returns the provider as the model adapter knows it."""
    reference = section.api_key
    embedded = section.kind == "embedded"
    return ProviderSpec(
        name=name,
        kind=section.kind,
        base_url=section.base_url,
        api_key=None if reference is None else lambda: secrets.resolve(reference),
        key_name=reference.name if reference else "",
        headers=section.headers,
        idle_timeout_s=None if embedded or "timeout_s" not in section.model_fields_set else section.timeout_s,
    )


@record
class ModelCheck:
    """The result of a check: which model answered, how long it took, and what it used."""

    model: str
    duration_s: float
    usage: Usage


CHECK_REQUEST = ModelRequest(
    segments=(), messages=(PromptMessage(Role.USER, (TextPart("Say OK."),)),), max_output_tokens=16
)
"""A question that costs next to nothing."""


async def verify_model(models: Models, name: str) -> ModelCheck:
    """Checks with a real completion that a model answers. Raises NotFound for an unknown name, and what the model
    raises.
    """
    started = time.monotonic()
    async for event in models.get(name).stream(CHECK_REQUEST):
        if isinstance(event, ModelReply):
            return ModelCheck(event.model, time.monotonic() - started, event.usage)
    raise Unavailable("The model ended its answer too early.", code="model_incomplete")


async def verify_settings(
    settings: Settings, name: str, environment: Mapping[str, str], report: ReportLoadProgress
) -> ModelCheck:
    """Checks that a model of these settings answers, which need not be in force. Raises what `verify_model` raises."""
    async with AsyncExitStack() as stack:
        pool = EmbeddedRuntimePool(settings.home, environment, report)
        stack.push_async_callback(pool.aclose)
        catalog = build_catalog(settings, ChosenModel(None, ""), pool)
        stack.push_async_callback(catalog.aclose)
        return await verify_model(catalog, name)
