"""Reads and writes files of this machine, and makes PDFs of them, below folders that the owner names; off unless
switched on.

Every folder and file on the way is opened relative to the one above it, without following links, so that neither `..`,
nor a link, nor a folder that is swapped in between leads out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from denizen.builtin_skills.paging import read_part
from denizen.builtin_skills.pdf_rendering import pdf_path, render_pdf
from denizen.skill import Param, Skill, Taint, Tier, ToolContext, ToolError

MAX_BYTES = 1_000_000
MAX_PDF_BYTES = 20_000_000
PDF_TIMEOUT_S = 60.0

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the thread for ever


@dataclass(frozen=True, slots=True)
class _Spot:
    """A file below an allowed folder: the folders on the way, and its name."""

    root: Path
    folders: tuple[str, ...]
    name: str


class AllowedFolders:
    """Files below the allowed folders, which are absolute paths. A relative path is meant below the first one."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = [Path(each) for each in allowed]

    def read(self, path: str) -> str:
        """Returns a text file of at most MAX_BYTES. Raises ToolError for everything else."""
        data = self.read_bytes(path)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ToolError(f"{path} is not text ({len(data):,} bytes).") from None

    def read_bytes(self, path: str) -> bytes:
        """Returns a file of at most MAX_BYTES. Raises ToolError for everything else."""
        spot = self._find(path)
        try:
            with _opened(spot) as folder:
                data = _read(folder, spot.name)
        except FileNotFoundError:
            raise ToolError(f"There is no file {path}.") from None
        except OSError as error:
            raise _refused(path, error) from error
        if len(data) > MAX_BYTES:
            raise ToolError(f"{path} is larger than {MAX_BYTES:,} bytes.")
        return data

    def write(self, path: str, text: str, *, replace: bool) -> bool:
        """Writes the whole file or nothing. Returns False when the file has this very text already.

        Without `replace` the file must be new; with it, the file must exist. Raises ToolError.
        """
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_BYTES:
            raise ToolError(f"At most {MAX_BYTES:,} bytes can be written at once.")
        try:
            return self.write_bytes(path, data, replace=replace)
        except FileExistsError:
            raise ToolError(f"{path} is there already, with another content. Use replace_file to replace it.") from None

    def write_bytes(self, path: str, data: bytes, *, replace: bool) -> bool:
        """As `write`, for any bytes. Raises FileExistsError where another file is there and none may be replaced."""
        spot = self._find(path)
        try:
            with _opened(spot) as folder:
                return _write(folder, spot.name, data, replace=replace)
        except FileExistsError:
            raise
        except FileNotFoundError:
            raise ToolError(f"{path} is not there, or its folder is not.") from None
        except OSError as error:
            raise _refused(path, error) from error

    def _find(self, path: str) -> _Spot:
        """Checks the form of the path only: what is really there is seen when it is opened."""
        if not self._allowed:
            raise ToolError("No folders are allowed: the owner names some under tools.files.allowed.")
        steps = PurePosixPath(path).parts
        if not path or "\0" in path or ".." in steps:
            raise ToolError("Give a plain path, without `..`.")
        full = self._allowed[0] / path  # an absolute path stays as it is
        for root in self._allowed:
            if full.is_relative_to(root) and full != root:
                *folders, name = full.relative_to(root).parts
                return _Spot(root, tuple(folders), name)
        allowed = ", ".join(map(str, self._allowed))
        raise ToolError(f"{path} is outside of what is allowed: {allowed}.")


@contextmanager
def _opened(spot: _Spot) -> Generator[int]:
    """Opens the folder that holds the file. The allowed folder itself may be a link: the owner named it."""
    handles = [os.open(spot.root, _FOLDER & ~os.O_NOFOLLOW)]
    try:
        for step in spot.folders:
            handles.append(os.open(step, _FOLDER, dir_fd=handles[-1]))
        yield handles[-1]
    finally:
        for handle in handles:
            os.close(handle)


