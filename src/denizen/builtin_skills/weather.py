"""The weather of a place, now and in the coming days, from Open-Meteo, which needs no key.

The two URLs are settings, so that a self-hosted installation of that server can be used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlencode

from denizen.skill import Param, Skill, Taint, Tier, ToolContext, ToolError


@dataclass(frozen=True, slots=True)
class WeatherSettings:
    """`geocoding_url` finds a place by name; `forecast_url` answers for coordinates."""

    geocoding_url: str = "https://geocoding-api.open-meteo.com/v1/search"
    forecast_url: str = "https://api.open-meteo.com/v1/forecast"
    units: Literal["metric", "imperial"] = "metric"


skill = Skill("weather", description="Weather now and in the coming days.", settings=WeatherSettings)

_CURRENT = (
    "temperature_2m",
    "apparent_temperature",
    "relative_humidity_2m",
    "precipitation",
    "weather_code",
    "wind_speed_10m",
    "wind_direction_10m",
)
_DAILY = ("weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_probability_max")
_IMPERIAL = {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"}
_SKY = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "rime fog",
    51: "light drizzle",
    53: "drizzle",
    55: "dense drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "light snow showers",
    86: "snow showers",
    95: "thunderstorm",
    96: "thunderstorm with light hail",
    99: "thunderstorm with hail",
}
"""WMO weather interpretation codes, as Open-Meteo uses them."""

_SHORT = {"usa": "us", "uk": "gb"}
"""Short names that people use for countries and the service does not."""

Answer = Mapping[str, Any]


@skill.tool(tier=Tier.LIMITED, read_only=True, idempotent=True, reads={Taint.WEB})
async def weather(
    context: ToolContext,
    place: Annotated[str, Param("city, optionally with region or country: Paris, Texas", min_length=2, max_length=100)],
    days: Annotated[int, Param("days of forecast", ge=0, le=7)] = 1,
) -> str:
    """The weather of a place now and for the coming days."""
    settings = context.settings(WeatherSettings)
    found = await _find_place(context, settings, place)
    answer = await _ask(
        context,
        settings.forecast_url,
        {
            "latitude": found["latitude"],
            "longitude": found["longitude"],
            "current": ",".join(_CURRENT),
            "daily": ",".join(_DAILY),
            "timezone": "auto",
            # Today is the first day.
            "forecast_days": days + 1,
            **(_IMPERIAL if settings.units == "imperial" else {}),
        },
    )
    try:
        return "\n".join([_now(found, answer), *_coming(answer, days)])
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ToolError("The weather service sent a response that is not understood.") from error


async def _find_place(context: ToolContext, settings: WeatherSettings, place: str) -> Answer:
    """Returns the best match. Words after a comma choose among places with one name: `Paris, Texas`."""
    name, *rest = (part.strip() for part in place.split(","))
    query = {"name": name, "count": 10, "language": "en", "format": "json"}
    answer = await _ask(context, settings.geocoding_url, query)
    raw = answer.get("results")
    rows = cast("list[object]", raw) if isinstance(raw, list) else []
    places = [cast("Answer", row) for row in rows if isinstance(row, dict) and {"latitude", "longitude"} <= row.keys()]
    matches = [row for row in places if all(_lies_in(row, part) for part in rest if part)]
    if not matches:
        near = "; ".join(_label(row) for row in places[:3])
        others = f"There is: {near}." if near else "Check the spelling."
        raise ToolError(f"No place `{place}` was found. {others}", is_own=not near)
    return matches[0]


def _lies_in(row: Answer, region: str) -> bool:
    """Returns whether the place is in the region: `Texas`, `France`, `FR`, or part of a longer name such as
    `Lombardia` in `Regione Lombardia`.
    """
    wanted = _SHORT.get(region.casefold(), region.casefold())
    names = [str(row.get(key, "")).casefold() for key in ("country_code", "country", "admin1", "admin2", "admin3")]
    return wanted in names or (len(wanted) > 3 and any(wanted in name for name in names))


async def _ask(context: ToolContext, url: str, query: Mapping[str, object]) -> Answer:
    """Returns the JSON object of the service. Raises ToolError for anything else, and for an error that it reports."""
    page = await context.fetch(f"{url}?{urlencode(query)}", max_bytes=200_000)
    try:
        answer = json.loads(page.text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ToolError(f"The weather service did not answer with data (HTTP status {page.status}).")
    fields = cast("dict[str, Any]", answer)
    if page.status != 200 or fields.get("error"):
        reason = str(fields.get("reason", "no reason given"))[:200]
        raise ToolError(f"The weather service refused (HTTP status {page.status}): {reason}")
    return fields


def _now(place: Answer, answer: Answer) -> str:
    now, units = answer["current"], answer["current_units"]

    def show(key: str) -> str:
        return f"{now[key]} {units[key]}"

    return (
        f"{_label(place)}, {str(now['time']).replace('T', ' ')} local time: {_sky(now['weather_code'])}, "
        f"{show('temperature_2m')} (feels like {show('apparent_temperature')}), "
        f"humidity {show('relative_humidity_2m')}, precipitation {show('precipitation')}, "
        f"wind {show('wind_speed_10m')} from {_direction(now['wind_direction_10m'])}"
    )


def _coming(answer: Answer, days: int) -> list[str]:
    if not days:
        return []
    daily, unit = answer["daily"], answer["daily_units"]["temperature_2m_max"]
    lines: list[str] = []
    for index in range(1, days + 1):
        low, high = daily["temperature_2m_min"][index], daily["temperature_2m_max"][index]
        chance = daily["precipitation_probability_max"][index]
        rain = "" if chance is None else f", {chance} % chance of precipitation"
        lines.append(f"{daily['time'][index]}: {_sky(daily['weather_code'][index])}, {low} to {high} {unit}{rain}")
    return lines


def _label(row: Answer) -> str:
    parts = [str(row.get(key, ""))[:60] for key in ("name", "admin1", "country")]
    return ", ".join(dict.fromkeys(part for part in parts if part))


def _sky(code: object) -> str:
    return _SKY.get(code, f"weather code {code}") if isinstance(code, int) else "sky unknown"


def _direction(degrees: float) -> str:
    names = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
    return names[round(degrees / 45) % 8]
