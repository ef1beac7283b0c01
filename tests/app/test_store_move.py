"""Moving the store of a home folder, and what its configuration says afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from denizen.adapters.store import hide_password
from denizen.app import serve
from denizen.app.build import OpenOptions, open_denizen
from denizen.app.home.secrets import load_secrets
from denizen.app.store_move import UNFINISHED, HomeStoreMove, choose_durable_database, keep_password
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, NotFound
from denizen.domain.store_move import MoveStage
from denizen.testing.model_server import DelayedAnswer, ModelAnswer, model_server
from tests.adapters.store.test_mover import ROWS, fill
from tests.app.home_folder import LAB, Home, make_request, open_home
from tests.timing import HANG_LIMIT_S

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
    assert caught.value.code == "move_done"
    with pytest.raises(Conflict) as caught:
        await moving.run(postgres_url)
    assert caught.value.code == "move_done"


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


async def test_a_log_that_cannot_be_read_at_the_end_leaves_the_old_store_in_use(home: Home) -> None:
    async with open_home(home, LAB):
        pass
    log = home.path / "durable.db"
    log.write_bytes(b"no database" * 100)
    moving, target = HomeStoreMove(home.load(), {}), f"sqlite:///{home.path / 'other.db'}"
    with pytest.raises(NeedsAttention) as caught:
        await moving.run(target)
    assert caught.value.code == "durable_damaged"
    assert moving.progress.stage is MoveStage.FAILED
    assert home.config.read_text() == LAB
    log.unlink()
    async with open_home(home, LAB) as denizen, denizen.services.store.work() as work:
        await work.generations.add(digest="after", source="test", now=denizen.services.clock.now())
    assert (await moving.run(target)).stage is MoveStage.DONE


async def test_a_target_that_cannot_be_used_changes_nothing(home: Home) -> None:
    async with open_home(home, LAB):
        pass
    moving = HomeStoreMove(home.load(), {})
    for url in ("mysql://nowhere", "postgresql://u:${NOT_SET}@h/n"):
        with pytest.raises(InvalidInput):
            await moving.run(url)
        assert moving.progress.stage is MoveStage.FAILED
    assert home.config.read_text() == LAB


async def test_a_configuration_that_cannot_be_written_is_noticed_before_anything_is_moved(home: Home) -> None:
    async with open_home(home, LAB):
        pass
    # A name so long that no file can be made beside it: that stops root, too.
    home.config.rename(home.path / ("c" * 250))
    home.config.symlink_to("c" * 250)
    moving = HomeStoreMove(home.load(), {})
    with pytest.raises(NeedsAttention) as caught:
        await moving.run(f"sqlite:///{home.path / 'other.db'}")
    assert caught.value.code == "config_not_writable"
    assert not (home.path / "other.db").exists()
    async with open_home(home, LAB) as denizen, denizen.services.store.work() as work:
        await work.generations.add(digest="after", source="test", now=denizen.services.clock.now())


async def test_a_configuration_that_would_be_refused_is_not_written(home: Home, postgres_url: str) -> None:
    async with open_home(home, LAB):
        pass
    with pytest.raises(InvalidInput) as caught:
        await HomeStoreMove(home.load(), {}).run(postgres_url.replace("postgresql:", "postgres:"))
    assert caught.value.code == "config_invalid"
    assert home.config.read_text() == LAB


async def test_a_store_that_is_gone_is_not_moved(home: Home) -> None:
    target = f"sqlite:///{home.path / 'other.db'}"
    with pytest.raises(NotFound) as caught:
        await HomeStoreMove(home.load(LAB), {}).run(target)
    assert caught.value.code == "store_missing"
    assert not (home.path / "denizen.db").exists()


async def test_no_time_is_given_to_turns_that_cannot_end_because_the_store_has_moved(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "GRACE_S", 100 * HANG_LIMIT_S)
    answer = DelayedAnswer(ModelAnswer(text="Late."), anyio.Event(), anyio.Event())
    async with model_server() as server:
        server.script(answer)
        home.write(LAB.replace("http://127.0.0.1:9/v1", server.openai_url))
        async with open_denizen(home.path, OpenOptions()) as denizen:
            await denizen.turns.submit(make_request(denizen, "Hi"))
            await answer.reached.wait()
            denizen.restart.follow_store()
            with anyio.fail_after(HANG_LIMIT_S):
                await serve._leave_turns(denizen, serve._TurnGrace())


async def test_whoever_leaves_a_move_leaves_it_stopped_and_it_goes_on_to_the_same_place(home: Home) -> None:
    async with open_home(home, LAB):
        pass
    fill(home.path / "denizen.db", ROWS)
    moving = HomeStoreMove(home.load(), {})
    target = f"sqlite:///{home.path / 'other.db'}"
    async with anyio.create_task_group() as group:
        group.start_soon(moving.run, target)
        while not moving.progress.done:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(Conflict) as caught:  # another process
            await HomeStoreMove(home.load(), {}).run(target)
        assert caught.value.code == "move_running"
        group.cancel_scope.cancel()
    assert moving.progress.stage is MoveStage.CANCELLED
    status = await moving.status()
    assert (status.backend, status.begun) == ("sqlite", target)
    with pytest.raises(Conflict) as caught:
        await moving.run(f"sqlite:///{home.path / 'third.db'}")
    assert caught.value.code == "move_elsewhere"
    assert "denizen db forget" in caught.value.fix
    assert (await moving.run(target)).stage is MoveStage.DONE
    assert home.load().store_url == target


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://den:s3cr@host/db", "postgresql://den:***@host/db"),
        ("postgresql://den:12/s3cr@host/db", "postgresql://den:***@host/db"),
        ("postgresql://den:/s3cr@host/db", "postgresql://den:***@host/db"),
        ("postgresql://den:a@s3cr@host/db", "postgresql"),
        ("postgresql://den:a@b/s3cr@host/db", "postgresql"),
        ("postgresql://den:pw@host:s3cr/db", "postgresql"),
        (
            "postgresql:///db?host=/run/postgresql&user=den&password=s3cr&sslpassword=s3cr&passfile=/s3cr",
            "postgresql:///db?host=/run/postgresql&passfile=***&password=***&sslpassword=***&user=den",
        ),
        ("den:/s3cr@host", "another database"),
        ("sqlite:////a b/\u00e4@c.db", "sqlite:////a b/\u00e4@c.db"),
    ],
)
async def test_no_form_of_a_url_shows_its_password(url: str, shown: str) -> None:
    assert hide_password(url) == shown


async def test_where_a_move_goes_is_told_without_its_password_and_only_when_a_start_would_take_it(home: Home) -> None:
    home.write(LAB)
    moving = HomeStoreMove(home.load(), {"PGPASSWORD": "s3cr", "PLACE": "postgresql://den:s3cr@host/db"})
    assert await moving.find_target() == ""
    for url in ("postgresql://den:${PGPASSWORD}@host/db", "${PLACE}"):
        home.write(f'{LAB}\nstore: {{move_to: "{url}"}}\n')
        assert await moving.find_target() == "postgresql://den:***@host/db"
    for url in ("den:/s3cr@host", "postgresql://den:s3cr@host/db", "postgresql://den:aB/s3cr@host/db", "${NOT_SET}"):
        home.write(f'{LAB}\nstore: {{move_to: "{url}"}}\n')
        with pytest.raises(InvalidInput) as caught:
            await moving.find_target()
        assert caught.value.code == "config_invalid"
        assert "s3cr" not in caught.value.explain()


async def test_a_password_gets_a_name_that_no_other_secret_has(home: Home) -> None:
    home.write(LAB)
    assert keep_password(home.path, "postgresql://a:one@h/n", {}) == "postgresql://a:${DENIZEN_STORE_PASSWORD}@h/n"
    assert keep_password(home.path, "postgresql://a:one@h/n", {}) == "postgresql://a:${DENIZEN_STORE_PASSWORD}@h/n"
    assert keep_password(home.path, "postgresql://a:two@h/n", {}) == "postgresql://a:${DENIZEN_STORE_PASSWORD_2}@h/n"
    assert load_secrets(home.path, {}).variables == {"DENIZEN_STORE_PASSWORD": "one", "DENIZEN_STORE_PASSWORD_2": "two"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a@h/n?password=s3cr3t",
        "postgresql://h/n?user=a&sslpassword=s3cr3t",
        "postgresql://a:p/s3cr3t@h/n",
        "postgresql://a:p?s3cr3t@h/n",
        "postgresql://a:p#s3cr3t@h/n",
        "postgresql://a:p@s3cr3t@h/n",
    ],
)
async def test_a_password_that_would_stay_in_the_configuration_is_refused_and_not_repeated(
    home: Home, url: str
) -> None:
    home.write(LAB)
    with pytest.raises(InvalidInput) as refused:
        keep_password(home.path, url, {})
    assert refused.value.code == "store_url_password"
    assert "s3cr3t" not in refused.value.explain()
    assert not (home.path / "secrets.env").exists()


async def test_a_password_may_be_named_anywhere(home: Home) -> None:
    home.write(LAB)
    for url in ("postgresql://a@h/n?password=${PW}", "postgresql://a:${PW}@h/n", "sqlite:////srv/a@b#c.db"):
        assert keep_password(home.path, url, {}) == url


def test_a_relative_file_is_in_the_home_folder_wherever_denizen_starts(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for url, expected in (
        ("sqlite:///data.db", f"sqlite:///{home.path / 'data.db'}"),
        ("sqlite:////srv/data.db", "sqlite:////srv/data.db"),
        ("", f"sqlite:///{home.path / 'denizen.db'}"),
    ):
        assert home.load(f'{LAB}\nstore: {{url: "{url}"}}\n').store_url == expected


@pytest.mark.parametrize("key", ["password", "user=a&sslpassword", "a=b&passwd"])
def test_a_password_behind_the_question_mark_is_refused_in_the_configuration(home: Home, key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        home.load(f'{LAB}\nstore: {{url: "postgresql://h/n?{key}=s3cr3t"}}\n')
    assert "s3cr3t" not in refused.value.explain()
    assert home.load(f'{LAB}\nstore: {{url: "postgresql://h/n?{key}=${{PW}}"}}\n', PW="x").store_url
