"""The texts of closed blocks: built from the archive, held against their hash, and remembered while they are true.

What was forgotten leaves its block: that block is rendered anew, once, and the log says what it costs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.room import Post, is_newer
from denizen.domain.trace import sha256_hex
from denizen.domain.transcript import (
    TranscriptBlock,
    TranscriptBudget,
    TranscriptLine,
    newest_version,
    plan_blocks,
    plan_events,
    plan_view,
    post_line,
    render_lines,
    weave_events,
)
from denizen.engine.prompt.room_talk import drop_commands
from denizen.ports.archive import PostRange
from denizen.ports.store import Store, UnitOfWork

REMEMBERED = 32
"""So many blocks are kept in memory; of a large one that is about a megabyte."""

_log = logging.getLogger("denizen.transcript")


@record
class ClosedBlock:
    """A block with its lines."""

    block: TranscriptBlock
    lines: tuple[TranscriptLine, ...]


@record
class BlockRenewal:
    """A block that is not what it was; None when nothing of it is left."""

    old: TranscriptBlock
    new: TranscriptBlock | None


class BlockTextCache:
    """The blocks read last; one for a process. What it has is believed only as long as the archive has as many posts
    there, since nothing but forgetting changes a block.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Place, int, str], tuple[TranscriptLine, ...]] = {}

    def find(self, place: Place, block: TranscriptBlock) -> tuple[TranscriptLine, ...] | None:
        key = (place, block.number, block.digest)
        lines = self._known.pop(key, None)
        if lines is not None:
            self._known[key] = lines
        return lines

    def put(self, place: Place, block: TranscriptBlock, lines: tuple[TranscriptLine, ...]) -> None:
        self._known[place, block.number, block.digest] = lines
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def join_lines(lines: Sequence[TranscriptLine]) -> str:
    return "\n".join(line.text for line in lines)


def block_range(place: Place, block: TranscriptBlock) -> PostRange:
    return PostRange(place.platform, block.room, block.first, block.last)


async def close_block(
    work: UnitOfWork, place: Place, number: int, room: str, lines: Sequence[TranscriptLine]
) -> ClosedBlock:
    """The block of these lines, pinned to what the archive has now."""
    ids = [line.post for line in lines if line.post]
    events = tuple(line.event for line in lines if line.event is not None)
    block = TranscriptBlock(
        number=number, room=room, first=ids[0], last=ids[-1], tokens=0, digest="", posts=0, events=events
    )
    archived = await work.transcripts.list_range(block_range(place, block))
    shown = set(ids)
    block = replace(
        block,
        posts=len(archived),
        versions={each.post.id: len(each.earlier) for each in archived if each.earlier and each.post.id in shown},
        left_out=tuple(each.post.id for each in archived if each.post.id not in shown),
    )
    changed = await work.transcripts.find_archived(place.platform, [event.post for event in block.events])
    rendered = render_lines(block, archived, {each.post.id: each for each in changed})
    return ClosedBlock(_measured(block, rendered), rendered)


def _measured(block: TranscriptBlock, lines: Sequence[TranscriptLine]) -> TranscriptBlock:
    return replace(block, tokens=sum(line.tokens for line in lines), digest=sha256_hex(join_lines(lines)))


async def read_block(
    work: UnitOfWork, place: Place, block: TranscriptBlock, texts: BlockTextCache
) -> tuple[ClosedBlock | None, BlockRenewal | None]:
    """The block with its lines, and its renewal where it is not what it was; no block when nothing is left of it."""
    changed = await work.transcripts.find_archived(place.platform, [event.post for event in block.events])
    there = {each.post.id: each for each in changed}
    is_whole = all(event.post in there for event in block.events)
    if is_whole and await work.transcripts.count_range(block_range(place, block)) == block.posts:
        known = texts.find(place, block)
        if known is not None:
            return ClosedBlock(block, known), None
    archived = await work.transcripts.list_range(block_range(place, block))
    lines = render_lines(block, archived, there)
    events = tuple(event for event in block.events if event.post in there)
    found = _measured(replace(block, posts=len(archived), events=events), lines)
    if not any(line.post for line in lines):
        return None, BlockRenewal(block, None)
    texts.put(place, found, lines)
    return ClosedBlock(found, lines), None if found == block else BlockRenewal(block, found)


