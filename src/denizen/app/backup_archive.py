"""The file of a backup: a zip file, or one encrypted with age, that describes itself in `manifest.json`.

In it are `denizen.db` (the store as SQLite, wherever it came from), `durable.db` (work that was under way; not from
Postgres), and the files of the home folder below `home/`. The manifest comes last, since it has the SHA-256 of every
other entry, and the rows of every table. Any unzip program can take a backup apart.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from denizen.adapters.store.snapshot import check_copy
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention
from denizen.domain.record import record

FORMAT = 1
MANIFEST = "manifest.json"
STORE_ENTRY = "denizen.db"
DURABLE_ENTRY = "durable.db"
HOME_ENTRIES = "home/"
AGE_SUFFIX = ".age"
CHUNK_BYTES = 1 << 20
MAX_MANIFEST_BYTES = 1 << 28
"""A manifest has about 200 bytes for each file."""
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError)
"""Errors of `zipfile` about an entry: damage, none of that name, an unknown compression, a password."""

_AGE_MAGIC = b"age-encryption.org/v1"

ReportBytes = Callable[[int], None]
"""It is told how many more bytes are done."""


@record(kw_only=True)
class ArchivedFile:
    """`mode` is the file's mode on disk."""

    size_bytes: int
    sha256: str
    mode: int = 0o600


@record(kw_only=True)
class Manifest:
    """Describes a backup: the version of Denizen and the revision of the store that wrote it, from which database it
    came (`sqlite` or `postgresql`), the rows of each table, every file, the symbolic links with their targets, and what
    was left out, with the reason.
    """

    format: int = FORMAT
    version: str
    revision: str
    backend: str
    created_at: str
    with_secrets: bool
    tables: Mapping[str, Mapping[str, int]]
    files: Mapping[str, ArchivedFile] = field(default_factory=dict[str, ArchivedFile])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files.values())


def write_archive(target: Path, manifest: Manifest, entries: Mapping[str, Path], report: ReportBytes) -> Manifest:
    """Writes a new zip file with these entries, readable by its owner only, and returns the manifest with the files
    filled in. A file that went away meanwhile is left out.
    """
    files: dict[str, ArchivedFile] = {}
    target.touch(mode=0o600)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for name, path in entries.items():
            source = _open_file(path)
            if source is None:
                continue
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            size, digest = 0, hashlib.sha256()
            with source, archive.open(info, "w", force_zip64=True) as entry:
                mode = os.fstat(source.fileno()).st_mode & 0o777
                while chunk := source.read(CHUNK_BYTES):
                    entry.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
                    report(len(chunk))
            files[name] = ArchivedFile(size_bytes=size, sha256=digest.hexdigest(), mode=mode)
        whole = replace(manifest, files=files)
        archive.writestr(MANIFEST, json.dumps(asdict(whole), indent=1), zipfile.ZIP_DEFLATED)
    return whole


