"""A room's talk as one transcript: lines `Name: text`, closed blocks of them that keep their bytes, and a tail. Pure.

A block closes when the lines that wait for it are enough, and from then on reads the same for ever, whatever is edited
or deleted: it remembers which version of each post it shows. What changed since is told in the tail as an event. Only
what is forgotten leaves a block. Loading and keeping is in `engine/prompt/room_transcript`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from denizen.domain.file_text import show_file
from denizen.domain.names import format_name
from denizen.domain.prompt import estimate_tokens
from denizen.domain.record import record
from denizen.domain.room import Post, is_newer

TOKENS_PER_LINE = 4
"""On top of a line's characters."""

MIN_BLOCK_TOKENS = 1000
MAX_BLOCK_TOKENS = 30_000
RESERVED_TOKENS = 10_000
"""The tokens taken off a budget before it is divided into blocks."""

DELETED = -1
"""In place of a version's number: the post was deleted."""

NO_TEXT = "(no text)"


@record
class PostHistory:
    """A post with its earlier texts, oldest first."""

    post: Post
    earlier: tuple[str, ...] = ()

    def text_at(self, version: int) -> str:
        """Returns the text after so many edits."""
        return self.earlier[version] if version < len(self.earlier) else self.post.text


@record
class TranscriptEvent:
    """A change to a post of a closed block: its edit number `version`, or `DELETED`. It is told before the line
    of the post `before`; at the end when that is empty.
    """

    post: str
    version: int
    before: str = ""


@record
class TranscriptLine:
    """`post` is the id of the post, empty for an event. `answers` is the post that a bot answered with it."""

    post: str
    name: str
    text: str
    at: datetime
    is_bot: bool = False
    answers: str = ""
    event: TranscriptEvent | None = None

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text) + TOKENS_PER_LINE


@record(kw_only=True)
class TranscriptBlock:
    """Where a closed block begins and ends, and which versions it shows. `number` counts those of a place from 1.

    `room` is where its posts are: in a thread's first blocks the parent. `posts` counts what lies in its range, deleted
    ones too. `versions` has the posts that had been edited, with how often; `left_out` those that had been deleted.
    `digest` is the sha256 of the text.
    """

    number: int
    room: str
    first: str
    last: str
    tokens: int
    digest: str
    posts: int
    versions: Mapping[str, int] = field(default_factory=dict[str, int])
    left_out: tuple[str, ...] = ()
    events: tuple[TranscriptEvent, ...] = ()

    def covers(self, post_id: str) -> bool:
        """Whether a post of its room lies in its range."""
        return not is_newer(self.first, post_id) and not is_newer(post_id, self.last)


@record
class TranscriptBudget:
    """In tokens. `tail` is guaranteed to the newest talk even where that is more than is left of `total`; `block` None
    derives the size of a block from `total`; `parent_share` is what a thread may use for its parent. `messages` bounds
    the lines besides; 0 is no bound.
    """

    total: int = 100_000
    tail: int = 8000
    block: int | None = None
    parent_share: float = 0.5
    messages: int = 0

    @property
    def block_tokens(self) -> int:
        derived = (self.total - RESERVED_TOKENS) // 3
        return min(max(derived, MIN_BLOCK_TOKENS), MAX_BLOCK_TOKENS) if self.block is None else self.block

    @property
    def most_tokens(self) -> int:
        """The tokens that are read at most: the guaranteed tail may exceed the total."""
        return max(self.total, self.tail)

    @property
    def parent_tokens(self) -> int:
        return int(self.total * self.parent_share)


def post_line(post: Post, text: str | None = None) -> TranscriptLine:
    """The line of a post; `text` is given for another version of it."""
    name = format_name(post.author.name)
    files = [show_file(file) for file in post.attachments]
    words = join_words(post.text if text is None else text, files)
    is_bot = post.author.is_bot
    return TranscriptLine(
        post=post.id,
        name=name,
        text=f"{name}: {words}",
        at=post.created_at,
        is_bot=is_bot,
        answers=post.reply_to if is_bot else "",
    )


def join_words(text: str, files: Iterable[str]) -> str:
    """Returns the words of a message with its files (`show_file`), whose texts end with their line."""
    words = ""
    for each in filter(None, (text.strip(), *files)):
        words += ("\n" if words.rpartition("\n")[2].startswith("> ") else " " if words else "") + each
    return words or NO_TEXT


def event_line(archived: PostHistory, event: TranscriptEvent) -> TranscriptLine:
    """Returns the line about a change to a post, in brackets, so that it reads as nobody's words."""
    post = archived.post
    name = format_name(post.author.name)
    if event.version == DELETED:
        text = f"[a message of {name} was deleted]"
    else:
        files = [show_file(replace(file, text="")) for file in post.attachments]
        text = f"[{name} edited an earlier message: {join_words(archived.text_at(event.version), files)}]"
    changed_at = post.changes.deleted_at if event.version == DELETED else post.changes.edited_at
    return TranscriptLine("", name, text, changed_at or post.created_at, event=event)


