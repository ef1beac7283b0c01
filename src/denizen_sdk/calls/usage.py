"""Usage: reporting what was used elsewhere, and reading what was used in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen_sdk.calls.calls import Calls
from denizen_sdk.connection import idempotent
from denizen_sdk.statistics import UsageStatistics
from denizen_sdk.usage import UsageRecorded, tokens_of
from denizen_sdk.wire import DayComputed, from_json


class UsageCalls(Calls):
    """`/api/stats`."""

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
    ) -> UsageRecorded:
        """Tells the server what a run elsewhere used: its result or its usage (`usage.tokens_of`). The same
        `idempotency_key` again is one report. Raises TypeError where there is no usage in it, ApiError, NetworkError.
        """
        tokens = tokens_of(finished)
        body = {
            "source": self.source,
            "sourceId": self.source_id,
            "model": model,
            "inputTokens": tokens.input_tokens,
            "outputTokens": tokens.output_tokens,
            "durationMs": duration_ms,
            "metadata": dict(metadata or {}),
        }
        headers = idempotent(idempotency_key)
        return from_json(
            UsageRecorded, await self._connection.request("POST", "/api/stats/usage", body=body, headers=headers)
        )

    async def get_statistics(self, *, days: int = 30, source: str = "", model: str = "") -> UsageStatistics:
        """Usage of everybody in so many days (1 to 365), of one source or model where they are given. Raises ApiError
        (403 but for owners and admins), NetworkError.
        """
        return await self._get(UsageStatistics, "/api/stats", days=days, source=source, model=model)

    async def get_own_statistics(self, *, days: int = 30) -> UsageStatistics:
        """The caller's own. Raises ApiError, NetworkError."""
        return await self._get(UsageStatistics, "/api/stats/me", days=days)

    async def compute_statistics(self, date: str = "") -> DayComputed:
        """Sums up a day of UTC, such as 2026-11-21, yesterday without one. The server does that by itself once a day.
        Raises ApiError (403 but for owners and admins), NetworkError.
        """
        body = {"date": date}
        return from_json(DayComputed, await self._connection.request("POST", "/api/stats/compute", body=body))
