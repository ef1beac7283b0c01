"""The MCP servers of the open home folder, for people who look after them (`denizen.ports.mcp_configuration`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from denizen.adapters.mcp import McpPool, McpToolset
from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.home.secrets import MASK, MASK_MIN_CHARS
from denizen.app.settings import parse_path
from denizen.app.settings.fields import as_variable
from denizen.app.settings.problem import KeyPath, format_path
from denizen.app.settings.tools import McpServerSection
from denizen.app.settings.yaml_document import find_value
from denizen.app.toolsets import examine_server, read_servers
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.json import Json
from denizen.domain.principal import Principal
from denizen.ports.configuration import ConfigurationChange, ConfigurationPart, PlannedChange
from denizen.ports.mcp_configuration import McpOutputLine, McpServerDraft, McpServerEdit, McpServerInfo, McpToolInfo

_SERVERS: KeyPath = ("mcp", "servers")
_VARIABLES = ("env", "headers")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}")


class HomeMcpServers:
    """The MCP servers that the configuration names, and their connections."""

    def __init__(self, denizen: Denizen, configuration: HomeConfiguration) -> None:
        self._denizen = denizen
        self._configuration = configuration

    def list_servers(self) -> Sequence[McpServerInfo]:
        return [self.get_server(name) for name in self._denizen.settings.mcp.servers]

    def get_server(self, name: str) -> McpServerInfo:
        section, toolset = self._get_section(name), self._find_toolset(name)
        address = str(section.url) or shlex.join([str(section.command), *map(str, section.args)])
        base = McpServerInfo(
            name=name,
            address=self._mask(section, address),
            variables=self._describe_variables(name, section),
            is_trusted=section.trusted,
            phase="off",
        )
        return base if toolset is None else self._add_state(base, section, toolset)

    def restart(self, name: str) -> None:
        self._get_section(name)
        toolset = self._find_toolset(name)
        if toolset is None:
            raise InvalidInput(f"The MCP server '{name}' is off.", code="mcp_off", fix="Switch it on.")
        toolset.server.restart()

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange:
        self._get_section(name)
        changed = await self._configuration.put_values(by, {(*_SERVERS, name, "enabled"): is_on})
        toolset = self._find_toolset(name)
        if toolset is not None:
            toolset.server.start()
        return changed

    async def add(self, by: Principal, draft: McpServerDraft) -> ConfigurationChange:
        if draft.name in self._denizen.settings.mcp.servers:
            raise Conflict(
                f"There is an MCP server '{draft.name}' already.", code="mcp_exists", fix="Choose another name."
            )
        references = {key: as_variable(f"mcp_{draft.name}_{key}") for key in draft.secrets}
        variables: dict[str, Json] = {**draft.variables, **{key: f"${{{name}}}" for key, name in references.items()}}
        secrets = {references[key]: value for key, value in draft.secrets.items()}
        section: dict[str, Json] = {"url": draft.url} if draft.url else {"command": "".join(draft.command[:1])}
        if len(draft.command) > 1:
            section["args"] = [*draft.command[1:]]
        if variables:
            section["headers" if draft.url else "env"] = variables
        if draft.is_trusted:
            section["trusted"] = True
        values: dict[KeyPath, Json] = {(*_SERVERS, draft.name): section}
        await self._try(draft.name, values, secrets)
        return await self._put(by, draft.name, values, secrets)

    async def describe(self, name: str) -> ConfigurationPart:
        self._get_section(name)
        part = await self._configuration.describe(format_path((*_SERVERS, name)))
        written: Mapping[str, Json] = part.value if isinstance(part.value, Mapping) else {}
        hidden = {key: _hide_values(written[key]) for key in _VARIABLES if key in written}
        return replace(part, value={**written, **hidden})

    async def plan(self, name: str, edit: McpServerEdit) -> PlannedChange:
        section = self._get_section(name)
        values, secrets = self._read_edit(name, edit)
        planned = await self._configuration.plan_values(values, secrets=secrets)
        if not planned.faults:
            await self._try(name, values, secrets)
        return replace(planned, diff=self._mask(section, planned.diff))

    async def edit(self, by: Principal, name: str, edit: McpServerEdit) -> ConfigurationChange:
        self._get_section(name)
        values, secrets = self._read_edit(name, edit)
        await self._try(name, values, secrets)
        return await self._put(by, name, values, secrets, edit.expected)

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        self._get_section(name)
        return await self._configuration.put_values(by, {(*_SERVERS, name): None})

    async def _try(self, name: str, values: Mapping[KeyPath, Json], secrets: Mapping[str, str]) -> None:
        """Starts or reaches the server as it would be; one that would be off is left alone. Raises Unavailable."""
        settings = await self._configuration.preview(values, secrets=secrets)
        chosen = {spec: policy for spec, policy in read_servers(settings).items() if spec.name == name}
        async with McpPool(self._denizen.services.clock) as pool:
            for toolset in pool.open(chosen):
                await examine_server(toolset, settings.secrets.mask)

    async def _put(
        self, by: Principal, name: str, values: Mapping[KeyPath, Json], secrets: Mapping[str, str], expected: str = ""
    ) -> ConfigurationChange:
        changed = await self._configuration.put_values(by, values, secrets=secrets, expected=expected)
        toolset = self._find_toolset(name)
        if toolset is not None:
            toolset.server.start()
        return changed

    def _read_edit(self, name: str, edit: McpServerEdit) -> tuple[dict[KeyPath, Json], dict[str, str]]:
        """Returns the values to set and the secrets by their variables. Hidden values are those that are there."""
        server: KeyPath = (*_SERVERS, name)
        values: dict[KeyPath, Json] = {}
        for path, value in edit.values.items():
            where = parse_path(path)
            if where[: len(server)] != server:
                raise InvalidInput(f"'{path}' is no setting of the MCP server '{name}'.", code="path_invalid")
            written = find_value(self._denizen.settings.document.tree, where)
            values[where] = _restore_hidden(value, written)
        url = values.get((*server, "url"), find_value(self._denizen.settings.document.tree, (*server, "url")))
        references = {key: as_variable(f"mcp_{name}_{key}") for key in edit.secrets}
        kept = "headers" if url else "env"
        values |= {(*server, kept, key): f"${{{variable}}}" for key, variable in references.items()}
        return values, {references[key]: value for key, value in edit.secrets.items()}

    def _get_section(self, name: str) -> McpServerSection:
        section = self._denizen.settings.mcp.servers.get(name)
        if section is None:
            raise NotFound(f"There is no MCP server '{name}'.", code="mcp_unknown")
        return section

    def _find_toolset(self, name: str) -> McpToolset | None:
        return next((each for each in self._denizen.mcp_toolsets if each.server.spec.name == name), None)

    def _add_state(self, base: McpServerInfo, section: McpServerSection, toolset: McpToolset) -> McpServerInfo:
        state, policy, listing = toolset.server.state, self._denizen.runtime.current.policy, toolset.listing
        return replace(
            base,
            phase=state.phase,
            about=state.about,
            since=state.since,
            starts=state.starts,
            why=self._mask(section, state.why),
            failure=self._mask(section, state.failure),
            failed_at=state.failed_at,
            tools=[McpToolInfo(spec.name, policy.tier(spec), spec.description) for spec in listing.specs],
            left_out=listing.left_out,
            output=[McpOutputLine(at, self._mask(section, text)) for at, text in toolset.server.output],
        )

    def _describe_variables(self, name: str, section: McpServerSection) -> Mapping[str, str]:
        key = "headers" if section.url else "env"
        written = find_value(self._denizen.settings.document.tree, (*_SERVERS, name, key))
        secrets = self._denizen.settings.secrets
        found: dict[str, str] = {}
        for variable, value in written.items() if isinstance(written, Mapping) else ():
            names = _REFERENCE.findall(value) if isinstance(value, str) else []
            unset = [each for each in names if secrets.find(each) is None]
            told = ", ".join(names)
            found[variable] = f"{', '.join(unset)} is not set" if unset else f"from {told}" if told else MASK
        return found

    def _mask(self, section: McpServerSection, text: str) -> str:
        """Returns the text without secrets, and without the values of the server's environment and headers."""
        text = self._denizen.mask(text)
        for value in sorted({*section.env.values(), *section.headers.values()}, key=len, reverse=True):
            text = text.replace(value, MASK) if len(value) >= MASK_MIN_CHARS else text
        return text


def _hide_values(written: Json) -> Json:
    """Returns the environment or headers with `MASK` for each value that refers to no secret."""
    if not isinstance(written, Mapping):
        return written
    return {
        name: value if isinstance(value, str) and _REFERENCE.search(value) else MASK for name, value in written.items()
    }


def _restore_hidden(value: Json, written: Json) -> Json:
    """Returns the value with what is written in place of each `MASK`. Raises InvalidInput where nothing is."""
    if isinstance(value, Mapping):
        old: Mapping[str, Json] = written if isinstance(written, Mapping) else {}
        return {name: _restore_hidden(each, old.get(name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_restore_hidden(each, None) for each in value]
    if value == MASK and written is not None:
        return written
    if isinstance(value, str) and MASK in value:
        raise InvalidInput(
            f"{MASK} stands for a value that is hidden, and there is none here.",
            code="field_invalid",
            fix="Type the value itself, or put it under the new secrets.",
        )
    return value
