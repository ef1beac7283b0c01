"""The files of a home folder that belong into a backup, and why others do not."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from denizen.app.backup_archive import AGE_SUFFIX, DURABLE_ENTRY, MANIFEST, STORE_ENTRY
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.settings import Settings

BACKUPS_FOLDER = "backups"
WORK_PREFIX = ".denizen-backup-"
ZIP_SUFFIX = ".zip"
BACKUP_NAME = re.compile(r"denizen-\d{8}-\d{6}\.zip(\.age)?")
_FETCHED = frozenset({BACKUPS_FOLDER, "models", "logs", f"{DURABLE_ENTRY}-workers"})
"""Folders of the home folder that are fetched or written anew."""
_SECRETS = (f"*{SECRETS_FILE}*", "*.pem", "*.key", "*.p12", "*.pfx", ".env", "id_rsa", "id_ecdsa", "id_ed25519")
"""Secrets, and copies of them that editors and an interrupted writing leave."""
_BESIDE = ("-wal", "-shm", "-journal")
_SQLITE_MAGIC = b"SQLite format 3\0"


@dataclass(kw_only=True)
class HomeFiles:
    """By their names in the home folder: files with the paths of their contents, SQLite databases that somebody may be
    writing, symbolic links within the home folder with their relative targets, and what is left out, with the reason.
    """

    files: dict[str, Path] = field(default_factory=dict[str, Path])
    databases: dict[str, Path] = field(default_factory=dict[str, Path])
    links: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    size_bytes: int = 0


def list_home_files(settings: Settings, *, with_secrets: bool) -> HomeFiles:
    """Lists all that is to be kept besides the two databases of Denizen, which are copied as such. What vanishes
    meanwhile is not in it. Raises OSError for a folder that cannot be read.
    """
    home, found = settings.home, HomeFiles()
    is_secret = None if with_secrets else _find_secrets(settings)
    store = Path(settings.store_url.partition("///")[2]) if settings.store_url.startswith("sqlite") else None
    own = [home / STORE_ENTRY, home / DURABLE_ENTRY, *filter(None, [store])]
    for folder, folders, names in os.walk(home, onerror=_raise):
        here = Path(folder)
        linked = [each for each in folders if (here / each).is_symlink()]
        left = _FETCHED if here == home else ()
        folders[:] = sorted(each for each in folders if not (each in left or each.startswith(WORK_PREFIX)))
        for name in sorted((*names, *linked)):
            path = here / name
            ours = [each.name for each in own if each.parent == here]
            if not any(name == each or name.startswith((f"{each}-", f"{each}.")) for each in ours):
                _place(found, path, home, is_secret, beside=set(names))
    for key, place in (
        ("folders.context", settings.folders.context),
        ("folders.knowledge", settings.folders.knowledge),
    ):
        if place.is_dir() and not place.resolve().is_relative_to(home.resolve()):
            found.left_out[str(place)] = f"outside of the home folder ({key})"
    return found


def _place(
    found: HomeFiles, path: Path, home: Path, is_secret: Callable[[Path], bool] | None, *, beside: Collection[str]
) -> None:
    name, content = path.relative_to(home).as_posix(), path
    try:
        state = path.lstat()
        if stat.S_ISLNK(state.st_mode):
            content = Path(os.path.realpath(path))
            state = content.stat()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            found.left_out[name] = "a link to nothing"
        return
    if is_secret is not None and (is_secret(path) or is_secret(content)):
        found.left_out[name] = "a secret"
    elif content is not path and content.is_relative_to(home.resolve()):
        found.links[name] = os.path.relpath(content, path.parent.resolve())
    elif stat.S_ISDIR(state.st_mode):
        found.left_out[name] = f"a link to {content}, which is outside of the home folder"
    elif not stat.S_ISREG(state.st_mode):
        if not stat.S_ISSOCK(state.st_mode):
            found.left_out[name] = "no file"
    elif not _is_backup(content) and not _is_beside_database(path):
        in_use = any(path.name + each in beside for each in _BESIDE) and _is_database(content)
        (found.databases if in_use else found.files)[name] = content
        found.size_bytes += state.st_size


def _find_secrets(settings: Settings) -> Callable[[Path], bool]:
    """Returns what tells whether a path is that of a secret: by its name, or since the configuration says so."""
    accounts = settings.channels.github.accounts.values()
    keys = {settings.home / Path(each.private_key_file).expanduser() for each in accounts if each.private_key_file}
    known = {*keys, *(each.resolve() for each in keys)}
    return lambda path: path in known or any(path.match(pattern) for pattern in _SECRETS)


def _is_backup(path: Path) -> bool:
    """Whether it is a backup, under whatever name; an encrypted one is known by the names of ours."""
    if path.name.endswith(AGE_SUFFIX):
        return BACKUP_NAME.fullmatch(path.name) is not None
    if path.suffix != ZIP_SUFFIX:
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return {MANIFEST, STORE_ENTRY} <= set(archive.namelist())
    except (zipfile.BadZipFile, FileNotFoundError, NotImplementedError, ValueError):
        return False


def _is_beside_database(path: Path) -> bool:
    """Whether it is the log or the index that SQLite keeps beside a database; what counts of it is in the copy."""
    mark = next((each for each in _BESIDE if path.name.endswith(each)), "")
    return bool(mark) and _is_database(path.with_name(path.name.removesuffix(mark)))


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except FileNotFoundError:
        return False


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
