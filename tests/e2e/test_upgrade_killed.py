"""An upgrade of an older home, and its undoing, killed at random moments; `tests.chaos upgrade` has more of it."""

import pytest

from tests.chaos.killed_upgrades import kill_upgrades

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.proves("P8")
@pytest.mark.parametrize(
    "on_postgres", [False, pytest.param(True, marks=pytest.mark.xdist_group("postgres"))], ids=["sqlite", "postgres"]
)
async def test_an_upgrade_and_its_undoing_outlast_kills_with_every_post(*, on_postgres: bool) -> None:
    report = await kill_upgrades(500, 3, seed=1, on_postgres=on_postgres)
    assert not report.wrong, report.describe()