def _read(folder: int, name: str) -> bytes:
    handle = os.open(name, _FILE, dir_fd=folder)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IsADirectoryError(0, "it is not a plain file")
        return stream.read(MAX_BYTES + 1)


def _write(folder: int, name: str, data: bytes, *, replace: bool) -> bool:
    with suppress(FileNotFoundError):
        if _read(folder, name) == data:
            return False
        if not replace:
            raise FileExistsError
        replace_mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        _place(folder, name, data, mode=replace_mode, is_new=False)
        return True
    if replace:
        raise FileNotFoundError
    _place(folder, name, data, mode=0o600, is_new=True)
    return True


def _place(folder: int, name: str, data: bytes, *, mode: int, is_new: bool) -> None:
    part = f".{name[:80]}.{os.getpid()}.part"
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=folder)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        if is_new:  # of two that write at once, the second fails
            os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        else:
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)


def _refused(path: str, error: OSError) -> ToolError:
    return ToolError(f"{path} cannot be used: {error.strerror or 'it is a link, a folder or a device'}.")


@dataclass(frozen=True, slots=True)
class FileSettings:
    """`allowed` are absolute paths of folders; nothing outside of them is reached, not through links either."""

    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in self.allowed:
            if not PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ValueError("write each folder as an absolute path without `..`, such as /srv/shared")


skill = Skill("files", description="Reads and writes files in allowed folders.", settings=FileSettings)

FilePath = Annotated[str, Param("absolute, or below the first allowed folder", max_length=1000)]


@skill.tool(tier=Tier.SENSITIVE, read_only=True, reads=[Taint.DOCUMENT])
def read(context: ToolContext, path: FilePath, start: Annotated[int, Param("character to begin at", ge=0)] = 0) -> str:
    """Reads a text file."""
    part, more = read_part(_places(context).read(path), start, what=path)
    return "\n".join(filter(None, (part, more))) or "The file is empty."


@skill.tool(tier=Tier.DANGEROUS)
def write(context: ToolContext, path: FilePath, content: str) -> str:
    """Writes a new text file."""
    is_new = _places(context).write(path, content, replace=False)
    return f"Wrote {path}." if is_new else f"{path} has this content already."


@skill.tool(tier=Tier.DANGEROUS, destructive=True)
def replace_file(context: ToolContext, path: FilePath, content: str) -> str:
    """Replaces the whole content of a text file."""
    is_new = _places(context).write(path, content, replace=True)
    return f"Replaced {path}." if is_new else f"{path} has this content already."


@skill.tool(tier=Tier.DANGEROUS, timeout_s=PDF_TIMEOUT_S)
def md_to_pdf(
    context: ToolContext, path: FilePath, pdf: Annotated[str, Param("the new file", max_length=1000)] = ""
) -> str:
    """Makes a PDF of a Markdown file and returns its path."""
    places, made = _places(context), pdf or pdf_path(path)
    if PurePosixPath(made).suffix.lower() != ".pdf":
        raise ToolError("The name of the new file has to end in .pdf.")

    def load_picture(source: str) -> bytes | None:
        try:
            return places.read_bytes(str(PurePosixPath(path).parent / source))
        except ToolError:
            return None

    rendered = render_pdf(places.read(path), load_picture)
    if len(rendered.data) > MAX_PDF_BYTES:
        raise ToolError(f"The PDF would have more than {MAX_PDF_BYTES:,} bytes. Use fewer or smaller pictures.")
    try:
        places.write_bytes(made, rendered.data, replace=False)
    except FileExistsError:
        raise ToolError(f"{made} is there already, with another content. Name another file with `pdf`.") from None
    lines = [f"Made {made}."]
    if rendered.missing_pictures:
        lines.append(f"{len(rendered.missing_pictures)} pictures are not shown: only files in the allowed folders are.")
    if rendered.missing_letters:
        lines.append(f"No font here has these letters: {rendered.missing_letters[:40]}")
    return " ".join(lines)


def _places(context: ToolContext) -> AllowedFolders:
    return AllowedFolders(context.settings(FileSettings).allowed)
