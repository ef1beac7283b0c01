"""Moving the store of a home folder, and what its configuration says afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from anyio import to_thread

from denizen.app.store_move import UNFINISHED, HomeStoreMove, choose_durable_database
from denizen.domain.errors import Conflict, InvalidInput
from denizen.domain.store_move import MoveStage
from tests.app.home_folder import LAB, Home, open_home

pytest_plugins = ["tests.postgres"]
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("postgres")]


async def test_an_owner_moves_a_home_and_sees_where_it_is_and_how_many_rows_it_has(
    home: Home, postgres_url: str
) -> None:
    async with open_home(home, LAB):
        pass
    before = await HomeStoreMove(home.load(), {}).status()
    assert (before.backend, before.place) == ("sqlite", f"sqlite:///{home.path / 'denizen.db'}")
    with closing(sqlite3.connect(home.path / "denizen.db")) as database:
        names = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        rows = database.execute("SELECT count(*) FROM config_generations").fetchone()[0]
    own = {each.table: each.rows for each in before.tables}
    assert own["config_generations"] == rows > 0
    assert {name for name in names - own.keys() if "_words" not in name} == {"denizen_revision", "sqlite_sequence"}

    moving = HomeStoreMove(home.load(), {})
    done = await moving.run(postgres_url)
    assert done.stage is moving.progress.stage is MoveStage.DONE
    assert home.config.read_text().startswith(LAB)
    after = await HomeStoreMove(home.load(), {}).status()
    assert after.backend == "postgresql"
    assert after.tables == before.tables
    with pytest.raises(Conflict) as caught:
        await HomeStoreMove(home.load(), {}).run(postgres_url)
    assert caught.value.code == "move_same"


async def test_the_log_of_work_under_way_stays_in_use_until_that_work_has_ended(home: Home, postgres_url: str) -> None:
    async with open_home(home, LAB):
        pass
    log = home.path / "durable.db"
    with closing(sqlite3.connect(log)) as database:
        database.execute("CREATE TABLE workflow_status (status TEXT)")
        database.execute("INSERT INTO workflow_status VALUES ('PENDING')")
        database.commit()
    await HomeStoreMove(home.load(), {}).run(postgres_url)
    assert await to_thread.run_sync(choose_durable_database, home.load()) == log
    with closing(sqlite3.connect(log)) as database:
        database.execute("UPDATE workflow_status SET status = 'SUCCESS'")
        database.commit()
    assert choose_durable_database(home.load()) == postgres_url
    assert not (home.path / UNFINISHED).exists()


async def test_a_target_that_cannot_be_used_changes_nothing(home: Home) -> None:
    async with open_home(home, LAB):
        pass
    moving = HomeStoreMove(home.load(), {})
    for url in ("mysql://nowhere", "postgresql://u:${NOT_SET}@h/n"):
        with pytest.raises(InvalidInput):
            await moving.run(url)
        assert moving.progress.stage is MoveStage.FAILED
    assert home.config.read_text() == LAB
