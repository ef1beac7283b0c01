"""Going back to the copy that an upgrade has left, on both databases."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from denizen.adapters.store import open_dialect, open_store
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.migrator import HISTORY, MigrationHistory, migrate
from denizen.adapters.store.upgrade_undo import find_upgrade_copy, list_changes, remove_copies, undo_upgrade
from denizen.cli.upgrade import command
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Conflict, NotFound
from denizen.domain.ids import MessageId
from tests.adapters.store.migration_fixture import fill_store, make_next_history

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def history(tmp_path: Path) -> MigrationHistory:
    return make_next_history(tmp_path / "migrations")


@pytest.fixture
async def upgraded(url: str, history: MigrationHistory) -> SqlDialect:
    """A store that was upgraded to 9999."""
    await fill_store(url)
    dialect = open_dialect(url)
    migrate(dialect, history)
    return dialect


def write(dialect: SqlDialect, statement: str) -> None:
    with dialect.engine.begin() as connection:
        connection.exec_driver_sql(statement)


def look(dialect: SqlDialect, history: MigrationHistory = HISTORY) -> list[tuple[str, int, int]]:
    """What a program with that history finds; with the usual one, it is older than the upgrade to 9999."""
    return [(each.table, each.written, each.gone) for each in list_changes(dialect, lambda _done, _all: None, history)]


def read_words(dialect: SqlDialect) -> object:
    with dialect.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT words FROM messages").scalar_one()


def invoke(home: Path, url: str, *args: str) -> Result:
    (home / "denizen.yaml").write_text(f"store: {{url: '{url}'}}\nagents: {{helper: {{}}}}\n")
    # Commands keep their option for help as it is made first.
    return CliRunner().invoke(command, args, obj=home, help_option_names=["-h", "--help"])


@pytest.mark.proves("P8")
async def test_while_nothing_was_written_the_older_program_goes_on_with_the_copy(
    upgraded: SqlDialect, url: str, tmp_path: Path
) -> None:
    assert look(upgraded) == []
    result = invoke(tmp_path, url, "undo", "--yes")
    assert result.exit_code == 0, result.output
    store = await open_store(url, clock=SystemClock())
    async with store.work(write=False) as work:
        assert (await work.messages.get(MessageId("kept"))).text == "needle"
    await store.aclose()


@pytest.mark.proves("P8")
async def test_it_says_what_was_written_since_and_goes_back_only_when_that_may_be_lost(
    upgraded: SqlDialect, url: str, tmp_path: Path
) -> None:
    write(upgraded, "UPDATE messages SET words = 'another'")
    write(upgraded, "DELETE FROM sessions WHERE id NOT IN (SELECT session_id FROM messages)")
    assert look(upgraded) == [("messages", 1, 1)]
    assert "1 new or changed, 1 gone or changed  messages" in invoke(tmp_path, url, "status").output

    refused = invoke(tmp_path, url, "undo", "--yes").exception
    assert isinstance(refused, Conflict)
    assert refused.code == "upgrade_written"
    assert "2 in messages" in refused.why
    assert read_words(upgraded) == "another"

    assert invoke(tmp_path, url, "undo", "--yes", "--lose-changes").exit_code == 0
    assert read_words(open_dialect(url)) == "needle"


@pytest.mark.proves("P8")
async def test_rows_that_the_upgrade_itself_or_a_start_has_changed_are_not_written_since(
    url: str, tmp_path: Path
) -> None:
    history = make_next_history(
        tmp_path / "renewing", "op.execute(\"UPDATE messages SET words = 'renewed', sequence = sequence + 1\")"
    )
    await fill_store(url)
    dialect = open_dialect(url)
    migrate(dialect, history)
    at = "'2026-11-01 12:00:00.000000'" if url.startswith("sqlite") else "'2026-11-01 12:00:00+00'"
    write(dialect, f"INSERT INTO config_generations VALUES (1, 'digest', 'start', {at})")
    assert look(dialect, history) == []

    write(dialect, "UPDATE conversations SET topic = 'of people'")
    assert look(dialect, history) == [("conversations", 1, 1)]
    copy = find_upgrade_copy(dialect)
    assert copy is not None
    assert copy.revision != copy.upgraded_to
    assert not list(tmp_path.glob("*comparison*"))


@pytest.mark.proves("P8")
async def test_it_goes_forward_again_by_another_upgrade(
    upgraded: SqlDialect, url: str, history: MigrationHistory
) -> None:
    for _ in range(2):
        undo_upgrade(upgraded)
        upgraded = open_dialect(url)
        migrate(upgraded, history)
        assert look(upgraded) == []
        with upgraded.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT topic FROM conversations").scalar_one() == "-"


@pytest.mark.proves("P8")
async def test_it_refuses_while_a_denizen_uses_the_database(upgraded: SqlDialect) -> None:
    with upgraded.engine.connect() as running:
        running.exec_driver_sql("SELECT 1 FROM messages").all()
        with pytest.raises(Conflict) as refusal:
            undo_upgrade(upgraded)
    assert refusal.value.code == "upgrade_in_use"
    copy = find_upgrade_copy(upgraded)
    assert copy is not None
    assert copy.upgraded_to == "9999"


async def test_without_a_copy_there_is_no_way_back(upgraded: SqlDialect, url: str, tmp_path: Path) -> None:
    assert len(remove_copies(upgraded)) == 1
    with pytest.raises(NotFound, match="no copy"):
        undo_upgrade(upgraded)
    assert "no copy" in invoke(tmp_path, url, "status").output


async def test_whoever_goes_back_is_told_before_that_the_history_of_the_configuration_is_left_behind(
    upgraded: SqlDialect, url: str, tmp_path: Path
) -> None:
    asked = invoke(tmp_path, url, "undo")  # nobody answers
    assert asked.exit_code != 0
    assert "the history of the configuration has recorded since is left behind" in asked.output
    assert find_upgrade_copy(upgraded) is not None


async def test_cleaning_up_leaves_the_tables_in_use(upgraded: SqlDialect, url: str, tmp_path: Path) -> None:
    undo_upgrade(upgraded)
    assert invoke(tmp_path, url, "cleanup", "--yes").exit_code == 0
    assert read_words(open_dialect(url)) == "needle"


@pytest.mark.proves("P8")
async def test_rows_of_a_table_that_the_upgrade_has_made_count_as_written(upgraded: SqlDialect) -> None:
    write(upgraded, "CREATE TABLE later (name TEXT)")
    assert look(upgraded) == []
    write(upgraded, "INSERT INTO later VALUES ('a')")
    assert look(upgraded) == [("later", 1, 0)]


@pytest.mark.proves("P8")
async def test_a_second_undo_keeps_what_the_first_has_kept(tmp_path: Path, history: MigrationHistory) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    await fill_store(url)
    for number in range(2):
        dialect = open_dialect(url)
        migrate(dialect, history)
        write(dialect, f"UPDATE messages SET words = 'of {number}'")
        undo_upgrade(dialect)
    kept = [open_dialect(f"sqlite:///{tmp_path}/store.db.undone-9999{more}") for more in ("", "-2")]
    assert [read_words(each) for each in kept] == ["of 0", "of 1"]
    assert read_words(open_dialect(url)) == "needle"


@pytest.mark.proves("P8")
@pytest.mark.xdist_group("postgres")
async def test_on_postgres_newer_tables_that_were_kept_outlast_the_next_upgrades(
    postgres_url: str, history: MigrationHistory
) -> None:
    await fill_store(postgres_url)
    for number in range(4):
        dialect = open_dialect(postgres_url)
        migrate(dialect, history)
        write(dialect, f"UPDATE messages SET words = 'of {number}'")
        undo_upgrade(dialect)
    dialect = open_dialect(postgres_url)
    assert read_words(dialect) == "needle"
    with dialect.engine.connect() as connection:
        holders = connection.exec_driver_sql("SELECT schemaname FROM pg_tables WHERE tablename = 'messages'").scalars()
        found = {connection.exec_driver_sql(f'SELECT words FROM "{each}".messages').scalar_one() for each in holders}
    assert found == {"needle", *(f"of {number}" for number in range(4))}
    assert len(remove_copies(dialect)) == 3  # `public` may have more than ours
    assert read_words(dialect) == "needle"
