"""The time in zones, and spans between times."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from denizen.builtin_skills.time import skill
from denizen.domain.json import JsonObject
from denizen.skill import SkillToolset
from tests.clock import ManualClock
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio


@pytest.fixture
def services(tmp_path: Path) -> ServicesFixture:
    return ServicesFixture(tmp_path, ManualClock(datetime(2026, 11, 21, 23, 30, 5, tzinfo=UTC)))


@pytest.mark.proves("L-tool-get-current-time")
@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("", "Saturday, 2026-11-21 23:30:05 UTC (UTC+00:00)"),
        ("Europe/Rome", "Sunday, 2026-11-22 00:30:05 Europe/Rome (UTC+01:00)"),
        ("America/New_York", "Saturday, 2026-11-21 18:30:05 America/New_York (UTC-05:00)"),
        ("Asia/Kathmandu", "Sunday, 2026-11-22 05:15:05 Asia/Kathmandu (UTC+05:45)"),
    ],
)
async def test_the_time_is_told_for_a_zone(services: ServicesFixture, zone: str, text: str) -> None:
    assert (await run(SkillToolset(skill, services.services()), "current_time", {"timezone": zone})).text == text


async def test_the_configured_zone_is_meant_when_none_is_named(services: ServicesFixture) -> None:
    toolset = SkillToolset(skill, services.services(), {"timezone": "Asia/Tokyo"})
    assert "08:30:05 Asia/Tokyo (UTC+09:00)" in (await run(toolset, "current_time", {})).text


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Rome", "Europe/Rome"),
        ("new york", "America/New_York"),
        ("europe/Rom", "Europe/Rome"),
        ("Narnia", "IANA name"),
        ("../../etc/passwd", "IANA name"),
        ("/etc/passwd", "IANA name"),
        ("Europe", "time zone"),
        ("Europe/", "time zone"),
        ("\0", "time zone"),
        ("é" * 300, "time zone"),
    ],
)
async def test_an_unknown_zone_is_refused_with_what_may_be_meant(
    services: ServicesFixture, zone: str, hint: str
) -> None:
    result = await run(SkillToolset(skill, services.services()), "current_time", {"timezone": zone})
    assert result.is_error
    assert hint in result.text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"start": "2026-11-20", "end": "2026-12-24"}, "34 d (2937600 seconds, 34.00 days)"),
        ({"start": "2026-11-21T23:00:00"}, "30 min 5 s (1805 seconds, 0.02 days)"),
        ({"start": "now", "end": "2026-11-21T23:00:00Z"}, "-30 min 5 s (-1805 seconds, -0.02 days)"),
        ({"start": "now", "end": "now"}, "0 s (0 seconds, 0.00 days)"),
        ({"start": "2026-03-29", "end": "2026-03-30", "timezone": "Europe/Rome"}, "23 h (82800 seconds, 0.96 days)"),
        ({"start": "2026-01-01T00:00:00+05:45", "end": "2026-01-01"}, "5 h 45 min (20700 seconds, 0.24 days)"),
    ],
)
async def test_the_span_between_two_times_is_told(services: ServicesFixture, args: JsonObject, text: str) -> None:
    assert (await run(SkillToolset(skill, services.services()), "time_between", args)).text == text


@pytest.mark.parametrize("moment", ["", "tomorrow", "2026-13-01", "0001-01-01T00:00+14:00", "24.12.2026", "\0"])
async def test_what_is_no_time_is_refused_with_the_form(services: ServicesFixture, moment: str) -> None:
    result = await run(SkillToolset(skill, services.services()), "time_between", {"start": moment})
    assert result.is_error
    assert "2026-12-24" in result.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30), st.text(max_size=30))
async def test_no_text_is_a_fault_of_the_program(services: ServicesFixture, moment: str, zone: str) -> None:
    await run(SkillToolset(skill, services.services()), "time_between", {"start": moment, "timezone": zone})
