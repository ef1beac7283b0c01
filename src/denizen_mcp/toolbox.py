"""Small tools as an MCP server: the time, the weather, the reputation of IP addresses, pictures.

All of it works without a key but the pictures. GREYNOISE_API_KEY gives more about addresses; IMAGE_API_KEY (or
XAI_API_KEY), IMAGE_BASE_URL and IMAGE_MODEL say who paints.
"""

from __future__ import annotations

from denizen.skills import time, weather
from denizen_mcp import greynoise, painter
from denizen_mcp.serve import EnvVariable, run

VARIABLES = (
    EnvVariable("GREYNOISE_API_KEY", "greynoise", "api_key"),
    EnvVariable("GREYNOISE_BASE_URL", "greynoise", "base_url"),
    EnvVariable("XAI_API_KEY", "painter", "api_key"),
    EnvVariable("IMAGE_API_KEY", "painter", "api_key"),
    EnvVariable("IMAGE_BASE_URL", "painter", "base_url"),
    EnvVariable("IMAGE_MODEL", "painter", "model"),
    EnvVariable("WEATHER_GEOCODING_URL", "weather", "geocoding_url"),
    EnvVariable("WEATHER_FORECAST_URL", "weather", "forecast_url"),
    EnvVariable("TIMEZONE", "time", "timezone"),
)


def main() -> None:
    """Runs the server."""
    run("denizen-mcp-toolbox", (time.skill, weather.skill, greynoise.greynoise_skill, painter.painter_skill), VARIABLES)
