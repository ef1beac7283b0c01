"""Several agents in one channel of Discord: they talk with each other, but not for ever, and do not fail together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from denizen.testing.discord import SimApplication, SimChannel, SimMessage
from denizen.testing.discord.rest.request_log import LoggedRequest
from denizen.testing.model_server import FailedAnswer, ModelAnswer
from tests.e2e.discord import DiscordDeployment
from tests.e2e.provider import Provider, open_provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@dataclass(frozen=True, slots=True)
class TwoAgents:
    """Ada, and Bea with a model of her own."""

    deployment: DiscordDeployment
    bea: SimApplication
    beas: Provider

    def configure(self, *conduct: str) -> None:
        self.deployment.configure(
            accounts={"ada": self.deployment.ada.token, "bea": self.bea.token},
            agents={"bea": "model: beas/scripted"},
            providers={"beas": self.beas.server.openai_url},
            conduct=conduct,
        )


def find_signs(message: SimMessage, of: SimApplication) -> list[str | None]:
    """Returns the reactions of an agent to the message."""
    return [each.emoji.name for each in message.state.reactions if of.user in each.users]


def answer(text: str) -> ModelAnswer:
    return ModelAnswer(text=text)


@pytest.fixture
async def pair(deployment: DiscordDeployment) -> AsyncGenerator[TwoAgents]:
    bea = deployment.world.add_application("Bea")
    deployment.guild.join(bea.user)
    with open_provider() as beas:
        yield TwoAgents(deployment, bea, beas)


@pytest.mark.proves("C14", "C15", "C16", "C-config-exchanges")
@pytest.mark.parametrize("limit", [3, 2])
async def test_a_loop_of_mutual_mentions_ends_and_a_human_lets_them_talk_again(limit: int, pair: TwoAgents) -> None:
    deployment, bea = pair.deployment, pair.bea
    pair.configure(f"max_exchanges: {limit}")
    async with deployment.run(ready=2):
        for turn in range(1, limit + 1):
            said, other = (pair.beas, "Ada") if turn % 2 == 0 else (deployment.provider, "Bea")
            said.script(answer(f"@{other} {turn}"))
        deployment.ask(deployment.ana, "talk with @Bea")
        refused = "SELECT agent FROM claims WHERE refusal = 'exchanges'"
        await deployment.until(lambda: deployment.rows(refused))
        talk = [message.content for message in deployment.general.messages[1:]]
        assert [text.split()[1] for text in talk] == [str(turn) for turn in range(1, limit + 1)]
        pair.beas.script(answer("Yes."))
        deployment.ask(deployment.ben, "still there?", of=bea)
        await deployment.until(lambda: "Yes." in deployment.said(by=bea))
    assert len(deployment.requests) + len(pair.beas.requests) == limit + 1


@pytest.mark.proves("C19")
async def test_a_command_for_two_agents_is_carried_out_by_both_and_asks_no_model(pair: TwoAgents) -> None:
    deployment = pair.deployment
    pair.configure()
    async with deployment.run(ready=2):
        both = f"{deployment.ada.mention} {pair.bea.mention} /reset"
        message = deployment.world.say(deployment.ana, deployment.general, both)
        await deployment.until(lambda: sum(len(each.users) for each in message.state.reactions) == 2)
        assert await deployment.settle() == []
    assert {user.id for each in message.state.reactions for user in each.users} == {
        deployment.ada.user.id,
        pair.bea.user.id,
    }
    assert len(deployment.requests) == 1, "settling asks once"
    assert pair.beas.requests == []


@pytest.mark.proves("C16")
async def test_a_mere_reply_of_another_agent_is_not_answered(pair: TwoAgents) -> None:
    deployment, bea = pair.deployment, pair.bea
    pair.configure()
    async with deployment.run(ready=2):
        deployment.script("@Bea what do you think?")
        pair.beas.script(answer("I agree."))
        deployment.ask(deployment.ana, "ask Bea")
        await deployment.until(lambda: deployment.said(by=bea) == ["I agree."])
        [mention], [reply] = deployment.posts(), deployment.posts(by=bea)
        assert reply.reference is not None
        assert reply.reference.message_id == mention.id
        assert await deployment.settle() == [f"{bea.mention} what do you think?"]
    assert len(deployment.requests) == 2


async def test_agents_that_are_mentioned_together_speak_one_after_another_and_the_later_read_the_earlier(
    pair: TwoAgents,
) -> None:
    deployment, bea = pair.deployment, pair.bea
    pair.configure()
    held = pair.beas.hold(answer("Roses."))
    deployment.script("Then tulips for me.")
    async with deployment.run(ready=2):
        deployment.world.say(
            deployment.ana, deployment.general, f"{bea.mention} {deployment.ada.mention} which flower?"
        )
        await deployment.until(lambda: len(pair.beas.requests) == 1)
        assert deployment.requests == []
        held.release()
        await deployment.until(lambda: len(deployment.general.messages) == 3)
    assert [message.content for message in deployment.general.messages[1:]] == ["Roses.", "Then tulips for me."]
    assert "Bea: Roses." in str(deployment.requests[0].body)


async def test_of_two_agents_that_listen_to_everything_the_eager_one_joins_in_or_stays_silent(pair: TwoAgents) -> None:
    deployment, bea = pair.deployment, pair.bea
    pair.configure(f"always_channels: ['{deployment.general.id}']", "eagerness: 0")
    pair.beas.script(answer("Yes?"), answer("[silence]"))
    async with deployment.run(ready=2):
        deployment.world.say(deployment.ana, deployment.general, "nobody in particular")
        deployment.world.say(deployment.ana, deployment.general, "bea, are you there?")
        await deployment.until(lambda: deployment.said(by=bea) == ["Yes?"])
        deployment.world.say(deployment.ana, deployment.general, "hm")
        await deployment.until(
            lambda: deployment.rows("SELECT id FROM turns WHERE reply = '[silence]' AND status = 'done'")
        )
        assert await deployment.settle() == []
    assert deployment.said(by=bea) == ["Yes?"]
    assert "[silence]" in str(pair.beas.requests[0].body)


@pytest.mark.proves("C20")
async def test_one_agents_failure_does_not_touch_the_other(pair: TwoAgents) -> None:
    deployment, bea = pair.deployment, pair.bea
    pair.configure("failure_text: false")
    pair.beas.script(*[FailedAnswer(401, "no such key")] * 3)
    deployment.script("Hello.")
    async with deployment.run(ready=2):
        question = deployment.world.say(
            deployment.ana, deployment.general, f"{deployment.ada.mention} {bea.mention} hello"
        )
        await deployment.until(lambda: deployment.said() == ["Hello."])
        await deployment.until(lambda: find_signs(question, bea) == ["⚠️"])
        await deployment.until(lambda: find_signs(question, deployment.ada) == ["👍"])
        assert await deployment.settle() == ["Hello."]
    assert deployment.said(by=bea) == []


@pytest.mark.proves("C2", "C6", "CW3")
async def test_history_comes_through_whichever_account_may_read_it_and_anew_where_a_rebuild_is_forced(
    pair: TwoAgents,
) -> None:
    deployment, world = pair.deployment, pair.deployment.world
    crew = deployment.guild.add_role("Crew")
    bridge = deployment.guild.add_channel("bridge", private_to=[crew])
    deployment.guild.set_roles(pair.bea.user, [crew])
    deployment.guild.set_roles(deployment.ben, [crew])
    for number in range(230):
        world.say(deployment.ben, bridge, f"log {number}")
        world.say(deployment.ben, deployment.general, f"talk {number}")
    deployment.configure(
        accounts={"ada": deployment.ada.token, "bea": pair.bea.token},
        agents={"ada": "context: transcript", "bea": "model: beas/scripted, context: transcript"},
        providers={"beas": pair.beas.server.openai_url},
    )

    def pages(channel: SimChannel) -> list[LoggedRequest]:
        """Requests for what is older."""
        asked = deployment.discord.requests_to("GET", f"/channels/{channel.id}/messages")
        return [each for each in asked if "after" not in each.query and each.application_id == pair.bea.id]

    async with deployment.run(ready=2) as denizen:
        await deployment.until(lambda: len(denizen.lines("backfill is over")) == 2)
    assert deployment.rows("SELECT count(*) FROM posts WHERE text LIKE 'log %' OR text LIKE 'talk %'") == [(460,)]
    fetched = [int(each.query["limit"]) for each in pages(bridge)]
    assert len(fetched) >= 3
    assert set(fetched) == {100}
    async with deployment.run(ready=2):
        pair.beas.script(answer("Aye."))
        deployment.ask(deployment.ben, "what is in the log?", bridge, of=pair.bea)
        await deployment.until(lambda: deployment.said(bridge, by=pair.bea) == ["Aye."])
        assert all(f"Ben: log {number}\\n" in str(pair.beas.requests[0].body) for number in range(230))
        assert len(pages(bridge)) == len(fetched), "from the archive"
    assert deployment.home.do("archive", "rebuild").code == 0
    async with deployment.run(ready=2) as again:
        await deployment.until(lambda: len(again.lines("backfill is over")) == 2)
    assert len(pages(bridge)) == 2 * len(fetched)
