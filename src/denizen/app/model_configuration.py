"""The models of the open home folder, for people who look after them (`denizen.ports.model_configuration`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import anyio
from anyio import to_thread

from denizen.adapters.models.providers import PROVIDERS
from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.home.environment import read_environment
from denizen.app.home.secrets import NAME_PATTERN, SECRETS_FILE
from denizen.app.models import CHECK_REQUEST, list_prices, provider_spec
from denizen.app.settings.fields import as_variable
from denizen.app.settings.interpolation import as_written
from denizen.app.settings.models import ProviderSection
from denizen.app.settings.problem import KeyPath
from denizen.app.settings.yaml_document import find_value
from denizen.domain.audit import AuditEvent, AuditKind
from denizen.domain.conversation import own_place
from denizen.domain.errors import DenizenError, InvalidInput, NotFound, Unavailable
from denizen.domain.ids import SessionId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.domain.routing import USUAL
from denizen.domain.usage import TokenPrice
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.ports.configuration import ConfigurationChange
from denizen.ports.model import ModelInfo
from denizen.ports.model_configuration import (
    ConfiguredAlias,
    ConfiguredProvider,
    ModelTrial,
    PricedModel,
    ProviderDraft,
    ProviderKindInfo,
)
from denizen.ports.toolset import CallScope

_PROVIDERS: KeyPath = ("models", "providers")
_ALIASES: KeyPath = ("models", "aliases")
_OVERRIDES: KeyPath = ("models", "overrides")
TRIAL_TIMEOUT_S = 120.0
_DEFAULT: KeyPath = ("agent_defaults", "model")


class HomeModels:
    """The models of the open home folder. Changes go into its configuration, keys into its `secrets.env`."""

    def __init__(self, denizen: Denizen, configuration: HomeConfiguration) -> None:
        self._denizen = denizen
        self._configuration = configuration

    def list_kinds(self) -> Sequence[ProviderKindInfo]:
        return [
            ProviderKindInfo(name=name, label=facts.label, base_url=facts.base_url, key_variable=facts.key_variable)
            for name, facts in PROVIDERS.items()
        ]

    def list_providers(self) -> Sequence[ConfiguredProvider]:
        found = self._denizen.settings.models.providers.items()
        return [self._describe(name, section) for name, section in found]

    async def list_provider_models(self, name: str) -> Sequence[str]:
        from denizen.adapters.models.listing import list_served_models  # loads the HTTP client

        section = self._denizen.settings.models.providers.get(name)
        if section is None:
            known = ", ".join(self._denizen.settings.models.providers) or "none"
            raise NotFound(f"There is no provider '{name}'.", code="provider_unknown", fix=f"Configured: {known}.")
        if section.kind == "embedded":
            raise InvalidInput(
                "The built-in provider has no list of models.",
                code="provider_without_list",
                fix="`denizen models` shows what it has.",
            )
        return await list_served_models(provider_spec(name, section, self._denizen.settings.secrets))

    async def list_models(self) -> Sequence[PricedModel]:
        infos = self._denizen.runtime.current.models.list_models()
        return await to_thread.run_sync(self._price, infos)  # reading the list of prices takes a moment at first

    def list_aliases(self) -> Sequence[ConfiguredAlias]:
        settings = self._denizen.settings
        # The name of a provider, which stands for its usual model, is no alias unless the file says so.
        return [
            ConfiguredAlias(
                name=name,
                model=str(alias.model),
                fallbacks=[str(each) for each in alias.fallbacks],
                is_implied=not settings.document.has((*_ALIASES, name)),
            )
            for name, alias in settings.models.aliases.items()
            if name not in settings.models.providers or settings.document.has((*_ALIASES, name))
        ]

    @property
    def default_model(self) -> str:
        written = find_value(self._denizen.settings.document.tree, _DEFAULT)
        return written if isinstance(written, str) and written else USUAL

    async def try_model(self, by: Principal, name: str) -> ModelTrial:
        current = self._denizen.runtime.current
        model = current.models.get(name).name
        scope = CallScope(
            agent=current.default_agent,
            principal=by,
            place=own_place("web", by.key, "test of a model"),
            session_id=SessionId(""),
            turn_id=TurnId(""),
        )
        services, started_s = self._denizen.services, time.monotonic()
        ask = BilledCompletion(self._denizen.runtime, services.store, services.clock)
        details: dict[str, Json] = {"done": "tested", "outcome": "cancelled"}
        try:
            with anyio.fail_after(TRIAL_TIMEOUT_S):
                reply = await ask(scope, name, CHECK_REQUEST)
        except TimeoutError:
            details["outcome"] = "model_timeout"
            raise Unavailable(
                f"The model '{name}' did not answer within {TRIAL_TIMEOUT_S:g} s.",
                code="model_timeout",
                fix="Look at its server. The built-in model fetches its weights at first: `denizen models pull`.",
            ) from None
        except DenizenError as error:
            details["outcome"] = error.code
            raise
        else:
            cost = reply.usage.cost_usd
            details |= {
                "outcome": "answered",
                "answered_by": reply.model,
                "cost_usd": None if cost is None else str(cost),
            }
            return ModelTrial(reply.model, time.monotonic() - started_s, reply.usage)
        finally:
            event = AuditEvent(AuditKind.MODEL, services.clock.now(), by.key, model, details)
            with anyio.CancelScope(shield=True):
                async with services.store.work() as work:
                    await work.audit.add([event])

    async def put_provider(self, by: Principal, draft: ProviderDraft) -> ConfigurationChange:
        known = self._denizen.settings.models.providers.get(draft.name)
        path, variable = (*_PROVIDERS, draft.name), self._choose_variable(draft)
        wanted: dict[str, Json] = {
            "kind": draft.kind,
            "base_url": draft.base_url or None,
            "model": draft.model or None,
            "api_key": f"${{{variable}}}" if variable else None,
        }
        written = find_value(self._denizen.settings.document.tree, path)
        if known is None or not isinstance(written, Mapping):
            values: dict[KeyPath, Json] = {path: {key: value for key, value in wanted.items() if value is not None}}
        else:
            values = {(*path, key): value for key, value in wanted.items() if value != written.get(key)}
        secrets = {variable: draft.key} if draft.key else {}
        return await self._configuration.put_values(by, values, secrets=secrets)

    async def remove_provider(self, by: Principal, name: str) -> ConfigurationChange:
        return await self._configuration.put_values(by, {(*_PROVIDERS, name): None})

    async def put_alias(self, by: Principal, name: str, model: str, fallbacks: Sequence[str]) -> ConfigurationChange:
        path, value = (*_ALIASES, name), {"model": model, "fallbacks": [*fallbacks]}
        return await self._configuration.put_values(by, {path: value if fallbacks else model})

    async def remove_alias(self, by: Principal, name: str) -> ConfigurationChange:
        return await self._configuration.put_values(by, {(*_ALIASES, name): None})

    async def put_default_model(self, by: Principal, model: str) -> ConfigurationChange:
        return await self._configuration.put_values(by, {_DEFAULT: model})

    async def put_price(self, by: Principal, model: str, price: TokenPrice | None) -> ConfigurationChange:
        path, document = (*_OVERRIDES, model), self._denizen.settings.document
        tree = document.tree
        if price is None and not document.has((*path, "price")):
            return ConfigurationChange(self._denizen.runtime.current.number, changed=False)
        if price is None:
            others = find_value(tree, path)
            is_last = isinstance(others, Mapping) and set(others) == {"price"}
            return await self._configuration.put_values(by, {path if is_last else (*path, "price"): None})
        fields = {"input": price.input_usd, "output": price.output_usd, "cached_input": price.cached_input_usd}
        value: dict[str, Json] = {
            name: int(usd) if usd == usd.to_integral_value() else float(usd)
            for name, usd in fields.items()
            if usd is not None
        }
        return await self._configuration.put_values(by, {(*path, "price"): value})

    def _describe(self, name: str, section: ProviderSection) -> ConfiguredProvider:
        settings, variable = self._denizen.settings, section.api_key.name if section.api_key else ""
        key = settings.secrets.hint(variable) if variable else ""
        return ConfiguredProvider(
            name=name,
            kind=section.kind,
            base_url=as_written(section.base_url),
            model=section.model,
            key=key,
            key_name=variable,
            key_origin="" if not key else "the environment" if read_environment().get(variable) else SECRETS_FILE,
            is_implied=not settings.document.has((*_PROVIDERS, name)),
        )

    def _price(self, infos: Sequence[ModelInfo]) -> Sequence[PricedModel]:
        from denizen.adapters.models.prices import find_listed_price

        settings = self._denizen.settings
        rows: list[PricedModel] = []
        for info in infos:
            section, model = settings.models.providers.get(info.provider), info.name.partition("/")[2]
            if section is None:  # the one of a command line
                rows.append(PricedModel(info, None, None))
                continue
            spec = provider_spec(info.provider, section, settings.secrets)
            own = list_prices(settings, info.provider).get(model)
            rows.append(PricedModel(info, find_listed_price(spec, model), own))
        return rows

    def _choose_variable(self, draft: ProviderDraft) -> str:
        """Returns the variable of the key, empty for none. Without a name it is the usual one of the kind, unless that
        holds the key of another provider.
        """
        if draft.kind not in PROVIDERS or draft.kind == "embedded":
            return ""
        if draft.key_name and not NAME_PATTERN.fullmatch(draft.key_name):
            raise InvalidInput(
                "A key is given by the name of its variable, and this is none.",
                code="variable_invalid",
                why="A name has letters, digits and underscores only.",
                fix="Write a name such as LAB_API_KEY here, and the key itself in the field beside.",
            )
        if draft.key_name:
            return draft.key_name
        usual = PROVIDERS[draft.kind].key_variable
        if not draft.key and (draft.base_url or not usual):
            return ""
        providers = self._denizen.settings.models.providers.items()
        taken = {each.api_key.name for name, each in providers if each.api_key and name != draft.name}
        return usual if usual and usual not in taken else as_variable(f"{draft.name}_api_key")
