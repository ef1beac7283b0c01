"""The file of a backup: a zip file, or one encrypted with age, that describes itself in `manifest.json`.

In it are `denizen.db` (the store as SQLite, wherever it came from), `durable.db` (work that was under way; not from
Postgres), and the files of the home folder below `home/`. The manifest comes last, since it has the SHA-256 of every
other entry, and the rows of every table. Any unzip program can take a backup apart.

What several files hold alike is stored once, with the first of them. Format 1 stored it with each.
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

FORMAT = 2
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
    """`mode` is the file's mode on disk. `content` names the entry that holds the bytes, empty for that of its own
    name; `linked_to` the file of the backup of which it is a hard link.
    """

    size_bytes: int
    sha256: str
    mode: int = 0o600
    content: str = ""
    linked_to: str = ""


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
        return sum(each.size_bytes for each in self.files.values() if not each.linked_to)


def write_archive(target: Path, manifest: Manifest, entries: Mapping[str, Path], report: ReportBytes) -> Manifest:
    """Writes a new zip file with these entries, readable by its owner only, and returns the manifest with the files
    filled in. A file that went away meanwhile is left out.
    """
    target.touch(mode=0o600)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        writer = _ArchiveWriter(archive, report)
        for name, path in entries.items():
            source = _open_file(path)
            if source is not None:
                with source:
                    writer.add(name, source)
        whole = replace(manifest, files=writer.files)
        archive.writestr(MANIFEST, json.dumps(asdict(whole), indent=1), zipfile.ZIP_DEFLATED)
    return whole


class _ArchiveWriter:
    """Adds files to an archive, the bytes of each once. `files` is what the manifest says of them."""

    def __init__(self, archive: zipfile.ZipFile, report: ReportBytes) -> None:
        self.files: dict[str, ArchivedFile] = {}
        self._archive = archive
        self._report = report
        self._by_inode: dict[tuple[int, int], str] = {}
        self._by_content: dict[tuple[int, str], str] = {}
        self._sizes: set[int] = set()

    def add(self, name: str, source: IO[bytes]) -> None:
        state = os.fstat(source.fileno())
        inode = state.st_dev, state.st_ino
        if state.st_nlink > 1 and inode in self._by_inode:
            first = self._by_inode[inode]
            same = self.files[first]
            self.files[name] = replace(same, content=same.content or first, linked_to=first)
            self._report(state.st_size)
            return
        self._by_inode[inode] = name
        mode, content = state.st_mode & 0o777, ""
        if state.st_size in self._sizes:  # only then can another file hold the same
            size, digest = _pass_on(source, lambda _: None)
            content = self._by_content.get((size, digest), "")
            source.seek(0)
            if content:
                self.files[name] = ArchivedFile(size_bytes=size, sha256=digest, mode=mode, content=content)
                self._report(size)
                return
        if not _is_text(name):
            content = f"names/{len(self.files)}"
        info = zipfile.ZipInfo(content or name)
        info.compress_type = zipfile.ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=True) as entry:

            def write(chunk: bytes) -> None:
                entry.write(chunk)
                self._report(len(chunk))

            size, digest = _pass_on(source, write)
        self._sizes.add(size)
        self._by_content[size, digest] = content or name
        self.files[name] = ArchivedFile(size_bytes=size, sha256=digest, mode=mode, content=content)


def _pass_on(source: IO[bytes], write: Callable[[bytes], None]) -> tuple[int, str]:
    """Returns the size and the SHA-256 of what was passed on."""
    size, digest = 0, hashlib.sha256()
    while chunk := source.read(CHUNK_BYTES):
        write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def _is_text(name: str) -> bool:
    """Whether a zip file can have an entry of that name. Names of files are any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


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
        file = manifest.files.get(name)
        if file is not None and (file.size_bytes < 0 or file.linked_to not in {"", *manifest.files}):
            raise _damaged(name, "what the manifest says of it cannot be")
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
        if expected.linked_to and _link_file(folder / expected.linked_to, target):
            return
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except (FileExistsError, NotADirectoryError) as error:
        raise _damaged(name, "another file of it has the same name") from error
    written, digest = 0, hashlib.sha256()
    with os.fdopen(handle, "wb") as file:
        try:
            entry = archive.open(expected.content or name)
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


def _link_file(source: Path, target: Path) -> bool:
    """Makes a hard link. Returns False where that is not possible, such as on a disk without them."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


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
