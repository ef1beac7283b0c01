"""The talk of a room from the archive: its closed blocks and its tail. Blocks are closed here, for all agents at once.

A room is read from where its last block ends; where there is none yet, backwards until the budget is full. A thread
begins with a snapshot of its parent, taken once, which is kept as blocks of the thread (C8, C9, CW3, CW5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from denizen.domain.conversation import Place
from denizen.domain.room import Post, is_newer
from denizen.domain.transcript import (
    Block,
    Budget,
    Line,
    line_of,
    newest,
    plan_blocks,
    plan_events,
    plan_view,
    weave,
)
from denizen.engine.prompt.transcript.blocks import (
    BlockTexts,
    Closed,
    Renewal,
    close_block,
    read_block,
    write_renewals,
)
from denizen.ports.store import Store, Work
from denizen.ports.transcripts import PostRange

PAGE = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of a room. `shared` is the largest budget of those who share its blocks, `own` that of the agent;
    `question` is the post to answer, empty when it is none; `unsaid` are posts that count as not there.
    """

    place: Place
    shared: Budget
    own: Budget
    question: str = ""
    unsaid: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def room(self) -> str:
        return self.place.thread or self.place.channel


@dataclass(frozen=True, slots=True)
class Talk:
    """What the agent sees: blocks of the parent, of the room itself, and the tail in order."""

    parent: Sequence[Closed]
    blocks: Sequence[Closed]
    tail: Sequence[Line]


@dataclass(slots=True)
class _State:
    """As it was read. `closing` are the lines that make blocks now, `taken` those of a snapshot; with `is_torn` more
    was said since the last block than fits the budget, so that the blocks before it are worth nothing.
    """

    blocks: list[Block]
    closing: list[tuple[Line, ...]]
    tail: list[Line]
    is_torn: bool
    snapshot: list[Block] = field(default_factory=list[Block])
    taken: list[tuple[Line, ...]] = field(default_factory=list[tuple[Line, ...]])

    @property
    def changes(self) -> bool:
        return bool(self.closing or self.is_torn or self.snapshot or self.taken)


async def load_talk(store: Store, asked: Asked, texts: BlockTexts) -> Talk:
    """Closes blocks when it is time for that."""
    seen: tuple[Talk, list[Renewal]] | None = None
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


async def measure_talk(store: Store, asked: Asked) -> tuple[int, int]:
    """Tokens of the blocks and of the tail that the agent would see now. Nothing is closed."""
    async with store.work(write=False) as work:
        state = await _read(work, asked)
    parent = [block.tokens for block in state.blocks if block.room != asked.room]
    own = [block.tokens for block in state.blocks if block.room == asked.room]
    own += [sum(line.tokens for line in lines) for lines in state.closing]
    tail = [line.tokens for line in state.tail]
    view = plan_view(parent, own, tail, asked.own)
    return sum(parent[view.parent :]) + sum(own[view.block :]), sum(tail[view.line :])


async def load_talk_then(store: Store, asked: Asked) -> Talk:
    """What was said up to the question, without blocks: for a turn that is looked at again."""
    async with store.work(write=False) as work:
        platform, room = asked.place.platform, asked.room
        posts, _ = await _page_back(work, platform, room, asked.own.total, before=asked.question)
        question = await work.archive.find(platform, asked.question) if asked.question else None
    if question is not None and question.deleted_at is None:
        posts.append(question)
    return Talk((), (), [line_of(post) for post in posts if post.id not in asked.unsaid])


async def _read(work: Work, asked: Asked) -> _State:
    blocks = list(await work.transcripts.list_blocks(asked.place))
    own = [block for block in blocks if block.room == asked.room]
    posts, is_torn = await _posts_since(work, asked, own[-1].last if own else "")
    said = [line_of(post) for post in posts if post.id not in asked.unsaid]
    lines = weave(said, [] if is_torn else await _news(work, asked, own))
    older, newer = _split(lines, asked.question)
    closing, waiting = plan_blocks(older, asked.shared.block_tokens)
    state = _State(blocks, closing, [*waiting, *newer], is_torn)
    if asked.place.thread and not blocks:
        await _take_snapshot(work, asked, state)
    return state


def _split(lines: list[Line], question: str) -> tuple[list[Line], list[Line]]:
    """A block ends before the question."""
    for place, line in enumerate(lines):
        if question and line.post and not is_newer(question, line.post):
            return lines[:place], lines[place:]
    return lines, []


