"""Actions in voice channels: joining, speaking, writing down, holding a conversation.

Who has the account do something in a voice channel must be allowed to do the like there. What was said there is told
only where everybody may see that channel.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import discord
from discord.http import handle_message_parameters

from denizen.adapters.discord.actions.context import ActionContext
from denizen.adapters.discord.actions.lookup import find_channel
from denizen.adapters.discord.actions.posting import TEXT_CHARS, describe_message
from denizen.adapters.discord.client.http import begin_change
from denizen.adapters.discord.gateway.client import GatewayClient
from denizen.adapters.discord.guild.audience import list_visible_rooms
from denizen.adapters.discord.messages.conversion import to_room
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.json import Json, JsonObject

if TYPE_CHECKING:  # the packages of the extra `voice` may be missing
    from denizen.adapters.discord.voice.desk import VoiceDesk
    from denizen.adapters.discord.voice.session import Transcript, VoiceSession

LISTENING = "🔴 I am listening now, and I write down what is said here. Ask me to stop at any time."
CONVERSING = (
    "🎙️ You can talk with me now: I listen, write what I understand into this chat, and speak my answers. Ask me to "
    "stop at any time."
)
STOPPED = "I have stopped listening."
MAX_TRANSCRIPT_CHARS = 60_000


async def voice_channels(context: ActionContext) -> JsonObject:
    """Lists the voice channels that the asker and every reader of the answer see, with who is in them."""
    seen = await list_visible_rooms(context.client, context.warrant.place, context.warrant.asker)
    rows: list[Json] = [
        {"id": str(each.id), "name": each.name, "members": [member.display_name for member in each.members]}
        for each in context.guild.voice_channels
        if str(each.id) in seen
    ]
    return {"channels": rows}


async def voice_members(context: ActionContext, channel: str = "") -> JsonObject:
    """Lists who is in a voice channel, and who of them is muted or deaf."""
    where = _find_voice_channel(context, channel)
    await context.require_open(where)
    rows: list[Json] = [
        {
            "id": str(each.id),
            "name": each.display_name,
            "is_bot": each.bot,
            "is_muted": bool(each.voice and (each.voice.mute or each.voice.self_mute)),
            "is_deaf": bool(each.voice and (each.voice.deaf or each.voice.self_deaf)),
        }
        for each in where.members
    ]
    return {"channel": str(where.id), "name": where.name, "members": rows}


async def voice_join(context: ActionContext, channel: str = "") -> JsonObject:
    """Joins a voice channel; without a name, that in which the asker is."""
    where = _find_voice_channel(context, channel)
    context.require("connect", where)
    desk = _get_desk(context)
    current = desk.find(context.guild)
    if current is not None and current.channel.id != where.id:  # those in the other channel would lose the account
        context.require_asker("connect", current.channel)
    begin_change()
    await desk.join(where)
    return {"channel": str(where.id), "name": where.name}


async def voice_leave(context: ActionContext) -> JsonObject:
    """Leaves the voice channel."""
    session = _get_session(context)
    where = session.channel
    begin_change()
    await _get_desk(context).leave(context.guild)
    return {"channel": str(where.id), "name": where.name}


async def voice_status(context: ActionContext) -> JsonObject:
    """Tells where the account is and what it does there."""
    session = _get_desk(context).find(context.guild)
    if session is None or not context.sees(session.channel):
        return {"channel": ""}
    await context.require_open(session.channel)
    return {
        "channel": str(session.channel.id),
        "name": session.channel.name,
        "is_speaking": session.is_speaking,
        "transcribes": session.transcript is not None,
        "assists": session.assists,
        "problem": session.problem,
    }


async def voice_speak(context: ActionContext, text: str) -> JsonObject:
    """Has a text spoken in the voice channel in which the account is."""
    session = _get_session(context)
    context.require("speak", session.channel)
    begin_change()
    sound = await session.say(text)
    return {"channel": str(session.channel.id), "name": session.channel.name, "seconds": round(sound.duration_s, 1)}


async def voice_hush(context: ActionContext) -> JsonObject:
    """Stops speaking."""
    session = _get_session(context)
    begin_change()
    session.hush()
    return {}


async def voice_transcribe(context: ActionContext, *, on: bool = True) -> JsonObject:
    """Begins to write down what is said, or ends it. The channel is told first."""
    session, desk = _get_session(context), _get_desk(context)
    where = session.channel
    begin_change()
    if not on:
        desk.end_transcript(context.guild)
        return {"channel": str(where.id), "name": where.name} | await _tell_stopped(context, session)
    if session.transcript is not None:
        return {"channel": str(where.id), "name": where.name}
    await _post(context, where, LISTENING)
    _require_still_in(context, session, where)
    desk.begin_transcript(context.guild)
    return {"channel": str(where.id), "name": where.name}


async def voice_assist(context: ActionContext, *, on: bool = True, wake_word: str = "") -> JsonObject:
    """Begins to answer those who speak, or ends it. The channel is told first."""
    session = _get_session(context)
    where = session.channel
    if on:
        context.require("send_messages", where)
        context.require("speak", where)
    begin_change()
    if not on:
        session.assists = False
        session.follow()
        return {"channel": str(where.id), "name": where.name} | await _tell_stopped(context, session)
    wake_word = wake_word.strip()
    if not session.assists or wake_word != session.wake_word:
        await _post(context, where, f"{CONVERSING} Begin with “{wake_word}”." if wake_word else CONVERSING)
        _require_still_in(context, session, where)
    session.assists, session.wake_word = True, wake_word
    session.follow()
    return {"channel": str(where.id), "name": where.name}


async def voice_transcript(context: ActionContext) -> JsonObject:
    """Returns the lines of the latest transcript, for readers who all may see its channel."""
    transcript = await _get_transcript(context)
    lines = [f"{each.at:%H:%M} {each.name}: {each.text}" for each in transcript.lines]
    return {
        "channel": str(transcript.channel.id),
        "name": transcript.channel.name,
        "began_at": transcript.began_at.isoformat(),
        "lines": _keep_newest(lines),
    }


async def voice_post_minutes(context: ActionContext, text: str, channel: str, began_at: str) -> JsonObject:
    """Posts the minutes of a meeting in the chat of its channel, with the transcript as a file. `channel` and
    `began_at` are those of the transcript that the minutes were made of. Raises Conflict when another one has begun.
    """
    transcript = await _get_transcript(context)
    where = transcript.channel
    if (str(where.id), transcript.began_at.isoformat()) != (channel, began_at):
        raise Conflict(
            "The minutes are not posted.",
            code="voice_other_transcript",
            why="Another transcript has begun meanwhile, and that of the meeting is gone.",
            fix="Write it up again; that takes the new one.",
        )
    context.require_writing(where, "attach_files")
    said = "\n".join(f"{each.at:%Y-%m-%d %H:%M:%S} {each.name}: {each.text}" for each in transcript.lines)
    file = discord.File(io.BytesIO(said.encode()), f"transcript-{transcript.began_at:%Y-%m-%d-%H%M}.txt")
    return await _post(context, where, text, file)


def _get_desk(context: ActionContext) -> VoiceDesk:
    desk = context.client.voice if isinstance(context.client, GatewayClient) else None
    if desk is None:
        raise NotFound(
            "I have no voice here.", code="voice_off", fix="Have the owner write `tools.voice.enabled: true`."
        )
    return desk


def _get_session(context: ActionContext) -> VoiceSession:
    """Returns the session of the guild, for somebody who may be in that channel."""
    session = _get_desk(context).get(context.guild)
    context.require_asker("connect", session.channel)
    return session


def _require_still_in(context: ActionContext, session: VoiceSession, where: discord.VoiceChannel) -> None:
    """Raises Conflict unless the account is in the channel that was told, without having left it."""
    if _get_desk(context).find(context.guild) is not session or session.line.channel.id != where.id:
        raise Conflict(
            "I do not listen.",
            code="voice_moved",
            why="I came into another channel while I told the first one, and nobody there was told.",
            fix="Ask again.",
        )


async def _get_transcript(context: ActionContext) -> Transcript:
    transcript = await _get_desk(context).get_transcript(context.guild)
    context.require_asker("connect", transcript.channel)
    await context.require_open(transcript.channel)
    return transcript


def _find_voice_channel(context: ActionContext, channel: str) -> discord.VoiceChannel:
    if channel:
        found = find_channel(context, channel)
    else:
        found = context.asker.voice.channel if context.asker.voice else context.here
    if not isinstance(found, discord.VoiceChannel):
        raise InvalidInput(
            "That is no voice channel." if channel else "I do not know which voice channel is meant.",
            code="discord_wrong_channel",
            fix="Give the name or id of a voice channel, or join one yourself.",
        )
    if not context.sees(found):
        raise NotFound(f"There is no channel {found.id} that you can see.", code="discord_no_channel")
    return found


async def _post(
    context: ActionContext, where: discord.VoiceChannel, text: str, file: discord.File | None = None
) -> JsonObject:
    """Posts in the chat of a voice channel, and pings nobody."""
    context.require_account("send_messages", where)
    if len(text) > TEXT_CHARS:
        raise InvalidInput(
            f"A message has at most {TEXT_CHARS} characters; this has {len(text)}.",
            code="discord_too_long",
            fix="Say it shorter.",
        )
    params = handle_message_parameters(
        content=text,
        nonce=context.nonce,
        file=file or discord.utils.MISSING,
        allowed_mentions=discord.AllowedMentions.none(),
    )
    async with context.enter(to_room(where).place):
        with params:
            sent = cast("Mapping[str, Any]", await context.client.http.send_message(where.id, params=params))
    return describe_message(context, where.id, int(sent["id"]))


async def _tell_stopped(context: ActionContext, session: VoiceSession) -> JsonObject:
    """Tells the channel that nothing is heard any more, once that is so."""
    return {} if session.line.receiver.listens else await _post(context, session.channel, STOPPED)


def _keep_newest(lines: Sequence[str]) -> list[Json]:
    """Returns the newest lines that fit."""
    kept: list[Json] = []
    left = MAX_TRANSCRIPT_CHARS
    for line in reversed(lines):
        left -= len(line)
        if left < 0:
            break
        kept.append(line)
    return kept[::-1]
