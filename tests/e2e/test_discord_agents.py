"""Several agents in one channel of Discord: they talk with each other, but not for ever, and do not fail together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from denizen.testing.discord import SimApplication
from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.e2e.discord import Harbour
from tests.e2e.provider import Provider, open_provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@dataclass(frozen=True, slots=True)
class Pair:
    """Ada, and Bea with a model of her own."""

    harbour: Harbour
    bea: SimApplication
    beas: Provider

    def configure(self, *conduct: str) -> None:
        self.harbour.configure(
            accounts={"ada": self.harbour.ada.token, "bea": self.bea.token},
            agents={"bea": "model: beas/scripted"},
            providers={"beas": self.beas.server.openai_url},
            conduct=conduct,
        )


def answer(text: str) -> ModelAnswer:
    return ModelAnswer(text=text)


@pytest.fixture
async def pair(harbour: Harbour) -> AsyncGenerator[Pair]:
    bea = harbour.world.add_application("Bea")
    harbour.guild.join(bea.user)
    with open_provider() as beas:
        yield Pair(harbour, bea, beas)


@pytest.mark.proves("C15", "C16", "C-config-exchanges")
@pytest.mark.parametrize("limit", [3, 2])
async def test_a_loop_of_mutual_mentions_ends_and_a_human_lets_them_talk_again(limit: int, pair: Pair) -> None:
    harbour, bea = pair.harbour, pair.bea
    pair.configure(f"max_exchanges: {limit}")
    async with harbour.run(ready=2):
        for turn in range(1, limit + 1):
            said, other = (pair.beas, "Ada") if turn % 2 == 0 else (harbour.provider, "Bea")
            said.script(answer(f"@{other} {turn}"))
        harbour.ask(harbour.ana, "talk with @Bea")
        refused = "SELECT agent FROM claims WHERE refusal = 'exchanges'"
        await harbour.until(lambda: harbour.rows(refused))
        talk = [message.content for message in harbour.general.messages[1:]]
        assert [text.split()[1] for text in talk] == [str(turn) for turn in range(1, limit + 1)]
        pair.beas.script(answer("Yes."))
        harbour.ask(harbour.ben, "still there?", of=bea)
        await harbour.until(lambda: "Yes." in harbour.said(by=bea))
    assert len(harbour.requests) + len(pair.beas.requests) == limit + 1


@pytest.mark.proves("C16")
async def test_a_mere_reply_of_another_agent_is_not_answered(pair: Pair) -> None:
    harbour, bea = pair.harbour, pair.bea
    pair.configure()
    async with harbour.run(ready=2):
        harbour.script("@Bea what do you think?")
        pair.beas.script(answer("I agree."))
        harbour.ask(harbour.ana, "ask Bea")
        await harbour.until(lambda: harbour.said(by=bea) == ["I agree."])
        [mention], [reply] = harbour.posts(), harbour.posts(by=bea)
        assert reply.reference is not None
        assert reply.reference.message_id == mention.id
        assert await harbour.settle() == [f"{bea.mention} what do you think?"]
    assert len(harbour.requests) == 2


async def test_agents_that_are_mentioned_together_speak_one_after_another_and_the_later_read_the_earlier(
    pair: Pair,
) -> None:
    harbour, bea = pair.harbour, pair.bea
    pair.configure()
    held = pair.beas.hold(answer("Roses."))
    harbour.script("Then tulips for me.")
    async with harbour.run(ready=2):
        harbour.world.say(harbour.ana, harbour.general, f"{bea.mention} {harbour.ada.mention} which flower?")
        await harbour.until(lambda: len(pair.beas.requests) == 1)
        assert harbour.requests == []
        held.release()
        await harbour.until(lambda: len(harbour.general.messages) == 3)
    assert [message.content for message in harbour.general.messages[1:]] == ["Roses.", "Then tulips for me."]
    assert "Bea: Roses." in str(harbour.requests[0].body)


async def test_of_two_agents_that_listen_to_everything_the_eager_one_joins_in_or_stays_silent(pair: Pair) -> None:
    harbour, bea = pair.harbour, pair.bea
    pair.configure(f"always_channels: ['{harbour.general.id}']", "eagerness: 0")
    pair.beas.script(answer("Yes?"), answer("[silence]"))
    async with harbour.run(ready=2):
        harbour.world.say(harbour.ana, harbour.general, "nobody in particular")
        harbour.world.say(harbour.ana, harbour.general, "bea, are you there?")
        await harbour.until(lambda: harbour.said(by=bea) == ["Yes?"])
        harbour.world.say(harbour.ana, harbour.general, "hm")
        await harbour.until(lambda: harbour.rows("SELECT id FROM turns WHERE reply = '[silence]' AND status = 'done'"))
        assert await harbour.settle() == []
    assert harbour.said(by=bea) == ["Yes?"]
    assert "[silence]" in str(pair.beas.requests[0].body)


@pytest.mark.proves("C20")
async def test_one_agents_failure_does_not_touch_the_other(pair: Pair) -> None:
    harbour, bea = pair.harbour, pair.bea
    pair.configure("failure_text: false")
    pair.beas.script(*[FailedAnswer(401, "no such key")] * 3)
    harbour.script("Hello.")
    async with harbour.run(ready=2):
        question = harbour.world.say(harbour.ana, harbour.general, f"{harbour.ada.mention} {bea.mention} hello")
        await harbour.until(lambda: harbour.said() == ["Hello."] and question.reactions)
        [reaction] = question.reactions
        assert reaction.users == [bea.user]
        assert await harbour.settle() == ["Hello."]
    assert harbour.said(by=bea) == []
