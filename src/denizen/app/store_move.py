"""Moving the store of a home folder: the database, then the configuration that names it, and what the store holds.

The durable log does not move. Its runs hold no data of people that the store lacks, only where work under way
goes on. From SQLite the old log stays in use until its runs have ended (`choose_durable_database`); from Postgres the
store moves only while nothing is under way.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio import to_thread

from denizen.adapters.durable.open_runs import count_open_runs
from denizen.adapters.store import hide_password, open_dialect
from denizen.app.home.files import SECRET_MODE, edit_lock, explain_unwritable, write_whole
from denizen.app.home.secrets import SECRETS_FILE, load_secrets, put_secret
from denizen.app.settings import CONFIG_FILE, Settings
from denizen.app.settings.edit import parse_config, splice_value
from denizen.app.settings.effective import resolve_store_url
from denizen.app.settings.load import examine, read_config
from denizen.app.settings.problem import config_error
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.store_move import MoveProgress, MoveStage, StoreStatus, TableRows

if TYPE_CHECKING:
    from denizen.adapters.store.mover import StoreMover

_log = logging.getLogger("denizen.store")

LOOK_EVERY_S = 1.0
"""How often whoever follows a move is told how far it is."""
PASSWORD_VARIABLE = "DENIZEN_STORE_PASSWORD"  # noqa: S105 - the name of a variable
DURABLE_FILE = "durable.db"
UNFINISHED = "durable.db.unfinished"
"""The file that says that the durable log of a store that has moved is still in use."""
_NOT_BEGUN = "The move was stopped before it began. The old database stays in use."
LOCK_FILE = "denizen.db.move"
"""The file that is locked by the process that moves the store."""


class HomeStoreMove:
    """Moves the store of a running Denizen, and tells how far it is: for the command line, commands and pages
    (`ports/store_move.py`). What `start` asks for is done by `serve`.

    When the move is done, every process that has the old store open restarts itself at its next write.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment
        self._progress = MoveProgress()
        self._is_cancelled = False
        self._mover: StoreMover | None = None
        self._wanted: anyio.Event | None = None
        """Set when a move is asked for; None until somebody serves."""
        self._url = ""
        self._ended = anyio.Event()

    @property
    def progress(self) -> MoveProgress:
        return self._progress

    async def status(self) -> StoreStatus:
        """Counts the rows of every table."""
        return await to_thread.run_sync(self._load_status)

    async def run(self, url: str) -> MoveProgress:
        """Moves the store to `sqlite:///PATH` or `postgresql://...`, in which `${NAME}` stands for a secret. A password
        in the URL goes into `secrets.env`. Whoever is cancelled meanwhile waits until the move has stopped.

        Raises Conflict while another move runs, for a target that holds other data and for a move that is done or goes
        elsewhere, InvalidInput for a URL that is none, NotFound and NeedsAttention for a store that is gone,
        NeedsAttention when the copy differs or the configuration cannot be written, and what the databases raise. The
        old database is used then as before.
        """
        if self._progress.is_running:
            raise _running()
        self._progress = MoveProgress(stage=MoveStage.COPYING)
        self._is_cancelled = False
        begun, ended = Event(), Event()
        try:
            await to_thread.run_sync(self._run, url, begun, ended, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            self._is_cancelled = True
            if self._mover is not None:
                self._mover.cancel()
            if begun.is_set():
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(ended.wait)
            else:
                self._progress = MoveProgress(stage=MoveStage.CANCELLED, problem=_NOT_BEGUN)
            raise
        return self._progress

    async def find_target(self) -> str:
        return await to_thread.run_sync(self._describe_target)

    async def start(self) -> None:
        """Begins to move to `store.move_to` (see the port)."""
        if self._wanted is None:
            raise NotAllowed(
                "The store is not moved from here.",
                code="move_nothing_runs",
                why="Only `denizen run` runs for long enough.",
                fix="Move it with `denizen db move`.",
            )
        if self._progress.is_running:
            raise _running()
        url = await to_thread.run_sync(self._read_target)
        if not url:
            raise InvalidInput(
                "The configuration does not say where to move.",
                code="move_target_missing",
                why="An address with a password does not belong into a chat.",
                fix="Write `store.move_to: postgresql://USER:${NAME}@HOST/DATABASE` into denizen.yaml, and the "
                f"password as NAME=... into {SECRETS_FILE}.",
            )
        full = await to_thread.run_sync(self._resolve, url)
        if full == self._settings.store_url:
            raise _there_already()
        self._url, self._progress, self._ended = url, MoveProgress(stage=MoveStage.COPYING), anyio.Event()
        self._wanted.set()

    async def serve(self) -> None:
        """Makes the moves that `start` asks for. Runs until it is cancelled, which stops a move, too."""
        try:
            while True:
                self._wanted = anyio.Event()
                await self._wanted.wait()
                self._progress = MoveProgress()
                try:
                    await self.run(self._url)
                except DenizenError as error:
                    _log.warning("the store was not moved: %s", error.message, extra=error.fields)
                finally:
                    self._ended.set()
        finally:
            self._wanted = None

    async def follow(self) -> AsyncGenerator[MoveProgress]:
        told: MoveProgress | None = None
        while True:
            progress, is_over = self._progress, self._ended.is_set() or not self._progress.is_running
            if progress != told:
                told = progress
                yield progress
            if is_over:
                return
            with anyio.move_on_after(LOOK_EVERY_S):
                await self._ended.wait()

    def cancel(self) -> None:
        """Stops a move before its pause ends. What was copied stays, and the next move there goes on from it. Raises
        Conflict when it is too late, or nothing is moved here.
        """
        mover = self._mover
        if not self._progress.is_running:
            raise Conflict("No move is under way.", code="move_none", fix="Look at the state of the store.")
        self._is_cancelled = True
        if mover is not None and not mover.cancel():
            raise Conflict(
                "The move cannot be stopped any more.",
                code="move_switching",
                why="The store is being switched.",
                fix="Wait a moment; `denizen db move` brings it back.",
            )

    def forget(self) -> None:
        """Gives a move up for good: changes are not noted any more. Raises Conflict when it is done or under way."""
        from denizen.adapters.store.mover import forget_move

        _check_there(self._settings.store_url)
        with self._moving():
            forget_move(open_dialect(self._settings.store_url))

    @contextmanager
    def _moving(self) -> Generator[None]:
        """Holds the store for one move, among processes. Raises Conflict while another one has it."""
        with explain_unwritable(self._settings.home / LOCK_FILE):
            handle = os.open(self._settings.home / LOCK_FILE, os.O_RDWR | os.O_CREAT, SECRET_MODE)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _running() from error
            yield
        finally:
            os.close(handle)

    def _run(self, url: str, begun: Event, ended: Event) -> None:
        begun.set()
        stage, problem = MoveStage.FAILED, "It was interrupted."
        try:
            with self._moving():
                self._move(url)
        except DenizenError as error:
            stage = MoveStage.CANCELLED if error.code == "move_cancelled" else MoveStage.FAILED
            problem = error.explain()
            raise
        finally:
            self._mover = None
            if self._progress.stage is not MoveStage.DONE:
                self._progress = MoveProgress(stage=stage, problem=problem)
            ended.set()

    def _move(self, url: str) -> None:
        from denizen.adapters.store.mover import StoreMover

        home, old = self._settings.home, self._settings.store_url
        full = self._resolve(url)
        target = open_dialect(full)
        if full == old:
            raise _there_already()
        _check_there(old)
        url = keep_password(home, url, self._environment)
        check_config(home, url, self._environment)
        from_postgres = not old.startswith("sqlite")

        def tell(progress: MoveProgress) -> None:
            if progress.stage is MoveStage.SWITCHING:
                check_config(home, url, self._environment)
                if from_postgres and (left := count_open_runs(old)):
                    raise Conflict(
                        f"{left} runs are under way.",
                        code="move_busy",
                        why="Their log is in the database that is left.",
                        fix="Stop Denizen, or wait until they have ended (approvals and background tasks count), and "
                        "move again.",
                    )
            self._progress = progress

        self._mover = StoreMover(open_dialect(old), target, hide_password(full), tell)
        if self._is_cancelled:
            self._mover.cancel()
        self._mover.run(lambda: self._switch(url))

    def _read_target(self) -> str:
        """Returns `store.move_to` as it is written now. Raises InvalidInput for one that a start would refuse."""
        home = self._settings.home
        text = read_config(home)
        section = parse_config(text, home).tree.get("store")
        url = str(section.get("move_to") or "") if isinstance(section, dict) else ""
        if url:
            found = examine(home, text, load_secrets(home, self._environment), BUILTIN, needs_models=False)
            if problems := [each for each in found.problems if each.path == ("store", "move_to")]:
                raise config_error(problems)
        return url

    def _describe_target(self) -> str:
        url = self._read_target()
        return hide_password(self._resolve(url)) if url else ""

    def _resolve(self, url: str) -> str:
        """Returns the URL with the values of its secrets."""
        variables = load_secrets(self._settings.home, self._environment).variables

        def find(match: re.Match[str]) -> str:
            value = variables.get(match.group(1), "")
            if not value:
                raise InvalidInput(
                    f"The secret {match.group(1)} is not set.",
                    code="secret_missing",
                    fix=f"Add a line {match.group(1)}=... to {SECRETS_FILE}.",
                )
            return value

        return resolve_store_url(re.sub(r"\$\{(\w+)\}", find, url), self._settings.home)

    def _switch(self, url: str) -> None:
        home = self._settings.home
        with explain_unwritable(home / UNFINISHED):
            if self._settings.store_url.startswith("sqlite") and count_open_runs(home / DURABLE_FILE):
                (home / UNFINISHED).touch(mode=SECRET_MODE)
        write_store_url(home, url, self._environment)

    def _load_status(self) -> StoreStatus:
        from denizen.adapters.store.mover import find_begun_move
        from denizen.adapters.store.plain_rows import count, list_plain_tables

        url = self._settings.store_url
        _check_there(url)
        dialect = open_dialect(url)
        begun = ""
        with dialect.engine.connect() as connection:
            dialect.begin(connection, write=False)
            if dialect.find_revision(connection) is None:
                tables = ()
            else:
                tables = tuple(TableRows(table.name, count(connection, table)) for table in list_plain_tables())
                begun = find_begun_move(connection)
        backend = "sqlite" if url.startswith("sqlite") else "postgresql"
        return StoreStatus(backend=backend, place=hide_password(url), tables=tables, begun=begun, move=self._progress)


def _check_there(url: str) -> None:
    """Raises NotFound for a file that is not there: SQLite would make an empty one."""
    file = Path(url.partition("///")[2])
    if url.startswith("sqlite") and not file.exists():
        raise NotFound(
            f"There is no database {file}.",
            code="store_missing",
            why="It was not made yet, or was moved away.",
            fix="Start Denizen once, put the file back, or give --home.",
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


def keep_password(home: Path, url: str, environment: Mapping[str, str]) -> str:
    """Writes the password of a URL into the secrets, under a name that no other secret has, and returns the URL with a
    reference to it. Raises InvalidInput for a password in a place where it would stay in the configuration.
    """
    if url.startswith("sqlite"):
        return url
    parts = urlsplit(url)
    named = [name for name, value in parse_qsl(parts.query) if "password" in name.lower() and "${" not in value]
    if named or "#" in url or "@" in parts.path + parts.query or parts.netloc.count("@") > 1:
        raise InvalidInput(
            "The password in this address cannot be kept apart from it.",
            code="store_url_password",
            why="it would stand in denizen.yaml for everybody who reads that file",
            fix="Write postgresql://USER:PASSWORD@HOST/DATABASE, with % codes for / ? # @ and : in the password; or "
            f"${{NAME}} in place of the password, and NAME=... in {SECRETS_FILE}.",
        )
    password = parts.password or ""
    if not password or "${" in password:
        return url
    with edit_lock(home):
        known = load_secrets(home, environment).variables
        names = (PASSWORD_VARIABLE, *(f"{PASSWORD_VARIABLE}_{number}" for number in range(2, 100)))
        name = next(each for each in names if known.get(each, password) == password)
        file = home / SECRETS_FILE
        text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        write_whole(file, put_secret(text, name, password), mode=SECRET_MODE)
    return url.replace(f":{password}@", f":${{{name}}}@", 1)


def check_config(home: Path, url: str, environment: Mapping[str, str]) -> None:
    """Raises NeedsAttention when the configuration cannot be written, InvalidInput when it would not be valid."""
    with edit_lock(home):
        _plan_config(home, url, environment)
        file = home / CONFIG_FILE
        if file.exists():
            write_whole(file, file.read_text(encoding="utf-8"))  # the same again: only writing shows that one can
        else:
            probe = file.with_name(f".{file.name}.probe")
            write_whole(probe, "")
            probe.unlink()


def write_store_url(home: Path, url: str, environment: Mapping[str, str]) -> None:
    """Writes the address of the store into the configuration. Raises as `check_config`, and changes nothing then."""
    with edit_lock(home):
        write_whole(home / CONFIG_FILE, _plan_config(home, url, environment))


def _plan_config(home: Path, url: str, environment: Mapping[str, str]) -> str:
    text = read_config(home)
    planned = splice_value(text, parse_config(text, home), ("store", "url"), url)
    finding = examine(home, planned, load_secrets(home, environment), BUILTIN, needs_models=False)
    if finding.settings is None:
        raise config_error(finding.problems)
    return planned


def _there_already() -> Conflict:
    fix = "To move on, give the address of another database."
    return Conflict("The store is there already.", code="move_done", fix=fix)


def _running() -> Conflict:
    return Conflict("A move is under way.", code="move_running", fix="Wait for it, or cancel it.")
