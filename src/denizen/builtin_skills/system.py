"""The machine and Denizen itself: allowed programs, downloads, spending, the cache, a restart. Off unless the owner
switches it on.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from denizen.builtin_skills.skill_manager import require_owner
from denizen.skill import Effect, InstanceControl, NotAllowed, Param, Skill, Taint, Tier, ToolContext, ToolError

RUN_TIMEOUT_S = 30.0
MAX_DOWNLOAD_BYTES = 25_000_000
MAX_DOWNLOADS = 200

_SHELL = frozenset(";|&`$(){}<>!#\\\n\r\0")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """`allow` are programs that `exec` may run, by name or by whole path; empty for none. Mind what a program can
    start in turn: one that runs others by an option opens everything.
    """

    allow: tuple[str, ...] = ()


skill = Skill("system", description="Runs allowed programs; looks after Denizen.", settings=SystemSettings)


@skill.tool(name="exec", tier=Tier.DANGEROUS, timeout_s=RUN_TIMEOUT_S + 10, reads=[Taint.TOOL], listed_only=True)
async def run(
    context: ToolContext, command: Annotated[str, Param("a program and its arguments", max_length=4000)]
) -> str:
    """Runs one of the allowed programs; there is no shell."""
    argv = split_command(command, context.settings(SystemSettings).allow)
    if context.run_program is None:
        raise NotAllowed("programs cannot be run from here")
    context.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ran = await context.run_program(argv, cwd=context.folder, timeout_s=RUN_TIMEOUT_S)
    text = ran.text.strip("\n")
    if ran.is_cut:
        raise ToolError(f"{text}\n[stopped: it printed more than 1 MB]")
    if ran.exit_code is None:
        raise ToolError(f"{text}\n[stopped: it was not done within {RUN_TIMEOUT_S:g} s]".lstrip("\n"))
    if ran.exit_code:
        raise ToolError(f"{text}\n[exit code {ran.exit_code}]".lstrip("\n"))
    return text or "It printed nothing."


def split_command(command: str, allow: tuple[str, ...]) -> list[str]:
    """Returns the program and its arguments. Raises ToolError for a program that is not allowed, and for every
    character by which a shell would do more than run one program; quotes only hold words together.
    """
    if not allow:
        raise ToolError("No programs are allowed: the owner names some under tools.system.allow.")
    # There is no shell, so these would be passed on as text; refusing them spares the model a wrong guess.
    wrong = sorted(_SHELL & set(command))
    if wrong:
        shown = " ".join("newline" if each in "\n\r\0" else each for each in wrong)
        raise ToolError(f"There is no shell: leave out {shown}, and run one program at a time.")
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"This cannot be read: {error}.") from error
    if not argv or argv[0] not in allow:
        raise ToolError(f"`{argv[0] if argv else ''}` is not allowed. Allowed are: {', '.join(allow)}.")
    return argv


@skill.tool(tier=Tier.SENSITIVE, timeout_s=75.0, effects={Effect.SEND}, destinations=("url",))
async def download_file(
    context: ToolContext,
    url: Annotated[str, Param("http or https", max_length=4000)],
    name: Annotated[str, Param("under which it is kept", max_length=100)] = "",
) -> str:
    """Downloads a file of the web into your own folder."""
    if context.download is None:
        raise NotAllowed("files cannot be downloaded from here")
    chosen = name or PurePosixPath(urlsplit(url).path).name
    if not _PLAIN_NAME.fullmatch(chosen):
        raise ToolError("Give a plain name for the file, such as report.pdf.")
    got = await context.download(url, max_bytes=MAX_DOWNLOAD_BYTES)
    if got.status >= 400:
        raise ToolError(f"{got.url} answered {got.status}.")
    if got.truncated:
        raise ToolError(f"The file is larger than {MAX_DOWNLOAD_BYTES // 1_000_000} MB.")
    place = save_download(context.folder / "downloads", chosen, got.data)
    return f"Kept {got.url} as {place} ({len(got.data):,} bytes, {got.media_type or 'unknown type'})."


def save_download(folder: Path, name: str, data: bytes) -> Path:
    """Writes a new file. Raises ToolError when there is one with another content, or the folder is full."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / name
    if len(os.listdir(folder)) >= MAX_DOWNLOADS:  # noqa: PTH208 - counted, not looked at
        raise ToolError(f"There are {MAX_DOWNLOADS} downloads already. Somebody has to clear {folder}.")
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if place.is_file() and not place.is_symlink() and place.read_bytes() == data:
            return place
        raise ToolError(f"There is a file {name} already. Choose another name.") from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    return place


@skill.tool(tier=Tier.DANGEROUS, listed_only=True)
async def restart_denizen(context: ToolContext) -> str:
    """Restarts Denizen. Turns that need longer are taken up again after it."""
    require_owner(context, "restart Denizen")
    _upkeep(context).restart()
    return "Denizen restarts now."


@skill.tool(tier=Tier.LIMITED, read_only=True)
async def credits(context: ToolContext) -> str:  # noqa: A001 - a name for models
    """Tells how much money was spent today and this month."""
    _require_trust(context)
    spent = await _upkeep(context).spent()
    return (
        f"Today: ${spent.day_usd:.4f} in {spent.day_requests} requests. "
        f"This month: ${spent.month_usd:.4f} in {spent.month_requests} requests."
    )


@skill.tool(tier=Tier.LIMITED, read_only=True)
async def cache_statistics(context: ToolContext) -> str:
    """Tells how much of the prompts the provider had in its cache."""
    _require_trust(context)
    use = await _upkeep(context).cache_usage()
    share = use.cache_read_tokens / use.input_tokens if use.input_tokens else 0.0
    return (
        f"Last {use.days} days: {use.input_tokens:,} tokens in, of which {use.cache_read_tokens:,} ({share:.0%}) were "
        f"read from the cache and {use.cache_write_tokens:,} written to it."
    )


def _require_trust(context: ToolContext) -> None:
    """Raises NotAllowed unless an owner or admin asks: money is their business."""
    if not context.principal.roles & {"owner", "admin"}:
        raise NotAllowed("only owners and admins may see this")


def _upkeep(context: ToolContext) -> InstanceControl:
    if context.instance is None:
        raise NotAllowed("this cannot be asked from here")
    return context.instance
