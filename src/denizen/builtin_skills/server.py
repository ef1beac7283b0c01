"""Manages a Discord server for somebody who may: channels, roles, permissions, emojis, invitations, events and
webhooks.

The platform (`context.platform`) decides at the moment of the action what the asker may do. What others have named or
described comes back quoted as data. A thing is created once, also when a call runs again after a restart.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from denizen.builtin_skills.attempts import find_first_attempt
from denizen.builtin_skills.discord import act, act_removing
from denizen.skill import Json, Param, Skill, Taint, Tier, ToolContext, ToolError, ToolOutput, quote_untrusted

skill = Skill(
    "server",
    description="Channels, roles, permissions, emojis, invites, events, webhooks of a server.",
    acts_on_platform=True,
)

MAX_PICTURE_BYTES = 256 * 1024

Name = Annotated[str, Param(min_length=1, max_length=100)]
Channel = Annotated[str, "#name or id"]
Here = Annotated[str, "empty: here"]
Reason = Annotated[str, Param(max_length=400)]
Powers = list[str] | None
Colour = Annotated[str, "#1E90FF"]
Time = Annotated[str, "2026-11-01 20:00, UTC"]


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def server_info(context: ToolContext) -> str:
    """Shows what this server is: owner, age, numbers, emojis."""
    found: Any = await act(context, "server_info")
    channels = ", ".join(f"{count} {kind}" for kind, count in found["channels"].items())
    lines = [
        f"{found['name']} (id {found['id']}), owned by <@{found['owner']}>, made {found['created_at']}",
        *([found["description"]] if found["description"] else []),
        f"{found['members']} members, {found['roles']} roles, {found['boosts']} boosts; channels: {channels}",
        f"emojis: {', '.join(found['emojis']) or 'none'}",
    ]
    return quote_untrusted("\n".join(lines), source="server")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_channels(context: ToolContext, name: Annotated[str, "part of it"] = "") -> str | ToolOutput:
    """Lists channels by category."""
    found: Any = await act(context, "list_channels", name=name)
    lines = [
        f"#{row['name']} (id {row['id']}, {row['kind']}{', in ' + row['category'] if row['category'] else ''})"
        + (f": {' '.join(row['topic'].split())[:100]}" if row["topic"] else "")
        for row in found["channels"]
    ]
    if len(lines) < found["total"]:
        lines.append(f"({found['total'] - len(lines)} more)")
    if not lines:
        return ToolOutput("No channel fits.", is_own=True)
    return quote_untrusted("\n".join(lines), source="channels")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_roles(context: ToolContext) -> str:
    """Lists roles, highest first, with what they may beyond everybody."""
    found: Any = await act(context, "list_roles")
    lines = [
        f"{row['name']} (id {row['id']}{f', {count} members' if (count := row['members']) >= 0 else ''})"
        + (f": {', '.join(row['permissions'])}" if row["permissions"] else "")
        for row in found["roles"]
    ]
    return quote_untrusted("\n".join(lines), source="roles")


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def create_channel(
    context: ToolContext,
    name: Name,
    kind: Literal["text", "voice", "stage", "forum", "announcement", "category"] = "text",
    category: str = "",
    topic: str = "",
    private_to: Annotated[list[str] | None, "who alone see it"] = None,
) -> str:
    """Makes a channel or category."""
    made = await act(
        context,
        "create_channel",
        name=name,
        kind=kind,
        category=category,
        topic=topic,
        private_to=_texts(private_to),
        since=await find_first_attempt(context),
    )
    return f"Made <#{made['id']}>."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def edit_channel(
    context: ToolContext,
    channel: Channel,
    name: Annotated[str, Param(max_length=100)] = "",
    topic: str | None = None,
    category: Annotated[str | None, "moves it; empty: out"] = None,
    nsfw: bool | None = None,  # noqa: FBT001 - tools are called by name
) -> str:
    """Changes a channel; what is not given stays."""
    done = await act(context, "edit_channel", channel=channel, name=name, topic=topic, category=category, nsfw=nsfw)
    return f"Changed <#{done['id']}>."


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def delete_channel(context: ToolContext, channel: Channel, reason: Reason = "") -> str:
    """Deletes a channel, category or thread with all messages."""
    return _gone(await act_removing(context, "delete_channel", channel=channel, reason=reason), channel)


@skill.tool(tier=Tier.DANGEROUS, idempotent=True)
async def set_channel_permission(
    context: ToolContext,
    channel: Channel,
    who: Annotated[str, "role or member"],
    allow: Powers = None,
    deny: Powers = None,
    clear: Powers = None,
) -> str:
    """Sets what a role or member may in a channel."""
    done = await act(
        context,
        "set_channel_permission",
        channel=channel,
        who=who,
        allow=_texts(allow),
        deny=_texts(deny),
        clear=_texts(clear),
    )
    return f"Changed who may what in <#{done['id']}>."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def create_role(
    context: ToolContext,
    name: Name,
    permissions: Annotated[Powers, "Kick Members"] = None,
    color: Colour = "",
    hoist: bool = False,  # noqa: FBT001, FBT002 - tools are called by name
    mentionable: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """Makes a role."""
    made = await act(
        context,
        "create_role",
        name=name,
        permissions=_texts(permissions),
        color=color,
        hoist=hoist,
        mentionable=mentionable,
        since=await find_first_attempt(context),
    )
    return f"Made the role <@&{made['id']}>."


@skill.tool(tier=Tier.DANGEROUS, idempotent=True)
async def edit_role(  # noqa: PLR0913, PLR0917 - as Discord's own form
    context: ToolContext,
    role: str,
    name: str = "",
    allow: Powers = None,
    forbid: Powers = None,
    color: Colour = "",
    hoist: bool | None = None,  # noqa: FBT001 - tools are called by name
    mentionable: bool | None = None,  # noqa: FBT001
) -> str:
    """Changes a role; what is not given stays."""
    done = await act(
        context,
        "edit_role",
        role=role,
        name=name,
        allow=_texts(allow),
        forbid=_texts(forbid),
        color=color,
        hoist=hoist,
        mentionable=mentionable,
    )
    return f"Changed the role <@&{done['id']}>."


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def delete_role(context: ToolContext, role: str, reason: Reason = "") -> str:
    """Deletes a role."""
    return _gone(await act_removing(context, "delete_role", role=role, reason=reason), role)


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def create_emoji(
    context: ToolContext,
    name: Annotated[str, Param(pattern=r"^[A-Za-z0-9_]{2,32}$")],
    url: Annotated[str, "of a picture"],
) -> str:
    """Makes an emoji from a picture of at most 256 KB."""
    if context.download is None:
        raise ToolError("Pictures cannot be loaded here.")
    since = await find_first_attempt(context)
    if not since:  # an earlier attempt may have taken the last place
        await act(context, "check_emoji", name=name)
    picture = await context.download(url, max_bytes=MAX_PICTURE_BYTES)
    if picture.status != 200 or picture.truncated:
        what = "has more than 256 KB" if picture.truncated else f"could not be loaded: HTTP {picture.status}"
        raise ToolError(f"The picture {what}.")
    data = base64.b64encode(picture.data).decode()
    made = await act(context, "create_emoji", name=name, picture=data, since=since)
    return f"Made the emoji :{made['name']}:."


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def delete_emoji(context: ToolContext, emoji: str, reason: Reason = "") -> str:
    """Deletes an emoji of this server."""
    return _gone(await act_removing(context, "delete_emoji", emoji=emoji, reason=reason), emoji)


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def create_invite(
    context: ToolContext,
    channel: Here = "",
    hours: Annotated[int, Param("0: for ever", ge=0, le=168)] = 24,
    uses: Annotated[int, Param("0: any number", ge=0, le=100)] = 0,
) -> str:
    """Makes an invitation link."""
    made = await act(context, "create_invite", channel=channel, hours=hours, uses=uses)
    return f"{made['url']} leads to <#{made['channel']}>."


@skill.tool(tier=Tier.LIMITED, read_only=True)
async def list_invites(context: ToolContext) -> str:
    """Lists invitations, for managers."""
    found: Any = await act(context, "list_invites")
    lines = [
        f"{row['code']} to <#{row['channel']}>"
        + (f" by <@{row['by']}>" if row["by"] else "")
        + f", used {row['uses']} of {row['max_uses'] or 'any number of'} times"
        + (f", until {row['expires_at']}" if row["expires_at"] else "")
        for row in found["invites"]
    ]
    return "\n".join(lines) or "There are no invitations."


@skill.tool(tier=Tier.SENSITIVE, destructive=True, idempotent=True)
async def delete_invite(context: ToolContext, invite: Annotated[str, "code or link"], reason: Reason = "") -> str:
    """Makes an invitation invalid."""
    return _gone(await act_removing(context, "delete_invite", invite=invite, reason=reason), invite)


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def create_event(
    context: ToolContext,
    name: Name,
    start: Time,
    end: str = "",
    location: Annotated[str, "needs an end"] = "",
    channel: Annotated[str, "voice or stage"] = "",
    description: str = "",
) -> str:
    """Plans an event at a location or in a channel."""
    made = await act(
        context,
        "create_event",
        name=name,
        start=_time(start),
        end=_time(end) if end.strip() else "",
        location=location,
        channel=channel,
        description=description,
        since=await find_first_attempt(context),
    )
    return f"Planned: {made['url']}"


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_events(context: ToolContext) -> str | ToolOutput:
    """Lists planned events."""
    found: Any = await act(context, "list_events")
    lines = [
        f"{row['name']} (id {row['id']}): {row['start']}{' to ' + row['end'] if row['end'] else ''}, {row['where']}, "
        f"{row['interested']} interested. {' '.join(row['description'].split())}".rstrip()
        for row in found["events"]
    ]
    if not lines:
        return ToolOutput("Nothing is planned.", is_own=True)
    return quote_untrusted("\n".join(lines), source="events, times in UTC")


@skill.tool(tier=Tier.SENSITIVE, destructive=True, idempotent=True)
async def cancel_event(context: ToolContext, event: Annotated[str, "name or id"], reason: Reason = "") -> str:
    """Cancels a planned event, or ends one."""
    return _gone(await act_removing(context, "cancel_event", event=event, reason=reason), event, "called off")


@skill.tool(tier=Tier.DANGEROUS, idempotent=True)
async def create_webhook(
    context: ToolContext, name: Annotated[str, Param(min_length=1, max_length=80)], channel: Here = ""
) -> str:
    """Makes a webhook, whose secret address the asker gets by direct message."""
    made = await act(context, "create_webhook", name=name, channel=channel, since=await find_first_attempt(context))
    return f"Made the webhook {made['id']} of <#{made['channel']}>. Its address went to the asker by direct message."


@skill.tool(tier=Tier.LIMITED, read_only=True, reads={Taint.OTHERS})
async def list_webhooks(context: ToolContext) -> str | ToolOutput:
    """Lists webhooks, for managers."""
    found: Any = await act(context, "list_webhooks")
    lines = [
        f"{row['name']} (id {row['id']}) of <#{row['channel']}>" + (f" by <@{row['by']}>" if row["by"] else "")
        for row in found["webhooks"]
    ]
    if not lines:
        return ToolOutput("There are no webhooks.", is_own=True)
    return quote_untrusted("\n".join(lines), source="webhooks")


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def delete_webhook(context: ToolContext, webhook: Annotated[str, "name or id"], reason: Reason = "") -> str:
    """Deletes a webhook."""
    return _gone(await act_removing(context, "delete_webhook", webhook=webhook, reason=reason), webhook)


def _gone(done: object, what: str, how: str = "deleted") -> str:
    return f"{what} is {how}." if done is not None else f"{what} was {how} already."


def _texts(given: list[str] | None) -> list[Json]:
    return list[Json](given or ())


def _time(text: str) -> str:
    """Returns an ISO time with its zone: UTC unless it says otherwise."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"'{text[:40]}' is not a time. Write it like 2026-11-01 20:00.") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
