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
from denizen.domain.memory import MAX_MEMORIES, Memory, RecallPolicy, ToldAt
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.room import RoomKind
from denizen.domain.tool import Effect, Tier
from denizen.engine import memory as engine_memory
from denizen.engine.archive.mirror import Mirror
from denizen.engine.archive.privacy import Privacy
from denizen.ports.embed import EmbedKind
from denizen.ports.memory import MEMORIES
from tests.engine.memory_house import ADA, ANA, BOB, LOCAL, OWNER, Recollection, WordEmbedder

pytestmark = pytest.mark.anyio


def changes(key: str) -> list[tuple[str, JsonObject]]:
    """Both ways to change a memory."""
    return [("remember", {"update": key, "text": "Likes mud"}), ("forget", {"memory": key})]


@pytest.fixture
async def house(tmp_path: Path) -> Recollection:
    house = Recollection(tmp_path)
    await house.open_rooms()
    return house


@pytest.mark.proves("V27", "V-skill-semantic-memory")
async def test_what_a_user_told_is_found_again_in_their_turns_and_in_nobody_elses(house: Recollection) -> None:
    key = await house.tell("My dog is called Bella")
    assert key.startswith("mem_")
    assert await house.found("what is my dog called?") == ["My dog is called Bella"]
    assert await house.found("what is my dog called?", BOB) == []
    result = await house.call("recall", {"words": "dog"})
    assert key in result.text and "Bella" in result.text
    assert "Nothing is remembered" in (await house.call("recall", {}, BOB)).text


async def test_nobody_changes_the_memories_of_another(house: Recollection) -> None:
    key = await house.tell("Likes tea")
    for tool, args in changes(key):
        refused = await house.call(tool, args, OWNER)
        assert refused.is_error and "no such memory" in refused.text
    assert await house.found("tea") == ["Likes tea"]


async def test_a_memory_told_in_private_does_not_come_up_where_others_read(house: Recollection) -> None:
    await house.tell("Has a secret surgery on Monday", where=house.dm)
    assert await house.found("surgery", where=house.dm) == ["Has a secret surgery on Monday"]
    for room in (house.general, house.staff):
        assert await house.found("surgery", where=room) == []
        assert "surgery" not in (await house.call("recall", {}, where=room)).text


async def test_a_memory_of_a_restricted_room_comes_up_only_where_all_readers_may_see_that_room(
    house: Recollection,
) -> None:
    await house.tell("Will close the bakery", where=house.staff)
    assert await house.found("bakery", where=house.staff) == ["Will close the bakery"]
    assert await house.found("bakery", where=house.dm) == ["Will close the bakery"]
    assert await house.found("bakery", where=house.general) == []
    house.platform.set_readers(house.staff, None)
    assert await house.found("bakery", where=house.general) == ["Will close the bakery"]
    house.platform.set_readers(house.staff, ["zoe", "bot-ada"])
    assert await house.found("bakery", where=house.dm) == []


async def test_a_thread_counts_by_its_readers_and_a_public_one_also_by_its_channel(house: Recollection) -> None:
    thread = house.platform.add_room("plans", RoomKind.THREAD, parent=house.general)
    private = house.platform.add_room(
        "hidden", RoomKind.PRIVATE_THREAD, parent=house.general, readers=["ana", "bot-ada"]
    )
    await house.open_rooms()
    await house.tell("Plans a voyage", where=thread)
    await house.tell("Hides a treasure", where=private)
    del house.platform.rooms[thread.id], house.platform.rooms[private.id]  # archived: not told of any more
    assert await house.found("voyage", where=house.general) == ["Plans a voyage"]
    assert await house.found("treasure", where=house.general) == []


async def test_without_a_connected_account_only_what_was_told_here_comes_up(house: Recollection) -> None:
    await house.tell("Likes tea", where=house.general)
    await house.tell("Likes tea with milk", where=house.staff)
    house.channels.remove(house.channel)
    assert await house.found("tea", where=house.general) == ["Likes tea"]


async def test_where_the_platform_cannot_say_who_reads_only_what_was_told_here_comes_up(house: Recollection) -> None:
    await house.tell("Likes tea", where=house.general)
    await house.tell("Likes tea with milk", where=house.staff)
    house.channel.fail("visible_rooms", Unavailable("the platform does not answer"))
    assert await house.found("tea", where=house.general) == ["Likes tea"]