def _open_file(path: Path) -> IO[bytes] | None:
    """Returns None for what has gone, or has become something else than a file. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}:
            return None
        raise
    file = os.fdopen(handle, "rb")
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return file
    file.close()
    return None


def read_manifest(archive: zipfile.ZipFile) -> Manifest:
    """Raises InvalidInput for a zip file that is no backup or is of a newer format, NeedsAttention for one whose
    manifest is damaged.
    """
    try:
        info = archive.getinfo(MANIFEST)
    except KeyError as error:
        raise _not_a_backup(archive.filename or "the file") from error
    if info.file_size > MAX_MANIFEST_BYTES:
        raise _damaged(MANIFEST, f"it has {info.file_size} bytes")
    try:
        data: dict[str, Any] = json.loads(archive.read(info))
        found = int(data["format"])
    except (ValueError, TypeError, KeyError) as error:
        raise _not_a_backup(archive.filename or "the file") from error
    except _BAD_ZIP as error:
        raise _damaged(MANIFEST, str(error) or type(error).__name__) from error
    if found > FORMAT:
        raise InvalidInput(
            "The backup was made by a newer version of Denizen.",
            code="backup_newer",
            why=f"Its format is {found}; this version reads {FORMAT}.",
            fix=f"Install Denizen {data.get('version', 'of the version that made it')} and restore with that.",
        )
    try:
        manifest = TypeAdapter(Manifest).validate_python(data, strict=False)
    except ValidationError as error:
        raise _not_a_backup(archive.filename or "the file") from error
    _check_names(manifest)
    return manifest


def _check_names(manifest: Manifest) -> None:
    """Refuses names that lead out of the folder, and databases other than ours, before anything is written."""
    for name in (*manifest.files, *manifest.links):
        inside = PurePosixPath(name)
        if name in manifest.files and manifest.files[name].size_bytes < 0:
            raise _damaged(name, "its size is negative")
        if inside.is_absolute() or ".." in inside.parts or "\0" in name or str(inside) != name:
            raise _damaged(name, "its name leads out of the folder")
        if name not in {STORE_ENTRY, DURABLE_ENTRY} and inside.parts[0] != HOME_ENTRIES.rstrip("/"):
            raise _damaged(name, "a backup has no such file")
    if not {STORE_ENTRY} <= set(manifest.tables) <= {STORE_ENTRY, DURABLE_ENTRY} & set(manifest.files):
        raise _damaged(MANIFEST, f"the databases in it are not {STORE_ENTRY} and {DURABLE_ENTRY}")


def extract_archive(file: Path, folder: Path, report: ReportBytes) -> Manifest:
    """Unpacks a backup into an empty folder and checks it: every file by its SHA-256, every database by its pages,
    references and row counts. Raises InvalidInput for what is no backup, NeedsAttention for one that is damaged or does
    not fit on the disk; then nothing was written.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = read_manifest(archive)
            free = shutil.disk_usage(folder).free
            if manifest.size_bytes > free:
                raise NeedsAttention(
                    f"The backup does not fit on the disk of {folder.parent.parent}.",
                    code="backup_disk",
                    why=f"It has {manifest.size_bytes / 1e6:.0f} MB unpacked, and {free / 1e6:.0f} MB are free.",
                    fix="Make room, or restore to another disk. For a check, TMPDIR may name a folder with room.",
                )
            for name, expected in manifest.files.items():
                _extract(archive, name, expected, folder, report)
        for name, target in manifest.links.items():
            _link(folder, name, target)
        for name in manifest.links:  # only now each shows where it leads
            _check_inside(folder, name, folder / name)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise _not_a_backup(str(file)) from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise _damaged(file.name, "it refers to places that it does not have") from error
    for name, counts in manifest.tables.items():
        check_copy(folder / name, counts)
    return manifest


def encrypt_file(source: Path, target: Path, recipient: str) -> None:
    """Encrypts with age for the owner of a public key (`age1...` or `ssh-ed25519 ...`). Raises InvalidInput."""
    pyrage = _load_age()
    target.touch(mode=0o600)
    with source.open("rb") as plain, target.open("wb") as hidden:
        pyrage.encrypt_io(plain, hidden, [parse_recipient(recipient)])


def is_encrypted(file: Path) -> bool:
    """Tells by the first bytes, whatever the file is called."""
    with file.open("rb") as source:
        return source.read(len(_AGE_MAGIC)) == _AGE_MAGIC


