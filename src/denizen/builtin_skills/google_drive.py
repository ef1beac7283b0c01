"""Files of a Google Drive: find, read and upload; off unless switched on.

Others write into shared files, so reading is sensitive and taints the turn; uploading is dangerous, and people are
always asked. Files of this machine are uploaded from the folders of `allowed` alone.
"""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated

from denizen.builtin_skills.files import AllowedFolders, FileSettings
from denizen.builtin_skills.google_account import TIMEOUT_S, get_google
from denizen.builtin_skills.paging import read_part
from denizen.skill import (
    DriveFile,
    Effect,
    InvalidInput,
    NotFound,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
    run_in_thread,
)


@dataclass(frozen=True, slots=True)
class DriveSettings(FileSettings):
    """`allowed` are absolute paths of folders from which files are uploaded; without them texts can be uploaded."""


skill = Skill("google_drive", description="Finds, reads and uploads files of a Google Drive.", settings=DriveSettings)

Folder = Annotated[str, Param("id of a folder", max_length=200)]


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.DOCUMENT})
async def find_drive_files(
    context: ToolContext,
    words: Annotated[str, Param("in name or text; empty: the newest", max_length=200)] = "",
    folder: Folder = "",
) -> str | ToolOutput:
    """Finds files of Google Drive."""
    try:
        found = await get_google(context).drive.find(words, folder=folder)
    except (InvalidInput, NotFound) as error:
        raise ToolError(error.explain(), is_own=True) from error
    if not found:
        return ToolOutput("There is no such file.", is_own=True)
    return quote_untrusted("\n".join(map(_describe, found)), source="Google Drive")


@skill.tool(tier=Tier.SENSITIVE, read_only=True, timeout_s=TIMEOUT_S, reads={Taint.DOCUMENT})
async def read_drive_file(
    context: ToolContext,
    file: Annotated[str, Param("id from find_drive_files", max_length=200)],
    start: Annotated[int, Param("character to begin at", ge=0)] = 0,
) -> str:
    """Reads a text, document, table or presentation."""
    try:
        found, text = await get_google(context).drive.read(file.strip())
    except (InvalidInput, NotFound) as error:
        raise ToolError(error.explain()) from error
    part, more = read_part(text, start, what="The file")
    return "\n".join(filter(None, (quote_untrusted(part, source=found.name), more)))


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S,
    effects={Effect.SEND},
    destinations=("folder",),
    destructive=True,  # a folder may be shared with anybody
)
async def upload_drive_file(
    context: ToolContext,
    name: Annotated[str, Param("such as plan.md", min_length=1, max_length=200)],
    text: Annotated[str, Param("its content, or else `path`", max_length=50_000)] = "",
    path: Annotated[str, Param("file of this machine, in an allowed folder", max_length=1000)] = "",
    folder: Folder = "",
) -> str:
    """Uploads a new file."""
    if bool(text) == bool(path):
        raise ToolError("Give either text or path.", is_own=True)
    data = await _load(context, path) if path else text.encode("utf-8", "replace")
    media_type = mimetypes.guess_type(name)[0] or ("application/octet-stream" if path else "text/plain")
    try:
        made = await get_google(context).drive.upload(
            name, data, key=context.idempotency_key, media_type=media_type, folder=folder
        )
    except (InvalidInput, NotFound) as error:
        raise ToolError(error.explain(), is_own=True) from error
    return f"Uploaded {_describe(made)}"


async def _load(context: ToolContext, path: str) -> bytes:
    allowed = context.settings(DriveSettings).allowed
    if not allowed:
        fix = "Give its text, or ask the owner to name folders under tools.google_drive.allowed."
        raise ToolError(f"No file of this machine may be uploaded. {fix}", is_own=True)
    return await run_in_thread(partial(AllowedFolders(allowed).read_bytes, path))


def _describe(file: DriveFile) -> str:
    size = f", {file.size_bytes:,} bytes" if file.size_bytes else ""
    changed = f", changed {file.changed_at[:16].replace('T', ' ')} UTC" if file.changed_at else ""
    link = f" {file.url}" if file.url else ""
    return f"{PurePosixPath(file.name).name or file.name} [id {file.id}] {file.media_type}{size}{changed}{link}"
