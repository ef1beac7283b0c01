"""Usage: reporting what was used elsewhere, and reading what was used in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen_sdk.calls.calls import ClientCalls
from denizen_sdk.connection import idempotency_headers
from denizen_sdk.statistics import UsageOverview
from denizen_sdk.usage import UsageReceipt, read_tokens
from denizen_sdk.wire import ComputedDay, from_json


class UsageCalls(ClientCalls):
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
    ) -> UsageReceipt:
        """Tells the server what a run elsewhere used: its result or its usage (`usage.read_tokens`). The same
        `idempotency_key` again is one report. Raises TypeError where there is no usage in it, ApiError, NetworkError.
        """
        tokens = read_tokens(finished)
        body = {
            "source": self.source, "sourceId": self.source_id, "model": model, "inputTokens": tokens.input_tokens,
            "outputTokens": tokens.output_tokens, "durationMs": duration_ms, "metadata": dict(metadata or {}),
        }  # fmt: skip
        headers = idempotency_headers(idempotency_key)
        return from_json(
            UsageReceipt, await self._connection.request("POST", "/api/stats/usage", body=body, headers=headers)
        )

    async def get_statistics(self, *, days: int = 30, source: str = "", model: str = "") -> UsageOverview:
        """Usage of everybody in so many days (1 to 365), of one source or model where they are given. Raises ApiError
        (403 but for owners and admins), NetworkError.
        """
        return await self._get(UsageOverview, "/api/stats", days=days, source=source, model=model)

    async def get_own_statistics(self, *, days: int = 30) -> UsageOverview:
        """The caller's own. Raises ApiError, NetworkError."""
        return await self._get(UsageOverview, "/api/stats/me", days=days)

    async def compute_statistics(self, date: str = "") -> ComputedDay:
        """Sums up a day of UTC, such as 2026-11-21, yesterday without one. The server does that by itself once a day.
        Raises ApiError (403 but for owners and admins), NetworkError.
        """
        body = {"date": date}
        return from_json(ComputedDay, await self._connection.request("POST", "/api/stats/compute", body=body))
