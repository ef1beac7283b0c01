"""One stay of an account in a voice channel: speaking in turn, writing down, and holding a conversation.

Nothing is heard until somebody asks for it, and that is said in the channel first. Sound is in memory only, until it is
recognized. Nothing is recognized of bots and of people who opted out.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import anyio
import discord
from anyio import to_thread

from denizen.adapters.discord.guild.members import find_member
from denizen.adapters.discord.voice.codec import encode_opus
from denizen.adapters.discord.voice.line import Talk, VoiceConnection
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, LimitExceeded
from denizen.domain.record import record
from denizen.ports.speech import Sound, Speech

LOOK_EVERY_S = 0.1
MAX_WAITING = 20
"""Texts that wait to be spoken."""
MAX_LINES = 3000
"""Lines of a transcript; the oldest are forgotten."""

_log = logging.getLogger("denizen.discord.voice")


@record
class SpokenLine:
    """One talk as it was recognized."""

    at: datetime
    user_id: str
    roles: frozenset[str]
    name: str
    text: str


class Transcript:
    """The lines of what was said in one channel, kept in memory until the next one of the server begins."""

    def __init__(self, channel: discord.VoiceChannel, began_at: datetime) -> None:
        self.channel = channel
        self.began_at = began_at
        self.lines: deque[SpokenLine] = deque(maxlen=MAX_LINES)

    async def drop_withheld(self, services: VoiceServices) -> None:
        """Drops the lines of people who have opted out, or were forgotten since they said them."""
        for user_id, roles in {(each.user_id, each.roles) for each in self.lines}:
            is_opted_out = await services.is_opted_out(user_id, roles, str(self.channel.id))
            until = await services.find_forgotten(user_id)
            if is_opted_out or until is not None:
                kept = [
                    each
                    for each in self.lines
                    if (each.user_id, each.roles) != (user_id, roles)
                    or (not is_opted_out and until is not None and each.at > until)
                ]
                self.lines.clear()
                self.lines.extend(kept)


class IsOptedOut(Protocol):
    """Tells whether nothing may be kept of what that member says in that channel."""

    async def __call__(self, user_id: str, roles: frozenset[str], channel: str) -> bool: ...


@record(kw_only=True)
class VoiceServices:
    """The parts that a voice session works with. `find_forgotten` returns the time until which what a person said was
    forgotten; None if it never was. `open_speech` returns the engines as the configuration has them now;
    it raises NeedsAttention for what is not configured.
    """

    clock: Clock
    open_speech: Callable[[], Speech]
    is_opted_out: IsOptedOut
    find_forgotten: Callable[[str], Awaitable[datetime | None]]


Ask = Callable[[discord.Member, str], Awaitable[None]]
"""Hands what a member said to the agent, as if they had written it."""


@record
class _ListeningState:
    """The channel in which talks were heard, and what it was told of then."""

    channel_id: int
    transcript: Transcript | None
    assists: bool


class VoiceSession:
    """The stay in one channel, from `run` until the connection ends."""

    def __init__(self, line: VoiceConnection, services: VoiceServices, ask: Ask) -> None:
        self.line = line
        self.transcript: Transcript | None = None
        """The transcript that is being written."""
        self.assists = False
        self.wake_word = ""
        self.problem = ""
        """The reason for which the last talk could not be recognized."""
        self._services = services
        self._ask = ask
        self._waiting: deque[Sound] = deque()
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._joined = self.channel.id

    @property
    def channel(self) -> discord.VoiceChannel:
        channel = self.line.channel
        if not isinstance(channel, discord.VoiceChannel):
            raise TypeError("the account was moved to a stage")
        return channel

    @property
    def is_speaking(self) -> bool:
        return self.line.is_playing() or bool(self._waiting)

    async def run(self) -> None:
        """Speaks and listens until `end`."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._speak)
                tasks.start_soon(self._listen)

    def end(self) -> None:
        self._scope.cancel()

    async def say(self, text: str) -> Sound:
        """Has a text spoken after those that wait. Returns its sound once that is made. Raises the errors of a
        synthesizer, and LimitExceeded when too many texts wait.
        """
        if len(self._waiting) >= MAX_WAITING:
            raise LimitExceeded(
                "Too many texts wait to be spoken.", code="voice_too_much", fix="Wait, or have it be quiet first."
            )
        sound = await self._services.open_speech().synthesizer.synthesize(text)
        self._waiting.append(sound)
        self._changed.set()
        return sound

    def hush(self) -> None:
        """Stops speaking, and drops what waits."""
        self._waiting.clear()
        self.line.stop()

    def note_move(self) -> None:
        """Stops listening where somebody has put the account into another channel: nobody there was told."""
        if self.line.channel.id != self._joined:
            self._joined = self.line.channel.id
            self.transcript, self.assists = None, False
            self.follow()

    def follow(self) -> None:
        """Listens if somebody wants it, and otherwise stops to."""
        wanted = self.assists or self.transcript is not None
        if wanted != self.line.receiver.listens:
            self.line.receiver.listens = wanted

    async def _speak(self) -> None:
        while True:
            while self._waiting:
                packets = await to_thread.run_sync(encode_opus, self._waiting[0])
                if not self._waiting:  # hushed meanwhile
                    break
                self._waiting.popleft()
                if packets and self.line.is_connected():
                    await self.line.speak(packets)
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _listen(self) -> None:
        while True:
            told = _ListeningState(self.line.channel.id, self.transcript, self.assists)
            for talk in self.line.receiver.take_finished():
                try:
                    await self._write_down(talk, told)
                except DenizenError as error:
                    self.problem = error.explain()
                    _log.warning("a talk was not recognized: %s", error.message, extra=error.fields)
            await anyio.sleep(LOOK_EVERY_S)

    async def _write_down(self, talk: Talk, told: _ListeningState) -> None:
        """Uses a talk for what its channel was told of, as far as that still goes on."""
        member = await find_member(self.line.client, self.line.guild, talk.user_id)
        if member is None or member.bot:
            return
        roles = frozenset(str(role.id) for role in member.roles)
        if await self._services.is_opted_out(str(member.id), roles, str(told.channel_id)):
            return
        heard_at = self._services.clock.now()
        text = await self._services.open_speech().recognizer.transcribe(talk.sound)
        if not text or self.line.channel.id != told.channel_id:
            return
        self.problem = ""
        if told.transcript is not None and told.transcript is self.transcript:
            told.transcript.lines.append(SpokenLine(heard_at, str(member.id), roles, member.display_name, text))
            _log.info("a talk was written down", extra={"room": str(told.channel_id)})
        if told.assists and self.assists and (asked := cut_wake_word(text, self.wake_word)):
            await self._ask(member, asked)


def cut_wake_word(text: str, wake_word: str) -> str:
    """Returns what was said after the wake word; empty where the text does not begin with it, whatever its case and
    punctuation. Without one it is the whole text.
    """
    if not wake_word:
        return text
    words = r"\W+".join(map(re.escape, wake_word.split()))
    found = re.match(rf"\W*{words}(?!\w)", text, re.IGNORECASE)
    return text[found.end() :].lstrip(" ,.:;!?") if found else ""
