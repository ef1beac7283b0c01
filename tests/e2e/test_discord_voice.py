"""Voice channels through whole turns of a real process: asked in the chat, spoken and heard over UDP."""

from __future__ import annotations

import re

import pytest

from denizen.adapters.speech import EspeakSynthesizer, PocketsphinxRecognizer
from denizen.testing.discord import SimChannel, SimMessage, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.deployment import Denizen
from tests.e2e.discord import DiscordDeployment
from tests.spoken_words import ECONOMY, MEETING, sound_like, sounds_like

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("V-skill-voice")]

SKILLS = """\
tools: {voice: {enabled: true}}
gate:
  tiers: {voice_speak: 1, voice_transcribe_start: 1, voice_write_up: 1, voice_assistant_start: 1}
"""


def open_bridge(deployment: DiscordDeployment) -> SimChannel:
    """A voice channel with Ana and Ben in it."""
    bridge = deployment.guild.add_channel("Bridge", kind="voice")
    for user in (deployment.ana, deployment.ben):
        deployment.world.join_voice(user, bridge)
    return bridge


async def tell(
    deployment: DiscordDeployment, where: SimChannel, *calls: ModelCall, answer: str, who: SimUser | None = None
) -> str:
    """Has Ada make these calls for somebody, and returns the request in which she saw their results."""
    deployment.script(*(ModelAnswer(calls=[call]) for call in calls), answer)
    deployment.ask(who or deployment.ana, "please", where)
    await deployment.until(lambda: answer in deployment.said(where))
    return read_messages(deployment)


def read_messages(deployment: DiscordDeployment) -> str:
    """Returns what stands in the messages of the latest request to the model."""
    return "\n".join(str(each.get("content", "")) for each in deployment.requests[-1].body["messages"])


async def say(deployment: DiscordDeployment, user: SimUser, where: SimChannel, text: str) -> None:
    await deployment.discord.voice.speak(user, where, await EspeakSynthesizer().synthesize(text))


async def say_written(denizen: Denizen, deployment: DiscordDeployment, user: SimUser, where: SimChannel) -> None:
    """Says something and waits until it is written down."""
    before = len(denizen.lines("a talk was written down"))
    await say(deployment, user, where, MEETING if user is deployment.ana else ECONOMY)
    await deployment.until(lambda: len(denizen.lines("a talk was written down")) > before)


def find_understood(deployment: DiscordDeployment, where: SimChannel, name: str) -> list[SimMessage]:
    """Returns Ada's posts about what she has understood of somebody."""
    return [each for each in deployment.posts(where) if each.content.startswith(f"🎙️ **{name}**: ")]


async def until_heard(deployment: DiscordDeployment, text: str) -> None:
    """Waits until Ada says that aloud, after whatever else she says."""
    voice, recognizer, heard = deployment.discord.voice, PocketsphinxRecognizer(), ""
    while not sounds_like(heard, text):
        await deployment.until(lambda: voice.utterances)
        heard = await recognizer.transcribe(voice.utterances.pop(0).sound)


