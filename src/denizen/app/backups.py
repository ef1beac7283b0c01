"""Making, checking and restoring backups of a home folder. The format is that of `backup_archive`."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from denizen import __version__
from denizen.adapters.store import open_dialect
from denizen.adapters.store.snapshot import copy_databases, count_rows, find_copy_revision
from denizen.app.backup_archive import (
    AGE_SUFFIX,
    DURABLE_ENTRY,
    HOME_ENTRIES,
    STORE_ENTRY,
    Manifest,
    decrypt_file,
    encrypt_file,
    extract_archive,
    is_encrypted,
    parse_recipient,
    write_archive,
)
from denizen.app.backup_files import BACKUP_NAME, BACKUPS_FOLDER, WORK_PREFIX, ZIP_SUFFIX, list_home_files
from denizen.app.home.files import write_whole
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.settings import CONFIG_FILE, Settings
from denizen.app.settings.edit import parse_config, splice_out
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, NotFound
from denizen.domain.record import record

SPARE_BYTES = 100_000_000
"""So much stays free on the disk beside the copies of the databases."""


@record(kw_only=True)
class BackupProgress:
    """The step that is under way, in words, and how much of it is done."""

    stage: str
    done: int = 0
    total: int = 0


ReportBackup = Callable[[BackupProgress], None]


@record(kw_only=True)
class BackupOptions:
    """`target` None makes a name of the time in the folder `backups` of the home folder. `recipient` is a public key of
    age, for which the backup is encrypted.
    """

    target: Path | None = None
    with_secrets: bool = False
    recipient: str = ""


@record
class Backup:
    """A backup on the disk."""

    file: Path
    manifest: Manifest


def make_backup(settings: Settings, options: BackupOptions, now: datetime, report: ReportBackup) -> Backup:
    """Makes a backup while others use the home folder. The file is there whole or not at all.

    Raises Conflict when the file is there already, and what opening and reading the databases raises.
    """
    name = _name(now, encrypted=bool(options.recipient))
    target = options.target or settings.home / BACKUPS_FOLDER / name
    if target.is_dir():
        target /= name
    if options.recipient:
        parse_recipient(options.recipient)  # before anything is copied
    _check_free(target)
    # What is to be encrypted lies nowhere in the clear but where it is already.
    beside = settings.home if options.recipient else target.parent
    with _refused_by_disk(target), _work_folder(beside) as folder, _work_folder(target.parent) as final:
        databases = _copy_stores(settings, folder, report)
        home = list_home_files(settings, with_secrets=options.with_secrets)
        entries = {name: folder / name for name in databases}
        entries |= {HOME_ENTRIES + name: path for name, path in home.files.items()}
        for number, (name, path) in enumerate(home.databases.items()):
            entries[HOME_ENTRIES + name] = folder / f"other-{number}.db"
            copy_databases({path: entries[HOME_ENTRIES + name]}, lambda _done, _total: None)
        manifest = Manifest(
            version=__version__,
            revision=find_copy_revision(folder / STORE_ENTRY),
            backend="sqlite" if settings.store_url.startswith("sqlite") else "postgresql",
            created_at=now.isoformat(timespec="seconds"),
            with_secrets=options.with_secrets,
            tables={name: count_rows(folder / name) for name in databases},
            links={HOME_ENTRIES + name: to for name, to in home.links.items()},
            left_out=home.left_out,
        )
        total_bytes = home.size_bytes + sum(entries[name].stat().st_size for name in databases)
        count = _Counter("writing the file", total_bytes, report)
        made = write_archive(folder / "archive", manifest, entries, count.add)
        whole = folder / "archive"
        if options.recipient:
            report(BackupProgress(stage="encrypting"))
            whole = final / "encrypted"
            encrypt_file(folder / "archive", whole, options.recipient)
        _sync(whole)
        _check_free(target)
        whole.replace(target)
        _sync(target.parent)
    return Backup(target, made)


def _check_free(target: Path) -> None:
    if target.exists():
        raise Conflict(
            f"{target} is there already.", code="backup_exists", fix="Give another name, or move the old file away."
        )


def verify_backup(file: Path, identity: Path | None, report: ReportBackup) -> Manifest:
    """Rehearses a restore in a folder that is removed afterwards: everything is unpacked and checked, and the store is
    brought to the schema of this program, as the start after a restore does. Raises what is wrong with it.
    """
    from denizen.adapters.store.migrator import migrate
    from denizen.adapters.store.sqlite import SqliteDialect

    with _refused_by_disk(file):
        # What was encrypted is not laid in the clear beside it, which may be on a foreign machine.
        may_unpack_there = os.access(file.parent, os.W_OK) and not (file.is_file() and is_encrypted(file))
        beside = file.parent if may_unpack_there else Path(tempfile.gettempdir())
    with _refused_by_disk(beside), _work_folder(beside) as folder:
        manifest = _unpack(file, identity, folder, report)
        report(BackupProgress(stage="trying the upgrade of the store"))
        migrate(SqliteDialect(folder / "unpacked" / STORE_ENTRY))
    return manifest


def restore_backup(file: Path, home: Path, identity: Path | None, report: ReportBackup) -> Manifest:
    """Restores into a home folder that is empty or not there. It appears at once, when all is checked.

    The store of the new home is the SQLite file in it, wherever the backup came from. Raises Conflict when something is
    in the folder already, and what is wrong with the backup; nothing is left behind then.
    """
    from denizen.adapters.store.migrator import check_readable
    from denizen.adapters.store.sqlite import SqliteDialect

    home = home.absolute()
    is_there = home.exists()  # such as the folder of a volume, which cannot be replaced
    with _refused_by_disk(home), _work_folder(home if is_there else home.parent) as folder:
        if is_there and any(each != folder for each in home.iterdir()):
            raise Conflict(
                f"There is something in {home} already.",
                code="restore_not_empty",
                why="A restore never overwrites anything.",
                fix="Give a folder that does not exist. To replace a home folder, move it away first.",
            )
        manifest = _unpack(file, identity, folder, report)
        check_readable(SqliteDialect(folder / "unpacked" / STORE_ENTRY))
        fresh = folder / "unpacked" / HOME_ENTRIES
        fresh.mkdir(mode=0o700, exist_ok=True)
        _use_own_store(fresh)
        for name in manifest.tables:
            (folder / "unpacked" / name).replace(fresh / name)
        fresh.chmod(0o700)
        report(BackupProgress(stage="writing to the disk"))
        os.sync()
        if is_there:
            for each in sorted(fresh.iterdir(), key=lambda path: path.name == CONFIG_FILE):
                each.replace(home / each.name)
        else:
            fresh.replace(home)
        _sync(home.parent)
    return manifest


def _use_own_store(home: Path) -> None:
    """Takes the old store out of the configuration: a restored home folder must not write where the old one does."""
    file = home / CONFIG_FILE
    if file.exists():
        text = file.read_text(encoding="utf-8-sig")
        document = parse_config(text, home)
        if document.has(("store", "url")):
            write_whole(file, splice_out(text, document, ("store", "url")))


def list_backups(folder: Path) -> Sequence[Path]:
    """Returns the backups with names of ours, the newest first."""
    found = [each for each in folder.glob("denizen-*") if BACKUP_NAME.fullmatch(each.name)]
    return sorted(found, key=lambda each: each.name, reverse=True)


def drop_old_backups(folder: Path, keep: int) -> Sequence[Path]:
    """Removes all but the newest ones, and returns what it removed."""
    old = list_backups(folder)[keep:]
    for each in old:
        each.unlink(missing_ok=True)
    return old


def _copy_stores(settings: Settings, folder: Path, report: ReportBackup) -> Sequence[str]:
    def tell(done: int, total: int) -> None:
        report(BackupProgress(stage="copying the databases", done=done, total=total))

    if not settings.store_url.startswith("sqlite"):
        from denizen.adapters.store.migrator import check_current
        from denizen.adapters.store.mover import copy_to_file

        source = open_dialect(settings.store_url)
        check_current(source)  # a backup upgrades nothing below a program that runs
        copy_to_file(source, folder / STORE_ENTRY, tell)
        return [STORE_ENTRY]
    store = Path(settings.store_url.partition("///")[2])
    if not store.exists():
        raise NotFound(
            f"There is no database {store} to back up.", fix="Start Denizen once, or give another folder with --home."
        )
    copies = {store: folder / STORE_ENTRY}
    durable = settings.home / DURABLE_ENTRY
    if durable.exists():
        copies[durable] = folder / DURABLE_ENTRY
    needed, free = sum(each.stat().st_size for each in copies), shutil.disk_usage(folder).free
    if needed + SPARE_BYTES > free:  # a running server may be writing on the same disk
        raise NeedsAttention(
            f"The backup does not fit on the disk of {folder.parent}.",
            code="backup_disk",
            why=f"The databases have {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free.",
            fix="Make room, or write it to another disk with --to.",
        )
    copy_databases(copies, tell)
    return [each.name for each in copies.values()]


def _unpack(file: Path, identity: Path | None, folder: Path, report: ReportBackup) -> Manifest:
    if not file.is_file():
        raise NotFound(f"There is no file {file}.", fix="`denizen backup list` shows the backups of this home folder.")
    archive = file
    if is_encrypted(file):
        if identity is None:
            raise InvalidInput(
                f"{file.name} is encrypted.", code="backup_key", fix="Give the file of the private key with --identity."
            )
        report(BackupProgress(stage="decrypting"))
        archive = folder / "archive"
        decrypt_file(file, archive, identity)
    count = _Counter("unpacking and checking", 0, report)
    (folder / "unpacked").mkdir(mode=0o700)
    return extract_archive(archive, folder / "unpacked", count.add)


class _Counter:
    """Adds up bytes and reports megabytes."""

    def __init__(self, stage: str, total_bytes: int, report: ReportBackup) -> None:
        self._stage = stage
        self._total = total_bytes
        self._done = 0
        self._report = report

    def add(self, more_bytes: int) -> None:
        self._done += more_bytes
        self._report(BackupProgress(stage=self._stage, done=self._done, total=max(self._total, 0)))


def _name(now: datetime, *, encrypted: bool) -> str:
    return f"denizen-{now:%Y%m%d-%H%M%S}{ZIP_SUFFIX}{AGE_SUFFIX if encrypted else ''}"


@contextmanager
def _work_folder(beside: Path) -> Generator[Path]:
    """Makes a folder on the disk of the result, so that the result only has to be renamed; it is removed in the end.
    Those that a killed process has left are removed first: a file in each is locked for as long as its process lives.
    """
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in beside.glob(f"{WORK_PREFIX}*"):
        with _lock_folder(old, os.O_RDWR) as is_left:
            if is_left:
                shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=beside))
    try:
        with _lock_folder(folder, os.O_RDWR | os.O_CREAT):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _lock_folder(folder: Path, flags: int) -> Generator[bool]:
    """Yields whether the folder is locked now. False where another process has it, and on a disk without locks."""
    try:
        handle = os.open(folder / "lock", flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except OSError:
            is_locked = False
        yield is_locked
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    """Waits until the disk has it, so that what has its name after a power cut is whole."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _refused_by_disk(place: Path) -> Generator[None]:
    """Names the file that the error is about, or else what is made or read."""
    try:
        yield
    except OSError as error:
        about = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else place
        raise NeedsAttention(
            f"{about} cannot be written or read.",
            code="backup_disk",
            why=error.strerror or type(error).__name__,
            fix=f"Check that it may be read by this user, and that {place.parent} may be written and has room.",
        ) from error


def describe_backup(manifest: Manifest) -> str:
    """Returns one line for people."""
    rows: Mapping[str, int] = manifest.tables.get(STORE_ENTRY, {})
    from_where = "Postgres" if manifest.backend == "postgresql" else "SQLite"
    secrets = "with secrets" if manifest.with_secrets else "without secrets"
    return (
        f"{sum(rows.values())} rows in {len(rows)} tables from {from_where}, {len(manifest.files)} files, "
        f"{manifest.size_bytes / 1e6:.1f} MB unpacked, {secrets}; Denizen {manifest.version}, {manifest.created_at}"
    )


def list_restore_steps(manifest: Manifest, home: Path) -> Sequence[str]:
    """Returns what is left to do by people after a restore."""
    steps: list[str] = []
    if not manifest.with_secrets:
        steps.append(f"Put the secrets into {home / SECRETS_FILE}: the backup has none.")
    if manifest.backend == "postgresql":
        steps.append(
            f"The data is in {home / STORE_ENTRY} now; `denizen db move --to postgresql://...` brings it to a server."
        )
    return steps
