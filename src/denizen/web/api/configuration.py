"""`/api/config` and `/api/providers`: reading and changing `denizen.yaml`. Admins read, owners change.

A change that cannot be used is refused with every problem and its line, and nothing is written. `digest` in the body,
or `If-Match`, names the text that a change was made on; where another is there meanwhile, it is refused.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.ports.configuration import ConfigurationChange, ConfigurationFiles
from denizen.ports.model_configuration import ModelConfiguration
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import TEXT, ApiRoute, Operation, Schema, object_schema
from denizen.web.http.request import JsonBody, check_field_names, field_error, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.configuration import (
    ConfigChange,
    ConfigFault,
    ConfigFaults,
    ConfigGenerationInfo,
    ConfigInfo,
    ConfigSection,
    ProviderInfo,
)

_DATA = object_schema("data", data={}, digest=TEXT)
_NAMES: Schema = {"type": "array", "items": TEXT}


class ConfigurationRoutes:
    """The routes of the configuration."""

    def __init__(self, files: ConfigurationFiles, models: ModelConfiguration) -> None:
        self._files = files
        self._models = models

    @property
    def routes(self) -> list[ApiRoute]:
        section, provider = "/api/config/section/{key:path}", "/api/config/providers/{name}"
        return [
            ApiRoute(
                "GET",
                "/api/config",
                self.get_raw,
                Access.ADMIN,
                Operation("The text of `denizen.yaml`, secrets masked", answer=ConfigInfo),
            ),
            ApiRoute(
                "PUT",
                "/api/config",
                self.put_raw,
                Access.OWNER,
                Operation(
                    "Replace `denizen.yaml`; it holds at once, or nothing is written",
                    object_schema("raw", raw=TEXT, digest=TEXT),
                    ConfigChange,
                ),
            ),
            ApiRoute(
                "POST",
                "/api/config/check",
                self.check,
                Access.ADMIN,
                Operation("What is wrong with a text, by line", object_schema("raw", raw=TEXT), ConfigFaults),
            ),
            ApiRoute(
                "GET",
                section,
                self.get_section,
                Access.ADMIN,
                Operation("What the file says at a path such as `agents.ada`, secrets masked", answer=ConfigSection),
            ),
            ApiRoute(
                "PUT",
                section,
                self.put_section,
                Access.OWNER,
                Operation("Set what the file says at a path; null removes it", _DATA, ConfigChange),
            ),
            ApiRoute(
                "GET",
                "/api/config/generations",
                self.list_generations,
                Access.ADMIN,
                Operation("The accepted configurations, the latest first", answer=list[ConfigGenerationInfo]),
            ),
            ApiRoute(
                "GET",
                "/api/config/providers",
                self.list_providers,
                Access.ADMIN,
                Operation("The providers of models, keys masked", answer=list[ProviderInfo]),
            ),
            ApiRoute(
                "PUT",
                provider,
                self.put_provider,
                Access.OWNER,
                Operation("Set a provider of models; null removes it", _DATA, ConfigChange),
            ),
            ApiRoute(
                "GET",
                "/api/providers/{name}/models",
                self.list_provider_models,
                Access.ADMIN,
                Operation("The names of the models that a provider lists", answer=_NAMES),
            ),
        ]

    async def get_raw(self, _: Request) -> Response:
        found = await self._files.read()
        headers = {"ETag": f'"{found.digest}"'}
        return JSONResponse(asdict(ConfigInfo(found.text, found.digest, found.is_masked)), headers=headers)

    async def put_raw(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("raw", "digest"))
        return _answer(
            await self._files.replace(get_principal(request), _read_raw(body), expected=_read_expected(request, body))
        )

    async def check(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, ("raw",))
        found = await self._files.find_faults(_read_raw(body))
        return JSONResponse(asdict(ConfigFaults(tuple(ConfigFault(**asdict(each)) for each in found))))

    async def get_section(self, request: Request) -> Response:
        key = request.path_params["key"]
        return JSONResponse(asdict(ConfigSection(key, await self._files.find_value(key))))

    async def put_section(self, request: Request) -> Response:
        return await self._put(request, request.path_params["key"])

    async def put_provider(self, request: Request) -> Response:
        name = request.path_params["name"]
        if '"' in name:
            raise InvalidInput("A provider has another name.", code="provider_invalid", fix="Take the quotes out.")
        return await self._put(request, f'models.providers."{name}"')

    async def list_generations(self, _: Request) -> Response:
        rows = [
            ConfigGenerationInfo(each.number, each.source, each.accepted_at.isoformat(), each.has_text)
            for each in await self._files.list_generations()
        ]
        return JSONResponse([asdict(row) for row in rows])

    async def list_providers(self, _: Request) -> Response:
        return JSONResponse([asdict(ProviderInfo(**asdict(each))) for each in self._models.list_providers()])

    async def list_provider_models(self, request: Request) -> Response:
        return JSONResponse(list(await self._models.list_provider_models(request.path_params["name"])))

    async def _put(self, request: Request, path: str) -> Response:
        body = await read_object(request)
        check_field_names(body, ("data", "digest"))
        if "data" not in body:
            raise field_error("data", "the value; null removes what is there")
        value = cast("Json", body["data"])
        return _answer(
            await self._files.put_value(get_principal(request), path, value, expected=_read_expected(request, body))
        )


def _read_raw(body: JsonBody) -> str:
    if "raw" not in body:
        raise field_error("raw", "the text of the file")
    return read_text(body, "raw")


def _read_expected(request: Request, body: JsonBody) -> str:
    return read_text(body, "digest") or request.headers.get("if-match", "").strip('"')


def _answer(change: ConfigurationChange) -> Response:
    return JSONResponse(asdict(ConfigChange(change.generation, change.changed, tuple(change.needs_restart))))
