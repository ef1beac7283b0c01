"""A look inside of a server: activity, files of the prompt, and what owners and admins inspect. Times are ISO 8601."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from denizen_sdk.records import Json


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class ContextFileInfo:
    """A file of an agent's prompt. `kind` is persona or context; `text` is None for callers who are no owners."""

    name: str
    kind: str
    chars: int
    tokens: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FindingInfo:
    """A finding about something that has to work. `severity` is ok, warning or error."""

    severity: str
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class InspectedHealth:
    """`problems` are the parts that are not ready for work, each with the reason."""

    problems: dict[str, str] = field(default_factory=dict[str, str])
    findings: tuple[FindingInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedStatistics:
    """How much there is and runs now. `posts` and `rooms` count what is mirrored, by platform."""

    running_turns: int
    waiting_approvals: int
    requests_today: int
    spent_today_usd: str
    spent_month_usd: str
    posts: dict[str, int] = field(default_factory=dict[str, int])
    rooms: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class InspectedAccount:
    """How an agent's account on a platform stands. `told` explains it."""

    platform: str
    agent: str
    is_listening: bool
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """A closed block with its number, or the tail behind the blocks, whose number is None."""

    number: int | None
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class ResetBlocks:
    """How many closed blocks were forgotten."""

    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadInfo:
    """A request to a model that was not sent."""

    model: str
    segments: tuple[Json, ...]
    tools: tuple[Json, ...]
    messages: tuple[Json, ...]
    max_output_tokens: int
    output_schema: dict[str, Any] | None = None
