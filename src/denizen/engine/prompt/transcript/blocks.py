"""The texts of closed blocks: built from the archive, held against their hash, and remembered while they are true.

What was forgotten leaves its block: that block is rendered anew, once, and the log says what it costs (CW6).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from denizen.domain.conversation import Place
from denizen.domain.trace import sha256_of
from denizen.domain.transcript import Block, Event, Line, render
from denizen.ports.store import Store, Work
from denizen.ports.transcripts import PostRange

REMEMBERED = 32
"""So many blocks are kept in memory; of a large one that is about a megabyte."""

_log = logging.getLogger("denizen.transcript")


@dataclass(frozen=True, slots=True)
class Closed:
    """A block with its lines."""

    block: Block
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Renewal:
    """A block that is not what it was; None when nothing of it is left."""

    old: Block
    new: Block | None


class BlockTexts:
    """The blocks read last; one for a process. What it has is believed only as long as the archive has as many posts
    there, since nothing but forgetting changes a block.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Place, int, str], tuple[Line, ...]] = {}

    def find(self, place: Place, block: Block) -> tuple[Line, ...] | None:
        key = (place, block.number, block.digest)
        lines = self._known.pop(key, None)
        if lines is not None:
            self._known[key] = lines
        return lines

    def put(self, place: Place, block: Block, lines: tuple[Line, ...]) -> None:
        self._known[place, block.number, block.digest] = lines
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def text_of_lines(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def stretch_of(place: Place, block: Block) -> PostRange:
    return PostRange(place.platform, block.room, block.first, block.last)


async def close_block(work: Work, place: Place, number: int, room: str, lines: Sequence[Line]) -> Closed:
    """The block of these lines, pinned to what the archive has now."""
    ids = [line.post for line in lines if line.post]
    block = Block(number, room, ids[0], ids[-1], 0, "", 0, events=_events_of(lines))
    archived = await work.transcripts.list_range(stretch_of(place, block))
    shown = set(ids)
    block = replace(
        block,
        posts=len(archived),
        versions={each.post.id: len(each.earlier) for each in archived if each.earlier and each.post.id in shown},
        left_out=tuple(each.post.id for each in archived if each.post.id not in shown),
    )
    changed = await work.transcripts.find_archived(place.platform, [event.post for event in block.events])
    rendered = render(block, archived, {each.post.id: each for each in changed})
    return Closed(_measured(block, rendered), rendered)


def _events_of(lines: Sequence[Line]) -> tuple[Event, ...]:
    return tuple(line.event for line in lines if line.event is not None)


def _measured(block: Block, lines: Sequence[Line]) -> Block:
    return replace(block, tokens=sum(line.tokens for line in lines), digest=sha256_of(text_of_lines(lines)))


async def read_block(work: Work, place: Place, block: Block, texts: BlockTexts) -> tuple[Closed | None, Renewal | None]:
    """The block with its lines, and its renewal where it is not what it was; no block when nothing is left of it."""
    changed = await work.transcripts.find_archived(place.platform, [event.post for event in block.events])
    there = {each.post.id: each for each in changed}
    is_whole = all(event.post in there for event in block.events)
    if is_whole and await work.transcripts.count_range(stretch_of(place, block)) == block.posts:
        known = texts.find(place, block)
        if known is not None:
            return Closed(block, known), None
    archived = await work.transcripts.list_range(stretch_of(place, block))
    lines = render(block, archived, there)
    events = tuple(event for event in block.events if event.post in there)
    found = _measured(replace(block, posts=len(archived), events=events), lines)
    if not any(line.post for line in lines):
        return None, Renewal(block, None)
    texts.put(place, found, lines)
    return Closed(found, lines), None if found == block else Renewal(block, found)


async def write_renewals(store: Store, place: Place, renewals: Sequence[Renewal]) -> None:
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
                _report(place, renewal)


def _report(place: Place, renewal: Renewal) -> None:
    """The cache of the prompt ends at this block; what it costs is to be read once more."""
    _log.warning(
        "transcript block rendered anew: something in it was forgotten",
        extra={
            "conversation": place.conversation_id, "block": renewal.old.number, "tokens_before": renewal.old.tokens,
            "tokens": renewal.new.tokens if renewal.new else 0,
        },
    )  # fmt: skip