async def test_who_reads_is_asked_only_when_it_decides(house: Recollection) -> None:
    await house.tell("Likes tea", where=house.general)
    await house.found("tea", where=house.general)
    assert "visible_rooms" not in house.channel.asked


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
    house: Recollection, told_at: Place, asked_at: Place, who: Principal | str, expected: bool
) -> None:
    principal = who if isinstance(who, Principal) else Principal(PrincipalKind.API_KEY, "k", "k")
    await house.tell("Likes tea", principal, told_at)
    assert await house.found("tea", principal, asked_at) == (["Likes tea"] if expected else [])


async def test_a_memory_is_told_where_it_was_changed(house: Recollection) -> None:
    key = await house.tell("Likes tea", where=house.general)
    changed = await house.call("remember", {"update": key, "text": "Likes tea with rum"}, where=house.staff)
    assert changed.text == f"Changed {key}."
    assert await house.found("tea", where=house.staff) == ["Likes tea with rum"]
    assert await house.found("tea", where=house.general) == []


async def test_core_memories_are_written_by_admins_where_others_read_and_heard_by_all(house: Recollection) -> None:
    refused = await house.call("remember", {"text": "The fair is in May", "about": "all"})
    assert refused.is_error and "Only owners and admins" in refused.text
    key = await house.tell("The fair is in May", OWNER, house.general, about="all")
    assert await house.found("when is the fair?", BOB) == ["The fair is in May"]
    for tool, args in changes(key):
        refused = await house.call(tool, args, BOB)
        assert refused.is_error and "Only owners and admins" in refused.text
    assert (await house.call("forget", {"memory": key}, OWNER)).text == f"Forgot {key}."
    assert await house.found("fair", BOB) == []


async def test_a_core_memory_of_a_restricted_room_stays_with_those_who_see_it(house: Recollection) -> None:
    await house.tell("The bakery closes", OWNER, house.staff, about="all")
    assert await house.found("bakery", ANA, house.staff) == ["The bakery closes"]
    assert await house.found("bakery", ANA, house.general) == []


@pytest.mark.parametrize("where", [Place("terminal", "chat", "1"), Place("api", "local:operator", "1")])
async def test_nothing_for_all_is_taken_from_a_talk_that_others_do_not_read(house: Recollection, where: Place) -> None:
    refused = await house.call("remember", {"text": "Bob is fired", "about": "all"}, LOCAL, where)
    assert refused.is_error and "not taken from a talk that others do not read" in refused.text
    assert "denizen memory add" in refused.text


async def test_the_same_call_again_and_the_same_words_again_are_one_memory(house: Recollection) -> None:
    scope = house.scope(key="once")
    first = await house.keeper.open(scope).remember("Likes tea")
    assert await house.keeper.open(scope).remember("Likes tea") == first
    assert await house.tell("Likes  tea") == first.id
    assert len(await house.keeper.list_known(house.scope())) == 1


@pytest.mark.parametrize(("text", "why"), [("   ", "nothing to remember"), ("x" * 1001, "at most 1000")])
async def test_a_memory_has_a_text_of_a_few_sentences(house: Recollection, text: str, why: str) -> None:
    refused = await house.call("remember", {"text": text})
    assert refused.is_error and why in refused.text


async def test_a_full_memory_says_so(house: Recollection) -> None:
    now = house.clock.now()
    async with house.store.work() as work:
        for number in range(MAX_MEMORIES):
            await work.memories.add(Memory(f"m{number}", ADA, ANA.key, f"fact {number}", ToldAt(), ANA.key, now, now))
    refused = await house.call("remember", {"text": "One more"})
    assert refused.is_error and "no room" in refused.text and "Forget some" in refused.text


async def test_what_came_later_is_not_found_by_a_turn_that_runs_again(house: Recollection) -> None:
    await house.tell("Likes tea")
    now = house.clock.now()
    later = await house.keeper.recall(house.scope(), "tea", limit=9, before=now - timedelta(seconds=1))
    assert later == []
    assert len(await house.keeper.recall(house.scope(), "tea", limit=9, before=now)) == 1