async def write_renewals(store: Store, place: Place, renewals: Sequence[BlockRenewal]) -> None:
    """Once for each block, whoever comes first."""
    if not renewals:
        return
    async with store.work() as work:
        for renewal in renewals:
            if renewal.new is None:
                await work.transcripts.remove_blocks(place, [renewal.old.number])
            elif not await work.transcripts.renew_block(place, renewal.new, digest=renewal.old.digest):
                continue
            if renewal.new is None or renewal.new.digest != renewal.old.digest:
                # A warning, because a provider's cache ends at this block: its tokens and all after it are paid anew.
                _log.warning(
                    "transcript block rendered anew: something in it was forgotten",
                    extra={
                        "conversation": place.conversation_id,
                        "block": renewal.old.number,
                        "tokens_before": renewal.old.tokens,
                        "tokens": renewal.new.tokens if renewal.new else 0,
                    },
                )


PAGE = 100


@record
class TranscriptRequest:
    """A request for a room's transcript. `shared` is the largest budget of those who share its blocks, `own` that of
    the agent; `question` is the post to answer, empty when it is none; `unsaid` are posts that count as not there, as
    do commands to the `accounts`.
    """

    place: Place
    shared: TranscriptBudget
    own: TranscriptBudget
    question: str = ""
    unsaid: frozenset[str] = field(default_factory=frozenset[str])
    accounts: tuple[AgentName, ...] = ()

    @property
    def room(self) -> str:
        return self.place.thread or self.place.channel


@record
class RoomTranscript:
    """The transcript that an agent sees: blocks of the parent, of the room itself, and the tail in order."""

    parent: Sequence[ClosedBlock]
    blocks: Sequence[ClosedBlock]
    tail: Sequence[TranscriptLine]


@dataclass(slots=True)
class _State:
    """As it was read. `closing` are the lines that make blocks now, `taken` those of a snapshot; with `is_torn` more
    was said since the last block than fits the budget, so that the blocks before it are worth nothing.
    """

    blocks: list[TranscriptBlock]
    closing: list[tuple[TranscriptLine, ...]]
    tail: list[TranscriptLine]
    is_torn: bool
    snapshot: list[TranscriptBlock] = field(default_factory=list[TranscriptBlock])
    taken: list[tuple[TranscriptLine, ...]] = field(default_factory=list[tuple[TranscriptLine, ...]])

    @property
    def changes(self) -> bool:
        return bool(self.closing or self.is_torn or self.snapshot or self.taken)


async def load_room_transcript(store: Store, asked: TranscriptRequest, texts: BlockTextCache) -> RoomTranscript:
    """Closes blocks when it is time for that."""
    seen: tuple[RoomTranscript, list[BlockRenewal]] | None = None
    async with store.work(write=False) as work:
        state = await _read(work, asked)
        if not state.changes:
            seen = await _see(work, asked, state, texts)
    if seen is None:
        async with store.work() as work:
            state = await _read(work, asked)  # another process may have been faster
            await _close(work, asked, state)
            seen = await _see(work, asked, await _read(work, asked), texts)
    talk, renewals = seen
    await write_renewals(store, asked.place, renewals)
    return talk


async def measure_room_transcript(store: Store, asked: TranscriptRequest) -> tuple[int, int]:
    """Tokens of the blocks and of the tail that the agent would see now. Nothing is closed."""
    async with store.work(write=False) as work:
        state = await _read(work, asked)
    parent = [block.tokens for block in state.blocks if block.room != asked.room]
    own = [block.tokens for block in state.blocks if block.room == asked.room]
    own += [sum(line.tokens for line in lines) for lines in state.closing]
    tail = [line.tokens for line in state.tail]
    view = plan_view(parent, own, tail, asked.own)
    closed = sum(parent[view.parent :]) + view.parent_room + sum(own[view.block :]) + view.block_room
    return closed, sum(tail[view.line :])


