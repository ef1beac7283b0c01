"""Making, checking and restoring backups of a home folder. The format is that of `backup_archive`."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
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
    MANIFEST,
    STORE_ENTRY,
    Manifest,
    decrypt_file,
    encrypt_file,
    extract_archive,
    is_encrypted,
    parse_recipient,
    write_archive,
)
from denizen.app.home.files import write_whole
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.settings import CONFIG_FILE, Settings
from denizen.app.settings.edit import parse_config, splice_out
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, NotFound
from denizen.domain.record import record

BACKUPS_FOLDER = "backups"
NAME_PREFIX = "denizen-"
ZIP_SUFFIX = ".zip"
_DATABASES = ("*.db", "*.db-*", "*.db.*", "*.sock")
"""Databases are copied as such, with what stands beside them; a socket is no file."""
_WORK_PREFIX = ".denizen-backup-"
_FETCHED = ("models", "logs")
"""Folders of the home folder that are fetched or written anew."""
_KEYS = (f"*{SECRETS_FILE}*", "*.pem", "*.key")
"""Secrets, and copies of them that editors and an interrupted writing leave."""


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
    target = options.target or settings.home / BACKUPS_FOLDER / _name(now, encrypted=bool(options.recipient))
    if options.recipient:
        parse_recipient(options.recipient)  # before anything is copied
    if target.exists():
        raise Conflict(
            f"{target} is there already.", code="backup_exists", fix="Give another name, or move the old file away."
        )
    # What is to be encrypted lies nowhere in the clear but where it is already.
    beside = settings.home if options.recipient else target.parent
    with _refused_by_disk(target), _work_folder(beside) as folder, _work_folder(target.parent) as final:
        databases = _copy_stores(settings, folder, report)
        entries = {name: folder / name for name in databases}
        for path in sorted(_list_home_files(settings.home, with_secrets=options.with_secrets)):
            entries[HOME_ENTRIES + path.relative_to(settings.home).as_posix()] = path
        manifest = Manifest(
            version=__version__,
            revision=find_copy_revision(folder / STORE_ENTRY),
            backend="sqlite" if settings.store_url.startswith("sqlite") else "postgresql",
            created_at=now.isoformat(timespec="seconds"),
            with_secrets=options.with_secrets,
            tables={name: count_rows(folder / name) for name in databases},
        )
        count = _Counter("writing the file", sum(path.stat().st_size for path in entries.values()), report)
        made = write_archive(folder / "archive", manifest, entries, count.add)
        whole = folder / "archive"
        if options.recipient:
            report(BackupProgress(stage="encrypting"))
            whole = final / "encrypted"
            encrypt_file(folder / "archive", whole, options.recipient)
        whole.replace(target)
    return Backup(target, made)


def verify_backup(file: Path, identity: Path | None, report: ReportBackup) -> Manifest:
    """Rehearses a restore in a folder that is removed afterwards: everything is unpacked and checked, and the store is
    brought to the schema of this program, as the start after a restore does. Raises what is wrong with it.
    """
    from denizen.adapters.store.migrator import migrate
    from denizen.adapters.store.sqlite import SqliteDialect

    with _refused_by_disk(file), _work_folder(file.parent) as folder:
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
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise Conflict(
            f"There is something in {home} already.",
            code="restore_not_empty",
            why="A restore never overwrites anything.",
            fix="Give a folder that does not exist. To replace a home folder, move it away first.",
        )
    with _refused_by_disk(home), _work_folder(home.parent) as folder:
        manifest = _unpack(file, identity, folder, report)
        check_readable(SqliteDialect(folder / "unpacked" / STORE_ENTRY))
        fresh = folder / "unpacked" / HOME_ENTRIES
        fresh.mkdir(mode=0o700, exist_ok=True)
        _use_own_store(fresh)
        for name in manifest.tables:
            (folder / "unpacked" / name).replace(fresh / name)
        fresh.chmod(0o700)
        if home.exists():
            home.rmdir()
        fresh.replace(home)
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
    found = [*folder.glob(f"{NAME_PREFIX}*{ZIP_SUFFIX}"), *folder.glob(f"{NAME_PREFIX}*{ZIP_SUFFIX}{AGE_SUFFIX}")]
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
        from denizen.adapters.store.mover import copy_to_file

        copy_to_file(open_dialect(settings.store_url), folder / STORE_ENTRY, tell)
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
    copy_databases(copies, tell)
    return [each.name for each in copies.values()]


def _list_home_files(home: Path, *, with_secrets: bool) -> Generator[Path]:
    left_out = {home / BACKUPS_FOLDER, *(home / name for name in _FETCHED)}
    for path in home.rglob("*"):
        if not path.is_file() or path.is_symlink() or left_out & set(path.parents):
            continue
        if any(part.startswith(_WORK_PREFIX) for part in path.relative_to(home).parts) or _is_backup(path):
            continue
        is_database = path.parent == home and any(path.match(pattern) for pattern in _DATABASES)
        is_secret = any(path.match(pattern) for pattern in _KEYS)
        if not is_database and (with_secrets or not is_secret):
            yield path


def _is_backup(path: Path) -> bool:
    """Whether it is a backup, under whatever name; an encrypted one is known by the names of ours."""
    if path.name.endswith(AGE_SUFFIX):
        return path.name.startswith(NAME_PREFIX)
    if path.suffix != ZIP_SUFFIX or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {MANIFEST, STORE_ENTRY} <= set(archive.namelist())


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
    return f"{NAME_PREFIX}{now:%Y%m%d-%H%M%S}{ZIP_SUFFIX}{AGE_SUFFIX if encrypted else ''}"


@contextmanager
def _work_folder(beside: Path) -> Generator[Path]:
    """Makes a folder on the disk of the result, so that the result only has to be renamed; it is removed in the end."""
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
