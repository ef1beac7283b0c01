"""The models of this server, for people who look after them: providers, names of models, prices, and trying one.

What is written holds when the call returns, or nothing was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.usage import TokenPrice, Usage
from denizen.ports.configuration import ConfigurationChange
from denizen.ports.model import ModelInfo


@record(kw_only=True)
class ProviderKindInfo:
    """A kind of provider. `key_variable` is the usual variable of its key; empty: it needs none."""

    name: str
    label: str
    base_url: str
    key_variable: str


@record(kw_only=True)
class ConfiguredProvider:
    """A provider of models. `key` tells two keys apart and is no key; empty where none is set, or none is needed.
    `key_origin` says where a key that is set comes from. A provider that `is_implied` is not in the file.
    """

    name: str
    kind: str
    base_url: str
    model: str
    key: str
    key_name: str
    key_origin: str = ""
    is_implied: bool = False


@record
class PricedModel:
    """A model, with the price that the list has and the one of the configuration, which counts."""

    info: ModelInfo
    listed: TokenPrice | None
    own: TokenPrice | None


@record(kw_only=True)
class ConfiguredAlias:
    """A name that agents use for a model, and the models that are tried where that cannot answer. One that `is_implied`
    is not in the file, and follows from what is.
    """

    name: str
    model: str
    fallbacks: Sequence[str]
    is_implied: bool


@record
class ModelTrial:
    """The answer to a question that was really asked: which model answered, how long it took, and what it used."""

    model: str
    duration_s: float
    usage: Usage


@record(kw_only=True)
class ProviderDraft:
    """A provider as somebody describes it. Empty fields take what is usual. `key` is a typed key, which goes into
    `secrets.env`; `key_name` names its variable.
    """

    name: str
    kind: str
    base_url: str = ""
    model: str = ""
    key_name: str = ""
    key: str = field(default="", repr=False)


class ModelConfiguration(Protocol):
    """Shows and changes the models; one for a process. Changes raise as
    `ConfigurationFiles.replace`, and are in the audit log.
    """

    def list_kinds(self) -> Sequence[ProviderKindInfo]: ...

    def list_providers(self) -> Sequence[ConfiguredProvider]: ...

    async def list_provider_models(self, name: str) -> Sequence[str]:
        """Asks a provider for the names of its models. Raises NotFound for an unknown one, InvalidInput for one that
        has no list, and what asking raises.
        """
        ...

    async def list_models(self) -> Sequence[PricedModel]:
        """Returns the models that are configured or have an alias, by name."""
        ...

    def list_aliases(self) -> Sequence[ConfiguredAlias]: ...

    @property
    def default_model(self) -> str:
        """The model of agents that name none: an alias, `provider/model` or `auto`."""
        ...

    async def try_model(self, by: Principal, name: str) -> ModelTrial:
        """Asks a model one short question, which counts in the usage and budgets of whoever asks for it, and is in the
        audit log. Raises NotFound for an unknown name, LimitExceeded when no budget is left, and what the model raises.
        """
        ...

    async def put_provider(self, by: Principal, draft: ProviderDraft) -> ConfigurationChange:
        """Adds a provider, or changes the fields of one; what else its entry says stays."""
        ...

    async def remove_provider(self, by: Principal, name: str) -> ConfigurationChange:
        """Raises NotFound, and InvalidInput where an alias or agent still needs it."""
        ...

    async def put_alias(
        self, by: Principal, name: str, model: str, fallbacks: Sequence[str]
    ) -> ConfigurationChange: ...

    async def remove_alias(self, by: Principal, name: str) -> ConfigurationChange: ...

    async def put_default_model(self, by: Principal, model: str) -> ConfigurationChange: ...

    async def put_price(self, by: Principal, model: str, price: TokenPrice | None) -> ConfigurationChange:
        """Sets the price of a model, as `provider/model`; None brings back the one of the list."""
        ...
