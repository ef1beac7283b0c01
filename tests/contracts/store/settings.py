"""The settings contract of the store: generations of the configuration, settings of users and of agents; and the text
contract: every part and character of a message comes back, and words are found in it.
"""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from denizen.domain.agent import CitationFormat, ResponseStyle
from denizen.domain.agent_settings import AgentOverrides, SettingsSet
from denizen.domain.conversation import Conversation, Place
from denizen.domain.ids import AgentName, CallId, ConversationId, TurnId, fresh
from denizen.domain.json import Json
from denizen.domain.message import (
    Author,
    FilePart,
    ImagePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from denizen.domain.words import split_words
from denizen.ports.store import ConfigGeneration, Store
from tests.contracts.store.records import AGENT, NOON, at, make_message, open_conversation

ANA, BOB = "platform_user:1", "web_user:1"


@pytest.mark.anyio
class SettingsContract:
    async def test_generations_are_numbered_and_the_same_configuration_is_the_same_generation(
        self, store: Store
    ) -> None:
        async with store.work() as work:
            first = await work.generations.add(digest="d1", source="start", now=at(0))
            again = await work.generations.add(digest="d1", source="reload", now=at(1))
            second = await work.generations.add(digest="d2", source="edit\x00", now=at(2))
            back = await work.generations.add(digest="d1", source="undo", now=at(3))
        assert first == again == ConfigGeneration(1, "d1", "start", at(0))
        assert (second.number, back.number) == (2, 3)
        async with store.work(write=False) as work:
            assert await work.generations.list_generations() == [back, second, first]
            assert await work.generations.list_generations(limit=1) == [back]
            assert await work.generations.list_generations(limit=0) == []

    async def test_the_newest_generation_can_be_written_again_as_it_is(self, store: Store) -> None:
        async with store.work() as work:
            await work.generations.rewrite_newest()
            rows = [await work.generations.add(digest=each, source="edit", now=at(0)) for each in ("d1", "d2")]
            await work.generations.rewrite_newest()
        async with store.work(write=False) as work:
            assert await work.generations.list_generations() == rows[::-1]
            with pytest.raises(RuntimeError):
                await work.generations.rewrite_newest()

    async def test_generations_accepted_at_once_get_numbers_of_their_own(self, store: Store) -> None:
        async def accept(number: int) -> None:
            async with store.work() as work:
                await work.generations.add(digest=f"d{number}", source="edit", now=at(0))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(accept, number)
        async with store.work(write=False) as work:
            rows = await work.generations.list_generations()
        assert [row.number for row in rows] == list(range(10, 0, -1))

    async def test_a_user_has_settings_of_any_json_and_none_removes_one(self, store: Store) -> None:
        values: dict[str, Json] = {"model": "fast\x00", "deep": {"a": [1, 2.5, None, True]}, "off": False, "zero": 0}
        async with store.work() as work:
            assert await work.user_settings.get(ANA) == {}
            for key, value in values.items():
                await work.user_settings.put(ANA, key, value, now=at(0))
            await work.user_settings.put(ANA, "model", "quality", now=at(1))
            await work.user_settings.put(ANA, "zero", None, now=at(1))
            await work.user_settings.put(ANA, "never", None, now=at(1))
        async with store.work(write=False) as work:
            assert await work.user_settings.get(ANA) == {"model": "quality", "deep": values["deep"], "off": False}

    async def test_what_one_user_chose_is_never_another_users(self, store: Store) -> None:
        async with store.work() as work:
            await work.user_settings.put(ANA, "model", "a", now=at(0))
            await work.user_settings.put(BOB, "model", "b", now=at(0))
            await work.user_settings.put(BOB, "model", None, now=at(0))
            assert await work.user_settings.get(ANA) == {"model": "a"}
            assert await work.user_settings.get(BOB) == {}
            assert await work.user_settings.list_values("model") == {ANA: "a"}


EVERYTHING = AgentOverrides(
    additional_prompt="Be kind.\x00 \ud800",
    response_style=ResponseStyle.TECHNICAL,
    language="de",
    default_model="quality",
    max_steps_multiplier=1.5,
    temperature=0.25,
    search_instructions="Search twice.",
    citation_format=CitationFormat.NONE,
)
USUAL = SettingsSet(AGENT, "usual", at(0), at(0), EVERYTHING, is_active=True)
EXAM = SettingsSet(AGENT, "exam", at(1), at(1), AgentOverrides(temperature=0.0))
OTHERS = SettingsSet(AgentName("ada"), "usual", at(1), at(1), is_active=True)


@pytest.mark.anyio
class AssistantContract:
    @pytest.mark.proves("S-data-agent-config")
    async def test_sets_are_kept_by_agent_and_name_and_one_of_an_agent_is_active(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.agent_settings.find_active(AGENT) is None
            for each in (USUAL, EXAM, OTHERS):
                await work.agent_settings.put(each)
        async with store.work() as work:
            assert await work.agent_settings.list_sets(AGENT) == [EXAM, USUAL]
            assert await work.agent_settings.find_active(AGENT) == USUAL
            await work.agent_settings.put(replace(EXAM, is_active=True, created_at=at(9), updated_at=at(2)))
        async with store.work(write=False) as work:
            active = replace(EXAM, is_active=True, updated_at=at(2))
            assert await work.agent_settings.find_active(AGENT) == active
            assert await work.agent_settings.list_sets(AGENT) == [active, replace(USUAL, is_active=False)]
            assert await work.agent_settings.find_active(OTHERS.agent) == OTHERS

    async def test_a_set_that_is_removed_is_gone_and_another_of_that_name_stays(self, store: Store) -> None:
        async with store.work() as work:
            await work.agent_settings.put(USUAL)
            await work.agent_settings.put(OTHERS)
        async with store.work() as work:
            assert await work.agent_settings.remove(AGENT, "usual")
            assert not await work.agent_settings.remove(AGENT, "usual")
            assert await work.agent_settings.find_active(AGENT) is None
            assert await work.agent_settings.list_sets(OTHERS.agent) == [OTHERS]

    async def test_the_active_set_can_be_deactivated_with_none_in_its_place(self, store: Store) -> None:
        async with store.work() as work:
            await work.agent_settings.put(USUAL)
            await work.agent_settings.put(replace(USUAL, is_active=False))
            assert await work.agent_settings.find_active(AGENT) is None


ODD = (
    "NUL \x00 within, \ufdd00000 \ufdd0, bell \x07, emoji 👩\u200d👩, Ω, עִבְרִית, half \ud83d a pair, \u2028, "
    "'quotes\" \\ %s :x ?"
)

PARTS: tuple[Part, ...] = (
    TextPart(ODD),
    ThinkingPart(ODD, signature="c2ln"),
    ImagePart("https://example.org/a.png", "image/png"),
    FilePart("report.pdf", "application/pdf", 12_345, text=ODD, url="https://example.org/r.pdf"),
    ToolCallPart(CallId("c1"), "search", {"q": ODD, "n": 3, "deep": [{"x": None}, True, 1.5]}),
    ToolResultPart(CallId("c1"), "search", ODD, is_error=True),
)

# What a search engine would take for its own language.
SYNTAX = (
    '"',
    "'",
    "*",
    "NEAR(alpha beta)",
    "words:alpha",
    "alpha AND",
    "OR",
    "NOT alpha",
    "-alpha",
    "alpha*",
    "^alpha",
    "(alpha",
    "alpha)",
    '"alpha',
    "alpha:*",
    "alpha & !beta",
    "alpha | beta",
    "<->",
    "alpha <2> beta",
    "!",
    "\\",
    "%",
    "_",
    ";",
    "' OR 1=1 --",
    "{alpha}",
    "+",
    "\x00alpha",
    "\ud83dalpha",
    "alpha\ufdd0",
    "🙂",
    "",
    " \n\t",
)

anything = st.text(st.characters(codec=None), max_size=40)


@pytest.mark.anyio
class TextContract:
    async def test_every_kind_of_part_and_every_character_comes_back(self, store: Store) -> None:
        _, session = await open_conversation(store)
        message = replace(
            make_message(session, "m1", *PARTS),
            author=Author(ODD, ODD, is_bot=True),
            turn_id=TurnId("t1"),
            platform_id=ODD,
            meta={"note": ODD, "deep": {"list": [1, 2.5, None]}},
        )
        async with store.work() as work:
            stored = await work.messages.add(message)
        async with store.work(write=False) as work:
            assert await work.messages.get(message.id) == stored == replace(message, sequence=stored.sequence)

    async def test_a_place_with_odd_characters_comes_back(self, store: Store) -> None:
        place = Place("discord", "a\x00b", "\ufdd0ü")
        async with store.work() as work:
            stored = await work.conversations.put(place, title=ODD, now=NOON)
        async with store.work(write=False) as work:
            found = await work.conversations.get(place.conversation_id)
        assert found == stored == Conversation(place.conversation_id, place, ODD, NOON)

    async def test_a_very_long_message_comes_back_and_its_first_words_are_found(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        text = "needle " + " ".join(f"wörd{number}" for number in range(200_000))
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1", text))
        async with store.work(write=False) as work:
            assert (await work.messages.get(make_message(session, "m1").id)).text == text
            hits = await work.messages.search("needle word99", conversation_ids=[conversation.id])
        assert [hit.message.id for hit in hits] == ["m1"]
        assert len(hits[0].excerpt) < 300

    async def test_a_search_finds_messages_with_all_the_words_in_any_case_newest_first(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1", "The Gateway fell over.", hours=3))
            await work.messages.add(
                make_message(session, "m2", "GATEWAY? It fell, café says!", role=Role.ASSISTANT, hours=1)
            )
            await work.messages.add(make_message(session, "m3", "the gateway stands", hours=5))
            await work.messages.add(make_message(session, "m4", "fell", "gateway", hours=2))

        async def find(words: str, limit: int = 10) -> list[str]:
            async with store.work(write=False) as work:
                hits = await work.messages.search(words, conversation_ids=[conversation.id], limit=limit)
            return [hit.message.id for hit in hits]

        assert await find("gateway FELL") == ["m1", "m4", "m2"]
        assert await find("fell, the gateway!") == ["m1"]
        assert await find("gateway") == ["m3", "m1", "m4", "m2"]
        assert await find("gateway", limit=2) == ["m3", "m1"]
        assert await find("CAFE") == await find("Café") == ["m2"]
        assert await find("gateway zebra") == []
        assert await find("gateway", limit=0) == []

    async def test_a_search_looks_only_at_what_people_and_agents_said_in_the_given_conversations(
        self, store: Store
    ) -> None:
        here, session = await open_conversation(store)
        there, elsewhere = await open_conversation(store, Place("discord", "secret"))
        secret = ToolResultPart(CallId("c"), "t", "needle")
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1", "needle"))
            await work.messages.add(make_message(session, "m2", "needle", role=Role.SYSTEM))
            await work.messages.add(make_message(session, "m3", "needle", secret, role=Role.TOOL))
            await work.messages.add(make_message(session, "m4", ThinkingPart("needle"), "hay", role=Role.ASSISTANT))
            await work.messages.add(make_message(elsewhere, "m5", "needle", hours=1))

        async def find(*ids: ConversationId) -> list[str]:
            async with store.work(write=False) as work:
                hits = await work.messages.search("needle", conversation_ids=ids)
            return [hit.message.id for hit in hits]

        assert await find(here.id) == ["m1"]
        assert await find(here.id, there.id) == ["m5", "m1"]
        assert await find() == []
        many = [ConversationId(f"conv_{number}") for number in range(40_000)]
        assert await find(*many, here.id) == ["m1"]

    async def test_an_excerpt_shows_the_match(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        text = "hay " * 500 + "\n\nthe NEEDLE is here " + "straw " * 500
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1", text))
        async with store.work(write=False) as work:
            (hit,) = await work.messages.search("needle", conversation_ids=[conversation.id])
        assert hit.message.text == text
        assert "the NEEDLE is here" in hit.excerpt
        assert len(hit.excerpt) < 300

    async def test_what_looks_like_the_language_of_a_search_engine_is_only_words(self, store: Store) -> None:
        conversation, session = await open_conversation(store)
        async with store.work() as work:
            await work.messages.add(make_message(session, "m1", "gamma"))
            await work.messages.add(make_message(session, "m2", "alpha and beta, or not near 2 words; 1"))
        async with store.work(write=False) as work:
            for typed in SYNTAX:
                hits = await work.messages.search(typed, conversation_ids=[conversation.id])
                expected = ["m2"] if split_words(typed) else []
                assert [hit.message.id for hit in hits] == expected, typed

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(said_text=anything, typed=anything)
    async def test_whatever_is_typed_a_message_is_found_by_its_words_and_not_by_others(
        self, store: Store, said_text: str, typed: str
    ) -> None:
        conversation, session = await open_conversation(store, Place("test", fresh("channel")))
        key = fresh("msg")
        async with store.work() as work:
            await work.messages.add(make_message(session, key, said_text))
        async with store.work(write=False) as work:
            for words in (said_text, "* ".join(split_words(said_text)), typed):
                hits = await work.messages.search(words, conversation_ids=[conversation.id])
                # SQLite indexes no mark that stands on no letter.
                wanted = {word for word in split_words(words) if any(map(str.isalnum, word))}
                if wanted and wanted <= set(split_words(said_text)):
                    assert [hit.message.id for hit in hits] == [key], words
                elif not {word[:3] for word in wanted} <= {word[:3] for word in split_words(said_text)}:
                    assert hits == [], words
