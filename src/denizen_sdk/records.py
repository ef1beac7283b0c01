"""What turns leave behind, as clients see it: messages, prompts, steps, calls, approvals, costs, errors.

Plain dataclasses. `wire` turns them into JSON and back, and is where servers and clients import them from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProblemDetails:
    """An error as clients see it. `status` is the HTTP status; `reference` finds a fault in the server's log."""

    code: str
    message: str
    status: int = 500
    why: str = ""
    fix: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class UsageInfo:
    """Tokens of a turn; `input_tokens` includes the cached ones. `cost_usd` is a decimal, None when unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalInfo:
    """A call that waits for people, or waited. `status` is pending, approved, denied or expired; `preview` says what
    would happen, in lines; secrets are masked in `args`. Times are ISO 8601 in UTC; without `expires_at` it waits for
    ever. `may_decide` is about the caller.
    """

    id: str
    turn_id: str
    agent: str
    tool: str
    args: Json
    tier: int
    reason: str
    preview: str
    requester: str
    status: str
    created_at: str
    expires_at: str | None = None
    decided_by: str = ""
    decided_at: str | None = None
    note: str = ""
    may_decide: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call in a stored message, with its result as far as it is known."""

    call_id: str
    tool: str
    args: Json
    text: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """One message for people. `role` is `user` or `assistant`; `created_at` is ISO 8601 in UTC."""

    id: str
    role: str
    author: str
    text: str
    created_at: str
    turn_id: str
    calls: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True)
class CallInfo:
    """One tool call of a turn with the gate's decision."""

    tool: str
    args: Json
    decision: str
    reason: str
    decided_by: str
    text: str
    is_error: bool
    duration_ms: int
    cached: bool
    step: int = 0
    tier: int = 0


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One request to a model. `usage.cached_tokens` were read from the provider's cache, `cache_written_tokens` written
    to it; the rest of the input was new.
    """

    number: int
    model: str
    purpose: str
    finish_reason: str
    duration_ms: int
    usage: UsageInfo
    cache_written_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RouteInfo:
    """How a question was sorted, and what followed: the model's alias and the steps of its turn. `routed_by` is router,
    kept (a follow-up) or fallback.
    """

    complexity: str
    max_steps: int
    model: str
    reason: str
    routed_by: str


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """A piece of the system prompt. `stability` is forever, config, session or turn. `text` is None where it is not
    kept, and for callers who are neither owner nor admin.
    """

    name: str
    stability: str
    chars: int
    tokens: int
    sha256: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class MessageShare:
    """The messages of one kind in a prompt: history, surroundings, question, note; their tokens are estimated."""

    kind: str
    count: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptInfo:
    """What the prompt was made of from step `step` on. `model` is the one that was asked; `memories` are the
    ids of those that came up unasked.
    """

    step: int
    model: str
    segments: tuple[SegmentInfo, ...]
    messages: tuple[MessageShare, ...]
    tools: tuple[str, ...]
    tool_tokens: int
    memories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitationInfo:
    """A place in a document that a reply names, lines from 1 (0: all of it). `link` leads to it as it was read; with a
    `doubt` it was taken out of the reply, since it is not proved.
    """

    path: str
    first_line: int
    last_line: int
    source: str = ""
    revision: str = ""
    link: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """A turn with its prompts, steps and calls. `status` is open, done, failed, cancelled or refused; `route` is None
    where the model was not chosen for the question. A step with number 0 is the request to the router.
    """

    id: str
    agent: str
    status: str
    model: str
    reply: str
    opened_at: str
    closed_at: str | None
    usage: UsageInfo
    error: ProblemDetails | None
    steps: tuple[StepInfo, ...]
    calls: tuple[CallInfo, ...]
    question: str = ""
    prompts: tuple[PromptInfo, ...] = ()
    citations: tuple[CitationInfo, ...] = ()
    route: RouteInfo | None = None
