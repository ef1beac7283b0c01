"""Small tools as an MCP server: the time, the weather, the reputation of IP addresses, pictures.

All of it works without a key but the pictures. GREYNOISE_API_KEY gives more about addresses; IMAGE_API_KEY (or
XAI_API_KEY), IMAGE_BASE_URL and IMAGE_MODEL say who paints.
"""

from __future__ import annotations

from denizen.skills import time, weather
from denizen_mcp import greynoise, painter
from denizen_mcp.serve import Variable, run

VARIABLES = (
    Variable("GREYNOISE_API_KEY", "greynoise", "api_key"),
    Variable("GREYNOISE_BASE_URL", "greynoise", "base_url"),
    Variable("XAI_API_KEY", "painter", "api_key"),
    Variable("IMAGE_API_KEY", "painter", "api_key"),
    Variable("IMAGE_BASE_URL", "painter", "base_url"),
    Variable("IMAGE_MODEL", "painter", "model"),
    Variable("WEATHER_GEOCODING_URL", "weather", "geocoding_url"),
    Variable("WEATHER_FORECAST_URL", "weather", "forecast_url"),
    Variable("TIMEZONE", "time", "timezone"),
)


def main() -> None:
    """Runs the server."""
    run("denizen-mcp-toolbox", (time.skill, weather.skill, greynoise.skill, painter.skill), VARIABLES)
