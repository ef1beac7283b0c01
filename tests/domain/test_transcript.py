"""Blocks and tail of a transcript (inventory C3, C5, C7, C10; E4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.message import Author
from denizen.domain.room import Attachment, Post, PostChanges
from denizen.domain.transcript import (
    DELETED,
    NO_TEXT,
    PostHistory,
    TranscriptBlock,
    TranscriptBudget,
    TranscriptEvent,
    TranscriptLine,
    limit_lines,
    newest_version,
    plan_blocks,
    plan_events,
    plan_view,
    post_line,
    render_lines,
    weave_events,
)
from tests.memory_platform import START

SIZES = st.lists(st.integers(0, 400), max_size=40)
COSTS = st.lists(st.integers(1, 4000), max_size=20)
BUDGETS = st.builds(
    TranscriptBudget, st.integers(0, 20_000), st.integers(0, 9000), st.none(), st.sampled_from([0.0, 0.25, 0.5, 0.9])
)


def post(key: int, text: str = "hello", name: str = "Ana") -> Post:
    return Post("discord", str(key), "10", Author(name, name), text, START + timedelta(seconds=key))


def make_lines(sizes: list[int]) -> list[TranscriptLine]:
    return [post_line(post(1000 + place, "x" * size)) for place, size in enumerate(sizes)]


def make_block(lines: tuple[TranscriptLine, ...], number: int = 1) -> TranscriptBlock:
    return TranscriptBlock(
        number=number, room="10", first=lines[0].post, last=lines[-1].post, tokens=0, digest="", posts=len(lines)
    )


@pytest.mark.proves("C3")
def test_a_line_has_name_and_words_and_costs_a_quarter_of_its_characters_and_four() -> None:
    line = post_line(post(1, " it rains\nhere "))
    assert line.text == "Ana: it rains\nhere"
    assert line.tokens == -(-len(line.text) // 4) + 4


@pytest.mark.proves("C12")
def test_a_line_tells_files_without_the_signature_of_their_address_and_emptiness_in_words() -> None:
    file = Attachment("map.png", "image/png", 12, "https://cdn.example/map.png?expires=1")
    assert (
        post_line(replace(post(1, "see"), attachments=(file,))).text
        == "Ana: see [map.png, image/png, 12 bytes, https://cdn.example/map.png]"
    )
    assert post_line(post(1, " ")).text == f"Ana: {NO_TEXT}"
    assert post_line(post(1, name=" An\na ")).text == "An a: hello"


@pytest.mark.proves("C8", "C10", "C-config-blocks", "C-config-context-tokens")
def test_the_size_of_a_block_is_derived_from_the_budget_within_bounds() -> None:
    assert (
        TranscriptBudget().total,
        TranscriptBudget().tail,
        TranscriptBudget().block_tokens,
        TranscriptBudget().parent_tokens,
    ) == (100_000, 8000, 30_000, 50_000)
    totals = (0, 10_000, 16_000, 40_000, 10_000_000)
    assert [TranscriptBudget(total).block_tokens for total in totals] == [1000, 1000, 2000, 10_000, 30_000]


@pytest.mark.proves("C5", "CW4", "E4")
@given(SIZES, st.integers(1, 500))
def test_blocks_close_at_their_size_and_no_line_is_lost(sizes: list[int], size: int) -> None:
    lines = make_lines(sizes)
    blocks, tail = plan_blocks(lines, size)
    assert [line for block in blocks for line in block] + tail == lines
    for block in blocks:
        assert sum(line.tokens for line in block) >= size > sum(line.tokens for line in block[:-1])
    assert sum(line.tokens for line in tail) < size or not tail


@pytest.mark.proves("C5", "CW4")
@given(SIZES, st.integers(1, 500), st.integers(0, 40))
def test_blocks_do_not_depend_on_how_often_the_talk_is_looked_at(sizes: list[int], size: int, cut: int) -> None:
    lines = make_lines(sizes)
    early, waiting = plan_blocks(lines[:cut], size)
    late, tail = plan_blocks([*waiting, *lines[cut:]], size)
    assert ([*early, *late], tail) == plan_blocks(lines, size)


@pytest.mark.proves("C7", "C8", "CW5", "E4", "C-config-blocks")
@given(COSTS, COSTS, COSTS, BUDGETS)
def test_the_budget_is_passed_by_the_guaranteed_tail_only(
    parent: list[int], blocks: list[int], tail: list[int], budget: TranscriptBudget
) -> None:
    view = plan_view(parent, blocks, tail, budget)
    above, closed, waiting = sum(parent[view.parent :]), sum(blocks[view.block :]), sum(tail[view.line :])
    assert above + view.parent_room <= budget.parent_tokens
    above, closed = above + view.parent_room, closed + view.block_room
    least = max(budget.tail, tail[-1] if tail else 0)
    assert above + closed + waiting <= max(budget.total, above + least)
    # Where the blocks are too large to be seen whole, the end of one is.
    assert view.parent == 0 or above >= min(budget.tail, budget.parent_tokens)
    assert view.block == 0 or closed + sum(tail) >= budget.tail
    assert view.line == 0 or view.block == len(blocks)  # the tail is cut only when no block is left
    if view.line:  # what is guaranteed is there, to the next line
        assert sum(tail[view.line - 1 :]) > max(budget.total - above, budget.tail)


@given(COSTS, st.integers(0, 20_000))
def test_the_newest_part_is_taken_in_whole_steps(tokens: list[int], limit: int) -> None:
    start = newest_version(tokens, limit)
    assert sum(tokens[start:]) <= limit
    assert start == 0 or sum(tokens[start - 1 :]) > limit


EDITS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["edit", "delete"])), max_size=12)


@pytest.mark.proves("C4", "CW6", "E4")
@given(EDITS, EDITS)
def test_a_closed_block_reads_the_same_after_any_edits_and_deletions(
    before: list[tuple[int, str]], after: list[tuple[int, str]]
) -> None:
    archived = _changed([PostHistory(post(1000 + place)) for place in range(6)], before)
    there = [each for each in archived if not each.post.changes.deleted_at]
    if not there:
        return
    first, last = there[0].post.id, there[-1].post.id
    within = [each for each in archived if first <= each.post.id <= last]
    block = TranscriptBlock(
        number=1,
        room="10",
        first=first,
        last=last,
        tokens=0,
        digest="",
        posts=len(within),
        versions={each.post.id: len(each.earlier) for each in within},
        left_out=tuple(each.post.id for each in within if each.post.changes.deleted_at),
    )
    then = render_lines(block, within)
    assert [line.text for line in then] == [post_line(each.post).text for each in there]
    later = _changed(within, [(place % len(within), what) for place, what in after])
    assert render_lines(block, later) == then
    told = plan_events(later, [block])
    for line in told:
        was, now = (next(e for e in group if e.post.id == line.event.post) for group in (within, later) if line.event)
        assert was != now
    assert not plan_events(within, [block])


def _changed(archived: list[PostHistory], changes: list[tuple[int, str]]) -> list[PostHistory]:
    now = list(archived)
    for number, (place, what) in enumerate(changes):
        each, at = now[place], START + timedelta(hours=1 + number)
        if what == "delete":
            deletion = replace(each.post.changes, deleted_at=each.post.changes.deleted_at or at)
            now[place] = replace(each, post=replace(each.post, changes=deletion))
        elif not each.post.changes.deleted_at:
            edited = replace(each.post, text=f"edit {len(each.earlier)} {number}", changes=PostChanges(edited_at=at))
            now[place] = PostHistory(edited, (*each.earlier, each.post.text))
    return now


def test_what_changed_is_told_once_where_it_happened() -> None:
    posts = [post(1001, "one"), post(1002, "two"), post(1005, "five"), post(1009, "nine")]
    block = make_block(tuple(map(post_line, posts[:2])))
    edit = PostChanges(edited_at=posts[2].created_at + timedelta(seconds=1))
    edited = PostHistory(replace(posts[0], text="uno", changes=edit), ("one",))
    deletion = PostChanges(deleted_at=posts[3].created_at + timedelta(seconds=1))
    gone = PostHistory(replace(posts[1], changes=deletion))
    events = plan_events([gone, edited], [block])
    lines = weave_events([post_line(posts[2]), post_line(posts[3])], events)
    assert [line.text for line in lines] == [
        "Ana: five",
        "[Ana edited an earlier message: uno]",
        "Ana: nine",
        "[a message of Ana was deleted]",
    ]
    assert [line.event for line in lines if line.event] == [
        TranscriptEvent("1001", 1, "1009"),
        TranscriptEvent("1002", DELETED),
    ]
    told = replace(
        make_block((post_line(posts[2]), post_line(posts[3])), 2), events=tuple(e.event for e in lines if e.event)
    )
    assert not plan_events([gone, edited], [block, told])
    there = {each.post.id: each for each in (gone, edited)}
    assert render_lines(told, [PostHistory(posts[2]), PostHistory(posts[3])], there) == tuple(lines)
    assert [line.text for line in render_lines(told, [PostHistory(posts[3])])] == ["Ana: nine"]


@pytest.mark.proves("X-history")
def test_a_bound_of_messages_drops_whole_blocks_first_and_then_the_oldest_lines_of_the_tail() -> None:
    lines = make_lines([1] * 10)
    blocks, tail = [lines[:3], lines[3:6]], lines[6:]
    assert limit_lines(blocks, tail, 0) == limit_lines(blocks, tail, 10) == (blocks, tail)
    assert limit_lines(blocks, tail, 9) == (blocks[1:], tail)
    assert limit_lines(blocks, tail, 6) == ([], tail)
    assert limit_lines(blocks, tail, 2) == ([], tail[-2:])
