"""Moving the store of a home folder: the database, then the configuration that names it, and what the store holds.

The durable log does not move. Its runs hold no data of people that the store lacks, only where work under way
goes on. From SQLite the old log stays in use until its runs have ended (`choose_durable_database`); from Postgres the
store moves only while nothing is under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from anyio import to_thread

from denizen.adapters.durable.open_runs import count_open_runs
from denizen.adapters.store import open_dialect
from denizen.app.home.files import SECRET_MODE, edit_lock, restore_on_failure, write_whole
from denizen.app.home.secrets import SECRETS_FILE, load_secrets, put_secret
from denizen.app.settings import CONFIG_FILE, Settings
from denizen.app.settings.edit import parse_config, splice_value
from denizen.app.settings.load import read_config
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotFound
from denizen.domain.store_move import MoveProgress, MoveStage, StoreStatus, TableRows

PASSWORD_VARIABLE = "DENIZEN_STORE_PASSWORD"  # noqa: S105 - the name of a variable
DURABLE_FILE = "durable.db"
UNFINISHED = "durable.db.unfinished"
"""The file that says that the durable log of a store that has moved is still in use."""


class HomeStoreMove:
    """Moves the store of a running Denizen, and tells how far it is: for the command line, commands and pages.

    When the move is done, every process that has the old store open restarts itself at its next write.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment
        self._progress = MoveProgress()
        self._is_cancelled = False

    @property
    def progress(self) -> MoveProgress:
        return self._progress

    async def status(self) -> StoreStatus:
        """Counts the rows of every table."""
        return await to_thread.run_sync(self._load_status)

    async def run(self, url: str) -> MoveProgress:
        """Moves the store to `sqlite:///PATH` or `postgresql://...`, in which `${NAME}` stands for a secret. A password
        in the URL goes into `secrets.env`.

        Raises Conflict while another move runs and for a target that holds other data, InvalidInput for a URL that is
        none, NeedsAttention when the copy differs, and what the databases raise. The old database is used then as
        before.
        """
        if self._progress.is_running:
            raise Conflict("A move is under way.", code="move_running", fix="Wait for it, or cancel it.")
        self._progress = MoveProgress(stage=MoveStage.COPYING)
        self._is_cancelled = False
        try:
            await to_thread.run_sync(self._run, url)
        except DenizenError as error:
            stage = MoveStage.CANCELLED if error.code == "move_cancelled" else MoveStage.FAILED
            self._progress = MoveProgress(stage=stage, problem=error.explain())
            raise
        except BaseException:
            self._progress = MoveProgress(stage=MoveStage.FAILED, problem="It was interrupted.")
            raise
        return self._progress

    def cancel(self) -> None:
        """Ends a move before its pause. What was copied stays, and the next move there goes on from it."""
        self._is_cancelled = True

    def forget(self) -> None:
        """Gives a move up for good: changes are not noted any more. Raises Conflict when it is done."""
        from denizen.adapters.store.mover import forget_move

        _check_there(self._settings.store_url)
        forget_move(open_dialect(self._settings.store_url))

    def _run(self, url: str) -> None:
        from denizen.adapters.store.mover import StoreMover

        secrets = load_secrets(self._settings.home, self._environment)
        full = _resolve(url, secrets.variables)
        if full == self._settings.store_url:
            raise Conflict("The store is there already.", code="move_same", fix="Give the address of another database.")
        old = self._settings.store_url
        from_postgres = not old.startswith("sqlite")

        def tell(progress: MoveProgress) -> None:
            self._progress = progress
            if self._is_cancelled and progress.stage is not MoveStage.DONE:
                mover.cancel()
            if progress.stage is MoveStage.SWITCHING and from_postgres and (left := count_open_runs(old)):
                raise Conflict(
                    f"{left} runs are under way.",
                    code="move_busy",
                    why="Their log is in the database that is left.",
                    fix="Stop Denizen, or wait until they have ended (approvals and background tasks count), and move "
                    "again.",
                )

        source, target = open_dialect(self._settings.store_url), open_dialect(full)
        mover = StoreMover(source, target, _hide_password(full), tell)
        mover.run(lambda: self._switch(url))

    def _switch(self, url: str) -> None:
        home = self._settings.home
        if self._settings.store_url.startswith("sqlite") and count_open_runs(home / DURABLE_FILE):
            (home / UNFINISHED).touch(mode=0o600)
        write_store_url(home, url)

    def _load_status(self) -> StoreStatus:
        from denizen.adapters.store.plain_rows import count, list_plain_tables

        url = self._settings.store_url
        _check_there(url)
        dialect = open_dialect(url)
        with dialect.engine.connect() as connection:
            dialect.begin(connection, write=False)
            if dialect.find_revision(connection) is None:
                tables = ()
            else:
                tables = tuple(TableRows(table.name, count(connection, table)) for table in list_plain_tables())
        backend = "sqlite" if url.startswith("sqlite") else "postgresql"
        return StoreStatus(backend=backend, place=_hide_password(url), tables=tables, move=self._progress)


def _check_there(url: str) -> None:
    """Raises NotFound for a file that is not there: SQLite would make an empty one."""
    file = Path(url.partition("///")[2])
    if url.startswith("sqlite") and not file.exists():
        raise NotFound(
            f"There is no database {file} yet.", code="store_missing", fix="Start Denizen once, or give --home."
        )


def choose_durable_database(settings: Settings) -> Path | str:
    """Returns the place of the durable log next to the store: a file of its own in the home folder, or a schema of the
    same Postgres. After a move to Postgres it is the old file until the runs in it have ended.
    """
    file, mark = settings.home / DURABLE_FILE, settings.home / UNFINISHED
    if settings.store_url.startswith("sqlite"):
        return file
    if mark.exists():
        if count_open_runs(file):
            return file
        mark.unlink(missing_ok=True)
    return settings.store_url


def write_store_url(home: Path, url: str) -> None:
    """Writes the address of the store into the configuration; a password in it goes into the secrets."""
    password = urlsplit(url).password or ""
    file = home / SECRETS_FILE
    with edit_lock(home), restore_on_failure(file):
        if password and "${" not in password:
            text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
            write_whole(file, put_secret(text, PASSWORD_VARIABLE, password), mode=SECRET_MODE)
            url = url.replace(f":{password}@", f":${{{PASSWORD_VARIABLE}}}@", 1)
        text = read_config(home)
        write_whole(home / CONFIG_FILE, splice_value(text, parse_config(text, home), ("store", "url"), url))


def _resolve(url: str, variables: Mapping[str, str]) -> str:
    import re

    def find(match: re.Match[str]) -> str:
        value = variables.get(match.group(1), "")
        if not value:
            raise InvalidInput(
                f"The secret {match.group(1)} is not set.",
                code="secret_missing",
                fix=f"Add a line {match.group(1)}=... to {SECRETS_FILE}.",
            )
        return value

    return re.sub(r"\$\{(\w+)\}", find, url)


def _hide_password(url: str) -> str:
    password = urlsplit(url).password or ""
    return url.replace(f":{password}@", ":***@", 1) if unquote(password) else url
