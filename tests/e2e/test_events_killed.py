"""Events, schedules, workflows and delegations while `denizen run` is killed again and again."""

from __future__ import annotations

import pytest

from tests.chaos.killed_events import kill_while_events_come

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

KILLS = 15


async def test_each_event_tick_and_delegation_has_its_effect_once_however_often_the_process_is_killed() -> None:
    effects = await kill_while_events_come(KILLS)
    assert effects.sent > 0 and not effects.wrong, effects.describe()
