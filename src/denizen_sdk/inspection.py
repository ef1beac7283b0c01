"""A look inside of a server: activity, files of the prompt, and what owners and admins inspect. Times are ISO 8601."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import Json, from_json, record


@record(kw_only=True)
class ActivityInfo:
    """Something that happened. `kind` is turn, or that of an entry of the audit log: call, approval, send, switch,
    settings, review or account. `subject` is what it was about: an agent, a tool, a place. `status` is that of a turn.
    """

    kind: str
    at: str
    actor: str
    subject: str
    turn_id: str = ""
    status: str = ""


@record
class ContextFileInfo:
    """A file of an agent's prompt. `kind` is persona or context; `text` is None for callers who are no owners."""

    name: str
    kind: str
    chars: int
    tokens: int
    text: str | None = None


@record
class FindingInfo:
    """A finding about something that has to work. `severity` is ok, warning or error."""

    severity: str
    what: str
    fix: str = ""


@record
class InspectedHealth:
    """`problems` are the parts that are not ready for work, each with the reason."""

    problems: dict[str, str] = field(default_factory=dict[str, str])
    findings: tuple[FindingInfo, ...] = ()


@record(kw_only=True)
class InspectedStatistics:
    """How much there is and runs now. `posts` and `rooms` count what is mirrored, by platform."""

    running_turns: int
    waiting_approvals: int
    requests_today: int
    spent_today_usd: str
    spent_month_usd: str
    posts: dict[str, int] = field(default_factory=dict[str, int])
    rooms: dict[str, int] = field(default_factory=dict[str, int])


@record
class InspectedAccount:
    """How an agent's account on a platform stands. `told` explains it."""

    platform: str
    agent: str
    is_listening: bool
    told: str


@record(kw_only=True)
class ChannelInfo:
    """A channel, thread or direct talk that is mirrored. `blocks` counts the closed blocks of its transcript."""

    platform: str
    id: str
    name: str
    kind: str
    guild: str = ""
    guild_name: str = ""
    parent: str = ""
    blocks: int = 0


@record(kw_only=True)
class ChannelMessage:
    """A mirrored post."""

    id: str
    author_id: str
    author: str
    text: str
    created_at: str
    edited_at: str | None = None
    reply_to: str = ""
    attachments: tuple[str, ...] = ()


@record(kw_only=True)
class BlockBoundary:
    """A closed block of a transcript: its first and last post, and the sha256 of its text. `room` is where its posts
    are, which in a thread may be the parent.
    """

    number: int
    room: str
    first: str
    last: str
    posts: int
    tokens: int
    sha256: str


@record
class TranscriptPart:
    """A closed block with its number, or the tail behind the blocks, whose number is None."""

    number: int | None
    tokens: int
    text: str


@record
class ResetBlocks:
    """How many closed blocks were forgotten."""

    blocks: int


@record(kw_only=True)
class PayloadInfo:
    """A request to a model that was not sent."""

    model: str
    segments: tuple[Json, ...]
    tools: tuple[Json, ...]
    messages: tuple[Json, ...]
    max_output_tokens: int
    output_schema: dict[str, Any] | None = None


class InspectionCalls(ClientCalls):
    """The calls of `/api/activity`, `/api/context-files` and `/api/inspect`. All raise ApiError and NetworkError."""

    async def list_activity(self, *, limit: int = 50) -> list[ActivityInfo]:
        """Returns the newest turns and entries of the audit log that the caller may see, newest first."""
        return await self._list(ActivityInfo, "/api/activity", limit=limit)

    async def list_context_files(self, *, agent: str = "") -> list[ContextFileInfo]:
        """Returns the files of an agent's prompt."""
        return await self._list(ContextFileInfo, "/api/context-files", agent=agent)

    async def inspect_health(self) -> InspectedHealth:
        return await self._get(InspectedHealth, "/api/inspect/health")

    async def inspect_statistics(self) -> InspectedStatistics:
        return await self._get(InspectedStatistics, "/api/inspect/stats")

    async def inspect_accounts(self) -> list[InspectedAccount]:
        return await self._list(InspectedAccount, "/api/inspect/agents")

    async def inspect_channels(self, platform: str = "discord") -> list[ChannelInfo]:
        return await self._list(ChannelInfo, "/api/inspect/channels", platform=platform)

    async def inspect_channel(self, platform: str, channel: str) -> ChannelInfo:
        return await self._get(ChannelInfo, _channel_path(platform, channel))

    async def inspect_messages(
        self, platform: str, channel: str, *, before: str = "", limit: int = 50
    ) -> list[ChannelMessage]:
        """Returns the newest messages before that one, oldest first."""
        path = f"{_channel_path(platform, channel)}/messages"
        return await self._list(ChannelMessage, path, before=before, limit=limit)

    async def inspect_boundaries(self, platform: str, channel: str) -> list[BlockBoundary]:
        """Returns where the closed blocks of a transcript begin and end."""
        return await self._list(BlockBoundary, f"{_channel_path(platform, channel)}/boundaries")

    async def inspect_transcript(self, platform: str, channel: str, *, agent: str = "") -> list[TranscriptPart]:
        """Returns the transcript of a channel as the agent would read it."""
        return await self._list(TranscriptPart, f"{_channel_path(platform, channel)}/transcript", agent=agent)

    async def reset_blocks(self, platform: str, channel: str) -> int:
        """Forgets the closed blocks of a transcript, and returns how many there were."""
        row = await self._connection.request("POST", f"{_channel_path(platform, channel)}/reset-blocks")
        return from_json(ResetBlocks, row).blocks

    async def inspect_payload(
        self, message: str, *, agent: str = "", session: str = "default", conversation: str = ""
    ) -> list[PayloadInfo]:
        """Returns the requests that a question would make. None of them is sent."""
        return await self._list(
            PayloadInfo,
            "/api/inspect/payload",
            message=message,
            agent=agent,
            session=session,
            conversation=conversation,
        )


def _channel_path(platform: str, channel: str) -> str:
    return f"/api/inspect/channels/{quote_segment(platform)}/{quote_segment(channel)}"