async def test_it_joins_writes_down_a_meeting_writes_it_up_and_leaves(deployment: DiscordDeployment) -> None:
    bridge = open_bridge(deployment)
    deployment.configure(rest=SKILLS)
    async with deployment.run() as denizen:
        joined = await tell(
            deployment,
            bridge,
            ModelCall("voice_channels", {}),
            ModelCall("voice_join", {}),
            ModelCall("voice_members", {}),
            ModelCall("voice_transcribe_start", {}),
            ModelCall("voice_status", {}),
            answer="I am here.",
        )
        assert "Bridge (id" in joined and "Ana, Ben" in joined and f"Joined <#{bridge.id}>" in joined
        assert f"You are in <#{bridge.id}>: writing down what is said." in joined
        await deployment.until(lambda: deployment.discord.voice.is_ready(deployment.ada.user, bridge))
        assert any(text.startswith("🔴 I am listening now") for text in deployment.said(bridge))
        await say_written(denizen, deployment, deployment.ana, bridge)
        await say_written(denizen, deployment, deployment.ben, bridge)

        stopped = await tell(
            deployment,
            bridge,
            ModelCall("voice_transcribe_stop", {}),
            ModelCall("voice_transcript", {}),
            answer="That is what was said.",
        )
        lines = [line.split(" ", 1)[1] for line in stopped.splitlines() if re.match(r"\d\d:\d\d (Ana|Ben): ", line)]
        assert sound_like(lines, [f"Ana: {MEETING}", f"Ben: {ECONOMY}"])
        assert "I have stopped listening." in deployment.said(bridge)

        deployment.script(ModelAnswer(calls=[ModelCall("voice_write_up", {})]), "**Minutes**: nine o'clock.", "Posted.")
        deployment.ask(deployment.ben, "write it up", bridge)
        await deployment.until(lambda: "Posted." in deployment.said(bridge))
        minutes = next(each for each in deployment.posts(bridge) if each.content == "**Minutes**: nine o'clock.")
        (file,) = minutes.body.attachments
        said = [line.split(" ", 2)[2] for line in file.content.decode().splitlines()]
        assert said == lines
        asked = next(each for each in deployment.requests if "minutes of a meeting" in str(each.body))
        assert "Ben: the " in str(asked.body), "the model wrote them from the transcript"

        await tell(deployment, bridge, ModelCall("voice_leave", {}), answer="Bye.")
        assert deployment.ada.user.id not in deployment.guild.voice


async def test_it_speaks_and_is_quiet_when_it_is_told(deployment: DiscordDeployment) -> None:
    bridge = open_bridge(deployment)
    deployment.configure(rest=SKILLS)
    async with deployment.run():
        await tell(
            deployment,
            deployment.general,
            ModelCall("voice_join", {"channel": "Bridge"}),
            ModelCall("voice_speak", {"text": MEETING}),
            answer="I am saying it.",
        )
        await until_heard(deployment, MEETING)
        quiet = await tell(
            deployment,
            bridge,
            *(ModelCall("voice_speak", {"text": f"{number} {ECONOMY} " * 10}) for number in range(2)),
            ModelCall("voice_hush", {}),
            ModelCall("voice_status", {}),
            answer="I am quiet.",
        )
        assert "silent, and listening to nobody" in quiet


async def test_it_holds_a_spoken_conversation_with_the_people_that_it_answers(deployment: DiscordDeployment) -> None:
    bridge = open_bridge(deployment)
    deployment.configure(rest=SKILLS, conduct=[f'users: ["{deployment.ana.id}"]'])
    async with deployment.run() as denizen:
        await tell(
            deployment,
            bridge,
            ModelCall("voice_join", {}),
            ModelCall("voice_transcribe_start", {}),
            ModelCall("voice_assistant_start", {}),
            answer="Talk to me.",
        )
        await deployment.until(lambda: deployment.discord.voice.is_ready(deployment.ada.user, bridge))
        asked = len(deployment.requests)
        await say_written(denizen, deployment, deployment.ben, bridge)
        await deployment.until(lambda: find_understood(deployment, bridge, "Ben"))
        assert sounds_like(find_understood(deployment, bridge, "Ben")[0].content, f"🎙️ **Ben**: {ECONOMY}")

        deployment.script(f"**{ECONOMY}**")
        await say_written(denizen, deployment, deployment.ana, bridge)
        await deployment.until(lambda: f"**{ECONOMY}**" in deployment.said(bridge))
        (question,) = find_understood(deployment, bridge, "Ana")
        assert sounds_like(question.content, f"🎙️ **Ana**: {MEETING}")
        answer = next(each for each in deployment.posts(bridge) if each.content == f"**{ECONOMY}**")
        assert answer.reference is not None and answer.reference.message_id == question.id
        assert len(deployment.requests) == asked + 1, "Ben's words are no question, since she does not answer him"
        assert question.content.partition(": ")[2] in read_messages(deployment)
        await until_heard(deployment, ECONOMY)

        await tell(deployment, bridge, ModelCall("voice_assistant_stop", {}), answer="I am silent now.")
