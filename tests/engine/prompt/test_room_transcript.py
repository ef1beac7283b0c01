"""Agents that read a room's whole talk: what they are sent, turn after turn (inventory C3 to C10, C28, E4, E5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from denizen.domain.agent import ToolAccess, ToolPlanning
from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.attention import AccountPolicy, ReplyStyle, ThreadMode, TriggerPolicy
from denizen.domain.message import Role, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.room import RoomKind
from denizen.domain.transcript import TranscriptBudget
from denizen.domain.usage import Usage
from denizen.engine.inspection.queries import Queries
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ScriptedReply
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.engine.prompt.transcript_fixture import (
    SMALL,
    ask,
    first_difference,
    list_blocks,
    list_lines,
    list_texts,
    make_agents,
    mirror_everything,
    model,
    participant,
    write_posts,
)

pytestmark = pytest.mark.anyio


async def forgotten(fixture: PlatformFixture, person: str) -> None:
    async with fixture.store.work() as work:
        await work.archive.forget_author("discord", person)


@pytest.mark.proves("C3", "C22", "C28", "CW2", "X-history", "V6")
async def test_a_participant_reads_the_whole_room_as_lines_and_has_no_system_prompt() -> None:
    world = World()
    async with open_platform(world, model(), agents={ADA: participant()}) as fixture:
        world.platform.say(world.general, "bob", "it rains")
        await fixture.settled()
        async with fixture.store.work(write=False) as work:
            [kept] = await work.archive.list_posts("discord", world.general.id)
        assert kept.text == "it rains"
        await ask(fixture, "@ada hello")
        request = await ask(fixture, "@ada and now?", "bob")
    assert request.segments == ()
    assert list_lines(request) == ["Bob: it rains", "Ana: @ada hello", "ada: Quite.", "Bob: @ada and now?"]
    assert list_texts(request)[-1] == "ada:" and request.messages[-1].role is Role.USER


@pytest.mark.proves("C28")
async def test_a_persona_is_kept_where_there_is_one() -> None:
    agent = participant(persona=(("IDENTITY.md", "You are Ada, a pirate."),))
    async with open_platform(None, model(), agents={ADA: agent}) as fixture:
        request = await ask(fixture)
    assert request.segments[0].text == "You are Ada, a pirate."


@pytest.mark.proves("C22", "CW2")
async def test_a_model_that_takes_it_goes_on_from_its_name_and_an_echo_of_it_is_removed() -> None:
    async with open_platform(
        None, model(ScriptedReply("ada: Ahoy."), prefill=True), agents={ADA: participant()}
    ) as fixture:
        request = await ask(fixture)
        assert await fixture.said() == ["Ahoy."]
    assert (request.messages[-1].role, list_texts(request)[-1]) == (Role.ASSISTANT, "ada:")


@pytest.mark.proves("C22", "CW2", "C24")
@pytest.mark.parametrize(
    ("how", "plans"),
    [({"reasoning": True}, 0), ({"tool_access": ToolAccess(planning=ToolPlanning.PLAN)}, 1)],
    ids=["reasons", "plans"],
)
async def test_one_that_reasons_or_plans_is_not_begun_for_and_reads_its_name_instead(
    how: Mapping[str, Any], plans: int
) -> None:
    script = (*[ScriptedReply('{"tool": "none"}')] * plans, ScriptedReply("ada: Ahoy."))
    agents = {ADA: replace(participant(), **how)}
    async with open_platform(None, model(*script, prefill=True), agents=agents, tools=ToolsetFixture()) as fixture:
        await ask(fixture)
        assert await fixture.said() == ["Ahoy."]
        requests = fixture.model.requests
    assert [(each.messages[-1].role, list_texts(each)[-1]) for each in requests] == [(Role.USER, "ada:")] * (1 + plans)


@pytest.mark.proves("C26", "E6", "E6-names")
@pytest.mark.parametrize("name", ["Bob", "B*b (he/him) [x"])
async def test_an_answer_that_speaks_for_others_is_cut_and_the_stream_ended(name: str) -> None:
    heard: list[str] = []
    said = f"Well, yes.\n{name}: I agree.\nada: Fine. " + "and so on " * 50
    fragmented = ScriptedReply(said, usage=Usage(10, 999, requests=1))
    async with open_platform(None, model(fragmented), agents={ADA: participant()}) as fixture:
        fixture.world.platform.add_person("bob", name)
        fixture.world.platform.say(fixture.world.general, "bob", "hm")
        await ask(fixture)
        heard += await fixture.said()
        async with fixture.store.work(write=False) as work:
            (turn,) = await work.turns.list_turns()
    assert heard == ["Well, yes."]
    assert turn.result.usage.requests == 1 and 0 < turn.result.usage.output_tokens < 20


@pytest.mark.proves("C3", "C5", "CW4", "C24", "E4")
async def test_each_prompt_begins_with_the_bytes_of_the_one_before_until_blocks_are_evicted() -> None:
    agents = {ADA: participant(budget=TranscriptBudget(total=5000, tail=200, block=300))}
    async with open_platform(None, model(), agents=agents) as fixture:
        requests = [
            await ask(fixture, f"@ada question {number}, which is a little longer than others") for number in range(40)
        ]
    assert len(list_blocks(requests[-1])) >= 2
    for earlier, later in pairwise(requests):
        if len(list_blocks(earlier)) == len(list_blocks(later)):
            assert not first_difference(earlier, later)
        else:  # a block closed: what was closed before stays as it was
            assert list_blocks(later)[: len(list_blocks(earlier))] == list_blocks(earlier)
    assert [line for line in list_lines(requests[-1]) if "question" in line] == [
        f"Ana: @ada question {number}, which is a little longer than others" for number in range(40)
    ]


@pytest.mark.proves("C5", "CW4")
async def test_busy_talk_of_several_pages_since_the_last_block_closes_blocks_and_none_of_it_is_lost() -> None:
    world, budget = World(), TranscriptBudget(total=9000, tail=200, block=300)
    write_posts(world, 60)
    mirror = mirror_everything(world)
    async with open_platform(world, model(), agents={ADA: participant(budget=budget)}, prepare=mirror) as fixture:
        before = list_blocks(await ask(fixture))
        write_posts(world, 250, words="it rains")
        await mirror(fixture)
        request = await ask(fixture)
    assert [line for line in list_lines(request) if "it rains" in line] == [
        f"{('Ana', 'Bob')[number % 2]}: it rains {number}" for number in range(250)
    ]
    after = list_blocks(request)
    assert after[: len(before)] == before and len(after) > len(before) + 5
    tail = list_lines(request)[len("\n".join(after).split("\n")) :]
    assert sum(-(-len(line) // 4) + 4 for line in tail) < 2 * budget.block_tokens


@pytest.mark.proves("C4", "C5", "E4", "C11", "V6")
async def test_after_a_restart_the_prompt_has_the_same_bytes() -> None:
    world = World()
    write_posts(world, 60)
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        before = await ask(fixture)
        async with fixture.store.work(write=False) as work:
            kept = await work.transcripts.list_blocks(world.general.place)
    assert "\n".join(list_blocks(before)).count("weather") > 10
    assert "weather" not in str(kept), "ids and counts are kept, no text"
    assert [block.tokens for block in kept][-len(list_blocks(before)) :] == [
        sum(-(-len(line) // 4) + 4 for line in block.split("\n")) for block in list_blocks(before)
    ]
    async with open_platform(world, model(), agents={ADA: participant()}) as fixture:
        after = await ask(fixture)
    assert len(list_blocks(before)) >= 2
    assert not first_difference(before, after)


@pytest.mark.proves("C6", "CW3", "CW5", "E4", "C-config-context-tokens")
async def test_the_first_load_pages_backwards_until_the_budget_is_full() -> None:
    world = World()
    write_posts(world, 1000)
    budget = TranscriptBudget(total=8000, tail=500, block=2000)
    async with open_platform(
        world, model(), agents={ADA: participant(budget=budget)}, prepare=mirror_everything(world)
    ) as fixture:
        request = await ask(fixture)
    lines = list_lines(request)
    assert lines[-2:] == ["Bob: we talk about the weather 999", "Ana: @ada well?"]
    numbers = [int(line.rsplit(" ", 1)[1]) for line in lines[:-1]]
    assert numbers == list(range(numbers[0], 1000))
    assert budget.total - 20 < sum(-(-len(line) // 4) + 4 for line in lines) <= budget.total


@pytest.mark.proves("C6", "C7", "C-config-context-tokens", "C-config-blocks", "E4")
async def test_a_smaller_budget_than_the_guaranteed_tail_is_exceeded_by_it() -> None:
    world = World()
    write_posts(world, 1000)
    agents = {ADA: participant(budget=TranscriptBudget(total=1000))}
    async with open_platform(world, model(), agents=agents, prepare=mirror_everything(world)) as fixture:
        for _ in range(3):
            request = await ask(fixture)
            assert 6900 < sum(-(-len(line) // 4) + 4 for line in list_lines(request)) <= 8000


@pytest.mark.proves("C6", "X-history")
@pytest.mark.parametrize(("most", "read"), [(0, 251), (100, 100)], ids=["unbounded", "bounded"])
async def test_where_less_was_said_than_fits_everything_is_read_or_as_many_messages_as_are_configured(
    most: int, read: int
) -> None:
    world = World()
    write_posts(world, 250)
    agents = {ADA: participant(budget=TranscriptBudget(messages=most))}
    async with open_platform(world, model(), agents=agents, prepare=mirror_everything(world)) as fixture:
        request = await ask(fixture)
    assert len(list_lines(request)) == read
    assert list_lines(request)[-2:] == ["Bob: we talk about the weather 249", "Ana: @ada well?"]


@pytest.mark.proves("C7", "CW5", "E4")
async def test_the_oldest_blocks_are_evicted_whole_when_the_budget_is_passed() -> None:
    world = World()
    write_posts(world, 300)
    seen: list[list[str]] = []
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        for number in range(60):
            request = await ask(fixture, f"@ada question {number}, and quite some more words to it")
            assert sum(-(-len(line) // 4) + 4 for line in list_lines(request)) <= SMALL.total
            seen.append(list_blocks(request))
        async with fixture.store.work(write=False) as work:
            kept = await work.transcripts.list_blocks(world.general.place)
    assert sum(block.tokens for block in kept) <= SMALL.total
    for earlier, later in pairwise(seen):
        gone = next((place for place, text in enumerate(earlier) if later[:1] == [text]), len(earlier))
        assert later[: len(earlier) - gone] == earlier[gone:]


@pytest.mark.proves("CW6", "E4")
async def test_edits_and_deletions_leave_closed_blocks_alone_and_are_told_in_the_tail() -> None:
    world = World()
    old = world.platform.write(world.general, "ana", "the secret is 7")
    gone = world.platform.write(world.general, "bob", "forget this")
    write_posts(world, 60)
    async with open_platform(
        world,
        model(),
        agents={ADA: participant(budget=TranscriptBudget(5000, 200, 300))},
        prepare=mirror_everything(world),
    ) as fixture:
        before = await ask(fixture)
        world.platform.edit(old.id, "the secret is 8")
        world.platform.delete(gone.id)
        after = await ask(fixture)
        tail = world.platform.say(world.general, "bob", "a fresh one")
        await fixture.settled()
        world.platform.edit(tail.id, "a fresher one")
        last = request = await ask(fixture)
        for number in range(20):
            request = await ask(fixture, f"@ada question {number}, and quite some more words to it")
        assert not first_difference(last, request) or len(list_blocks(request)) > len(list_blocks(last))
    assert list_blocks(after)[: len(list_blocks(before))] == list_blocks(before)
    assert "the secret is 7" in list_blocks(after)[0] and "forget this" in list_blocks(after)[0]
    assert sorted(line for line in list_lines(after) if line.startswith("[")) == [
        "[Ana edited an earlier message: the secret is 8]",
        "[a message of Bob was deleted]",
    ]
    assert "Bob: a fresher one" in list_lines(last) and "Bob: a fresh one" not in list_lines(last)
    assert len(list_blocks(request)) > len(list_blocks(after))
    events = [line for line in list_lines(request) if line.startswith("[")]
    assert len(events) == 2 and all(event in "\n".join(list_blocks(request)) for event in events)


@pytest.mark.proves("CW6", "C4", "E4")
async def test_what_was_deleted_before_its_block_closed_is_in_no_block() -> None:
    world = World()
    agents = {ADA: participant(budget=TranscriptBudget(5000, 200, 300))}
    async with open_platform(world, model(), agents=agents) as fixture:
        await ask(fixture)
        gone = world.platform.say(world.general, "bob", "forget this")
        await ask(fixture)
        world.platform.delete(gone.id)
        last = [await ask(fixture, f"@ada question {number}, and quite some more words to it") for number in range(30)][
            -1
        ]
    assert len(list_blocks(last)) > 1
    assert "forget this" not in "\n".join(list_texts(last))


@pytest.mark.proves("CW6")
async def test_what_is_forgotten_leaves_its_block_once_and_the_cost_is_told(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    write_posts(world, 60)
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        before = await ask(fixture)
        await forgotten(fixture, "bob")
        with caplog.at_level(logging.WARNING, "denizen.transcript"):
            after = await ask(fixture)
            again = await ask(fixture)
    assert any("Bob" in block for block in list_blocks(before))
    assert "Bob" not in "\n".join(list_texts(after))
    assert list_blocks(again)[: len(list_blocks(after))] == list_blocks(after)
    told = [record for record in caplog.records if "rendered anew" in record.message]
    assert len(told) == len(list_blocks(before)) and all(record.__dict__["tokens"] > 0 for record in told)


@pytest.mark.proves("CW6")
async def test_a_block_that_does_not_match_its_hash_after_a_restart_is_told_and_renewed_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    write_posts(world, 60)
    place = world.general.place
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        before = await ask(fixture)
        async with fixture.store.work() as work:
            kept = (await work.transcripts.list_blocks(place))[-1]
            assert await work.transcripts.renew_block(place, replace(kept, digest="0" * 64), digest=kept.digest)
    async with open_platform(world, model(), agents={ADA: participant()}) as fixture:
        with caplog.at_level(logging.WARNING, "denizen.transcript"):
            after = await ask(fixture)
            await ask(fixture)
        async with fixture.store.work(write=False) as work:
            assert kept in await work.transcripts.list_blocks(place)
    assert not first_difference(before, after)
    (told,) = [record for record in caplog.records if "rendered anew" in record.message]
    assert told.__dict__["tokens"] > 0


@pytest.mark.proves("C10", "CW11")
async def test_two_agents_share_the_blocks_and_a_smaller_budget_trims_its_own_view() -> None:
    world = World()
    write_posts(world, 100)
    small = TranscriptBudget(total=700, tail=100)
    async with open_platform(world, model(), agents=make_agents(small), prepare=mirror_everything(world)) as fixture:
        of_ada = await ask(fixture)
        of_ben = await ask(fixture, "@ben well?")
        async with fixture.store.work(write=False) as work:
            kept = await work.transcripts.list_blocks(world.general.place)
        for number in range(40):
            await ask(fixture, f"@ben question {number}, and quite some more words to it")
        async with fixture.store.work(write=False) as work:
            later = await work.transcripts.list_blocks(world.general.place)
    assert small.total < sum(block.tokens for block in later) <= SMALL.total, "whoever asks, by the largest budget"
    assert 0 < len(list_blocks(of_ben)) < len(list_blocks(of_ada))
    assert list_blocks(of_ada)[-len(list_blocks(of_ben)) :] == list_blocks(of_ben)
    assert len(kept) == len({block.first for block in kept}) >= len(list_blocks(of_ada))
    assert list_texts(of_ben)[-1] == "ben:"


@pytest.mark.proves("C8", "C9", "CW5", "E5", "C-config-blocks")
async def test_a_thread_reads_its_channel_as_it_was_before_it_began() -> None:
    world = World()
    write_posts(world, 200)
    first_post = world.platform.write(world.general, "bob", "shall we make a thread?")
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        await ask(fixture)
        thread = world.platform.add_room("aside", RoomKind.THREAD, parent=world.general, room_id=first_post.id)
        world.platform.say(world.general, "ana", "later talk in the channel")
        await fixture.settled()
        first = await ask(fixture, "@ada here we are", room=thread)
        world.platform.say(world.general, "ana", "still later talk in the channel")
        second = await ask(fixture, "@ada and on", room=thread)
        write_posts(world, 200, room=thread, words="we talk about the sea")
        await mirror_everything(world)(None)
        third = await ask(fixture, "@ada and at last?", room=thread)
    above = [line for line in list_lines(third) if line in list_lines(first)]
    own = [line for line in list_lines(third) if line not in above]
    cost = [sum(-(-len(line) // 4) + 4 for line in part) for part in (above, own)]
    assert cost[0] <= SMALL.parent_tokens
    assert SMALL.total - SMALL.block_tokens - cost[0] < cost[1] <= SMALL.total - cost[0], "the rest is for the thread"
    lines = list_lines(first)
    assert lines[-2:] == ["Bob: shall we make a thread?", "Ana: @ada here we are"]
    assert lines.count("Bob: shall we make a thread?") == 1
    assert "later talk" not in "\n".join(list_texts(second))
    parent = lines[:-1]
    assert parent[0].endswith(" 199") is False and parent[-2] == "Bob: we talk about the weather 199"
    assert SMALL.parent_tokens / 2 < sum(-(-len(line) // 4) + 4 for line in parent) <= SMALL.parent_tokens
    assert not first_difference(first, second)


@pytest.mark.proves("C9", "E5")
@pytest.mark.parametrize("has_starter", [True, False])
async def test_what_is_said_above_after_a_thread_began_is_not_read_however_much_it_is(has_starter: bool) -> None:
    world = World()
    write_posts(world, 100)
    starter = world.platform.write(world.general, "bob", "shall we make a thread?")
    room_id = starter.id if has_starter else ""
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        thread = world.platform.add_room("aside", RoomKind.THREAD, parent=world.general, room_id=room_id)
        write_posts(world, 100, words="later talk")
        await mirror_everything(world)(None)
        above = await ask(fixture)
        write_posts(world, 10, words="later talk")
        await mirror_everything(world)(None)
        request = await ask(fixture, "@ada here we are", room=thread)
    assert any("later talk" in block for block in list_blocks(above))
    assert list_lines(request)[-3:] == [
        "Bob: we talk about the weather 99",
        "Bob: shall we make a thread?",
        "Ana: @ada here we are",
    ]
    assert "later talk" not in "\n".join(list_texts(request))


@pytest.mark.proves("C9")
async def test_a_thread_that_the_agent_opens_for_a_question_has_the_question_once() -> None:
    account_policy = AccountPolicy(style=ReplyStyle(preview=False), triggers=TriggerPolicy(threads=ThreadMode.OPEN))
    async with open_platform(None, model(), agents={ADA: participant()}, account_policy=account_policy) as fixture:
        fixture.world.platform.say(fixture.world.general, "bob", "it rains")
        first = await ask(fixture, "@ada why?")
        thread = fixture.world.platform.rooms[fixture.ada.sent[-1].place.thread]
        second = await ask(fixture, "@ada really?", room=thread)
    assert list_lines(first) == ["Bob: it rains", "Ana: @ada why?"]
    assert list_lines(second) == ["Bob: it rains", "Ana: @ada why?", "ada: Quite.", "Ana: @ada really?"]


async def test_a_reset_holds_for_one_agent_and_leaves_the_others_their_talk() -> None:
    world = World()
    write_posts(world, 40)
    async with open_platform(world, model(), agents=make_agents(), prepare=mirror_everything(world)) as fixture:
        await ask(fixture)
        world.clock.time = world.platform.posts[max(world.platform.posts, key=int)].post.created_at
        world.platform.say(world.general, "ana", "@ada /reset")
        await fixture.settled()
        of_ada = await ask(fixture)
        of_ben = await ask(fixture, "@ben well?")
    assert "weather" not in "\n".join(list_texts(of_ada))
    assert "weather" in "\n".join(list_texts(of_ben))


async def test_a_new_session_is_read_from_its_beginning_and_a_transcript_is_never_summed_up() -> None:
    world = World()
    write_posts(world, 40)
    async with open_platform(world, model(), agents=make_agents(), prepare=mirror_everything(world)) as fixture:
        await ask(fixture)
        world.clock.time = world.platform.posts[max(world.platform.posts, key=int)].post.created_at
        world.platform.say(world.general, "ana", "@ada /compact")
        assert "cannot be summarized" in (await fixture.said())[-1]
        world.platform.say(world.general, "ana", "@ada /new")
        await fixture.settled()
        of_ada = await ask(fixture)
    assert "weather" not in "\n".join(list_texts(of_ada))
    assert list_lines(of_ada)[-1] == "Ana: @ada well?"


async def test_what_fills_the_context_of_a_participant_is_told_as_it_is_sent() -> None:
    world = World()
    write_posts(world, 60)
    async with open_platform(world, model(), agents={ADA: participant()}, prepare=mirror_everything(world)) as fixture:
        request = await ask(fixture)
        context = await Queries(fixture.runtime, fixture.turns._services).load_context(world.general.place, ADA)
    assert context.history_tokens == SMALL.total
    told = {share.name: share.tokens for share in context.shares}
    assert list(told) == ["tools", "closed blocks", "tail"]
    closed = sum(-(-len(line) // 4) + 4 for block in list_blocks(request) for line in block.split("\n"))
    assert told["closed blocks"] == closed
    assert told["tail"] > 0


async def test_a_question_of_somebody_who_is_not_archived_is_read_all_the_same() -> None:
    policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"ana"})))
    async with open_platform(None, model(), agents={ADA: participant()}, archive=policy) as fixture:
        fixture.world.platform.say(fixture.world.general, "bob", "it rains")
        request = await ask(fixture, "@ada hello there")
    assert list_lines(request) == ["Bob: it rains", "Ana: hello there"]


def test_a_difference_is_told_by_its_message() -> None:
    def request(*words: str) -> ModelRequest:
        return ModelRequest((), tuple(PromptMessage(Role.USER, (TextPart(word),), "tail") for word in words))

    assert not first_difference(request("a", "b", "cue"), request("a", "b", "c", "cue"))
    assert "message 1 (tail)" in first_difference(request("a", "b", "cue"), request("a", "x", "c", "cue"))
