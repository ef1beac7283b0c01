"""Voice channels of the simulated Discord, over its websocket and UDP, with speech that is made and recognized."""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
import pytest
from anyio import to_thread

from denizen.adapters.discord.account import DiscordAccount
from denizen.adapters.discord.voice import desk
from denizen.adapters.discord.voice.desk import VoiceDesk, to_spoken
from denizen.adapters.discord.voice.session import VoiceServices, VoiceSession, cut_wake_word
from denizen.adapters.speech import EspeakSynthesizer, PocketsphinxRecognizer
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.clock import SystemClock
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from denizen.domain.ids import fresh
from denizen.domain.message import TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.ports.speech import Sound, Speech
from denizen.testing.discord import DiscordPermission, SimChannel, SimUser
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.account_fixture import AccountFixture, RecordingListener, running
from tests.memory_channel import enter_at_once
from tests.spoken_words import ECONOMY, MEETING, sound_like, sounds_like
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

SPEECH = Speech(EspeakSynthesizer(), PocketsphinxRecognizer())


@dataclass
class VoiceFixture:
    """Ana and Ben are in the voice channel Bridge, and Ada has a voice."""

    sim: AccountFixture
    account: DiscordAccount
    heard: RecordingListener
    bridge: SimChannel
    opted_out: set[str] = field(default_factory=set[str])
    forgotten: dict[str, datetime] = field(default_factory=dict[str, datetime])

    @property
    def desk(self) -> VoiceDesk:
        login = self.account._login
        assert login is not None and login.client.voice is not None
        return login.client.voice

    @property
    def session(self) -> VoiceSession:
        return self.desk.get(self.desk._client.guilds[0])

    async def act(
        self, name: str, *, by: SimUser | None = None, where: SimChannel | None = None, **details: Any
    ) -> dict[str, Any]:
        user = by or self.sim.ana
        asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{user.id}", user.display_name)
        key, enter = details.pop("key", "") or fresh("call"), details.pop("enter", enter_at_once)
        warrant = OnBehalfOf(asker, self.sim.place(where or self.bridge), key)
        return await self.account.act(PlatformAction(name, details), warrant, enter=enter)

    async def join(self) -> None:
        await self.act("voice_join")
        await self.until(lambda: self.sim.discord.voice.is_ready(self.sim.ada.user, self.bridge))

    async def until(self, holds: Any) -> None:
        await self.sim.discord.until(holds, HANG_LIMIT_S)

    async def say(self, user: SimUser, text: str, voice: str = "en-us+f2") -> None:
        await self.sim.discord.voice.speak(user, self.bridge, await EspeakSynthesizer(voice).synthesize(text))

    async def transcript(self) -> list[str]:
        return [line.partition(" ")[2] for line in (await self.act("voice_transcript"))["lines"]]

    async def meeting(self) -> dict[str, Any]:
        """Returns what tells the latest transcript from others."""
        found = await self.act("voice_transcript")
        return {"channel": found["channel"], "began_at": found["began_at"]}

    async def until_transcribed(self, count: int) -> list[str]:
        await self.until(lambda: len(self.desk._transcripts[self.desk._client.guilds[0].id].lines) >= count)
        return await self.transcript()

    def texts(self) -> list[str]:
        return [each.content for each in self.bridge.messages]


class HeldRecognizer:
    """A recognizer that understands nothing but `words`, once it may go on."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.goes_on = anyio.Event()

    async def transcribe(self, sound: Sound) -> str:
        self.asked.set()
        await self.goes_on.wait()
        return "words"


class ListedRecognizer:
    """A recognizer that understands these texts, one after another."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    async def transcribe(self, sound: Sound) -> str:
        return self._texts.pop(0)


@asynccontextmanager
async def open_voice(sim: AccountFixture, speech: Speech = SPEECH) -> AsyncGenerator[VoiceFixture]:
    bridge = sim.guild.add_channel("Bridge", kind="voice")
    for user in (sim.ana, sim.ben):
        sim.world.join_voice(user, bridge)
    opted_out: set[str] = set()

    async def is_opted_out(user_id: str, roles: frozenset[str], channel: str) -> bool:
        return user_id in opted_out

    forgotten: dict[str, datetime] = {}

    async def find_forgotten(user_id: str) -> datetime | None:
        return forgotten.get(user_id)

    services = VoiceServices(
        clock=SystemClock(), open_speech=lambda: speech, is_opted_out=is_opted_out, find_forgotten=find_forgotten
    )
    async with running(sim, voice=services) as (account, heard):
        yield VoiceFixture(sim, account, heard, bridge, opted_out, forgotten)


