"""Builds what looks after the components of a running server: models, skills, MCP servers."""

from __future__ import annotations

from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.mcp_configuration import HomeMcpServers
from denizen.app.model_configuration import HomeModels
from denizen.app.skill_configuration import HomeSkills
from denizen.web.http.dependencies import ComponentServices


def build_components(denizen: Denizen, configuration: HomeConfiguration) -> ComponentServices:
    """Builds the services for one open home folder, whose configuration they change."""
    return ComponentServices(
        models=HomeModels(denizen, configuration),
        skills=HomeSkills(denizen, configuration),
        mcp=HomeMcpServers(denizen, configuration),
    )
