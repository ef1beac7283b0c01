"""Weather from a local server that answers in Open-Meteo's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from denizen.adapters.fetch import WebFetcher
from denizen.builtin_skills.weather import WeatherSettings, skill
from denizen.domain.json import JsonObject
from denizen.domain.tool import ToolResult
from denizen.skill import SkillToolset
from tests.local_server import Answer, Exchange, LocalServer, serve
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio

RECORDED = Path(__file__).parent / "open_meteo"
PLACES: Mapping[str, Any] = json.loads((RECORDED / "geocoding.json").read_text())
METRIC: Mapping[str, Any] = json.loads((RECORDED / "forecast.json").read_text())
IMPERIAL: Mapping[str, Any] = json.loads((RECORDED / "forecast_imperial.json").read_text())


def geocode(exchange: Exchange) -> None:
    """Like the real one: fuzzy by name only, at least two characters, no `results` key when nothing fits."""
    name = exchange.local.requests[-1].query["name"]
    rows = [row for row in PLACES["results"] if row["name"].casefold() == name.casefold()]
    answer = {"results": rows, "generationtime_ms": 0.6} if rows else {"generationtime_ms": 0.4}
    exchange.say(json.dumps(answer), kind="application/json; charset=utf-8")


def forecast(exchange: Exchange) -> None:
    query = exchange.local.requests[-1].query
    if not {"latitude", "longitude"} <= set(query) or int(query["forecast_days"]) > 16:
        exchange.say('{"error":true,"reason":"Parameter is wrong"}', status=400, kind="application/json; charset=utf-8")
        return
    answer = dict(IMPERIAL if query.get("temperature_unit") == "fahrenheit" else METRIC)
    answer["daily"] = {key: rows[: int(query["forecast_days"])] for key, rows in answer["daily"].items()}
    exchange.say(json.dumps(answer), kind="application/json; charset=utf-8")


ROUTES: dict[str, Answer] = {"/v1/search": geocode, "/v1/forecast": forecast}


async def ask(tmp_path: Path, server: LocalServer, args: JsonObject, **settings: str) -> ToolResult:
    fetcher = WebFetcher(allow_private=[server.address], backoff_s=())
    urls = {"geocoding_url": server.url("/v1/search"), "forecast_url": server.url("/v1/forecast")}
    toolset = SkillToolset(skill, ServicesFixture(tmp_path, fetcher=fetcher).services(), {**urls, **settings})
    return await run(toolset, "weather", args)


@pytest.mark.proves("L-tool-get-weather", "LW10")
async def test_the_weather_of_a_place_is_told_now_and_for_the_coming_day(tmp_path: Path) -> None:
    with serve(ROUTES) as server:
        result = await ask(tmp_path, server, {"place": "Berlin"})
        assert not result.is_error
        assert result.text == (
            "Berlin, Land Berlin, Germany, 2026-11-21 13:15 local time: light rain, 6.3 °C (feels like 2.9 °C), "
            "humidity 88 %, precipitation 0.4 mm, wind 17.6 km/h from SW\n"
            "2026-11-22: overcast, 2.1 to 7.8 °C, 35 % chance of precipitation"
        )
        search, weather = server.requests
        assert search.query == {"name": "Berlin", "count": "10", "language": "en", "format": "json"}
        assert (weather.query["latitude"], weather.query["longitude"]) == ("52.52437", "13.41053")
        assert weather.query["timezone"] == "auto"
        assert weather.query["forecast_days"] == "2"
        assert "weather_code" in weather.query["current"]


async def test_units_are_a_setting(tmp_path: Path) -> None:
    with serve(ROUTES) as server:
        result = await ask(tmp_path, server, {"place": "Berlin", "days": 0}, units="imperial")
        assert "43.3 °F" in result.text
        assert "10.9 mp/h" in result.text
        assert "\n" not in result.text


@pytest.mark.parametrize(("days", "lines"), [(0, 1), (1, 2), (3, 4), ("2", 3)])
async def test_as_many_days_are_told_as_were_asked_for(tmp_path: Path, days: int, lines: int) -> None:
    with serve(ROUTES) as server:
        assert len((await ask(tmp_path, server, {"place": "Berlin", "days": days})).text.split("\n")) == lines


@pytest.mark.parametrize(
    ("place", "label"),
    [
        ("Paris", "Paris, Île-de-France Region, France"),
        ("paris, texas", "Paris, Texas, United States"),
        ("Paris, Texas, USA", "Paris, Texas, United States"),
        ("Paris, US", "Paris, Texas, United States"),
        ("Paris,FR", "Paris, Île-de-France Region, France"),
        ("Paris, Lamar", "Paris, Texas, United States"),
        ("Paris, ", "Paris, Île-de-France Region, France"),
    ],
)
async def test_a_region_or_country_picks_among_places_of_one_name(tmp_path: Path, place: str, label: str) -> None:
    with serve(ROUTES) as server:
        assert (await ask(tmp_path, server, {"place": place, "days": 0})).text.startswith(f"{label}, ")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("Atlantis", ["No place `Atlantis` was found", "Check the spelling"]),
        ("Paris, Bavaria", ["No place `Paris, Bavaria`", "Paris, Texas, United States"]),
        ("x", ["place"]),
        ("", ["place"]),
        ("&count=1#x", ["No place"]),
    ],
)
async def test_an_unknown_place_is_said_with_those_of_that_name(tmp_path: Path, place: str, words: list[str]) -> None:
    with serve(ROUTES) as server:
        result = await ask(tmp_path, server, {"place": place})
        assert result.is_error
        for word in words:
            assert word in result.text
        assert result.is_own is ("There is:" not in result.text)
        assert all(seen.path == "/v1/search" for seen in server.requests)


def answer(body: object, *, status: int = 200) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda exchange: exchange.say(text, status=status, kind="application/json; charset=utf-8")


ODD = {**METRIC, "current": {**METRIC["current"], "wind_direction_10m": None}}


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ({"/v1/forecast": answer({"error": True, "reason": "Too many requests"}, status=429)}, "Too many requests"),
        ({"/v1/forecast": answer({"error": True, "reason": "Broken"})}, "Broken"),
        ({"/v1/forecast": answer("<html>down</html>", status=502)}, "did not answer with data (HTTP status 502)"),
        ({"/v1/forecast": answer([1])}, "did not answer with data"),
        ({"/v1/forecast": answer({})}, "not understood"),
        ({"/v1/forecast": answer({"current": 3, "current_units": 4})}, "not understood"),
        ({"/v1/forecast": answer(ODD)}, "not understood"),
        ({"/v1/forecast": answer({**METRIC, "daily": {"time": []}})}, "not understood"),
        ({"/v1/search": answer({"results": "none"})}, "No place"),
        ({"/v1/search": answer({"results": [{"name": "Berlin"}]})}, "No place"),
        ({"/v1/search": answer({"results": [3]})}, "No place"),
        ({"/v1/search": answer({"results": [{"name": "Berlin", "latitude": 1}]})}, "No place"),
        ({"/v1/search": answer("")}, "did not answer with data"),
    ],
)
async def test_a_service_that_fails_is_said_plainly(tmp_path: Path, routes: dict[str, Answer], words: str) -> None:
    with serve({**ROUTES, **routes}) as server:
        result = await ask(tmp_path, server, {"place": "Berlin"})
        assert result.is_error
        assert words in result.text


async def test_missing_chances_and_new_codes_do_no_harm(tmp_path: Path) -> None:
    daily = {**METRIC["daily"], "precipitation_probability_max": [None] * 4, "weather_code": [None, 42, 3, 3]}
    with serve({**ROUTES, "/v1/forecast": answer({**METRIC, "daily": daily})}) as server:
        result = await ask(tmp_path, server, {"place": "Berlin"})
        assert result.text.endswith("2026-11-22: weather code 42, 2.1 to 7.8 °C")


async def test_a_private_server_is_reached_only_when_the_operator_opened_it(tmp_path: Path) -> None:
    with serve(ROUTES) as server:
        urls = {"geocoding_url": server.url("/v1/search"), "forecast_url": server.url("/v1/forecast")}
        around = ServicesFixture(tmp_path, fetcher=WebFetcher())
        result = await run(SkillToolset(skill, around.services(), urls), "weather", {"place": "Berlin"})
        assert result.is_error
        assert server.requests == []


@pytest.mark.proves("L-tool-get-weather", "LW10")
def test_the_real_service_is_the_default_and_needs_no_key() -> None:
    settings = WeatherSettings()
    assert settings.geocoding_url == "https://geocoding-api.open-meteo.com/v1/search"
    assert settings.forecast_url == "https://api.open-meteo.com/v1/forecast"