async def test_what_people_say_is_written_down_once_the_channel_is_told(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        assert voice.texts() == [
            "🔴 I am listening now, and I write down what is said here. Ask me to stop at any time."
        ]
        await voice.say(sim.ana, MEETING)
        assert sound_like(await voice.until_transcribed(1), [f"Ana: {MEETING}"])
        await voice.say(sim.ben, ECONOMY)
        assert sound_like(await voice.until_transcribed(2), [f"Ana: {MEETING}", f"Ben: {ECONOMY}"])


async def test_a_lost_packet_does_not_keep_it_from_joining(
    sim: AccountFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "CONNECT_TIMEOUT_S", 1.0)
    sim.discord.voice.lost_questions = 1
    async with open_voice(sim) as voice:
        await voice.join()
        assert sim.discord.voice.lost_questions == 0


async def test_it_joins_though_its_own_address_is_known_before_it_listens_for_it(
    sim: AccountFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "CONNECT_TIMEOUT_S", 1.0)
    loop = asyncio.get_running_loop()
    send = loop.sock_sendall

    async def send_and_lag(socket: Any, data: bytes) -> None:
        await send(socket, data)
        await to_thread.run_sync(select.select, [socket], [], [], 1.0)  # the answer is there, for whoever reads
        await anyio.sleep(0.1)

    monkeypatch.setattr(loop, "sock_sendall", send_and_lag)
    async with open_voice(sim) as voice:
        await voice.join()


async def test_what_it_speaks_is_heard_in_the_channel(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        done = await voice.act("voice_speak", text=MEETING)
        assert done["name"] == "Bridge" and 2 < done["seconds"] < 4
        await voice.until(lambda: sim.discord.voice.utterances)
        (said,) = sim.discord.voice.utterances
        assert (said.user, said.channel) == (sim.ada.user, voice.bridge)
        assert sounds_like(await SPEECH.recognizer.transcribe(said.sound), MEETING)


async def test_nothing_is_heard_before_somebody_asks_for_it_nor_afterwards(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.say(sim.ana, ECONOMY)
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        assert sound_like(await voice.until_transcribed(1), [f"Ana: {MEETING}"])
        await voice.act("voice_transcribe", on=False)
        assert voice.texts()[-1] == "I have stopped listening."
        await voice.say(sim.ana, ECONOMY)
        await voice.act("voice_transcribe")
        await voice.say(sim.ben, ECONOMY)
        assert sound_like(await voice.until_transcribed(1), [f"Ben: {ECONOMY}"]), "a new transcript begins"


async def test_who_opted_out_is_not_written_down(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        voice.opted_out.add(str(sim.ana.id))
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, ECONOMY)
        await voice.say(sim.ben, MEETING)
        assert sound_like(await voice.until_transcribed(1), [f"Ben: {MEETING}"])


async def test_who_opts_out_or_is_forgotten_is_not_in_the_transcript_any_more(sim: AccountFixture) -> None:
    recognizer = ListedRecognizer(["one", "two", "three"])
    async with open_voice(sim, Speech(EspeakSynthesizer(), recognizer)) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        assert await voice.until_transcribed(1) == ["Ana: one"]
        voice.forgotten[str(sim.ana.id)] = SystemClock().now()
        assert await voice.transcript() == []
        await voice.say(sim.ana, MEETING)
        assert await voice.until_transcribed(1) == ["Ana: two"], "she said it later"
        await voice.say(sim.ben, MEETING)
        assert await voice.until_transcribed(2) == ["Ana: two", "Ben: three"]
        voice.opted_out.add(str(sim.ana.id))
        await voice.act("voice_post_minutes", text="We met.", **await voice.meeting())
        (file,) = voice.bridge.messages[-1].body.attachments
        assert file.content.decode().split(" ", 2)[2] == "Ben: three"


async def test_a_transcript_is_told_only_where_everybody_sees_the_channel(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        await voice.until_transcribed(1)
        council = sim.guild.add_channel("council", private_to=[sim.ana, sim.ada.user])
        closed = sim.guild.add_channel("Closed", kind="voice", private_to=[sim.ana, sim.ada.user])
        await voice.until(lambda: voice.desk._client.get_channel(closed.id))
        assert (await voice.act("voice_transcript", where=council))["name"] == "Bridge"
        sim.world.join_voice(sim.ana, closed)
        await voice.act("voice_join", channel=str(closed.id), where=council)
        await voice.until(lambda: sim.discord.voice.is_ready(sim.ada.user, closed))
        await voice.act("voice_transcribe", where=council)
        with pytest.raises(NotFound, match="not everybody here"):
            await voice.act("voice_transcript", where=sim.general)
        with pytest.raises(NotAllowed):
            await voice.act("voice_transcript", by=sim.ben, where=sim.general)
        with pytest.raises(NotAllowed):
            await voice.act("voice_speak", by=sim.ben, text="hello", where=sim.general)


async def test_what_is_said_to_the_assistant_arrives_as_a_message_and_the_answer_is_spoken(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        officer = sim.guild.add_role("Officer")
        sim.guild.set_roles(sim.ben, [officer])
        await voice.join()
        await voice.act("voice_assist")
        assert voice.texts()[-1].startswith("🎙️ You can talk with me now")
        await voice.say(sim.ben, ECONOMY)
        await voice.heard.until(lambda: any(not each.is_mine for each in voice.heard.arrivals))
        asked = next(each for each in voice.heard.arrivals if not each.is_mine)
        assert sounds_like(asked.question, ECONOMY)
        shown = voice.bridge.messages[-1]
        assert (shown.author, shown.content) == (sim.ada.user, f"🎙️ **Ben**: {asked.question}")
        assert (asked.post.id, asked.room.id) == (str(shown.id), str(voice.bridge.id))
        assert (asked.post.author.id, asked.post.author.is_bot, asked.is_mine) == (str(sim.ben.id), False, False)
        assert (asked.post.text, asked.mentions.me, asked.roles) == (asked.question, True, {str(officer.id)})
        assert await asked.load_parts() == (TextPart(asked.question),)

        place = sim.place(voice.bridge)
        await voice.account.post(place, MessageContent("I am working on it"), nonce="n1", is_preview=True)
        await voice.account.post(place, MessageContent(f"**{MEETING}** `x`"), nonce="n2", reply_to=asked.post.id)
        await voice.until(lambda: sim.discord.voice.utterances)
        (said,) = sim.discord.voice.utterances
        assert sounds_like(await SPEECH.recognizer.transcribe(said.sound), MEETING), "and no preview"


async def test_the_assistant_waits_for_its_word(sim: AccountFixture) -> None:
    recognizer = ListedRecognizer(["I met the computer", "Computer, when do we begin?"])
    async with open_voice(sim, Speech(EspeakSynthesizer(), recognizer)) as voice:
        await voice.join()
        await voice.act("voice_assist", wake_word=" computer ")
        assert voice.texts()[-1].endswith("Begin with “computer”.")
        await voice.say(sim.ana, ECONOMY)
        await voice.say(sim.ben, MEETING)
        await voice.heard.until(lambda: any(not each.is_mine for each in voice.heard.arrivals))
        assert [each.question for each in voice.heard.arrivals if not each.is_mine] == ["when do we begin?"]
        await voice.act("voice_assist", on=False)
        assert voice.texts()[-1] == "I have stopped listening."


async def test_the_channel_is_told_of_each_other_word(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        for word in ("computer", " computer", "Ada", ""):
            await voice.act("voice_assist", wake_word=word)
        assert [text.partition("any time.")[2] for text in voice.texts()] == [
            " Begin with “computer”.",
            " Begin with “Ada”.",
            "",
        ]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Ada, what is that?", "what is that?"),
        ("… ADA: go on", "go on"),
        ("I met Ada yesterday", ""),
        ("Adam went home", ""),
        ("Ada", ""),
    ],
)
def test_the_wake_word_is_the_first_word(said: str, asked: str) -> None:
    assert cut_wake_word(said, "ada") == asked
    assert cut_wake_word(f"Hey, {said}", "hey ada") == asked
    assert cut_wake_word(said, "") == said


async def test_where_it_is_moved_to_it_does_not_listen(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.act("voice_assist")
        engine = sim.guild.add_channel("Engine", kind="voice")
        sim.world.join_voice(sim.ben, engine)
        sim.world.join_voice(sim.ada.user, engine)
        session = voice.session
        await voice.until(lambda: session.channel.id == engine.id and not session.line.receiver.listens)
        assert (session.transcript, session.assists) == (None, False)


@pytest.mark.parametrize("name", ["voice_transcribe", "voice_assist"])
async def test_moved_while_it_tells_one_channel_it_does_not_listen_in_the_other(sim: AccountFixture, name: str) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        engine = sim.guild.add_channel("Engine", kind="voice")
        session = voice.session

        @asynccontextmanager
        async def move_after_telling(*_: object) -> AsyncGenerator[None]:
            yield
            sim.world.join_voice(sim.ben, engine)
            sim.world.join_voice(sim.ada.user, engine)
            await voice.until(lambda: session.channel.id == engine.id)

        with pytest.raises(Conflict, match="do not listen"):
            await voice.act(name, enter=move_after_telling)
        assert (session.transcript, session.assists, session.line.receiver.listens) == (None, False, False)


async def test_what_was_said_before_it_was_moved_is_not_in_the_transcript_of_the_next_channel(
    sim: AccountFixture,
) -> None:
    recognizer = HeldRecognizer()
    async with open_voice(sim, Speech(EspeakSynthesizer(), recognizer)) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        await recognizer.asked.wait()
        engine = sim.guild.add_channel("Engine", kind="voice")
        for user in (sim.ben, sim.ada.user):
            sim.world.join_voice(user, engine)
        await voice.until(lambda: sim.discord.voice.is_ready(sim.ada.user, engine) and not voice.session.transcript)
        await voice.act("voice_transcribe")
        recognizer.goes_on.set()
        await sim.discord.voice.speak(sim.ben, engine, await EspeakSynthesizer().synthesize(ECONOMY))
        assert await voice.until_transcribed(1) == ["Ben: words"]


async def test_moved_onto_a_stage_it_leaves(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        stage = sim.guild.add_channel("Stage", kind="stage")
        sim.world.join_voice(sim.ada.user, stage)
        await voice.until(lambda: sim.ada.user.id not in sim.guild.voice)
        assert (await voice.act("voice_status"))["channel"] == ""


async def test_a_session_that_fails_ends_alone(sim: AccountFixture, caplog: pytest.LogCaptureFixture) -> None:
    async with open_voice(sim, Speech(EspeakSynthesizer(), ListedRecognizer([]))) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        await voice.until(lambda: sim.ada.user.id not in sim.guild.voice)
        assert "a voice session failed" in caplog.text
        assert (await voice.act("voice_channels"))["channels"], "the account goes on"


async def test_it_leaves_when_everybody_else_has_left_and_keeps_the_transcript(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        await voice.say(sim.ana, MEETING)
        await voice.until_transcribed(1)
        sim.world.leave_voice(sim.ana, sim.guild)
        assert sim.ada.user.id in sim.guild.voice
        sim.world.leave_voice(sim.ben, sim.guild)
        await voice.until(lambda: sim.ada.user.id not in sim.guild.voice)
        with pytest.raises(NotFound, match="no voice channel"):
            await voice.act("voice_speak", text="hello")
        done = await voice.act("voice_post_minutes", text="We meet at nine.", **await voice.meeting())
        posted = voice.bridge.messages[-1]
        assert (str(posted.id), posted.content) == (done["message"], "We meet at nine.")
        (file,) = posted.body.attachments
        assert sounds_like(file.content.decode().split(" ", 2)[2], f"Ana: {MEETING}")


async def test_minutes_are_not_posted_of_a_transcript_that_another_one_has_followed(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        await voice.act("voice_transcribe")
        first = await voice.meeting()
        await voice.act("voice_transcribe", on=False)
        await voice.act("voice_transcribe")
        before = voice.texts()
        with pytest.raises(Conflict, match="not posted"):
            await voice.act("voice_post_minutes", text="We meet at nine.", **first)
        elsewhere: dict[str, Any] = {**await voice.meeting(), "channel": str(sim.general.id)}
        with pytest.raises(Conflict, match="not posted"):
            await voice.act("voice_post_minutes", text="We meet at nine.", **elsewhere)
        assert voice.texts() == before


async def test_it_goes_only_where_both_may_connect(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        silent = sim.guild.add_channel("Silent", kind="voice")
        deny = SimOverwrite(sim.guild.id, 0, deny=DiscordPermission.CONNECT)
        locked = sim.guild.add_channel("Locked", kind="voice", overwrites=[deny])
        await voice.until(lambda: voice.desk._client.get_channel(locked.id))
        with pytest.raises(NotAllowed, match="Connect"):
            await voice.act("voice_join", by=sim.ben, channel="Locked", where=sim.general)
        with pytest.raises(InvalidInput, match="no voice channel"):
            await voice.act("voice_join", channel=str(sim.general.id))
        await voice.act("voice_join", channel=str(silent.id))
        status = await voice.act("voice_status")
        assert (status["name"], status["transcribes"], status["assists"]) == ("Silent", False, False)
        channels = (await voice.act("voice_channels", by=sim.ben, where=sim.general))["channels"]
        assert [(each["name"], each["members"]) for each in channels] == [
            ("Bridge", ["Ana", "Ben"]),
            ("Silent", ["Ada"]),
        ]
        members = (await voice.act("voice_members"))["members"]
        assert [(each["name"], each["is_bot"]) for each in members] == [("Ana", False), ("Ben", False)]
        await voice.act("voice_leave")
        assert (await voice.act("voice_status"))["channel"] == ""


async def test_asking_whether_it_might_changes_nothing(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:

        async def check(name: str, **details: Any) -> None:
            asker = Principal(PrincipalKind.PLATFORM_USER, f"discord:{sim.ben.id}", "Ben")
            warrant = OnBehalfOf(asker, sim.place(voice.bridge), "check")
            await voice.account.check_action(PlatformAction(name, details), warrant)

        await check("voice_join")
        assert sim.ada.user.id not in sim.guild.voice
        await voice.join()
        for name, details in (
            ("voice_speak", {"text": MEETING}),
            ("voice_transcribe", {}),
            ("voice_assist", {}),
            ("voice_hush", {}),
            ("voice_leave", {}),
        ):
            await check(name, **details)
        session = voice.session
        assert (session.is_speaking, session.transcript, session.assists, voice.texts()) == (False, None, False, [])
        with pytest.raises(NotFound, match="no transcript"):
            await check("voice_post_minutes", text="We met.", channel="1", began_at="2026-01-01T00:00:00+00:00")


async def test_without_the_members_intent_it_knows_who_speaks_and_with_which_roles(sim: AccountFixture) -> None:
    bridge = sim.guild.add_channel("Bridge", kind="voice")
    sim.world.join_voice(sim.ben, bridge)
    sim.world.join_voice(sim.ana, bridge)
    asked_of: list[frozenset[str]] = []

    async def note_roles(user_id: str, roles: frozenset[str], channel: str) -> bool:
        asked_of.append(roles)
        return False

    async def find_forgotten(user_id: str) -> datetime | None:
        return None

    services = VoiceServices(
        clock=SystemClock(), open_speech=lambda: SPEECH, is_opted_out=note_roles, find_forgotten=find_forgotten
    )
    async with running(sim, voice=services, members_intent=False) as (account, heard):
        voice = VoiceFixture(sim, account, heard, bridge)
        await voice.join()
        officer = sim.guild.add_role("Officer")
        sim.guild.set_roles(sim.ben, [officer])
        await voice.act("voice_transcribe")
        await voice.say(sim.ben, ECONOMY)
        assert sound_like(await voice.until_transcribed(1), [f"Ben: {ECONOMY}"])
        assert asked_of and all(str(officer.id) in roles for roles in asked_of)


async def test_being_quiet_drops_what_waits(sim: AccountFixture) -> None:
    async with open_voice(sim) as voice:
        await voice.join()
        for number in range(20):
            await voice.act("voice_speak", text=f"{number} {MEETING}")
        session = voice.session
        assert session.is_speaking
        await voice.act("voice_hush")
        await voice.until(lambda: not session.is_speaking)
        await voice.until(lambda: sim.discord.voice.utterances)
        assert len(sim.discord.voice.utterances) == 1


async def test_an_account_without_a_voice_says_so(sim: AccountFixture) -> None:
    bridge = sim.guild.add_channel("Bridge", kind="voice")
    async with running(sim) as (account, heard):
        voice = VoiceFixture(sim, account, heard, bridge)
        with pytest.raises(NotFound, match="no voice here"):
            await voice.act("voice_join")


def test_a_message_is_spoken_without_its_marks() -> None:
    text = "**Yes**, <@123>: see [the page](https://docs.example/a) or https://docs.example\n```py\nx = 1\n```\n# Done"
    assert to_spoken(text) == "Yes, : see the page or (the code is in the chat) Done"
    assert to_spoken("word " * 1000).endswith("word. The rest is in the chat.")
    assert len(to_spoken("word " * 1000)) < 1540
