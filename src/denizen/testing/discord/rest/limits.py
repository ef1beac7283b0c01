"""Rate limits: one bucket for each route and major parameter, a global one, and forced answers of 429."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from denizen.domain.clock import Clock

_MAJOR = ("channel_id", "guild_id", "webhook_id", "interaction_id")


@dataclass(frozen=True, slots=True)
class SimRateLimit:
    """A number of requests in a number of seconds."""

    requests: int
    per_s: float


@dataclass(slots=True)
class _Bucket:
    limit: SimRateLimit
    opened_s: float
    used: int = 0


@dataclass(slots=True)
class _ForcedLimit:
    method: str
    route: re.Pattern[str]
    left: int
    retry_after_s: float
    everywhere: bool


@dataclass(frozen=True, slots=True)
class RateLimitDecision:
    """The decision on one request. It passes if `retry_after_s` is None."""

    headers: Mapping[str, str]
    retry_after_s: float | None = None
    everywhere: bool = False

    @property
    def body(self) -> dict[str, Any]:
        return {
            "message": "You are being rate limited.",
            "code": 0,
            "retry_after": self.retry_after_s,
            "global": self.everywhere,
        }


@dataclass(slots=True, eq=False)
class SimRateLimits:
    """The limits in force. `default` is generous, so that tests do not wait; `set` gives a route its own."""

    clock: Clock
    default: SimRateLimit = SimRateLimit(1000, 1.0)
    everywhere: SimRateLimit | None = None
    refused: int = 0
    _own: list[tuple[str, re.Pattern[str], SimRateLimit]] = field(
        default_factory=list[tuple[str, re.Pattern[str], SimRateLimit]]
    )
    _buckets: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])
    _strikes: list[_ForcedLimit] = field(default_factory=list[_ForcedLimit])

    def set(self, method: str, route: str, limit: SimRateLimit) -> None:
        """Sets the limit of a route: a regular expression searched in the template, such as
        `/channels/{channel_id}/messages`, or in the path.
        """
        self._own.append((method.upper(), re.compile(route), limit))
        self._buckets.clear()

    def strike(
        self,
        times: int = 1,
        *,
        method: str = "",
        route: str = "",
        retry_after_s: float = 0.01,
        everywhere: bool = False,
    ) -> None:
        """Answers the next matching requests with 429, whatever the buckets say; `everywhere` marks it as global."""
        self._strikes.append(_ForcedLimit(method.upper(), re.compile(route), times, retry_after_s, everywhere))

    def rule(self, method: str, template: str, path: str, major: Mapping[str, str], token: str) -> RateLimitDecision:
        """Counts one request and decides on it."""
        for strike in self._strikes:
            if strike.left > 0 and strike.method in ("", method) and strike.route.search(path):
                strike.left -= 1
                return self._refuse(
                    _names(method, template), SimRateLimit(1, 1), strike.retry_after_s, everywhere=strike.everywhere
                )
        if self.everywhere is not None:
            bucket = self._bucket(f"global {token}", self.everywhere)
            if bucket.used >= bucket.limit.requests:
                return self._refuse("global", bucket.limit, self._wait_s(bucket), everywhere=True)
            bucket.used += 1
        name = _names(method, template)
        key = " ".join([name, token, *(major[each] for each in _MAJOR if each in major)])
        bucket = self._bucket(key, self._get_limit(method, template, path))
        if bucket.used >= bucket.limit.requests:
            return self._refuse(name, bucket.limit, self._wait_s(bucket), everywhere=False)
        bucket.used += 1
        left = bucket.limit.requests - bucket.used
        return RateLimitDecision(self._headers(name, bucket.limit, left, self._wait_s(bucket)))

    def _get_limit(self, method: str, template: str, path: str) -> SimRateLimit:
        for own_method, route, limit in reversed(self._own):
            if own_method in ("", method) and (route.search(template) or route.search(path)):
                return limit
        return self.default

    def _bucket(self, key: str, limit: SimRateLimit) -> _Bucket:
        now_s = self.clock.monotonic_s()
        bucket = self._buckets.get(key)
        if bucket is None or now_s - bucket.opened_s >= bucket.limit.per_s:
            bucket = self._buckets[key] = _Bucket(limit, now_s)
        return bucket

    def _wait_s(self, bucket: _Bucket) -> float:
        left_s = bucket.opened_s + bucket.limit.per_s - self.clock.monotonic_s()
        return math.ceil(max(left_s, 0.001) * 1000) / 1000

    def _refuse(self, name: str, limit: SimRateLimit, retry_after_s: float, *, everywhere: bool) -> RateLimitDecision:
        self.refused += 1
        headers = self._headers(name, limit, 0, retry_after_s) | {
            "Retry-After": str(math.ceil(retry_after_s)),
            "X-RateLimit-Scope": "global" if everywhere else "user",
            "Via": "1.1 google",
        }
        if everywhere:
            headers = {key: value for key, value in headers.items() if key != "X-RateLimit-Bucket"}
            headers["X-RateLimit-Global"] = "true"
        return RateLimitDecision(headers, retry_after_s, everywhere)

    def _headers(self, name: str, limit: SimRateLimit, left: int, reset_after_s: float) -> dict[str, str]:
        reset = self.clock.now().timestamp() + reset_after_s
        return {
            "X-RateLimit-Bucket": name,
            "X-RateLimit-Limit": str(limit.requests),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{reset:.3f}",
            "X-RateLimit-Reset-After": f"{reset_after_s:.3f}",
        }


def _names(method: str, template: str) -> str:
    """Returns the name of a route's bucket, an opaque hash as on Discord."""
    return hashlib.sha256(f"{method} {template}".encode()).hexdigest()[:32]
