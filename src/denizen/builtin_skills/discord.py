"""Messages, reactions, polls, threads and forum posts on Discord, for the person who asks.

The platform (`context.platform`) decides at the moment of the action what the asker and the account may both do. What
people are called and what they write comes back quoted as data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated

from denizen.builtin_skills.attempts import find_first_attempt
from denizen.skill import (
    Effect,
    Json,
    JsonObject,
    NotAllowed,
    NotFound,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolOutput,
    quote_untrusted,
)

skill = Skill(
    "discord", description="Messages, reactions, polls, threads and forum posts on Discord.", acts_on_platform=True
)

Channel = Annotated[str, "#name or id; empty: here"]
MessageId = Annotated[str, "id or link"]


@dataclass(frozen=True, slots=True)
class MessageEmbed:
    title: str = ""
    text: str = ""
    url: str = ""
    image: Annotated[str, "https"] = ""
    fields: dict[str, str] = field(default_factory=dict[str, str])


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def send_message(
    context: ToolContext,
    text: str = "",
    channel: Channel = "",
    embed: MessageEmbed | None = None,
    reply_to: Annotated[str, "message id"] = "",
) -> str:
    """Posts a message. @Name pings. Your answer needs no tool."""
    return _posted(
        await act(context, "send_message", text=text, channel=channel, embed=_card(embed), reply_to=reply_to)
    )


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def edit_message(
    context: ToolContext, message: MessageId, text: str = "", channel: Channel = "", embed: MessageEmbed | None = None
) -> str:
    """Changes a message of yours."""
    done = await act(context, "edit_message", message=message, text=text, channel=channel, embed=_card(embed))
    return f"Changed: {done['link']}"


@skill.tool(tier=Tier.SENSITIVE)
async def delete_own_message(context: ToolContext, message: MessageId, channel: Channel = "") -> str:
    """Deletes a message of yours."""
    await act(context, "delete_message", message=message, channel=channel, own=True)
    return "Deleted."


@skill.tool(tier=Tier.DANGEROUS, destructive=True)
async def delete_message(context: ToolContext, message: MessageId, channel: Channel = "") -> str:
    """Deletes a message of anybody."""
    await act(context, "delete_message", message=message, channel=channel)
    return "Deleted."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def pin_message(context: ToolContext, message: MessageId, channel: Channel = "", unpin: bool = False) -> str:  # noqa: FBT001, FBT002
    """Pins a message, or unpins it."""
    done = await act(context, "unpin_message" if unpin else "pin_message", message=message, channel=channel)
    return f"{'Unpinned' if unpin else 'Pinned'}: {done['link']}"


@skill.tool(tier=Tier.DANGEROUS, idempotent=True, effects={Effect.SEND})
async def crosspost_message(context: ToolContext, message: MessageId, channel: Channel = "") -> str:
    """Publishes a message of an announcement channel to all servers that follow it."""
    return f"Published: {(await act(context, 'crosspost_message', message=message, channel=channel))['link']}"


@skill.tool(tier=Tier.LIMITED, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def react(
    context: ToolContext,
    message: MessageId,
    emoji: Annotated[str, "👍 or a name of the server's"],
    channel: Channel = "",
    remove: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Puts your reaction on a message, or takes it away."""
    await act(context, "remove_reaction" if remove else "add_reaction", message=message, emoji=emoji, channel=channel)
    return "Done."


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_reactions(
    context: ToolContext, message: MessageId, emoji: Annotated[str, "to see who chose it"] = "", channel: Channel = ""
) -> str | ToolOutput:
    """Counts the reactions on a message."""
    found = await act(context, "read_reactions", message=message, emoji=emoji, channel=channel)
    counts, names = found["reactions"], found.get("names")
    lines = [f"{sign} {count}" for sign, count in counts.items()] if isinstance(counts, dict) else []
    lines += [f"by {', '.join(map(str, names))}"] if isinstance(names, list) and names else []
    if not lines:
        return ToolOutput("There are no reactions.", is_own=True)
    return quote_untrusted("\n".join(lines), source="reactions")


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def create_poll(
    context: ToolContext,
    question: Annotated[str, Param(max_length=300)],
    answers: Annotated[list[str], Param("55 characters each", min_length=1, max_length=10)],
    hours: Annotated[int, Param(ge=1, le=768)] = 24,
    several: Annotated[bool, "may be chosen"] = False,  # noqa: FBT002
    channel: Channel = "",
) -> str:
    """Posts a poll."""
    return _posted(
        await act(
            context, "create_poll", question=question, answers=[*answers], hours=hours, several=several, channel=channel
        )
    )


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def end_poll(context: ToolContext, message: MessageId, channel: Channel = "") -> str:
    """Ends a poll of yours now."""
    return f"Ended: {(await act(context, 'end_poll', message=message, channel=channel))['link']}"


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def read_poll(context: ToolContext, message: MessageId, channel: Channel = "") -> str:
    """Reads how a poll stands."""
    found = await act(context, "read_poll", message=message, channel=channel)
    answers = found["answers"]
    rows = [row for row in answers if isinstance(row, list)] if isinstance(answers, list) else []
    lines = [str(found["question"]), *(f"- {row[0]}: {row[1]}" for row in rows)]
    lines.append("It has ended." if found["ended"] else f"It ends {found['ends']}.")
    return quote_untrusted("\n".join(lines), source="poll")


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def create_thread(
    context: ToolContext,
    name: Annotated[str, Param(max_length=100)],
    text: Annotated[str, "its first message"] = "",
    message: Annotated[str, "id of one to begin from"] = "",
    channel: Channel = "",
    private: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Opens a thread."""
    done = await act(context, "create_thread", name=name, text=text, message=message, channel=channel, private=private)
    return f"Opened <#{done['thread']}>: {done['link']}"


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("thread",))
async def edit_thread(
    context: ToolContext,
    thread: Channel = "",
    name: str = "",
    archived: bool | None = None,  # noqa: FBT001
    locked: bool | None = None,  # noqa: FBT001
) -> str:
    """Renames, archives or locks a thread, or undoes that."""
    done = await act(context, "edit_thread", thread=thread, name=name, archived=archived, locked=locked)
    return f"Changed: {done['link']}"


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("thread",))
async def add_to_thread(context: ToolContext, member: Annotated[str, "name or id"], thread: Channel = "") -> str:
    """Lets a member into a thread."""
    return f"Added: {(await act(context, 'add_to_thread', member=member, thread=thread))['link']}"


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("channel",))
async def create_forum_post(
    context: ToolContext,
    channel: Annotated[str, "the forum"],
    title: Annotated[str, Param(max_length=100)],
    text: str,
    tags: Annotated[list[str], Param("names", max_length=5)] = [],  # noqa: B006
) -> str:
    """Posts in a forum."""
    done = await act(context, "create_forum_post", channel=channel, title=title, text=text, tags=[*tags])
    return f"Posted <#{done['thread']}>: {done['link']}"


async def act(context: ToolContext, action: str, **details: Json) -> JsonObject:
    """Runs an action on the platform. Raises NotAllowed where there is no platform, and what the platform raises."""
    if context.platform is None:
        raise NotAllowed("This works on Discord only.", code="no_platform", fix="Ask in a channel of a server there.")
    return await context.platform.act(action, **details)


def _posted(done: JsonObject) -> str:
    return f"Posted, message {done['message']}: {done['link']}"


def _card(embed: MessageEmbed | None) -> JsonObject:
    return {} if embed is None else {name: value for name, value in asdict(embed).items() if value}


async def act_removing(context: ToolContext, action: str, **details: Json) -> JsonObject | None:
    """Runs an action that removes something. Returns None when an earlier attempt of this call seems to have done
    it: the thing is not there any more.
    """
    again = await find_first_attempt(context)
    try:
        return await act(context, action, **details)
    except NotFound:
        if not again:
            raise
        return None
