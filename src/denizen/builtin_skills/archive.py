"""Looks up what people wrote on the platform, beyond this conversation: search, history, edits, counts.

The archive decides what may be seen, not this skill. What others wrote, including their names and the names of rooms,
is quoted as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import accumulate
from typing import Annotated

from denizen.skill import (
    ArchivedPost,
    ArchivedTalk,
    ArchiveKey,
    ArchiveLookup,
    FoundTalk,
    InvalidInput,
    Param,
    Skill,
    Taint,
    TalkFilters,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    covers_question,
    parse_period,
    quote_untrusted,
)

MAX_HITS = 20
MAX_STRICT_HITS = 3
"""The limit of a strict search, which looks for an answer and not for all that there is."""
MAX_HISTORY = 50
EACH_SIDE = 5
MAX_CHARS = 8000
"""The limit for all messages of a search together."""
TEXT_CHARS = 300
AROUND_CHARS = 150
EDIT_CHARS = 1000
MAX_EDITS = 20
NAME_CHARS = 80

SOURCE = "archived messages, times in UTC"
NOTHING_FITS = "Nothing fits that closely."

skill = Skill("archive", description="Messages that were written on this platform.")

Room = Annotated[str, "#name or id"]
MessageId = Annotated[str, "id or link"]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def search_archive(
    context: ToolContext,
    words: Annotated[str, Param("the best matches come first", min_length=1, max_length=500)],
    room: Room = "",
    author: str = "",
    since: Annotated[str, "2026-11-01, yesterday"] = "",
    until: str = "",
    *,
    strict: bool = False,
) -> ToolOutput:
    """Finds messages in all channels, by words and by meaning, the best first, with those around them."""
    archive = _archive(context)
    try:
        period = parse_period(since, until, now=context.clock.now(), zone=archive.zone)
    except InvalidInput as error:
        raise ToolError(error.explain(), is_own=True) from None
    limit = MAX_STRICT_HITS if strict else MAX_HITS
    found = await archive.find_talk(
        words, room=room, author=author, since=period.since, until=period.until, limit=limit
    )
    talk = [each for each in found.talk if not strict or _fits(found, each)]
    if not talk:
        why = NOTHING_FITS if strict else await _tell_absent(archive, found, archive.zone)
        return ToolOutput(why, {"messages": 0}, is_own=True)
    lines = [*_head(found, archive.zone), *_write_talk(talk)]
    return ToolOutput(quote_untrusted("\n".join(lines), source=SOURCE), {"messages": len(talk)})


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


async def _tell_absent(archive: ArchiveLookup, found: FoundTalk, zone: tzinfo) -> str:
    """Returns why nothing was found, so that nobody guesses: some words occur nowhere, or not as it was asked. Names,
    which others chose, are not repeated: this is our own word.
    """
    if not found.words:
        return f"No message was found {_describe(found.filters, zone, has_names=False)}".rstrip() + "."
    absent = ", ".join(await archive.list_absent(found.words))
    why = f"No message that may be read here has: {absent}." if absent else "Each word occurs, but not as was asked."
    return f"No message was found with: {found.words}\n{why}"


def _fits(found: FoundTalk, talk: ArchivedTalk) -> bool:
    """Whether talk is close to the question: it is whose or where was asked, or has the words that say the most."""
    if found.filters and not found.is_widened and (found.filters.author or found.filters.room or not found.words):
        return True
    return covers_question("\n".join(post.text for post in talk.posts), found.words)


def _head(found: FoundTalk, zone: tzinfo) -> list[str]:
    """Says what the question was understood to be narrowed to."""
    if not found.filters:
        return []
    asked = _describe(found.filters, zone)
    return [f"(nothing was found {asked}; without that:)" if found.is_widened else f"({asked})"]


def _describe(filters: TalkFilters, zone: tzinfo, *, has_names: bool = True) -> str:
    author = _shorten(filters.author, NAME_CHARS) if has_names else "that person"
    room = f"#{_shorten(filters.room, NAME_CHARS)}" if has_names else "that room"
    parts = [
        f"by {author}" if filters.author else "",
        f"in {room}" if filters.room else "",
        f"since {_time(filters.since.astimezone(zone))}" if filters.since else "",
        f"before {_time(filters.until.astimezone(zone))}" if filters.until else "",
    ]
    return " ".join(filter(None, parts)) + (f" ({zone})" if filters.since or filters.until else "")


def _write_talk(talk: Sequence[ArchivedTalk]) -> list[str]:
    """Writes excerpts, the best first, with a blank line between those of several messages. One that does not fit into
    MAX_CHARS any more loses the messages around what was found, then those of the found ones that do not fit.
    """
    blocks: list[list[str]] = []
    left, is_cut = MAX_CHARS, False
    for each in talk:
        lines = [_line(post) if post.id in each.found else _line_around(post) for post in each.posts]
        if sum(map(len, lines)) > left:
            found = [_line(post) for post in each.posts if post.id in each.found]
            ends = accumulate(map(len, found))
            lines = [line for line, end in zip(found, ends, strict=True) if end <= left]
            is_cut = is_cut or len(lines) < len(found)
        blocks += [lines] if lines else []
        left -= sum(map(len, lines))
    gap = [""] if any(len(lines) > 1 for lines in blocks) else []
    written = [line for lines in blocks for line in (*gap, *lines)]
    return [*written[len(gap) :], *(["(more was found; narrow the search)"] if is_cut else [])]


def _archive(context: ToolContext) -> ArchiveLookup:
    if context.archive is None:
        raise ToolError("There is no archive of messages here.", is_own=True)
    return context.archive


def _quote(posts: Sequence[ArchivedPost], otherwise: str) -> ToolOutput:
    if not posts:
        return ToolOutput(otherwise, is_own=True)
    lines = "\n".join(_line(post) for post in posts)
    return ToolOutput(quote_untrusted(lines, source=SOURCE))


def _line(post: ArchivedPost) -> str:
    link = f" {post.link}" if post.link else ""
    return f"{_said(post, TEXT_CHARS)} (id {post.id}{link})"


def _line_around(post: ArchivedPost) -> str:
    """A message that was not found itself: indented, shorter, and without its id."""
    return f"  {_said(post, AROUND_CHARS)}"


def _said(post: ArchivedPost, limit: int) -> str:
    text = _shorten(post.text, limit) or "(no text)"
    if post.attachments:
        text += f" [files: {_shorten(', '.join(post.attachments), limit)}]"
    if post.edited_at is not None:
        text += " (edited)"
    return f"{_time(post.at)} #{_shorten(post.room, NAME_CHARS)} {_shorten(post.author, NAME_CHARS)}: {text}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _shorten(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def _id(text: str) -> str:
    """Returns the id of a message, also from a link, which ends with it."""
    return text.strip().rstrip("/").rsplit("/", 1)[-1]
