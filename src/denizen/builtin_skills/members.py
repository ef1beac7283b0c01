"""The members of a Discord server: looking them up, nicknames, roles, direct messages.

The platform (`context.platform`) decides at the moment of the action what the asker may do, and to whom. What people
call themselves comes back quoted as data.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from denizen.builtin_skills.discord import act
from denizen.skill import Effect, JsonObject, Param, Skill, Taint, Tier, ToolContext, ToolOutput, quote_untrusted

skill = Skill(
    "members",
    description="Members of a Discord server: looking them up, nicknames, roles, messages.",
    acts_on_platform=True,
)

_PLAIN = re.compile(r"[a-z0-9_.]{2,32}")

Member = Annotated[str, "@name or id"]
Reason = Annotated[str, Param(max_length=400)]


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def member_info(context: ToolContext, member: Annotated[str, "empty: who asks"] = "") -> str:
    """Shows a member's names, roles and dates."""
    found: Any = await act(context, "member_info", member=member)
    lines = [
        f"{found['display_name']} ({found['name']}, id {found['id']})",
        f"roles: {', '.join(found['roles']) or 'none'}",
        f"joined {found['joined_at'] or 'at an unknown time'}, account made {found['created_at']}",
    ]
    lines += [said for said, holds in (("is a bot", found["is_bot"]), ("owns the server", found["is_owner"])) if holds]
    lines += [f"in time-out until {found['timed_out_until']}"] if found["timed_out_until"] else []
    return quote_untrusted("\n".join(lines), source="a member, times in UTC")


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.OTHERS})
async def list_members(
    context: ToolContext,
    role: str = "",
    name: Annotated[str, "part of it"] = "",
    page: Annotated[int, Param(ge=1, le=10000)] = 1,
) -> str | ToolOutput:
    """Lists and counts members."""
    found: Any = await act(context, "list_members", role=role, name=name, page=page)
    lines = [
        f"{row['display_name']} ({row['name']}, id {row['id']}){' [bot]' if row['is_bot'] else ''}"
        for row in found["members"]
    ]
    if not lines:
        return ToolOutput(f"Nobody fits. In all: {found['total']}.", is_own=True)
    head = f"{found['total']} in all, page {page} of {found['pages']}:"
    return f"{head}\n{quote_untrusted(chr(10).join(lines), source='members')}"


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def set_nickname(
    context: ToolContext,
    member: Member,
    nickname: Annotated[str, Param("empty: none", max_length=32)] = "",
    reason: Reason = "",
) -> str:
    """Changes a member's name in this server."""
    done = await act(context, "set_nickname", member=member, nickname=nickname, reason=reason)
    return f"Renamed {mention_member(done)}."


@skill.tool(tier=Tier.DANGEROUS, idempotent=True)
async def add_role(context: ToolContext, member: Member, role: str, reason: Reason = "") -> str:
    """Gives a member a role."""
    done = await act(context, "add_role", member=member, role=role, reason=reason)
    return f"{mention_member(done)} has the role <@&{done['role']}>."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def remove_role(context: ToolContext, member: Member, role: str, reason: Reason = "") -> str:
    """Takes a role from a member."""
    done = await act(context, "remove_role", member=member, role=role, reason=reason)
    return f"{mention_member(done)} has the role <@&{done['role']}> no more."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("member",))
async def send_direct_message(
    context: ToolContext, member: Member, text: Annotated[str, Param(min_length=1, max_length=1800)]
) -> str:
    """Writes to the asker in private, or for moderators to any member."""
    return f"Sent to {mention_member(await act(context, 'send_direct_message', member=member, text=text))}."


def mention_member(done: JsonObject) -> str:
    """Mentions a member, with the account name where that is plain, as people's are. Names of bots may hold
    anything.
    """
    name = str(done.get("name", ""))
    return f"<@{done['id']}> ({name})" if _PLAIN.fullmatch(name) else f"<@{done['id']}>"
