"""Moderates a Discord server for somebody who may: warnings, time-outs, kicks, bans, purges, slow mode.

The platform (`context.platform`) decides at the moment of the action what the asker may do, and to whom. A warning is a
direct message and an entry in the server's log of warnings, which all agents share: one JSON file for each server,
changed under a lock and replaced whole.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from denizen.builtin_skills.attempts import load_attempt, save_attempt
from denizen.builtin_skills.discord import act, act_removing
from denizen.builtin_skills.members import mention_member
from denizen.skill import (
    Effect,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
    run_in_thread,
)

MAX_WARNINGS_PER_MEMBER = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWarning:
    """A recorded warning. `member` and `by` are user ids; `at` is an ISO time in UTC; `key` is that of the call that
    gave it.
    """

    number: int
    member: str
    by: str
    at: str
    reason: str
    key: str = ""


class WarningLog:
    """The warnings of one server in a folder, which need not exist."""

    def __init__(self, folder: Path, guild: str) -> None:
        if not guild.isdecimal():
            raise ToolError("Warnings are kept for servers only.")
        self._folder = folder
        self._file = folder / f"{guild}.json"

    def add(self, given: MemberWarning) -> MemberWarning:
        """Adds a warning with the next number, once for each key."""
        with self._locked():
            rows = self._load()
            known = next((row for row in rows if given.key and row.key == given.key), None)
            if known is not None:
                return known
            if sum(row.member == given.member for row in rows) >= MAX_WARNINGS_PER_MEMBER:
                raise ToolError(f"They have {MAX_WARNINGS_PER_MEMBER} warnings already. Remove some first.")
            number = max((row.number for row in rows), default=0) + 1
            added = replace(given, number=number)
            self._save([*rows, added])
            return added

    def find_warnings(self, member: str = "") -> list[MemberWarning]:
        """Returns the warnings of a member, oldest first; of everybody for an empty text."""
        return [row for row in self._load() if member in ("", row.member)]

    def remove(self, number: int) -> bool:
        """Removes a warning. Returns whether there was one with that number."""
        with self._locked():
            rows = self._load()
            left = [row for row in rows if row.number != number]
            if len(left) == len(rows):
                return False
            self._save(left)
            return True

    def _load(self) -> list[MemberWarning]:
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        try:
            return [MemberWarning(**row) for row in json.loads(text)]
        except (ValueError, TypeError):
            raise ToolError(f"The warnings in {self._file} are damaged. An owner has to repair or remove it.") from None

    def _save(self, rows: list[MemberWarning]) -> None:
        following = self._file.with_suffix(".next")
        with following.open("w", encoding="utf-8") as file:
            json.dump([asdict(row) for row in rows], file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        following.replace(self._file)

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


skill = Skill(
    "moderation",
    description="Warnings, time-outs, kicks, bans, purges and slow mode on Discord.",
    acts_on_platform=True,
)

MAX_PURGED = 500
_BULK_AGE = timedelta(days=14) - timedelta(hours=1)
"""Discord does not allow deleting older messages in bulk. The hour leaves time for an approval."""
_SHOWN = 30

Member = Annotated[str, "@name or id"]
Reason = Annotated[str, Param(max_length=400)]
Channel = Annotated[str, "#name or id; empty: here"]


@skill.tool(tier=Tier.SENSITIVE, idempotent=True, effects={Effect.SEND}, destinations=("member",))
async def warn_member(
    context: ToolContext, member: Member, reason: Annotated[str, Param(min_length=1, max_length=400)]
) -> str:
    """Warns a member by direct message, and records it."""
    done = await act(context, "warn_member", member=member, reason=reason)
    at = context.clock.now().isoformat(timespec="minutes")
    given = MemberWarning(
        number=0,  # the log numbers it
        member=str(done["id"]),
        by=context.principal.id,
        at=at,
        reason=reason,
        key=context.idempotency_key,
    )
    log = _open_log(context)
    written = await run_in_thread(lambda: log.add(given))
    count = len(await run_in_thread(lambda: log.find_warnings(given.member)))
    told = "" if done["told"] else " They take no direct messages, so tell them here."
    return f"Warned {mention_member(done)}; warning {written.number}, their {_ordinal(count)}.{told}"


@skill.tool(tier=Tier.LIMITED, read_only=True, reads={Taint.OTHERS}, effects={Effect.REVEAL})
async def list_warnings(context: ToolContext, member: Annotated[str, "empty: everybody"] = "") -> str | ToolOutput:
    """Lists recorded warnings, for moderators."""
    found = await act(context, "judge_member", member=member)
    rows = await run_in_thread(lambda: _open_log(context).find_warnings(str(found.get("id", ""))))
    if not rows:
        return ToolOutput("There are no warnings.", is_own=True)
    lines = [f"{row.number}. {row.at} <@{row.member}> by {_by(row.by)}: {row.reason}" for row in rows[-_SHOWN:]]
    if len(rows) > _SHOWN:
        lines.insert(0, f"({len(rows) - _SHOWN} older ones are left out)")
    return quote_untrusted("\n".join(lines), source="warnings, times in UTC")


@skill.tool(tier=Tier.SENSITIVE)
async def remove_warning(context: ToolContext, number: Annotated[int, Param(ge=1)]) -> str:
    """Takes a warning back."""
    await act(context, "judge_member")
    mine = await run_in_thread(lambda: _open_log(context).find_warnings(context.principal.id.rpartition(":")[2]))
    if any(row.number == number for row in mine):
        raise ToolError("Nobody takes back a warning of their own. Ask another moderator.")
    was_there = await run_in_thread(lambda: _open_log(context).remove(number))
    return f"Warning {number} is removed." if was_there else f"There is no warning {number}."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def timeout_member(
    context: ToolContext, member: Member, minutes: Annotated[int, Param(ge=1, le=40320)], reason: Reason = ""
) -> str:
    """Keeps a member from writing and speaking for a time."""
    until = context.clock.now() + timedelta(minutes=minutes)
    done = await act(context, "timeout_member", member=member, until=until.isoformat(), reason=reason)
    return f"{mention_member(done)} is in time-out until {until:%Y-%m-%d %H:%M} UTC."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def end_timeout(context: ToolContext, member: Member, reason: Reason = "") -> str:
    """Ends a member's time-out."""
    return f"{mention_member(await act(context, 'end_timeout', member=member, reason=reason))} may write again."


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def kick_member(context: ToolContext, member: Member, reason: Reason = "") -> str:
    """Removes a member, who may come back."""
    done = await act_removing(context, "kick_member", member=member, reason=reason)
    if done is None or done.get("was_gone"):
        return f"{member} is not a member of this server (any more)."
    return f"Kicked {mention_member(done)}."


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True)
async def ban_member(
    context: ToolContext,
    member: Member,
    delete_days: Annotated[int, Param("deletes what they wrote", ge=0, le=7)] = 0,
    reason: Reason = "",
) -> str:
    """Bans a member, or by id anybody."""
    done = await act_removing(context, "ban_member", member=member, delete_days=delete_days, reason=reason)
    return f"Banned {mention_member(done)}." if done is not None else f"{member} is banned already."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def unban_member(context: ToolContext, user: Annotated[str, "name or id"], reason: Reason = "") -> str:
    """Lifts a ban."""
    done = await act_removing(context, "unban_member", user=user, reason=reason)
    if done is None or done.get("was_free"):
        return f"{user} is not banned."
    return f"<@{done['id']}> may come back."


