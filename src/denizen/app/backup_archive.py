"""The file of a backup: a zip file, or one encrypted with age, that describes itself in `manifest.json`.

In it are `denizen.db` (the store as SQLite, wherever it came from), `durable.db` (work that was under way; not from
Postgres), and the files of the home folder below `home/`. The manifest comes last, since it has the SHA-256 of every
other entry, and the rows of every table. Any unzip program can take a backup apart.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

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
    came (`sqlite` or `postgresql`), the rows of each table, and every file.
    """

    format: int = FORMAT
    version: str
    revision: str
    backend: str
    created_at: str
    with_secrets: bool
    tables: Mapping[str, Mapping[str, int]]
    files: Mapping[str, ArchivedFile] = field(default_factory=dict[str, ArchivedFile])

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
            try:
                source = path.open("rb")
            except FileNotFoundError:
                continue
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            with source, archive.open(info, "w", force_zip64=True) as entry:
                size, digest = _pass_on(source, entry.write, report)
                files[name] = ArchivedFile(size_bytes=size, sha256=digest, mode=path.stat().st_mode & 0o777)
        whole = replace(manifest, files=files)
        archive.writestr(MANIFEST, json.dumps(asdict(whole), indent=1), zipfile.ZIP_DEFLATED)
    return whole


def read_manifest(archive: zipfile.ZipFile) -> Manifest:
    """Raises InvalidInput for a zip file that is no backup or is of a newer format."""
    try:
        data: dict[str, Any] = json.loads(archive.read(MANIFEST))
        found = int(data["format"])
        if found > FORMAT:
            raise InvalidInput(
                "The backup was made by a newer version of Denizen.",
                code="backup_newer",
                why=f"Its format is {found}; this version reads {FORMAT}.",
                fix=f"Install Denizen {data.get('version', 'of the version that made it')} and restore with that.",
            )
        data["files"] = {name: ArchivedFile(**each) for name, each in data["files"].items()}
        return Manifest(**data)
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise _not_a_backup(archive.filename or "the file") from error


def extract_archive(file: Path, folder: Path, report: ReportBytes) -> Manifest:
    """Unpacks a backup into an empty folder and checks it: every file by its SHA-256, every database by its pages,
    references and row counts. Raises InvalidInput for what is no backup, NeedsAttention for one that is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = read_manifest(archive)
            for name, expected in manifest.files.items():
                _extract(archive, name, expected, folder, report)
    except zipfile.BadZipFile as error:
        raise _not_a_backup(str(file)) from error
    for name, counts in manifest.tables.items():
        check_copy(folder / name, counts)
    return manifest


def encrypt_file(source: Path, target: Path, recipient: str) -> None:
    """Encrypts with age for the owner of a public key (`age1...` or `ssh-ed25519 ...`). Raises InvalidInput."""
    pyrage = _load_age()
    target.touch(mode=0o600)
    with source.open("rb") as plain, target.open("wb") as hidden:
        pyrage.encrypt_io(plain, hidden, [parse_recipient(recipient)])


def decrypt_file(source: Path, target: Path, identity_file: Path) -> None:
    """Decrypts with a private key of age or ssh. Raises InvalidInput when it is another's."""
    pyrage = _load_age()
    target.touch(mode=0o600)
    try:
        identity = _read_identity(identity_file.read_text(encoding="utf-8"))
        with source.open("rb") as hidden, target.open("wb") as plain:
            pyrage.decrypt_io(hidden, plain, [identity])
    except (pyrage.DecryptError, pyrage.IdentityError, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{source.name} cannot be decrypted with {identity_file}.",
            code="backup_key",
            why=str(error),
            fix="Give the private key whose public key the backup was made for, with --identity.",
        ) from error


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


def _read_identity(text: str) -> Any:  # noqa: ANN401 - as above
    pyrage = _load_age()
    if "PRIVATE KEY-----" in text:
        return pyrage.ssh.Identity.from_buffer(text.encode())
    keys = [line.strip() for line in text.splitlines() if line.startswith("AGE-SECRET-KEY-")]
    return pyrage.x25519.Identity.from_str(keys[0] if keys else "")


def _extract(archive: zipfile.ZipFile, name: str, expected: ArchivedFile, folder: Path, report: ReportBytes) -> None:
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts:
        raise _damaged(name, "its name leads out of the folder")
    target = folder / inside
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600)
    try:
        with archive.open(name) as entry, target.open("wb") as file:
            size, digest = _pass_on(entry, file.write, report)
    except (KeyError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise _damaged(name, str(error) or type(error).__name__) from error
    if (size, digest) != (expected.size_bytes, expected.sha256):
        raise _damaged(name, "its content is not what the manifest says")
    target.chmod(expected.mode)


def _pass_on(source: IO[bytes], write: Callable[[bytes], object], report: ReportBytes) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    while chunk := source.read(CHUNK_BYTES):
        write(chunk)
        digest.update(chunk)
        size += len(chunk)
        report(len(chunk))
    return size, digest.hexdigest()


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
        why=f"It is no zip file with a {MANIFEST} in it.",
        fix=f"Give a file that `denizen backup` has made. One that ends with {AGE_SUFFIX} needs --identity.",
    )
