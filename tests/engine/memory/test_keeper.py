"""What is remembered, for whom, and who hears of it again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.builtin_skills import load_builtin
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.json import JsonObject
from denizen.domain.memory import MAX_MEMORIES, Memory, MemoryOrigin, RecallPolicy
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.room import RoomKind
from denizen.domain.tool import Effect, Tier
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.memory import keeper as engine_memory
from denizen.ports.embed import EmbedKind
from denizen.ports.memory import MEMORY_VECTORS
from tests.engine.memory_fixture import ADA, ANA, BOB, LOCAL, OWNER, MemoryFixture, WordEmbedder

pytestmark = pytest.mark.anyio


def list_changes(key: str) -> list[tuple[str, JsonObject]]:
    """Both ways to change a memory."""
    return [("remember", {"update": key, "text": "Likes mud"}), ("forget", {"memory": key})]


@pytest.fixture
async def engine(tmp_path: Path) -> MemoryFixture:
    engine = MemoryFixture(tmp_path)
    await engine.open_rooms()
    return engine


@pytest.mark.proves("V27", "V-skill-semantic-memory")
async def test_what_a_user_told_is_found_again_in_their_turns_and_in_nobody_elses(engine: MemoryFixture) -> None:
    key = await engine.tell("My dog is called Bella")
    assert key.startswith("mem_")
    assert await engine.found("what is my dog called?") == ["My dog is called Bella"]
    assert await engine.found("what is my dog called?", BOB) == []
    result = await engine.call("recall", {"words": "dog"})
    assert key in result.text and "Bella" in result.text
    assert "Nothing is remembered" in (await engine.call("recall", {}, BOB)).text


@pytest.mark.proves("V-skill-semantic-memory")
async def test_memories_are_listed_updated_and_forgotten(engine: MemoryFixture) -> None:
    dog, tea = await engine.tell("My dog is called Bella"), await engine.tell("Likes tea")
    listed = (await engine.call("recall", {})).text
    assert all(each in listed for each in (dog, "Bella", tea, "Likes tea"))
    assert not (await engine.call("remember", {"update": dog, "text": "My dog is called Rex"})).is_error
    assert await engine.found("dog") == ["My dog is called Rex"]
    assert not (await engine.call("forget", {"memory": dog})).is_error
    assert await engine.found("dog") == []
    listed = (await engine.call("recall", {})).text
    assert dog not in listed and tea in listed


async def test_nobody_changes_the_memories_of_another(engine: MemoryFixture) -> None:
    key = await engine.tell("Likes tea")
    for tool, args in list_changes(key):
        refused = await engine.call(tool, args, OWNER)
        assert refused.is_error and "no such memory" in refused.text
    assert await engine.found("tea") == ["Likes tea"]


async def test_a_memory_told_in_private_does_not_come_up_where_others_read(engine: MemoryFixture) -> None:
    await engine.tell("Has a secret surgery on Monday", where=engine.dm)
    assert await engine.found("surgery", where=engine.dm) == ["Has a secret surgery on Monday"]
    for room in (engine.general, engine.staff):
        assert await engine.found("surgery", where=room) == []
        assert "surgery" not in (await engine.call("recall", {}, where=room)).text


async def test_a_memory_of_a_restricted_room_comes_up_only_where_all_readers_may_see_that_room(
    engine: MemoryFixture,
) -> None:
    await engine.tell("Will close the bakery", where=engine.staff)
    assert await engine.found("bakery", where=engine.staff) == ["Will close the bakery"]
    assert await engine.found("bakery", where=engine.dm) == ["Will close the bakery"]
    assert await engine.found("bakery", where=engine.general) == []
    engine.platform.set_readers(engine.staff, None)
    assert await engine.found("bakery", where=engine.general) == ["Will close the bakery"]
    engine.platform.set_readers(engine.staff, ["zoe", "bot-ada"])
    assert await engine.found("bakery", where=engine.dm) == []


async def test_a_thread_counts_by_its_readers_and_a_public_one_also_by_its_channel(engine: MemoryFixture) -> None:
    thread = engine.platform.add_room("plans", RoomKind.THREAD, parent=engine.general)
    private = engine.platform.add_room(
        "hidden", RoomKind.PRIVATE_THREAD, parent=engine.general, readers=["ana", "bot-ada"]
    )
    await engine.open_rooms()
    await engine.tell("Plans a voyage", where=thread)
    await engine.tell("Hides a treasure", where=private)
    del engine.platform.rooms[thread.id], engine.platform.rooms[private.id]  # archived: not told of any more
    assert await engine.found("voyage", where=engine.general) == ["Plans a voyage"]
    assert await engine.found("treasure", where=engine.general) == []


async def test_without_a_connected_account_only_what_was_told_here_comes_up(engine: MemoryFixture) -> None:
    await engine.tell("Likes tea", where=engine.general)
    await engine.tell("Likes tea with milk", where=engine.staff)
    engine.channels.remove(engine.channel)
    assert await engine.found("tea", where=engine.general) == ["Likes tea"]


async def test_where_the_platform_cannot_say_who_reads_only_what_was_told_here_comes_up(engine: MemoryFixture) -> None:
    await engine.tell("Likes tea", where=engine.general)
    await engine.tell("Likes tea with milk", where=engine.staff)
    engine.channel.fail("visible_rooms", Unavailable("the platform does not answer"))
    assert await engine.found("tea", where=engine.general) == ["Likes tea"]


async def test_who_reads_is_asked_only_when_it_decides(engine: MemoryFixture) -> None:
    await engine.tell("Likes tea", where=engine.general)
    await engine.found("tea", where=engine.general)
    assert "visible_rooms" not in engine.channel.asked


@pytest.mark.parametrize(
    ("told_at", "asked_at", "who", "expected"),
    [
        (Place("terminal", "chat", "one"), Place("terminal", "ask", "two"), LOCAL, True),
        (Place("web", "local:operator", "one"), Place("terminal", "chat", "two"), LOCAL, True),
        (Place("api", "local:operator", "one"), Place("api", "local:operator", "one"), LOCAL, True),
        (Place("api", "local:operator", "one"), Place("api", "local:operator", "two"), LOCAL, False),
        (Place("web", "api_key:k", "one"), Place("web", "api_key:k", "two"), "key", True),
        (Place("api", "api_key:k", "one"), Place("api", "api_key:k", "two"), "key", False),
        (Place("terminal", "chat", "one"), Place("api", "local:operator", "two"), LOCAL, False),
    ],
)
async def test_off_platforms_private_talks_of_one_person_share_memories_and_api_conversations_do_not(
    engine: MemoryFixture, told_at: Place, asked_at: Place, who: Principal | str, expected: bool
) -> None:
    principal = who if isinstance(who, Principal) else Principal(PrincipalKind.API_KEY, "k", "k")
    await engine.tell("Likes tea", principal, told_at)
    assert await engine.found("tea", principal, asked_at) == (["Likes tea"] if expected else [])


async def test_a_memory_is_told_where_it_was_changed(engine: MemoryFixture) -> None:
    key = await engine.tell("Likes tea", where=engine.general)
    assert not (
        await engine.call("remember", {"update": key, "text": "Likes tea with rum"}, where=engine.staff)
    ).is_error
    assert await engine.found("tea", where=engine.staff) == ["Likes tea with rum"]
    assert await engine.found("tea", where=engine.general) == []


async def list_history(engine: MemoryFixture) -> dict[str, str]:
    """The texts that another memory supersedes, with the id of that one."""
    async with engine.store.work(write=False) as work:
        told = await work.memories.list_memories(history=True)
    return {memory.text: memory.superseded_by for memory in told if memory.superseded_at}


async def test_whoever_remembers_is_shown_what_is_like_it_with_ids_newest_first(engine: MemoryFixture) -> None:
    keys = [await engine.tell("Likes green tea")]
    engine.clock.time += timedelta(days=1)
    keys.append((await engine.call("remember", {"text": "Drinks tea with milk"})).text.split()[2].rstrip("."))
    engine.clock.time += timedelta(days=1)
    told = (await engine.call("remember", {"text": "Hates tea now"})).text.splitlines()
    assert told[0].endswith("Update or forget what is not true any more:")
    assert told[2:4] == [f"{keys[1]} (2026-11-22): Drinks tea with milk", f"{keys[0]} (2026-11-21): Likes green tea"]


async def test_what_an_update_replaces_is_kept_as_history_and_its_id_means_what_is_told_instead(
    engine: MemoryFixture,
) -> None:
    first = await engine.tell("Likes tea")
    assert not (await engine.call("remember", {"update": first, "text": "Likes coffee"})).is_error
    assert not (await engine.call("remember", {"update": first, "text": "Likes cocoa"})).is_error
    (last,) = await engine.keeper.list_known(engine.scope())
    assert await list_history(engine) == {"Likes coffee": last.id, "Likes tea": last.id}
    assert not (await engine.call("forget", {"memory": first})).is_error
    async with engine.store.work(write=False) as work:
        assert await work.memories.list_memories(history=True) == []


async def test_an_update_that_was_interrupted_and_runs_again_is_one_update(engine: MemoryFixture) -> None:
    first = await engine.tell("Likes tea")
    access = engine.keeper.open(engine.scope(key="once"))
    changed = await access.update(first, "Likes coffee")
    assert await access.update(first, "Likes coffee") == changed
    assert await list_history(engine) == {"Likes tea": changed.id}


async def test_what_was_told_anew_in_private_comes_up_nowhere_else_and_neither_does_what_it_replaced(
    engine: MemoryFixture,
) -> None:
    await engine.tell("Lives in Lyon", where=engine.general)
    await engine.tell("Lives in Oslo", where=engine.dm)
    assert await engine.found("live", where=engine.general) == []
    assert await engine.found("live", where=engine.dm) == ["Lives in Oslo"]


async def test_facts_about_others_and_what_others_told_are_not_replaced(engine: MemoryFixture) -> None:
    for text in ("Ana lives in Lyon", "My sister lives in Porto", "Likes tea"):
        await engine.tell(text)
    await engine.tell("I live in Ghent", BOB)
    await engine.tell("I live in Oslo")
    assert await list_history(engine) == {"Ana lives in Lyon": (await engine.keeper.list_known(engine.scope()))[0].id}
    assert await engine.found("live", BOB) == ["I live in Ghent"]


async def test_so_much_history_is_kept_and_the_oldest_goes(
    engine: MemoryFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_memory, "MAX_MEMORIES", 3)
    for city in ("Lyon", "Porto", "Ghent", "Turin", "Oslo", "Graz"):
        engine.clock.time += timedelta(days=1)
        await engine.tell(f"Lives in {city}")
    assert list(await list_history(engine)) == ["Lives in Oslo", "Lives in Turin", "Lives in Ghent"]
    assert await engine.found("live") == ["Lives in Graz"]


async def test_core_memories_are_written_by_admins_where_others_read_and_heard_by_all(engine: MemoryFixture) -> None:
    refused = await engine.call("remember", {"text": "The fair is in May", "about": "all"})
    assert refused.is_error and "Only owners and admins" in refused.text
    key = await engine.tell("The fair is in May", OWNER, engine.general, about="all")
    assert await engine.found("when is the fair?", BOB) == ["The fair is in May"]
    for tool, args in list_changes(key):
        refused = await engine.call(tool, args, BOB)
        assert refused.is_error and "Only owners and admins" in refused.text
    assert (await engine.call("forget", {"memory": key}, OWNER)).text == f"Forgot {key}."
    assert await engine.found("fair", BOB) == []


async def test_a_core_memory_of_a_restricted_room_stays_with_those_who_see_it(engine: MemoryFixture) -> None:
    await engine.tell("The bakery closes", OWNER, engine.staff, about="all")
    assert await engine.found("bakery", ANA, engine.staff) == ["The bakery closes"]
    assert await engine.found("bakery", ANA, engine.general) == []


@pytest.mark.parametrize("where", [Place("terminal", "chat", "1"), Place("api", "local:operator", "1")])
async def test_nothing_for_all_is_taken_from_a_talk_that_others_do_not_read(
    engine: MemoryFixture, where: Place
) -> None:
    refused = await engine.call("remember", {"text": "Bob is fired", "about": "all"}, LOCAL, where)
    assert refused.is_error and "not taken from a talk that others do not read" in refused.text
    assert "denizen memory add" in refused.text


async def test_the_same_call_again_and_the_same_words_again_are_one_memory(engine: MemoryFixture) -> None:
    scope = engine.scope(key="once")
    first = await engine.keeper.open(scope).remember("Likes tea")
    assert await engine.keeper.open(scope).remember("Likes tea") == first
    assert await engine.tell("Likes  tea") == first.id
    assert len(await engine.keeper.list_known(engine.scope())) == 1


@pytest.mark.parametrize(("text", "why"), [("   ", "nothing to remember"), ("x" * 1001, "at most 1000")])
async def test_a_memory_has_a_text_of_a_few_sentences(engine: MemoryFixture, text: str, why: str) -> None:
    refused = await engine.call("remember", {"text": text})
    assert refused.is_error and why in refused.text


async def test_a_full_memory_says_so(engine: MemoryFixture) -> None:
    now = engine.clock.now()
    async with engine.store.work() as work:
        for number in range(MAX_MEMORIES):
            await work.memories.add(Memory(f"m{number}", ADA, ANA.key, f"fact {number}", MemoryOrigin(), ANA.key, now))
    refused = await engine.call("remember", {"text": "One more"})
    assert refused.is_error and "no room" in refused.text and "Forget some" in refused.text


async def test_what_came_later_is_not_found_by_a_turn_that_runs_again(engine: MemoryFixture) -> None:
    await engine.tell("Likes tea")
    now = engine.clock.now()
    later = await engine.keeper.recall(engine.scope(), "tea", limit=9, before=now - timedelta(seconds=1))
    assert later == []
    assert len(await engine.keeper.recall(engine.scope(), "tea", limit=9, before=now)) == 1


# --- by meaning ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("V-skill-semantic-memory")
async def test_memories_are_found_by_meaning_too_and_both_ways_are_fused(engine: MemoryFixture) -> None:
    engine.embedder = WordEmbedder()
    await engine.tell("Has a cat")
    await engine.tell("Drinks coffee")
    await engine.tell("Is thirsty in the morning")
    assert await engine.found("any pets?") == ["Has a cat"]
    assert await engine.found("tea in the morning?") == ["Is thirsty in the morning", "Drinks coffee"]
    assert await engine.found("weather") == []
    assert ("any pets?", EmbedKind.QUERY) in engine.embedder.asked
    assert ("Has a cat", EmbedKind.DOCUMENT) in engine.embedder.asked


async def test_meaning_obeys_the_same_rule_about_hearing(engine: MemoryFixture) -> None:
    engine.embedder = WordEmbedder()
    await engine.tell("Has a cat", where=engine.dm)
    assert await engine.found("any pets?", where=engine.general) == []
    assert await engine.found("any pets?", BOB, engine.dm) == []


async def test_what_is_not_similar_enough_is_not_found(engine: MemoryFixture) -> None:
    engine.embedder = WordEmbedder()
    await engine.tell("A dog and tea")
    assert await engine.found("pet") == ["A dog and tea"]
    engine.policy = RecallPolicy(similarity=0.9)
    assert await engine.found("pet") == []


async def test_without_an_answer_of_the_embedder_words_have_to_do_and_the_log_says_why(
    engine: MemoryFixture, caplog: pytest.LogCaptureFixture
) -> None:
    engine.embedder = WordEmbedder(error=Unavailable("The server is away."))
    await engine.tell("Has a cat")
    assert await engine.found("cat") == ["Has a cat"]
    assert await engine.found("pet") == []
    assert any("by words only" in record.message for record in caplog.records)


async def test_missing_vectors_are_made_in_the_background_and_those_of_another_model_go(
    engine: MemoryFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.embedder = WordEmbedder("words/1")
    await engine.tell("Has a cat")
    engine.embedder = None
    await engine.tell("Has a dog")
    engine.embedder = WordEmbedder("words/2")
    assert await engine.found("pet") == []
    idle = anyio.Event()

    async def rest(_: float) -> None:
        idle.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(engine_memory.anyio, "sleep", rest)
    async with anyio.create_task_group() as group:
        group.start_soon(engine.keeper.keep_embedded)
        await idle.wait()
        group.cancel_scope.cancel()
    assert sorted(await engine.found("pet")) == ["Has a cat", "Has a dog"]
    async with engine.store.work() as work:
        assert await work.vectors.remove_other_models(MEMORY_VECTORS, "words/2") == 0


async def test_a_memory_that_is_forgotten_while_its_vector_is_made_leaves_none(engine: MemoryFixture) -> None:
    key = await engine.tell("Has a cat")
    (memory,) = await engine.keeper.list_known(engine.scope())
    engine.embedder = WordEmbedder()
    await engine.call("forget", {"memory": key})
    assert await engine.keeper.embed([memory])
    async with engine.store.work() as work:
        assert await work.vectors.remove_other_models(MEMORY_VECTORS, "") == 0


# --- privacy and the log ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["forget_user", "opt_out_user"])
async def test_who_is_forgotten_is_forgotten_by_memory_too(engine: MemoryFixture, way: str) -> None:
    engine.embedder = WordEmbedder()
    await engine.tell("Has a cat")
    await engine.tell("Has a dog", BOB)
    await engine.tell("The fair is in May", replace(OWNER, id=ANA.id), about="all")
    mirror = ArchiveMirror(engine.store, ArchivePolicy, engine.clock)
    await getattr(ArchiveRemoval(mirror, engine.clock), way)("discord", "ana")
    async with engine.store.work(write=False) as work:
        assert [memory.owner for memory in await work.memories.list_memories()] == [BOB.key]


def test_the_tools_cost_little_in_every_prompt() -> None:
    specs = load_builtin("memory").specs()
    assert sum(map(count_tool_tokens, specs)) < 230


def test_the_skill_says_what_its_tools_do_to_the_gate() -> None:
    specs = {spec.name: spec for spec in load_builtin("memory").specs()}
    writing = {name for name, spec in specs.items() if Effect.MEMORY in spec.flow.effects}
    assert writing == {"remember", "forget"}
    assert {spec.tier for name, spec in specs.items() if name in writing} == {Tier.LIMITED}
    assert {name for name, spec in specs.items() if spec.read_only} == {"recall", "search_log"}
