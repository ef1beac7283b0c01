"""The voice channels of one account: where it is, what it hands to the agent, and what it speaks of the answers.

What somebody says to the assistant is posted in the channel's chat first. Discord sends that message back like every
other, and it is delivered to the listener as a message of the speaker (`take_spoken`). So it has an id and a place in
the room's order, people see what was understood, and the answer goes out by the outbox, which the account then speaks.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import anyio
import discord
from anyio.abc import TaskGroup

from denizen.adapters.discord.client.errors import VENDOR_ERRORS, translate_error
from denizen.adapters.discord.messages.conversion import list_role_ids
from denizen.adapters.discord.voice.line import VoiceConnection
from denizen.adapters.discord.voice.session import Transcript, VoiceServices, VoiceSession
from denizen.domain.errors import DenizenError, NotFound, Unavailable
from denizen.domain.message import Author, TextPart
from denizen.domain.record import record
from denizen.domain.speech_notice import write_speech_notice
from denizen.ports.channel import IncomingMessage, MessageMentions

CONNECT_TIMEOUT_S = 10.0
"""How long one try to join may take; when it fails, discord.py waits as long again for the end of what it has begun."""
CONNECT_TRIES = 2
"""Each asks for one's own address in one packet, which may be lost, as may the answer: discord.py sends it once, and
its thread that reads may begin too late for it.
"""
LEAVE_TIMEOUT_S = 3.0
MAX_SPOKEN_CHARS = 1500
"""So much of an answer is spoken; the rest is read."""
_MAX_PENDING = 100
_NONCE_CHARS = 24

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINK = re.compile(r"\[([^\]\n]*)\]\(<?https?://[^)\s]*\)")
_URL = re.compile(r"<?https?://\S+")
_FORM = re.compile(r"<(?:@[!&]?|#|a?:|t:|/)[^<>\n]+>")
_MARKS = re.compile(r"[*_`~|#>]+")

_log = logging.getLogger("denizen.discord.voice")


@record
class _SpokenMessage:
    """The words of a member, until the message with them comes back from Discord."""

    member: discord.Member
    text: str


class VoiceDesk:
    """The voice sessions of one login, at most one in each guild."""

    def __init__(self, client: discord.Client, services: VoiceServices, tasks: TaskGroup) -> None:
        self._client = client
        self._services = services
        self._tasks = tasks
        self._sessions: dict[int, VoiceSession] = {}
        self._transcripts: dict[int, Transcript] = {}
        self._spoken: OrderedDict[str, _SpokenMessage] = OrderedDict()

    def find(self, guild: discord.Guild) -> VoiceSession | None:
        return self._sessions.get(guild.id)

    def get(self, guild: discord.Guild) -> VoiceSession:
        """Returns the session of the guild. Raises NotFound where the account is in no voice channel."""
        session = self._sessions.get(guild.id)
        if session is None:
            raise NotFound("I am in no voice channel here.", code="voice_not_joined", fix="Ask me to join one first.")
        return session

    async def join(self, channel: discord.VoiceChannel) -> VoiceSession:
        """Joins the channel, leaving another one of its guild. Raises Unavailable when it cannot be reached."""
        session = self._sessions.get(channel.guild.id)
        if session is not None and session.channel.id == channel.id:
            return session
        if session is not None:
            await self.leave(channel.guild)
        try:
            line, ended = await self._connect(channel)
        except VENDOR_ERRORS as error:
            raise translate_error(error, "join that voice channel") from None
        except RuntimeError as error:  # a package of the extra is missing
            raise Unavailable("Voice channels cannot be joined.", code="voice_broken", why=str(error)) from None
        session = VoiceSession(line, self._services, self._ask)
        self._sessions[channel.guild.id] = session
        self._tasks.start_soon(self._keep, channel.guild.id, session, ended)
        return session

    async def _connect(self, channel: discord.VoiceChannel) -> tuple[VoiceConnection, anyio.Event]:
        """Returns the connection, and the event of its end."""
        for left in reversed(range(CONNECT_TRIES)):
            ended = anyio.Event()
            make: Callable[[discord.Client, discord.abc.Connectable], VoiceConnection] = partial(
                VoiceConnection, clock=self._services.clock, on_end=ended.set
            )
            try:
                return await channel.connect(timeout=CONNECT_TIMEOUT_S, reconnect=True, cls=make), ended
            except TimeoutError:
                if not left:
                    raise
                _log.info("joining a voice channel again", extra={"channel": channel.id})
        raise AssertionError("the last try returns or raises")

    async def leave(self, guild: discord.Guild) -> None:
        """Leaves the channel of the guild. The transcript stays."""
        session = self._sessions.pop(guild.id, None)
        if session is not None:
            session.hush()
            await _disconnect(session)

    async def note_move(self, member: discord.Member) -> None:
        """Takes note of somebody who joined, left or moved. Leaves a channel in which nobody is any more but bots."""
        session = self._sessions.get(member.guild.id)
        if session is None:
            return
        if member.id == member.guild.me.id:
            if isinstance(session.line.channel, discord.VoiceChannel):
                session.note_move()
            else:  # a stage, where it has no chat to tell in
                await self.leave(member.guild)
        elif all(each.bot for each in session.channel.members):
            await self.leave(member.guild)

    # --- transcripts -------------------------------------------------------------------------------------------------

    def begin_transcript(self, guild: discord.Guild) -> Transcript:
        """Begins a new transcript, and forgets the last one of the guild."""
        session = self.get(guild)
        if session.transcript is None:
            session.transcript = Transcript(session.channel, self._services.clock.now())
            self._transcripts[guild.id] = session.transcript
            session.follow()
        return session.transcript

    def end_transcript(self, guild: discord.Guild) -> None:
        session = self.get(guild)
        session.transcript = None
        session.follow()

    async def get_transcript(self, guild: discord.Guild) -> Transcript:
        """Returns the latest transcript of the guild, without the lines of people who have opted out or were forgotten
        meanwhile. Raises NotFound where there is none.
        """
        found = self._transcripts.get(guild.id)
        if found is None:
            raise NotFound(
                "There is no transcript.",
                code="voice_no_transcript",
                why="Nothing was written down here since I started.",
                fix="Have me transcribe first.",
            )
        await found.drop_withheld(self._services)
        return found

    # --- the assistant -----------------------------------------------------------------------------------------------

    def take_spoken(self, nonce: str, message: IncomingMessage) -> IncomingMessage:
        """Returns a message of the account as that of the speaker, if its nonce is that of something said."""
        spoken = self._spoken.pop(nonce, None)
        if spoken is None:
            return message
        member, text = spoken.member, spoken.text

        async def load_parts() -> tuple[TextPart, ...]:
            return (TextPart(text),)

        return replace(
            message,
            post=replace(message.post, author=Author(str(member.id), member.display_name), text=text),
            question=text,
            command="",
            load_parts=load_parts,
            roles=list_role_ids(member),
            mentions=MessageMentions(me=True),
            is_mine=False,
        )

    def speak_answer(self, room: str, text: str) -> None:
        """Has a message of the account spoken, if it talks with the people of that voice channel."""
        session = next(
            (each for each in self._sessions.values() if each.assists and str(each.channel.id) == room), None
        )
        words = to_spoken(text)
        if session is not None and words:
            self._tasks.start_soon(self._say, session, words)

    async def _say(self, session: VoiceSession, words: str) -> None:
        try:
            await session.say(words)
        except DenizenError as error:
            session.problem = error.explain()
            _log.warning("an answer was not spoken: %s", error.message, extra=error.fields)

    async def _ask(self, member: discord.Member, text: str) -> None:
        session = self._sessions.get(member.guild.id)
        if session is None:
            return
        nonce = secrets.token_hex(_NONCE_CHARS // 2)
        self._spoken[nonce] = _SpokenMessage(member, text)
        while len(self._spoken) > _MAX_PENDING:
            self._spoken.popitem(last=False)
        name, said = discord.utils.escape_markdown(member.display_name), discord.utils.escape_markdown(text)
        try:
            await session.channel.send(write_speech_notice(name, said)[:2000], nonce=nonce)
        except VENDOR_ERRORS as error:
            self._spoken.pop(nonce, None)
            raise translate_error(error, "write in the chat of that voice channel") from None

    async def _keep(self, guild_id: int, session: VoiceSession, ended: anyio.Event) -> None:
        """Runs a session until its connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._run, session)
            await ended.wait()
            session.end()
        if self._sessions.get(guild_id) is session:
            del self._sessions[guild_id]

    async def _run(self, session: VoiceSession) -> None:
        """Runs a session, and leaves the channel when it fails."""
        try:
            await session.run()
        except Exception:  # noqa: BLE001 - the boundary of a job: a fault here must not end the account
            _log.exception("a voice session failed")
            await _disconnect(session)


async def _disconnect(session: VoiceSession) -> None:
    """Leaves the channel, also when it is cancelled: discord.py waits in vain for the end of what was left halfway."""
    with anyio.move_on_after(LEAVE_TIMEOUT_S, shield=True):
        await session.line.disconnect(force=True)


def to_spoken(text: str) -> str:
    """Returns a message as it is spoken: without marks of Markdown, addresses, mentions and code."""
    plain = _CODE.sub(" (the code is in the chat) ", text)
    plain = _URL.sub("", _LINK.sub(r"\1", plain))
    plain = " ".join(_MARKS.sub("", _FORM.sub("", plain)).split())
    if len(plain) <= MAX_SPOKEN_CHARS:
        return plain
    return f"{plain[:MAX_SPOKEN_CHARS].rsplit(' ', 1)[0]}. The rest is in the chat."
