"""The metrics of a running server, on a port of their own, so that whoever may read them reaches nothing else."""

from __future__ import annotations

import hmac
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.app.accounts import AccountSupervisor
from denizen.app.backup_schedule import load_backup_state
from denizen.app.build import Denizen
from denizen.app.readiness import ReadinessMonitor
from denizen.app.telemetry import listening
from denizen.domain.approval import ApprovalStatus
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention
from denizen.domain.record import record
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.ports.store import Store
from denizen.web.http.auth import MIN_KEY_CHARS, is_loopback, read_credentials

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from denizen.adapters.telemetry.prometheus import PrometheusTelemetry, ServerFigures
    from denizen.app.settings.telemetry import MetricsSection

METRICS_PATH = "/metrics"
MOST_COUNTED = 1000
"""Each queue is counted up to this number."""


class _RecordCounter(logging.Handler):
    def __init__(self, metrics: PrometheusTelemetry) -> None:
        super().__init__(logging.WARNING)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        self._metrics.count_record(record)


class QueueCounter:
    """Counts what waits in the store, while `run` runs. Who asks does not wait for a store that hangs: a unit of work
    cannot be cancelled, so it is counted in a task of its own, like the checks of `/ready`.
    """

    def __init__(
        self, store: Store, home: Path, clock: Clock, list_states: Callable[[], Sequence[AccountState]]
    ) -> None:
        self.backup_age_s: float | None = None
        self._store = store
        self._home = home
        self._clock = clock
        self._list_states = list_states
        self._counts: Mapping[str, int] = {}
        self._monitor = ReadinessMonitor({"store": self._count})
        self.run = self._monitor.run

    async def find_counts(self) -> Mapping[str, int] | None:
        """Returns numbers of `ServerFigures`; None where the store does not tell them in time."""
        problems = await self._monitor.find_problems()
        return None if problems else self._counts

    async def _count(self) -> None:
        async with self._store.work(write=False) as work:
            approvals = await work.approvals.list_approvals(status=ApprovalStatus.PENDING, limit=MOST_COUNTED)
            owed = [
                await work.outbox.list_due(each.agent, each.platform, limit=MOST_COUNTED)
                for each in self._list_states()
            ]
            due = await work.events.list_due(now=self._clock.now(), limit=MOST_COUNTED)
            failed = await work.events.list_failed(limit=MOST_COUNTED)
        good_at = (await load_backup_state(self._store, self._home)).good_at
        self.backup_age_s = (self._clock.now() - good_at).total_seconds() if good_at else None
        self._counts = {
            "approvals": len(approvals),
            "deliveries": sum(map(len, owed)),
            "events_waiting": len(due),
            "events_failed": len(failed),
        }


class FiguresReader:
    """Reads how a server stands, for its metrics."""

    def __init__(
        self, denizen: Denizen, accounts: AccountSupervisor, readiness: ReadinessMonitor, queues: QueueCounter
    ) -> None:
        self._turns = denizen.turns
        self._accounts = accounts
        self._readiness = readiness
        self._queues = queues

    async def read(self) -> ServerFigures:
        """Raises nothing: what the store does not tell in time is missing."""
        from denizen.adapters.telemetry.prometheus import ServerFigures

        # Each waits for three seconds at most; Prometheus gives up after ten.
        problems, counts = await self._readiness.find_problems(), await self._queues.find_counts()
        return ServerFigures(
            parts=self._readiness.parts,
            not_ready=tuple(problems),
            accounts=Counter((each.platform, each.is_listening) for each in self._accounts.list_states()),
            turns_running=len(self._turns.here.running),
            turns_queued=len(self._turns.here.queued),
            is_store_up=counts is not None,
            backup_age_s=self._queues.backup_age_s if counts is not None else None,
            **(counts or {}),
        )


def build_metrics_app(
    metrics: PrometheusTelemetry, read_figures: Callable[[], Awaitable[ServerFigures]], key: str
) -> ASGIApp:
    """Returns the application that answers `GET /metrics`; with a key, only to whoever sends it as a bearer token."""
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from denizen.adapters.telemetry.prometheus import CONTENT_TYPE

    async def show(request: Request) -> Response:
        if key and not hmac.compare_digest(read_credentials(request.headers).encode(), key.encode()):
            headers = {"WWW-Authenticate": "Bearer"}
            return PlainTextResponse("The metrics need the key telemetry.metrics.key.\n", 401, headers)
        text = metrics.render(await read_figures())
        return PlainTextResponse(text, headers={"Cache-Control": "no-store"}, media_type=CONTENT_TYPE)

    return Starlette(routes=[Route(METRICS_PATH, show, methods=["GET"])])


def check_metrics_exposure(section: MetricsSection, key: str) -> None:
    """Raises NeedsAttention where others than this machine could read the metrics, or guess their key."""
    if is_loopback(section.host) or len(key) >= MIN_KEY_CHARS:
        return
    raise NeedsAttention(
        f"The metrics will not be served on '{section.host}' {'with so short a key' if key else 'without a key'}.",
        code="metrics_exposed",
        why=f"others could read them; a key of fewer than {MIN_KEY_CHARS} characters can be guessed",
        fix="Set telemetry.metrics.key, such as to what `openssl rand -hex 24` gives, or listen on 127.0.0.1.",
    )


@record
class MetricsService:
    """The server of the metrics, which is to be served like others, and what has to run beside it."""

    server: uvicorn.Server
    run: Callable[[], Awaitable[None]]


@contextmanager
def serve_metrics(
    denizen: Denizen, accounts: AccountSupervisor, readiness: ReadinessMonitor
) -> Generator[MetricsService | None]:
    """Gives None where the metrics are off. Until the block ends, warnings and errors in the log are counted. Raises
    NeedsAttention where others could read the metrics.
    """
    metrics, section = denizen.generation_deps.telemetry.metrics, denizen.settings.config.telemetry.metrics
    if metrics is None:
        yield None
        return
    from denizen.app.http_server import HttpServer, choose_limits, raise_descriptor_limit

    key = denizen.settings.secrets.resolve(section.key)
    check_metrics_exposure(section, key)
    queues = QueueCounter(denizen.services.store, denizen.home, denizen.services.clock, accounts.list_states)
    app = build_metrics_app(metrics, FiguresReader(denizen, accounts, readiness, queues).read, key)
    with listening(_RecordCounter(metrics)):
        server = HttpServer(app, choose_limits(raise_descriptor_limit()), lambda: None)
        yield MetricsService(server, queues.run)