# --- by meaning ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("V-skill-semantic-memory")
async def test_memories_are_found_by_meaning_too_and_both_ways_are_fused(house: Recollection) -> None:
    house.embedder = WordEmbedder()
    await house.tell("Has a cat")
    await house.tell("Drinks coffee")
    await house.tell("Is thirsty in the morning")
    assert await house.found("any pets?") == ["Has a cat"]
    assert await house.found("tea in the morning?") == ["Is thirsty in the morning", "Drinks coffee"]
    assert await house.found("weather") == []
    assert ("any pets?", EmbedKind.QUERY) in house.embedder.asked
    assert ("Has a cat", EmbedKind.DOCUMENT) in house.embedder.asked


async def test_meaning_obeys_the_same_rule_about_hearing(house: Recollection) -> None:
    house.embedder = WordEmbedder()
    await house.tell("Has a cat", where=house.dm)
    assert await house.found("any pets?", where=house.general) == []
    assert await house.found("any pets?", BOB, house.dm) == []


async def test_what_is_not_similar_enough_is_not_found(house: Recollection) -> None:
    house.embedder = WordEmbedder()
    await house.tell("A dog and tea")
    assert await house.found("pet") == ["A dog and tea"]
    house.policy = RecallPolicy(similarity=0.9)
    assert await house.found("pet") == []


async def test_without_an_answer_of_the_embedder_words_have_to_do_and_the_log_says_why(
    house: Recollection, caplog: pytest.LogCaptureFixture
) -> None:
    house.embedder = WordEmbedder(error=Unavailable("The server is away."))
    await house.tell("Has a cat")
    assert await house.found("cat") == ["Has a cat"]
    assert await house.found("pet") == []
    assert any("by words only" in record.message for record in caplog.records)


async def test_missing_vectors_are_made_in_the_background_and_those_of_another_model_go(
    house: Recollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.embedder = WordEmbedder("words/1")
    await house.tell("Has a cat")
    house.embedder = None
    await house.tell("Has a dog")
    house.embedder = WordEmbedder("words/2")
    assert await house.found("pet") == []
    idle = anyio.Event()

    async def rest(_: float) -> None:
        idle.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(engine_memory.anyio, "sleep", rest)
    async with anyio.create_task_group() as group:
        group.start_soon(house.keeper.keep_embedded)
        await idle.wait()
        group.cancel_scope.cancel()
    assert sorted(await house.found("pet")) == ["Has a cat", "Has a dog"]
    async with house.store.work() as work:
        assert await work.vectors.remove_other_models(MEMORIES, "words/2") == 0


async def test_a_memory_that_is_forgotten_while_its_vector_is_made_leaves_none(house: Recollection) -> None:
    key = await house.tell("Has a cat")
    (memory,) = await house.keeper.list_known(house.scope())
    house.embedder = WordEmbedder()
    await house.call("forget", {"memory": key})
    assert await house.keeper.embed([memory])
    async with house.store.work() as work:
        assert await work.vectors.remove_other_models(MEMORIES, "") == 0


# --- privacy and the log ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["forget_user", "opt_out_user"])
async def test_who_is_forgotten_is_forgotten_by_memory_too(house: Recollection, way: str) -> None:
    house.embedder = WordEmbedder()
    await house.tell("Has a cat")
    await house.tell("Has a dog", BOB)
    await house.tell("The fair is in May", replace(OWNER, id=ANA.id), about="all")
    mirror = Mirror(house.store, ArchivePolicy, house.clock)
    await getattr(Privacy(mirror, house.clock), way)("discord", "ana")
    async with house.store.work(write=False) as work:
        assert [memory.owner for memory in await work.memories.list_memories()] == [BOB.key]


def test_the_tools_cost_little_in_every_prompt() -> None:
    specs = load_builtin("memory").specs()
    assert sum(map(count_tool_tokens, specs)) < 230


def test_the_skill_says_what_its_tools_do_to_the_gate() -> None:
    specs = {spec.name: spec for spec in load_builtin("memory").specs()}
    writing = {name for name, spec in specs.items() if Effect.MEMORY in spec.effects}
    assert writing == {"remember", "forget"}
    assert {spec.tier for name, spec in specs.items() if name in writing} == {Tier.LIMITED}
    assert {name for name, spec in specs.items() if spec.read_only} == {"recall", "search_log"}
