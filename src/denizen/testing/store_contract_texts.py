"""The store's promises about what is in messages: every part and character comes back, and words are found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from denizen.domain.conversation import Conversation, Place
from denizen.domain.ids import CallId, ConversationId, TurnId, fresh
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
from denizen.domain.words import words_of
from denizen.ports.store import Store
from denizen.testing.store_records import NOON, make_message, open_conversation

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
    '"', "'", "*", "NEAR(alpha beta)", "words:alpha", "alpha AND", "OR", "NOT alpha", "-alpha", "alpha*", "^alpha",
    "(alpha", "alpha)", '"alpha', "alpha:*", "alpha & !beta", "alpha | beta", "<->", "alpha <2> beta", "!", "\\", "%",
    "_", ";", "' OR 1=1 --", "{alpha}", "+", "\x00alpha", "\ud83dalpha", "alpha\ufdd0", "🙂", "", " \n\t",
)  # fmt: skip

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
                expected = ["m2"] if words_of(typed) else []
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
            for words in (said_text, "* ".join(words_of(said_text)), typed):
                hits = await work.messages.search(words, conversation_ids=[conversation.id])
                wanted = set(words_of(words))
                if wanted and wanted <= set(words_of(said_text)):
                    assert [hit.message.id for hit in hits] == [key], words
                elif not {word[:3] for word in wanted} <= {word[:3] for word in words_of(said_text)}:
                    assert hits == [], words