async def look_at_room_transcript(store: Store, asked: TranscriptRequest) -> RoomTranscript:
    """Loads the transcript as an agent would read it now. What it would close is in the tail."""
    async with store.work(write=False) as work:
        state = await _read(work, asked)
        state.tail = [*(line for lines in state.closing for line in lines), *state.tail]
        talk, _ = await _see(work, asked, state, BlockTextCache())
    return talk


async def load_past_transcript(store: Store, asked: TranscriptRequest) -> RoomTranscript:
    """Loads the talk up to the question, without blocks: for a turn that is looked at again."""
    async with store.work(write=False) as work:
        platform, room = asked.place.platform, asked.room
        posts, _ = await _page_back(work, platform, room, asked.own.most_tokens, before=asked.question)
        posts = await drop_commands(work, posts, asked.accounts)
        question = await work.archive.find(platform, asked.question) if asked.question else None
    if question is not None and question.changes.deleted_at is None:
        posts.append(question)
    return RoomTranscript((), (), [post_line(post) for post in posts if post.id not in asked.unsaid])


async def _read(work: UnitOfWork, asked: TranscriptRequest) -> _State:
    blocks = list(await work.transcripts.list_blocks(asked.place))
    own = [block for block in blocks if block.room == asked.room]
    posts, is_torn = await _posts_since(work, asked, own[-1].last if own else "")
    posts = await drop_commands(work, posts, asked.accounts)
    said = [post_line(post) for post in posts if post.id not in asked.unsaid]
    lines = weave_events(said, [] if is_torn else await _news(work, asked, own))
    older, newer = _split(lines, asked.question)
    closing, waiting = plan_blocks(older, asked.shared.block_tokens)
    state = _State(blocks, closing, [*waiting, *newer], is_torn)
    if asked.place.thread and not blocks:
        await _take_snapshot(work, asked, state)
    return state


def _split(lines: list[TranscriptLine], question: str) -> tuple[list[TranscriptLine], list[TranscriptLine]]:
    """A block ends before the question."""
    for place, line in enumerate(lines):
        if question and line.post and not is_newer(question, line.post):
            return lines[:place], lines[place:]
    return lines, []


async def _posts_since(work: UnitOfWork, asked: TranscriptRequest, after: str) -> tuple[Sequence[Post], bool]:
    """Loads the posts since the last block; True when they are more than the budget, and only the newest are given."""
    posts: list[Post] = []
    left, start = asked.shared.most_tokens, after
    while start and left >= 0:
        page = await work.archive.list_posts(asked.place.platform, asked.room, after=start, limit=PAGE)
        posts += page
        if len(page) < PAGE:
            return posts, False
        left -= sum(post_line(post).tokens for post in page)
        start = page[-1].id
    posts, is_full = await _page_back(work, asked.place.platform, asked.room, asked.shared.most_tokens, after=after)
    return posts, is_full and bool(after)


async def _page_back(
    work: UnitOfWork, platform: str, room: str, limit: int, *, before: str = "", after: str = ""
) -> tuple[list[Post], bool]:
    """The newest posts that fit the limit, oldest first; True when there are more."""
    posts: list[Post] = []
    left = limit
    while True:
        page = await work.archive.list_posts(platform, room, before=before, limit=PAGE)
        for post in reversed(page):
            if not is_newer(post.id, after):
                return posts[::-1], False
            left -= post_line(post).tokens
            if left < 0:
                return posts[::-1], True
            posts.append(post)
        if len(page) < PAGE:
            return posts[::-1], False
        before = page[0].id


async def _news(work: UnitOfWork, asked: TranscriptRequest, own: Sequence[TranscriptBlock]) -> list[TranscriptLine]:
    """Loads the changes to posts of closed blocks since."""
    if not own:
        return []
    stretch = PostRange(asked.place.platform, asked.room, own[0].first, own[-1].last)
    changed = await work.transcripts.list_range(stretch, changed=True)
    return plan_events([each for each in changed if each.post.id not in asked.unsaid], own)


