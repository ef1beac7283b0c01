"""Usage: reporting what a run elsewhere used, and reading the sums over days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from denizen_sdk.calls import ClientCalls, idempotency_headers
from denizen_sdk.records import from_json, record

_INPUT = ("input_tokens", "prompt_tokens", "request_tokens")
_OUTPUT = ("output_tokens", "completion_tokens", "response_tokens")


@record
class TokenCounts:
    """Tokens of one run, all of its requests together."""

    input_tokens: int
    output_tokens: int


@record
class UsageReceipt:
    """The answer to a report of usage."""

    id: str
    recorded: bool = True


@record
class UsageSum:
    """The usage under one `key`: a model, a source, a user's key, a day, an hour (`00` to `23`); empty for a total.
    `name` is the name of a user. `messages` counts those that a model answered, or that were reported; `input_tokens`
    includes the cached ones. `cost_usd` is an estimate by list prices, None if no price is known.
    """

    key: str
    messages: int
    requests: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    duration_ms: int
    cost_usd: str | None = None
    name: str = ""


@record
class UsageTrend:
    """The change against as many days before, in percent; None if there is nothing to compare with."""

    messages_percent: float | None
    tokens_percent: float | None
    cost_percent: float | None


@record
class FeedbackDay:
    """The votes of people on the answers of one `day` (UTC)."""

    day: str
    positive: int
    negative: int


@record
class BudgetStanding:
    """A limit of money and what is spent of it in its present `period`, `day` or `month`. `scope` is `server` or
    `agent`, and `key` the agent's name.
    """

    scope: str
    key: str
    period: str
    limit_usd: str
    spent_usd: str


@record
class UsageOverview:
    """The usage of `days` days (UTC) up to today. `daily` has every day and `hourly` every hour of a day, in order; the
    other lists begin with the most messages, and hold at most 100 models and sources, and 10 users. A caller's own
    usage has neither `top_users` nor `hourly`. `feedback_score` is the share of positive votes on answers of those
    days, from 0 to 1; None if nobody voted, and where a source or model filters.
    """

    days: int
    first_day: str
    last_day: str
    totals: UsageSum
    previous: UsageSum
    trend: UsageTrend
    by_model: tuple[UsageSum, ...]
    by_source: tuple[UsageSum, ...]
    daily: tuple[UsageSum, ...]
    top_users: tuple[UsageSum, ...] | None = None
    hourly: tuple[UsageSum, ...] | None = None
    feedback_score: float | None = None


@record
class ComputedDay:
    """The answer to summing up a day. `date` is a day of UTC, `rows` the number of its sums."""

    date: str
    rows: int


def read_tokens(finished: object) -> TokenCounts:
    """Returns the tokens of a finished run.

    Takes `TokenCounts`; a usage or a result of pydantic-ai, OpenAI (chat, responses), OpenAI Agents or LangChain; or a
    mapping with the same names. Raises TypeError for anything else.
    """
    usage = _find_usage(finished)
    found = _read(usage, _INPUT), _read(usage, _OUTPUT)
    if found[0] is None or found[1] is None:
        raise TypeError(
            f"There is no usage in a {type(finished).__name__}. Give the run's usage, or TokenCounts(input, output)."
        )
    return TokenCounts(found[0], found[1])


def _find_usage(finished: object) -> object:
    # No framework is imported: results are known by their attributes. They hold the usage as `usage` (a method in older
    # libraries), in their context (OpenAI Agents) or as `usage_metadata` (LangChain).
    if _read(finished, _INPUT) is not None:
        return finished
    context = getattr(finished, "context_wrapper", None)
    usage = getattr(context if context is not None else finished, "usage", None)
    usage = getattr(finished, "usage_metadata", None) if usage is None else usage
    if isinstance(finished, Mapping):
        usage = cast("Mapping[str, Any]", finished).get("usage")
    return usage() if callable(usage) and _read(usage, _INPUT) is None else usage


def _read(usage: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        if isinstance(usage, Mapping):
            value = cast("Mapping[str, object]", usage).get(name)
        else:
            value = getattr(usage, name, None)
        if isinstance(value, int):
            return value
    return None


class UsageCalls(ClientCalls):
    """The calls of `/api/stats`. All raise ApiError and NetworkError."""

    source: str
    source_id: str

    async def report_usage(
        self,
        finished: object,
        *,
        model: str = "",
        duration_ms: int = 0,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str = "",
    ) -> UsageReceipt:
        """Reports the usage of a run elsewhere, given its result or its usage (`read_tokens`).

        Reports with the same `idempotency_key` count once. Raises TypeError if `finished` holds no usage.
        """
        tokens = read_tokens(finished)
        body = {
            "source": self.source,
            "sourceId": self.source_id,
            "model": model,
            "inputTokens": tokens.input_tokens,
            "outputTokens": tokens.output_tokens,
            "durationMs": duration_ms,
            "metadata": dict(metadata or {}),
        }
        headers = idempotency_headers(idempotency_key)
        return from_json(
            UsageReceipt, await self._connection.request("POST", "/api/stats/usage", body=body, headers=headers)
        )

    async def get_statistics(self, *, days: int = 30, source: str = "", model: str = "") -> UsageOverview:
        """Returns the usage of everybody in the last `days` days (1 to 365), or of one source or model. Raises ApiError
        (403) for everybody but owners and admins.
        """
        return await self._get(UsageOverview, "/api/stats", days=days, source=source, model=model)

    async def list_feedback(self, *, days: int = 30) -> list[FeedbackDay]:
        """Returns the votes on the answers of each of the last `days` days, in order. Raises ApiError (403) for
        everybody but owners and admins.
        """
        return await self._list(FeedbackDay, "/api/stats/feedback", days=days)

    async def list_budgets(self) -> list[BudgetStanding]:
        """Returns the budgets of the server and of agents. Raises ApiError (403) for all but owners and admins."""
        return await self._list(BudgetStanding, "/api/stats/budgets")

    async def get_own_statistics(self, *, days: int = 30) -> UsageOverview:
        """Returns the caller's own usage."""
        return await self._get(UsageOverview, "/api/stats/me", days=days)

    async def compute_statistics(self, date: str = "") -> ComputedDay:
        """Sums up a day of UTC, such as 2026-11-21; yesterday by default. The server does that by itself once a day.
        Raises ApiError (403) for everybody but owners and admins.
        """
        body = {"date": date}
        return from_json(ComputedDay, await self._connection.request("POST", "/api/stats/compute", body=body))
