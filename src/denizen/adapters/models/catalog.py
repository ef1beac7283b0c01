"""The models of one configuration (`denizen.ports.model.Models`): providers, names, aliases, fallbacks.

The application builds a catalog for each generation of the configuration and closes it when the generation goes.
Building checks names and overrides, and imports no vendor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from denizen.adapters.models.capabilities import detect_capabilities, override_capabilities
from denizen.adapters.models.connection import ProviderConnection
from denizen.adapters.models.model import FallbackModel, ProviderModel, RetryPolicy
from denizen.adapters.models.providers import AliasSpec, EndpointSource, ModelSpec, ProviderSpec
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.record import record
from denizen.ports.model import Capabilities, Model, ModelInfo

_WAIT_WITH_FALLBACK_S = 10.0
"""The longest pause between attempts when another model could answer instead."""


@record(kw_only=True)
class ModelsSpec:
    """Everything about models in one configuration. `default` is the alias or model that is used when none is named.

    A model of a configured provider can be named without being in `models`; those listed are offered, can have
    overrides and a short name (what follows the provider's name, when only one has it).
    """

    providers: Sequence[ProviderSpec]
    models: Sequence[ModelSpec] = ()
    aliases: Sequence[AliasSpec] = ()
    default: str = ""


def build_models(
    spec: ModelsSpec, *, endpoints: Mapping[str, EndpointSource] | None = None, pace: RetryPolicy | None = None
) -> ModelCatalog:
    """Builds the models. `endpoints` has the source of each `embedded` provider by the provider's name.

    Raises InvalidInput for names that are doubled, unknown or circular, and for overrides that do not fit.
    """
    sources = endpoints or {}
    connections: dict[str, ProviderConnection] = {}
    for provider in spec.providers:
        if not provider.name or "/" in provider.name:
            raise InvalidInput(
                f"'{provider.name}' cannot be a provider's name.",
                code="provider_name_invalid",
                fix="Use a name without a slash.",
            )
        if provider.name in connections:
            raise InvalidInput(f"The provider '{provider.name}' is configured twice.", code="provider_name_twice")
        if provider.base_url and not provider.base_url.startswith(("http://", "https://")):
            raise InvalidInput(
                f"The base_url of the provider '{provider.name}' is not a web address.",
                code="provider_address_invalid",
                fix="Begin it with https:// or http://.",
            )
        if provider.kind == "openai-compatible" and not provider.base_url:
            raise InvalidInput(
                f"The provider '{provider.name}' has no base_url.",
                code="provider_address_missing",
                fix="Set base_url to the address that ends in /v1.",
            )
        if (provider.kind == "embedded") != (provider.name in sources):
            raise InvalidInput(
                f"The provider '{provider.name}' does not fit its kind '{provider.kind}'.",
                code="provider_source_mismatch",
                why="Providers of the kind 'embedded', and only they, need an endpoint source.",
            )
        connections[provider.name] = ProviderConnection(provider, sources.get(provider.name))
    overrides = {model.name: model.overrides for model in spec.models}
    aliases = {alias.name: alias for alias in spec.aliases}
    if len(aliases) != len(spec.aliases) or len(overrides) != len(spec.models):
        raise InvalidInput("A model or an alias is configured twice.", code="model_name_twice")
    catalog = ModelCatalog(_Names(connections, overrides, aliases), pace or RetryPolicy(), spec.default)
    catalog.check()
    return catalog


@record
class _Names:
    """The connections, overrides and aliases by name."""

    connections: Mapping[str, ProviderConnection]
    overrides: Mapping[str, Mapping[str, object]]
    aliases: Mapping[str, AliasSpec]


class ModelCatalog:
    """The models of one configuration, by name. `warm` may run in the background after start-up."""

    def __init__(self, names: _Names, pace: RetryPolicy, default: str) -> None:
        self._names = names
        self._pace = pace
        self._default = default

    def get(self, name: str) -> Model:
        """Returns the model by alias, as `provider/model`, or by a short name that only one configured model has."""
        *earlier, last = self._chain(name, ())
        if not earlier:
            return self._model(last, self._pace)
        hurried = replace(self._pace, most_wait_s=min(self._pace.most_wait_s, _WAIT_WITH_FALLBACK_S))
        return FallbackModel([*(self._model(full, hurried) for full in earlier), self._model(last, self._pace)])

    def list_models(self) -> Sequence[ModelInfo]:
        """Returns the configured models and those that aliases lead to, by name."""
        chains = {alias: self._chain(alias, ()) for alias in self._names.aliases}
        offered = {*self._names.overrides, *(full for chain in chains.values() for full in chain)}
        rows: list[ModelInfo] = []
        for full in sorted(offered):
            mine = {alias: chain for alias, chain in chains.items() if chain[0] == full}
            fallbacks = dict.fromkeys(later for chain in mine.values() for later in chain[1:])
            rows.append(
                ModelInfo(
                    name=full,
                    provider=full.partition("/")[0],
                    aliases=tuple(alias for alias in mine if self._names.aliases[alias].is_offered),
                    fallbacks=tuple(fallbacks),
                    capabilities=self._capabilities(full),
                    is_embedded=self._names.connections[full.partition("/")[0]].spec.kind == "embedded",
                )
            )
        return rows

    async def warm(self) -> None:
        """Imports the vendor of the default model in a worker thread, so that the first answer need not wait for it.

        Raises what a first request would raise for a vendor that is not installed.
        """
        if self._default:
            first = self._chain(self._default, ())[0]
            await self._names.connections[first.partition("/")[0]].warm()

    async def aclose(self) -> None:
        for connection in self._names.connections.values():
            await connection.aclose()

    def check(self) -> None:
        """Resolves everything that has a name. Raises InvalidInput when something does not fit."""
        names = [*self._names.aliases, *self._names.overrides, *([self._default] if self._default else [])]
        for name in names:
            try:
                chain = self._chain(name, ())
            except NotFound as error:
                raise InvalidInput(error.message, code="model_name_unknown", why=error.why, fix=error.fix) from error
            for full in chain:
                self._capabilities(full)

    def _model(self, full: str, pace: RetryPolicy) -> Model:
        connection = self._names.connections[full.partition("/")[0]]
        return ProviderModel(full, self._capabilities(full), connection, pace)

    def _capabilities(self, full: str) -> Capabilities:
        provider, _, model = full.partition("/")
        detected = detect_capabilities(self._names.connections[provider].spec.kind, model)
        return override_capabilities(detected, self._names.overrides.get(full, {}), full)

    def _chain(self, name: str, asked: tuple[str, ...]) -> tuple[str, ...]:
        """Returns full names in the order in which they are asked, each once. `asked` are the aliases that led here."""
        if name in asked:
            raise InvalidInput(f"The alias '{name}' leads back to itself.", code="model_alias_circular")
        alias = self._names.aliases.get(name)
        if alias is None:
            return (self._full_name(name),)
        names = (alias.target, *alias.fallbacks)
        return tuple(dict.fromkeys(full for one in names for full in self._chain(one, (*asked, name))))

    def _full_name(self, name: str) -> str:
        provider, slash, model = name.partition("/")
        if slash and model and provider in self._names.connections:
            return name
        same = [full for full in self._names.overrides if full.partition("/")[2] == name]
        if len(same) == 1:
            return same[0]
        raise NotFound(
            f"There is no model '{name}'.",
            code="model_not_found",
            why=f"Several providers have it: {', '.join(same)}." if same else "",
            fix=self._advice(name, same),
            model=name,
        )

    def _advice(self, name: str, same: Sequence[str]) -> str:
        if same:
            return "Name it with its provider."
        fulls = self._names.overrides
        known = list(dict.fromkeys([*self._names.aliases, *fulls, *(full.partition("/")[2] for full in fulls)]))
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        if near:
            return f"Did you mean '{near[0]}'?"
        others = f"provider/model. Providers: {', '.join(sorted(self._names.connections))}."
        return f"Known: {', '.join(sorted(known))}. Others are named {others}" if known else f"Name it {others}"