async def _take_snapshot(work: UnitOfWork, asked: TranscriptRequest, state: _State) -> None:
    """The parent as it was before the thread began, the newest part first, and at its end the post that began the
    thread: its copy in the thread is nobody's words. Closed blocks of the parent are taken over as they are.
    """
    place, limit = asked.place, asked.shared.parent_tokens
    starter = await work.archive.find(place.platform, place.thread)
    begins = [starter] if starter and starter.room == place.channel and not starter.changes.deleted_at else []
    limit -= sum(post_line(post).tokens for post in begins)
    above = await work.transcripts.list_blocks(Place(place.platform, place.channel))
    closed = [block for block in above if is_newer(place.thread, block.last)]
    after = closed[-1].last if closed else ""
    posts, is_full = await _page_back(work, place.platform, place.channel, limit, before=place.thread, after=after)
    lines = [post_line(post) for post in await drop_commands(work, [*posts, *begins], asked.accounts)]
    parts, rest = plan_blocks(lines, asked.shared.block_tokens)
    state.taken = [*parts, *([tuple(rest)] if rest else [])]
    if not is_full:
        left = limit - sum(post_line(post).tokens for post in posts)
        state.snapshot = closed[newest_version([block.tokens for block in closed], left) :]


async def _close(work: UnitOfWork, asked: TranscriptRequest, state: _State) -> None:
    """Writes the new blocks, and lets go of those that no budget reaches any more."""
    number = state.blocks[-1].number if state.blocks else 0
    new: list[TranscriptBlock] = []
    for block in state.snapshot:
        new.append(replace(block, number=number + len(new) + 1))
    for room, parts in ((asked.place.channel, state.taken), (asked.room, state.closing)):
        for lines in parts:
            closed = await close_block(work, asked.place, number + len(new) + 1, room, lines)
            new.append(closed.block)
    await work.transcripts.add_blocks(asked.place, new)
    own = [block for block in (*state.blocks, *new) if block.room == asked.room]
    kept = newest_version([block.tokens for block in own], asked.shared.most_tokens)
    if state.is_torn:
        kept = max(kept, sum(block in state.blocks for block in own))
    await work.transcripts.remove_blocks(asked.place, [block.number for block in own[:kept]])


async def _see(
    work: UnitOfWork, asked: TranscriptRequest, state: _State, texts: BlockTextCache
) -> tuple[RoomTranscript, list[BlockRenewal]]:
    parent = [block for block in state.blocks if block.room != asked.room]
    own = [block for block in state.blocks if block.room == asked.room]
    view = plan_view(
        [block.tokens for block in parent],
        [block.tokens for block in own],
        [line.tokens for line in state.tail],
        asked.own,
    )
    renewals: list[BlockRenewal] = []
    above = await _texts(work, asked.place, parent[view.parent :], texts, renewals)
    closed = await _texts(work, asked.place, own[view.block :], texts, renewals)
    if view.parent_room:
        cut = await _texts(work, asked.place, parent[view.parent - 1 : view.parent], texts, renewals)
        above = [*_take_ends(cut, view.parent_room), *above]
    if view.block_room:
        cut = await _texts(work, asked.place, own[view.block - 1 : view.block], texts, renewals)
        closed = [*_take_ends(cut, view.block_room), *closed]
    return RoomTranscript(above, closed, state.tail[view.line :]), renewals


def _take_ends(blocks: Sequence[ClosedBlock], room: int) -> list[ClosedBlock]:
    """Returns the newest lines of each block that fit into so many tokens; nothing of one whose last line does not."""
    ends: list[ClosedBlock] = []
    for closed in blocks:
        lines = closed.lines[newest_version([line.tokens for line in closed.lines], room) :]
        if lines:
            ends.append(ClosedBlock(replace(closed.block, tokens=sum(line.tokens for line in lines)), lines))
    return ends


async def _texts(
    work: UnitOfWork,
    place: Place,
    blocks: Sequence[TranscriptBlock],
    texts: BlockTextCache,
    renewals: list[BlockRenewal],
) -> list[ClosedBlock]:
    found: list[ClosedBlock] = []
    for block in blocks:
        closed, renewal = await read_block(work, place, block, texts)
        if closed is not None:
            found.append(closed)
        if renewal is not None:
            renewals.append(renewal)
    return found
