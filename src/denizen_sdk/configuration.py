"""The configuration: `denizen.yaml` as text and by section, the providers of models, and what was accepted before."""

from __future__ import annotations

from typing import Any

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import from_json, record

JsonValue = str | int | float | bool | list[Any] | dict[str, Any] | None
"""A value of JSON."""


@record
class ConfigInfo:
    """The text of `denizen.yaml`. `digest` names it in a change. With `is_masked` secrets were replaced in it, so it
    must not be sent back.
    """

    raw: str
    digest: str
    is_masked: bool = False


@record
class ConfigSection:
    """The part of the file at a path such as `agents.ada`."""

    key: str
    data: Any


@record(kw_only=True)
class ConfigFault:
    """Something that is wrong with the configuration. Lines and columns count from 1; 0 is the file as a whole."""

    file: str
    line: int
    column: int
    path: str
    message: str
    fix: str


@record
class ConfigFaults:
    """Everything that is wrong with a text."""

    faults: tuple[ConfigFault, ...]


@record
class ConfigChange:
    """The result of a change, which holds already. `needs_restart` names sections that hold from the next start on."""

    generation: int
    changed: bool
    needs_restart: tuple[str, ...] = ()


@record
class ConfigGenerationInfo:
    """An accepted configuration. With `has_text` it can be brought back."""

    number: int
    source: str
    accepted_at: str
    has_text: bool


@record(kw_only=True)
class ProviderInfo:
    """A provider of models. `key` is what is shown of its key to tell two apart, empty for none; `key_name` the
    variable that holds it, `key_origin` the place where it is set. One that `is_implied` is not in the file.
    """

    name: str
    kind: str
    base_url: str
    model: str
    key: str
    key_name: str
    key_origin: str = ""
    is_implied: bool = False


class ConfigurationCalls(ClientCalls):
    """The calls of `/api/config` and `/api/providers`. All raise NetworkError, and ApiError: 403 for everybody but
    owners and admins, and for admins where something is changed; 400 for a configuration that cannot be used, of which
    nothing is written; 409 where another text than that of `digest` is there.
    """

    async def get_config(self) -> ConfigInfo:
        return await self._get(ConfigInfo, "/api/config")

    async def put_config(self, raw: str, *, digest: str = "") -> ConfigChange:
        """Replaces the whole file."""
        body = {"raw": raw, "digest": digest}
        return from_json(ConfigChange, await self._connection.request("PUT", "/api/config", body=body))

    async def check_config(self, raw: str) -> tuple[ConfigFault, ...]:
        """Returns what is wrong with a text; nothing is written."""
        row = await self._connection.request("POST", "/api/config/check", body={"raw": raw})
        return from_json(ConfigFaults, row).faults

    async def get_config_section(self, key: str) -> JsonValue:
        return (await self._get(ConfigSection, f"/api/config/section/{quote_segment(key)}")).data

    async def put_config_section(self, key: str, data: JsonValue, *, digest: str = "") -> ConfigChange:
        """Sets what the file says at a path; None removes it. Comments around it stay."""
        path = f"/api/config/section/{quote_segment(key)}"
        row = await self._connection.request("PUT", path, body={"data": data, "digest": digest})
        return from_json(ConfigChange, row)

    async def list_config_generations(self) -> list[ConfigGenerationInfo]:
        return await self._list(ConfigGenerationInfo, "/api/config/generations")

    async def list_providers(self) -> list[ProviderInfo]:
        return await self._list(ProviderInfo, "/api/config/providers")

    async def put_provider(self, name: str, data: JsonValue) -> ConfigChange:
        """Sets a provider of models; None removes it."""
        path = f"/api/config/providers/{quote_segment(name)}"
        return from_json(ConfigChange, await self._connection.request("PUT", path, body={"data": data}))

    async def list_provider_models(self, name: str) -> tuple[str, ...]:
        """Asks a provider for the names of its models. Raises ApiError (503) when it cannot be reached."""
        return tuple(await self._connection.request("GET", f"/api/providers/{quote_segment(name)}/models"))