async def _posts_since(work: Work, asked: Asked, after: str) -> tuple[Sequence[Post], bool]:
    """What was said since the last block; True when that is more than the budget, and what is given only the newest."""
    posts: list[Post] = []
    left, start = asked.shared.total, after
    while start and left >= 0:
        page = await work.archive.list_posts(asked.place.platform, asked.room, after=start, limit=PAGE)
        posts += page
        if len(page) < PAGE:
            return posts, False
        left -= sum(line_of(post).tokens for post in page)
        start = page[-1].id
    posts, is_full = await _page_back(work, asked.place.platform, asked.room, asked.shared.total, after=after)
    return posts, is_full and bool(after)


async def _page_back(
    work: Work, platform: str, room: str, limit: int, *, before: str = "", after: str = ""
) -> tuple[list[Post], bool]:
    """The newest posts that fit the limit, oldest first; True when there are more."""
    posts: list[Post] = []
    left = limit
    while True:
        page = await work.archive.list_posts(platform, room, before=before, limit=PAGE)
        for post in reversed(page):
            if not is_newer(post.id, after):
                return posts[::-1], False
            left -= line_of(post).tokens
            if left < 0:
                return posts[::-1], True
            posts.append(post)
        if len(page) < PAGE:
            return posts[::-1], False
        before = page[0].id


async def _news(work: Work, asked: Asked, own: Sequence[Block]) -> list[Line]:
    """What happened to posts in closed blocks since."""
    if not own:
        return []
    stretch = PostRange(asked.place.platform, asked.room, own[0].first, own[-1].last)
    changed = await work.transcripts.list_range(stretch, changed=True)
    return plan_events([each for each in changed if each.post.id not in asked.unsaid], own)


async def _take_snapshot(work: Work, asked: Asked, state: _State) -> None:
    """The parent as it was before the thread began, the newest part first, and at its end the post that began the
    thread: its copy in the thread is nobody's words. Closed blocks of the parent are taken over as they are.
    """
    place, limit = asked.place, asked.shared.parent_tokens
    starter = await work.archive.find(place.platform, place.thread)
    begins = [starter] if starter and starter.room == place.channel and not starter.deleted_at else []
    limit -= sum(line_of(post).tokens for post in begins)
    above = await work.transcripts.list_blocks(Place(place.platform, place.channel))
    closed = [block for block in above if is_newer(place.thread, block.last)]
    after = closed[-1].last if closed else ""
    posts, is_full = await _page_back(
        work, place.platform, place.channel, limit, before=place.thread, after=after
    )  # fmt: skip
    lines = [line_of(post) for post in (*posts, *begins)]
    parts, rest = plan_blocks(lines, asked.shared.block_tokens)
    state.taken = [*parts, *([tuple(rest)] if rest else [])]
    if not is_full:
        left = limit - sum(line_of(post).tokens for post in posts)
        state.snapshot = closed[newest([block.tokens for block in closed], left) :]


async def _close(work: Work, asked: Asked, state: _State) -> None:
    """Writes the new blocks, and lets go of those that no budget reaches any more."""
    number = state.blocks[-1].number if state.blocks else 0
    new: list[Block] = []
    for block in state.snapshot:
        new.append(replace(block, number=number + len(new) + 1))
    for room, parts in ((asked.place.channel, state.taken), (asked.room, state.closing)):
        for lines in parts:
            closed = await close_block(work, asked.place, number + len(new) + 1, room, lines)
            new.append(closed.block)
    await work.transcripts.add_blocks(asked.place, new)
    own = [block for block in (*state.blocks, *new) if block.room == asked.room]
    kept = newest([block.tokens for block in own], asked.shared.total)
    if state.is_torn:
        kept = max(kept, sum(block in state.blocks for block in own))
    await work.transcripts.remove_blocks(asked.place, [block.number for block in own[:kept]])


async def _see(work: Work, asked: Asked, state: _State, texts: BlockTexts) -> tuple[Talk, list[Renewal]]:
    parent = [block for block in state.blocks if block.room != asked.room]
    own = [block for block in state.blocks if block.room == asked.room]
    view = plan_view(
        [block.tokens for block in parent], [block.tokens for block in own], [line.tokens for line in state.tail],
        asked.own,
    )  # fmt: skip
    renewals: list[Renewal] = []
    above = await _texts(work, asked.place, parent[view.parent :], texts, renewals)
    closed = await _texts(work, asked.place, own[view.block :], texts, renewals)
    return Talk(above, closed, state.tail[view.line :]), renewals


async def _texts(
    work: Work, place: Place, blocks: Sequence[Block], texts: BlockTexts, renewals: list[Renewal]
) -> list[Closed]:
    found: list[Closed] = []
    for block in blocks:
        closed, renewal = await read_block(work, place, block, texts)
        if closed is not None:
            found.append(closed)
        if renewal is not None:
            renewals.append(renewal)
    return found