@skill.tool(tier=Tier.LIMITED, read_only=True, reads={Taint.OTHERS}, effects={Effect.REVEAL})
async def list_bans(context: ToolContext, after: Annotated[str, "user id, to read on"] = "") -> str | ToolOutput:
    """Lists who is banned and why."""
    found: Any = await act(context, "list_bans", after=after)
    lines = [f"{row['name']} ({row['id']}): {row['reason'] or 'no reason given'}" for row in found["bans"]]
    if not lines:
        return ToolOutput("Nobody is banned." if not after else "There are no more.", is_own=True)
    more = f"\nTo read on: after {found['next']}" if found["next"] else ""
    return quote_untrusted("\n".join(lines), source="bans") + more


@skill.tool(tier=Tier.DANGEROUS, destructive=True, idempotent=True, timeout_s=180.0)
async def purge_messages(
    context: ToolContext,
    count: Annotated[int, Param(ge=1, le=MAX_PURGED)],
    author: Annotated[str, "only theirs"] = "",
    words: Annotated[str, "only with all these"] = "",
    channel: Channel = "",
) -> str:
    """Deletes the newest messages of the last 14 days; pinned ones and the request stay."""
    # The messages are chosen once: a repeated call must not delete further ones.
    kept = await load_attempt(context)
    if kept is None:
        since = (context.clock.now() - _BULK_AGE).isoformat()
        chosen = await act(
            context, "choose_messages", since=since, channel=channel, count=count, author=author, words=words
        )
        kept = json.dumps(chosen)
        await save_attempt(context, kept)
    chosen = json.loads(kept)
    if not chosen["messages"]:
        return "No message of the last 14 days fits."
    done = await act(context, "purge_messages", messages=chosen["messages"], channel=chosen["channel"])
    return f"Deleted {done['deleted']} messages in <#{done['channel']}>."


@skill.tool(tier=Tier.SENSITIVE, idempotent=True)
async def set_slow_mode(
    context: ToolContext, seconds: Annotated[int, Param("0: off", ge=0, le=21600)], channel: Channel = ""
) -> str:
    """Sets how long people wait between their messages."""
    done = await act(context, "set_slow_mode", seconds=seconds, channel=channel)
    return f"Slow mode of <#{done['channel']}>: {f'{seconds} s' if seconds else 'off'}."


def _open_log(context: ToolContext) -> WarningLog:
    if context.shared is None:
        raise ToolError("Warnings cannot be recorded here.")
    return WarningLog(context.shared, context.guild)


def _by(principal_id: str) -> str:
    number = principal_id.rpartition(":")[2]
    return f"<@{number}>" if number.isdecimal() else number


def _ordinal(count: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(count, f"{count}th")