def decrypt_file(source: Path, target: Path, identity_file: Path) -> None:
    """Decrypts with the private keys of age or ssh in a file. Raises InvalidInput when they are others', NeedsAttention
    for a file that is damaged, and OSError of the disk.
    """
    pyrage = _load_age()
    identities = _read_identities(identity_file)
    target.touch(mode=0o600)
    try:
        with source.open("rb") as hidden, target.open("wb") as plain:
            pyrage.decrypt_io(hidden, plain, identities)
    except pyrage.DecryptError as error:
        raise _wrong_key(f"{source.name} cannot be decrypted with {identity_file}.", str(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(source.name, "it was cut off or changed after it was encrypted") from error


def parse_recipient(text: str) -> Any:  # noqa: ANN401 - a type of the library, which is imported when it is needed
    """Returns the public key as pyrage has it. Raises InvalidInput for what is none."""
    pyrage = _load_age()
    try:
        return (
            pyrage.ssh.Recipient.from_str(text) if text.startswith("ssh-") else pyrage.x25519.Recipient.from_str(text)
        )
    except pyrage.RecipientError as error:
        raise InvalidInput(
            "This is no public key of age.",
            code="backup_key",
            why=str(error),
            fix="Make a pair with `age-keygen -o KEYFILE`, and give the line that begins with age1.",
        ) from error


def _load_age() -> Any:  # noqa: ANN401 - the library has no types
    import importlib

    return importlib.import_module("pyrage")


def _read_identities(file: Path) -> list[Any]:
    pyrage = _load_age()
    try:
        text = file.read_text(encoding="utf-8")
        if "PRIVATE KEY-----" in text:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        keys = [line.strip() for line in text.splitlines() if line.startswith("AGE-SECRET-KEY-")]
        if not keys:
            raise _wrong_key(f"{file} has no private key.", "No line of it begins with AGE-SECRET-KEY-.")
        return [pyrage.x25519.Identity.from_str(key) for key in keys]
    except (pyrage.IdentityError, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else type(error).__name__  # it may quote the key
        raise _wrong_key(f"{file} cannot be read as a private key.", why or "") from error


def _wrong_key(message: str, why: str) -> InvalidInput:
    return InvalidInput(
        message,
        code="backup_key",
        why=why,
        fix="Give the private key whose public key the backup was made for, with --identity.",
    )


def _extract(archive: zipfile.ZipFile, name: str, expected: ArchivedFile, folder: Path, report: ReportBytes) -> None:
    """Raises OSError of the disk. At most the bytes that the manifest tells are written, whatever the entry holds."""
    target = folder / name
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except (FileExistsError, NotADirectoryError) as error:
        raise _damaged(name, "another file of it has the same name") from error
    written, digest = 0, hashlib.sha256()
    with os.fdopen(handle, "wb") as file:
        try:
            entry = archive.open(name)
        except (*_BAD_ZIP, ValueError) as error:
            raise _damaged(name, str(error) or type(error).__name__) from error
        while True:
            try:
                chunk = entry.read(CHUNK_BYTES)
            except _BAD_ZIP as error:
                raise _damaged(name, str(error) or type(error).__name__) from error
            written += len(chunk)
            if not chunk or written > expected.size_bytes:
                break
            file.write(chunk)
            digest.update(chunk)
            report(len(chunk))
    if (written, digest.hexdigest()) != (expected.size_bytes, expected.sha256):
        raise _damaged(name, "its content is not what the manifest says")
    target.chmod(expected.mode & 0o777 | 0o600)


def _link(folder: Path, name: str, target: str) -> None:
    place = folder / name
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_inside(folder, name, place.parent)
        place.symlink_to(target)
    except (FileExistsError, NotADirectoryError) as error:
        raise _damaged(name, "another file of it has the same name") from error


def _check_inside(folder: Path, name: str, place: Path) -> None:
    try:
        is_inside = place.resolve().is_relative_to((folder / HOME_ENTRIES).resolve())
    except RuntimeError:  # in a circle
        is_inside = False
    if not is_inside:
        raise _damaged(name, "it is a link that leads out of the folder")


def _damaged(name: str, why: str) -> DenizenError:
    return NeedsAttention(
        f"The backup is damaged: {name}.",
        code="backup_damaged",
        why=why,
        fix="Use another backup. Nothing was changed.",
    )


def _not_a_backup(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is no backup of Denizen.",
        code="backup_foreign",
        why=f"It is no whole zip file with a {MANIFEST} in it.",
        fix="Give a file that `denizen backup` has made. If it is one, it was cut off: copy it again.",
    )