def render_lines(
    block: TranscriptBlock, archived: Iterable[PostHistory], changed: Mapping[str, PostHistory] | None = None
) -> tuple[TranscriptLine, ...]:
    """The lines of a block from what lies in its range, deleted posts too; `changed` has the posts of its events. What
    was forgotten is missing in both, and so in the lines.
    """
    left_out = set(block.left_out)
    lines = [
        post_line(each.post, each.text_at(block.versions.get(each.post.id, 0)))
        for each in archived
        if each.post.id not in left_out
    ]
    known = changed or {}
    before: dict[str, list[TranscriptLine]] = {}
    there = {line.post for line in lines}
    for event in block.events:
        if event.post in known:
            before.setdefault(event.before if event.before in there else "", []).append(
                event_line(known[event.post], event)
            )
    woven = [each for line in lines for each in (*before.get(line.post, ()), line)]
    return (*woven, *before.get("", ()))


def weave_events(lines: Sequence[TranscriptLine], events: Sequence[TranscriptLine]) -> list[TranscriptLine]:
    """Lines with the events that are new, each before the first line that was written after it."""
    placed: list[TranscriptLine] = []
    waiting = sorted(events, key=lambda line: (line.at, line.event.post if line.event else ""))
    for line in lines:
        while waiting and waiting[0].at < line.at:
            due = waiting.pop(0)
            placed.append(replace(due, event=replace(due.event, before=line.post) if due.event else None))
        placed.append(line)
    return [*placed, *waiting]


def plan_events(changed: Iterable[PostHistory], blocks: Sequence[TranscriptBlock]) -> list[TranscriptLine]:
    """Lists changes to posts of closed blocks that no block tells yet. Of several edits the last is told."""
    told = {(event.post, event.version) for block in blocks for event in block.events}
    lines: list[TranscriptLine] = []
    for each in changed:
        post = each.post
        block = next((each for each in blocks if each.room == post.room and each.covers(post.id)), None)
        if block is None or post.id in block.left_out:
            continue
        version = DELETED if post.changes.deleted_at else len(each.earlier)
        is_new = version == DELETED or version > block.versions.get(post.id, 0)
        if is_new and (post.id, version) not in told:
            lines.append(event_line(each, TranscriptEvent(post.id, version)))
    return lines


def plan_blocks(
    lines: Sequence[TranscriptLine], size: int
) -> tuple[list[tuple[TranscriptLine, ...]], list[TranscriptLine]]:
    """The blocks that close, and what is left for the tail. What waits already counts. A block ends
    with the line of a post.
    """
    closed: list[tuple[TranscriptLine, ...]] = []
    waiting: list[TranscriptLine] = []
    tokens = 0
    for line in lines:
        waiting.append(line)
        tokens += line.tokens
        if tokens >= size and line.post:
            closed.append(tuple(waiting))
            waiting, tokens = [], 0
    return closed, waiting


def newest_version(tokens: Sequence[int], limit: int) -> int:
    """From which place on all fit the limit together: the newest part."""
    start, left = len(tokens), limit
    while start and tokens[start - 1] <= left:
        start -= 1
        left -= tokens[start]
    return start


def limit_lines(
    blocks: Sequence[Sequence[TranscriptLine]], tail: Sequence[TranscriptLine], most: int
) -> tuple[Sequence[Sequence[TranscriptLine]], Sequence[TranscriptLine]]:
    """The newest blocks and lines of the tail that are at most so many lines; 0 is no bound. Blocks leave whole: what
    is cut within one changes all bytes of the prompt behind it.
    """
    if not most:
        return blocks, tail
    return blocks[newest_version([len(lines) for lines in blocks], most - len(tail)) :], tail[-most:]


@record
class TranscriptView:
    """The part of a transcript that an agent sees: of the parent's blocks, its own blocks and the tail, the places from
    which on. The newest lines of the block just before those blocks are seen too, as far as they fit into so many
    tokens (`parent_room`, `block_room`).
    """

    parent: int
    block: int
    line: int
    parent_room: int = 0
    block_room: int = 0


def plan_view(
    parent: Sequence[int], blocks: Sequence[int], tail: Sequence[int], budget: TranscriptBudget
) -> TranscriptView:
    """By tokens. The oldest blocks leave whole; only when none is left, the tail loses its oldest lines, down to what
    is guaranteed. The last line always stays.

    Blocks are as large as the largest budget wants them. Where they are too large for this one, and less is left than
    what is guaranteed, the end of one fills that.
    """
    from_parent = newest_version(parent, budget.parent_tokens)
    above = sum(parent[from_parent:])
    parent_room = max(min(budget.tail, budget.parent_tokens) - above, 0) if from_parent else 0
    left = max(budget.total - above - parent_room, budget.tail)
    waiting = sum(tail)
    from_block = newest_version(blocks, left - waiting)
    if from_block == len(blocks) and waiting > left:
        from_line = min(newest_version(tail, left), max(len(tail) - 1, 0))
        return TranscriptView(from_parent, from_block, from_line, parent_room)
    seen = sum(blocks[from_block:]) + waiting
    block_room = min(budget.tail, left - seen) if from_block and seen < budget.tail else 0
    return TranscriptView(from_parent, from_block, 0, parent_room, block_room)
