"""/memory and /why about what agents remember."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from denizen.domain.memory import CORE, Memory, MemoryOrigin
from denizen.domain.trace import PromptUse
from tests.engine.commands.command_fixture import (
    ADA,
    ANA,
    BEN,
    BOB,
    DIRECT,
    NOW,
    ZOE,
    CommandFixture,
    Person,
    open_commands,
)

pytestmark = pytest.mark.anyio


async def remember(engine: CommandFixture, key: str, text: str, who: Person = ANA, *, owner: str | None = None) -> None:
    me = engine.principal(who).key
    memory = Memory(key, ADA, me if owner is None else owner, text, MemoryOrigin("chat", "10"), me, NOW)
    async with engine.store.work() as work:
        await work.memories.add(memory)


async def list_memory_ids(engine: CommandFixture) -> list[str]:
    async with engine.store.work(write=False) as work:
        return sorted(memory.id for memory in await work.memories.list_memories())


async def test_one_sees_what_agents_remember_about_oneself_and_only_where_nobody_else_reads() -> None:
    async with open_commands() as engine:
        await remember(engine, "mem_1", "Likes tea")
        await remember(engine, "mem_2", "Hates tea", BEN)
        async with engine.store.work() as work:
            (mine,) = await work.memories.list_memories(owner=engine.principal(ANA).key)
            await work.memories.add(replace(mine, id="mem_3", agent=BOB, text="Has a dog"))
        told = (await engine.give("/memory list", room=DIRECT)).text
        assert told.splitlines() == [
            "- `mem_3` bob, 2026-05-01: Has a dog",
            "- `mem_1` ada, 2026-05-01: Likes tea",
            "/memory forget memory: ID deletes one of them.",
        ]
        refused = await engine.give("/memory list")
        assert refused.is_failure and "Others would read this here." in refused.text
        assert "tea" not in refused.text
        assert "- memories of agents: 2 memories" in (await engine.give("/memory show")).text
        assert (await engine.give("/memory list", ZOE, room=DIRECT)).text == "Nothing is remembered about you."


async def test_one_sees_what_was_replaced_and_until_when_it_counted() -> None:
    async with open_commands() as engine:
        await remember(engine, "mem_1", "Lives in Lyon")
        await remember(engine, "mem_2", "Lives in Oslo")
        async with engine.store.work() as work:
            await work.memories.supersede(["mem_1"], by="mem_2", at=NOW + timedelta(days=3))
        told = (await engine.give("/memory list", room=DIRECT)).text
        assert told.splitlines()[:2] == [
            "- `mem_2` ada, 2026-05-01: Lives in Oslo",
            "- `mem_1` ada, 2026-05-01 to 2026-05-04: Lives in Lyon",
        ]
        assert (await engine.give("/memory forget memory: mem_2")).text == "Forgotten."
        assert (await engine.give("/memory list", room=DIRECT)).text == "Nothing is remembered about you."


async def test_a_long_list_fits_one_message_and_says_that_there_is_more() -> None:
    async with open_commands() as engine:
        for number in range(40):
            await remember(engine, f"mem_{number}", "x" * 150)
        told = (await engine.give("/memory list", room=DIRECT)).text
    assert len(told) <= engine.account_policy.style.message_limit
    assert "older ones" in told


async def test_one_memory_is_forgotten_by_its_id_and_nobody_elses() -> None:
    async with open_commands() as engine:
        await remember(engine, "mem_1", "Likes tea")
        await remember(engine, "mem_2", "Likes mud")
        for who in (BEN, ZOE):
            refused = await engine.give("/memory forget memory: mem_1", who)
            assert refused.is_failure and "You have no such memory." in refused.text
        assert (await engine.give("/memory forget memory: mem_1")).text == "Forgotten."
        assert await list_memory_ids(engine) == ["mem_2"]


async def test_forgetting_everything_takes_what_one_told_agents_along() -> None:
    async with open_commands() as engine:
        await remember(engine, "mem_1", "Likes tea")
        await remember(engine, "mem_2", "The fair is in May", owner=CORE)
        await remember(engine, "mem_3", "Hates tea", BEN)
        told = (await engine.give("/memory forget confirm: yes")).text
        assert "Agents remembered 1 thing about you; no more." in told
        assert await list_memory_ids(engine) == ["mem_3"]


@pytest.mark.proves("V8")
async def test_why_tells_the_asker_which_memories_came_up_and_others_only_that_there_were_some() -> None:
    async with open_commands() as engine:
        turn = await engine.put_turn("q1", ANA)
        await remember(engine, "mem_1", "Likes tea")
        await remember(engine, "mem_2", "The fair is in May", ZOE, owner=CORE)
        async with engine.store.work() as work:
            ids = ("mem_1", "mem_2", "mem_gone")
            await work.turns.add_prompt(
                PromptUse(turn_id=turn.id, step=1, model="m", segments=(), messages=(), memories=ids)
            )
        mine, others = (await engine.give("/why")).text, (await engine.give("/why", ZOE)).text
    assert "Memories that came up: `mem_1` Likes tea; `mem_2` The fair is in May; `mem_gone`." in mine
    assert "Memories that came up: `mem_1`; `mem_2` The fair is in May; `mem_gone`." in others
