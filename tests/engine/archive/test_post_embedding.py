"""Posts are found by words and by meaning: who gets a vector and when, what a search makes of it, what it hides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScopeKind
from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.room import Post
from denizen.engine.archive.post_embedding import LATER_S, SOON_S, load_status
from denizen.ports.embed import EmbeddingResult, EmbedKind
from tests.engine.archive.archive_fixture import DISCORD, ArchiveFixture
from tests.engine.archive.archive_samples import PetArchiveFixture
from tests.engine.memory_fixture import WordEmbedder
from tests.memory_platform import START

pytestmark = pytest.mark.anyio


@pytest.fixture
def pets() -> PetArchiveFixture:
    return PetArchiveFixture()


async def test_what_means_the_same_is_found_without_any_of_the_words(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.", "I drink my tea.", "The sky is blue.")
    assert await pets.find("whose pet") == ["Bella is a dog."]
    assert await pets.find("thirsty") == ["I drink my tea."]
    assert await pets.find("invoice") == await pets.find("?!") == []


async def test_a_post_that_has_the_words_and_the_meaning_comes_first(pets: PetArchiveFixture) -> None:
    old = [f"My cat says {number}." for number in range(4)]
    await pets.say("Our dog is loud.", "The word cat has letters.", *old)
    found = await pets.find("cat letters")
    assert found[0] == "The word cat has letters."
    assert set(found[1:]) == {"Our dog is loud.", *old}
    assert len(await pets.find("cat letters", limit=2)) == 2


async def test_by_words_alone_the_newest_comes_first_as_without_an_embedder(pets: PetArchiveFixture) -> None:
    texts = [f"one two {number}" for number in range(3)]
    await pets.say(*texts, "Bella is a dog.")
    pets.embedder.error = Unavailable("It is away.", code="embed_unavailable")
    assert await pets.find("one") == texts[::-1]
    assert await pets.find("pet") == []
    pets.embedder.error, pets.engine.embedder = None, None
    assert await pets.find("one") == texts[::-1]
    assert await pets.find("pet") == []


async def test_a_search_by_meaning_is_narrowed_by_room_author_and_time(pets: PetArchiveFixture) -> None:
    dogs = [f"dog number {number}" for number in range(60)]
    await pets.say("Bella the dog", who="ana")
    await pets.say(*dogs)
    ask = pets.engine.ask("bea", pets.engine.staff)
    await pets.say("a secret dog", who="bea", room=pets.engine.staff)
    assert [post.text for post in await ask.search("pet", author="Ana")] == ["Bella the dog"]
    assert [post.text for post in await ask.search("pet", room="staff")] == ["a secret dog"]
    early = await ask.search("pet", since=START, until=START + timedelta(seconds=1))
    assert [post.text for post in early] == ["Bella the dog"]
    assert len(await ask.search("pet", limit=7)) == 7
    with pytest.raises(NotFound):
        await ask.search("pet", author="nobody")


async def test_a_long_post_is_shown_where_the_words_are_or_else_from_its_beginning(pets: PetArchiveFixture) -> None:
    await pets.say(f"Bella is a dog. {'And so on. ' * 80} The end of it.")
    (by_embedding,) = await pets.find("whose pet")
    (by_words,) = await pets.find("bella end")
    assert by_embedding.startswith("Bella is a dog.")
    assert len(by_embedding) < 300
    assert by_words.startswith("Bella is a dog.")
    (late,) = await pets.find("end")
    assert late.endswith("The end of it.")


async def test_each_post_is_embedded_once_and_one_that_says_nothing_never(pets: PetArchiveFixture) -> None:
    await pets.say(*[f"dog number {number}" for number in range(40)], "ok", "thanks a")
    await pets.learn()
    told = [text for text, kind in pets.embedder.asked if kind is EmbedKind.DOCUMENT]
    assert sorted(told) == sorted(f"dog number {number}" for number in range(40))


async def test_half_characters_and_endless_texts_reach_no_embedder(pets: PetArchiveFixture) -> None:
    await pets.say("my dog \ud800 barks " + "and barks " * 1000)
    ((text, _),) = pets.embedder.asked
    assert text.startswith("my dog ? barks")
    assert len(text) == 1500


async def test_it_rests_as_long_as_it_works_and_waits_while_nobody_answers(pets: PetArchiveFixture) -> None:
    engine = pets.engine
    texts = [f"dog number {number}" for number in range(20)]
    posts = [engine.platform.write(engine.general, "kim", text) for text in texts]
    await engine.mirror.keep(posts)
    embed = pets.embedder.embed

    class SlowEmbedder(WordEmbedder):
        async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
            engine.clock.advance(4)
            return await embed(texts, kind)

    engine.embedder = SlowEmbedder()
    sleeps = engine.clock.sleeps
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(engine.post_embedder.keep_up)
            while len(sleeps) < 4:
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert sleeps[:4] == [4, 4, SOON_S, SOON_S]
    pets.embedder.error = Unavailable("It is away.", code="embed_unavailable")
    engine.embedder = replace(pets.embedder, name="words/2")
    assert await engine.post_embedder.do_some() == LATER_S


async def test_a_text_that_the_embedder_refuses_does_not_hold_up_the_others(pets: PetArchiveFixture) -> None:
    class SelectiveEmbedder(WordEmbedder):
        async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
            if any("evil" in text for text in texts):
                raise InvalidInput("No.", code="embed_refused")
            return await super().embed(texts, kind)

    pets.engine.embedder = SelectiveEmbedder()
    await pets.say("Bella is a dog.", "an evil dog barks", "Mimi is a cat.")
    assert set(await pets.find("pet")) == {"Bella is a dog.", "Mimi is a cat."}
    assert await pets.find("evil barks") == ["an evil dog barks"]
    assert await pets.engine.post_embedder.do_some() == SOON_S


CENT = Decimal("0.01")


async def test_posts_wait_for_their_meaning_while_the_money_is_out(pets: PetArchiveFixture) -> None:
    """A short text may still be paid; that says nothing about the others."""
    pets.embedder.usd_per_token = CENT
    pets.engine.budgets = BudgetPolicy({BudgetScopeKind.SERVER: BudgetLimits(per_day_usd=6 * CENT)})
    await pets.say("Bella is a dog.", "Mimi, which is old, is a cat that sleeps all day.")
    assert await pets.engine.post_embedder.do_some() == LATER_S
    assert await pets.count() == 0
    pets.engine.clock.advance(days=1)
    pets.engine.budgets = BudgetPolicy()
    await pets.learn()
    assert set(await pets.find("pet")) == {"Bella is a dog.", "Mimi, which is old, is a cat that sleeps all day."}


async def _time_out() -> None:
    raise TimeoutError


async def _fail_unavailable() -> None:
    raise Unavailable("It is away.", code="embed_unavailable")


async def _refuse() -> None:
    raise NeedsAttention("No.", code="embed_refused")


@pytest.mark.parametrize("away", [_time_out, _fail_unavailable])
@pytest.mark.parametrize("first", [_time_out, _fail_unavailable, _refuse])
async def test_posts_wait_while_the_embedder_does_not_answer_to_them(
    pets: PetArchiveFixture, first: Callable[[], Awaitable[None]], away: Callable[[], Awaitable[None]]
) -> None:
    """It answers to short texts all the time, and refuses many at once at most."""

    class SlowEmbedder(WordEmbedder):
        async def embed(self, texts: Sequence[str], kind: EmbedKind) -> EmbeddingResult:
            if len(texts) > 1:
                await first()
            if any("cat" in text for text in texts):
                await away()
            return await super().embed(texts, kind)

    pets.engine.embedder = SlowEmbedder()
    await pets.say("Bella is a dog.", "Mimi is a cat.")
    assert await pets.engine.post_embedder.do_some() == LATER_S
    pets.engine.embedder = pets.embedder
    await pets.learn()
    assert set(await pets.find("pet")) == {"Bella is a dog.", "Mimi is a cat."}


async def test_nothing_is_made_without_an_archive_or_an_embedder(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.")
    pets.engine.policy = ArchivePolicy(enabled=False)
    pets.engine.embedder = replace(pets.embedder, name="words/2")
    assert await pets.engine.post_embedder.do_some() == SOON_S
    pets.engine.policy, pets.engine.embedder = ArchivePolicy(), None
    assert await pets.engine.post_embedder.do_some() == SOON_S
    assert await pets.count() == 0


async def test_a_new_model_begins_anew_and_the_vectors_of_the_old_one_go(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.", "I drink my tea.")
    pets.engine.embedder = replace(pets.embedder, name="words/2")
    assert await pets.find("pet") == []
    await pets.learn()
    assert await pets.find("pet") == ["Bella is a dog."]
    pets.engine.embedder = pets.embedder
    assert await pets.count() == 0


async def test_switched_off_it_finds_by_words_and_keeps_no_vectors(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.")
    pets.engine.policy = ArchivePolicy(embeddings=False)
    assert await pets.find("pet") == []
    assert await pets.find("dog") == ["Bella is a dog."]
    assert await pets.count() == 0
    await pets.learn()
    pets.engine.policy = ArchivePolicy()
    assert await pets.count() == 0
    await pets.learn()
    assert await pets.find("pet") == ["Bella is a dog."]


async def test_the_status_tells_how_many_posts_have_a_meaning(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.", "ok")
    engine = pets.engine
    status = await load_status(engine.store, engine.mirror, engine.post_embedder, DISCORD)
    assert (status.posts, status.embedded) == (2, 1)
    engine.embedder = None
    assert (await load_status(engine.store, engine.mirror, engine.post_embedder, DISCORD)).embedded == 0


async def test_an_edited_post_is_found_by_what_it_says_now(pets: PetArchiveFixture) -> None:
    (post,) = await pets.say("Bella is a dog.")
    await pets.engine.mirror.keep([pets.engine.platform.edit(post.id, "I drink my tea.")])
    assert await pets.find("pet") == []
    await pets.learn()
    assert await pets.find("pet") == []
    assert await pets.find("thirsty") == ["I drink my tea."]


Going = Callable[[ArchiveFixture, Post], Awaitable[object]]

GOING: dict[str, Going] = {
    "deleted": lambda engine, post: engine.mirror.delete(DISCORD, [post.id]),
    "its author forgotten": lambda engine, _: engine.privacy.forget_user(DISCORD, "kim"),
    "its author opted out": lambda engine, _: engine.privacy.opt_out_user(DISCORD, "kim"),
    "its channel opted out": lambda engine, _: engine.privacy.opt_out_channel(DISCORD, engine.general.id),
}


@pytest.mark.parametrize("how", GOING)
async def test_a_post_that_goes_takes_its_meaning_along(pets: PetArchiveFixture, how: str) -> None:
    (post,) = await pets.say("Bella is a dog.")
    await GOING[how](pets.engine, post)
    assert await pets.count() == 0
    await pets.engine.mirror.keep([post])  # told of once more
    await pets.learn()
    assert await pets.count() == 0
    assert await pets.find("pet", room=pets.engine.direct, who="ana") == []


async def test_retention_takes_the_meaning_along(pets: PetArchiveFixture) -> None:
    await pets.say("Bella is a dog.")
    pets.engine.policy = ArchivePolicy(retention_days=1)
    pets.engine.clock.advance(days=3)
    await pets.engine.retention.sweep(DISCORD)
    assert await pets.count() == 0


async def test_of_people_and_rooms_that_opted_out_nothing_is_embedded(pets: PetArchiveFixture) -> None:
    engine = pets.engine
    engine.policy = ArchivePolicy(opt_outs=OptOuts(users=frozenset({"kim"})))
    await engine.privacy.opt_out_user(DISCORD, "ana")
    await engine.privacy.opt_out_channel(DISCORD, engine.staff.id)
    await pets.say("Bella is a dog.", who="kim")
    await pets.say("Bella is a cat.", who="ana")
    await pets.say("Bella is a pet.", who="bea", room=engine.staff)
    assert pets.embedder.asked == []
