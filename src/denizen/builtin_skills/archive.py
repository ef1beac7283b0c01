"""Looks up what people wrote on the platform, beyond this conversation: search, history, edits, counts.

The archive decides what may be seen, not this skill. What others wrote, including their names and the names of rooms,
is quoted as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from denizen.skill import (
    ArchivedPost,
    ArchiveKey,
    ArchiveLookup,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
)

MAX_HITS = 20
MAX_HISTORY = 50
EACH_SIDE = 5
TEXT_CHARS = 300
EDIT_CHARS = 1000
MAX_EDITS = 20
NAME_CHARS = 80

skill = Skill("archive", description="Messages that were written on this platform.")

Room = Annotated[str, "#name or id"]
MessageId = Annotated[str, "id or link"]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def search_archive(
    context: ToolContext,
    words: Annotated[str, Param("the best matches come first", min_length=1, max_length=200)],
    room: Room = "",
    author: str = "",
    since: Annotated[str, "2026-11-01"] = "",
    until: str = "",
) -> ToolOutput:
    """Finds messages in all channels, by words and by meaning, the best first."""
    archive = _archive(context)
    posts = await archive.search(
        words, room=room, author=author, since=_parse_start(since), until=_parse_end(until), limit=MAX_HITS
    )
    return _quote(posts, "" if posts else await _tell_absent(archive, words))


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_history(
    context: ToolContext,
    room: Room = "",
    before: Annotated[str, "message id"] = "",
    after: str = "",
    limit: Annotated[int, Param(ge=1, le=MAX_HISTORY)] = 20,
) -> ToolOutput:
    """Reads the latest messages of a channel, or those before or after one."""
    posts = await _archive(context).history(room, before=_id(before), after=_id(after), limit=limit)
    return _quote(posts, "There are no messages.")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_context(context: ToolContext, message: MessageId) -> ToolOutput:
    """Reads what was said around a message."""
    return _quote(await _archive(context).around(_id(message), each_side=EACH_SIDE), "There are no messages.")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_edits(context: ToolContext, message: MessageId) -> str:
    """Reads the earlier texts of an edited or deleted message."""
    found = await _archive(context).edits(_id(message))
    post = found.post
    texts = [*found.earlier, (post.edited_at or post.at, post.text)]
    lines = [f"message {post.id} by {_shorten(post.author, NAME_CHARS)} in #{_shorten(post.room, NAME_CHARS)}"]
    if len(texts) > MAX_EDITS:
        lines.append(f"({len(texts) - MAX_EDITS} older texts are left out)")
    lines += [f"{_time(at)}: {_shorten(text, EDIT_CHARS)}" for at, text in texts[-MAX_EDITS:]]
    if post.deleted_at is not None:
        lines.append(f"{_time(post.deleted_at)}: (deleted)")
    elif not found.earlier:
        lines.append("(no earlier text is known)")
    return quote_untrusted("\n".join(lines), source="edits of a message, times in UTC")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def archive_stats(
    context: ToolContext,
    by: ArchiveKey = "author",
    room: Room = "",
    days: Annotated[int, Param("0: ever", ge=0, le=3650)] = 0,
) -> str | ToolOutput:
    """Counts messages of channels, people or days."""
    since = context.clock.now() - timedelta(days=days) if days else None
    counts = await _archive(context).stats(by, room=room, since=since, limit=MAX_HITS)
    if not counts:
        return ToolOutput("There are no messages.", is_own=True)
    lines = [f"{_shorten(count.name, NAME_CHARS)}: {count.posts}" for count in counts]
    return quote_untrusted("\n".join(lines), source=f"messages by {by}")


async def _tell_absent(archive: ArchiveLookup, words: str) -> str:
    """Returns why nothing was found, so that nobody guesses: some words occur nowhere, or not as it was asked."""
    absent = ", ".join(await archive.list_absent(words))
    why = f"No message that may be read here has: {absent}." if absent else "Each word occurs, but not as was asked."
    return f"No message was found with: {words}\n{why}"


def _archive(context: ToolContext) -> ArchiveLookup:
    if context.archive is None:
        raise ToolError("There is no archive of messages here.", is_own=True)
    return context.archive


def _quote(posts: Sequence[ArchivedPost], otherwise: str) -> ToolOutput:
    if not posts:
        return ToolOutput(otherwise, is_own=True)
    lines = "\n".join(_line(post) for post in posts)
    return ToolOutput(quote_untrusted(lines, source="archived messages, times in UTC"))


def _line(post: ArchivedPost) -> str:
    text = _shorten(post.text, TEXT_CHARS) or "(no text)"
    if post.attachments:
        text += f" [files: {_shorten(', '.join(post.attachments), TEXT_CHARS)}]"
    if post.edited_at is not None:
        text += " (edited)"
    where = f"#{_shorten(post.room, NAME_CHARS)}"
    link = f" {post.link}" if post.link else ""
    return f"{_time(post.at)} {where} {_shorten(post.author, NAME_CHARS)}: {text} (id {post.id}{link})"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _shorten(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def _id(text: str) -> str:
    """Returns the id of a message, also from a link, which ends with it."""
    return text.strip().rstrip("/").rsplit("/", 1)[-1]


def _parse_start(text: str) -> datetime | None:
    """Returns the time, in UTC unless it says otherwise; None for an empty text."""
    if not text.strip():
        return None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"`{text}` is not a date. Write it like 2026-11-01.", is_own=True) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _parse_end(text: str) -> datetime | None:
    """Returns the time; a day counts to its end."""
    time = _parse_start(text)
    return time + timedelta(days=1) if time is not None and len(text.strip()) <= len("2026-11-01") else time
