"""The metrics of a running server, on a port of their own, so that whoever may read them reaches nothing else."""

from __future__ import annotations

import hmac
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import anyio

from denizen.app.accounts import AccountSupervisor
from denizen.app.backup_schedule import load_backup_state
from denizen.app.build import Denizen
from denizen.app.readiness import ReadinessMonitor
from denizen.app.telemetry import listening
from denizen.domain.approval import ApprovalStatus
from denizen.domain.errors import DenizenError, NeedsAttention
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
READ_S = 3.0
"""How long an answer waits for the store; numbers of it are missing then."""

_log = logging.getLogger("denizen.telemetry")


class _RecordCounter(logging.Handler):
    def __init__(self, metrics: PrometheusTelemetry) -> None:
        super().__init__(logging.WARNING)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        self._metrics.count_record(record)


class FiguresReader:
    """Reads how a server stands, for its metrics."""

    def __init__(self, denizen: Denizen, accounts: AccountSupervisor, readiness: ReadinessMonitor) -> None:
        self._denizen = denizen
        self._accounts = accounts
        self._readiness = readiness

    async def read(self) -> ServerFigures:
        """Raises nothing: what the store does not tell in time is missing."""
        from denizen.adapters.telemetry.prometheus import ServerFigures

        turns, services, states = self._denizen.turns, self._denizen.services, self._accounts.list_states()
        waiting: dict[str, int] = {}
        backed_up_at: datetime | None = None
        with anyio.move_on_after(READ_S):
            try:
                async with services.store.work(write=False) as work:
                    approvals = await work.approvals.list_approvals(status=ApprovalStatus.PENDING, limit=MOST_COUNTED)
                    owed = [
                        await work.outbox.list_due(each.agent, each.platform, limit=MOST_COUNTED) for each in states
                    ]
                    due = await work.events.list_due(now=services.clock.now(), limit=MOST_COUNTED)
                    failed = await work.events.list_failed(limit=MOST_COUNTED)
                backed_up_at = (await load_backup_state(services.store, self._denizen.home)).good_at
                waiting = {
                    "approvals": len(approvals),
                    "deliveries": sum(map(len, owed)),
                    "events_waiting": len(due),
                    "events_failed": len(failed),
                }
            except DenizenError as error:
                _log.warning("the queues could not be counted for the metrics", extra=error.fields)
        return ServerFigures(
            parts=self._readiness.parts,
            not_ready=tuple(await self._readiness.find_problems()),
            accounts=Counter((each.platform, each.is_listening) for each in states),
            turns_running=turns.running_count,
            turns_queued=len(turns.queued),
            backup_age_s=(services.clock.now() - backed_up_at).total_seconds() if backed_up_at else None,
            **waiting,
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


@contextmanager
def serve_metrics(
    denizen: Denizen, accounts: AccountSupervisor, readiness: ReadinessMonitor
) -> Generator[uvicorn.Server | None]:
    """Gives the server of the metrics, which is to be served like others; None where they are off. Until the block
    ends, warnings and errors in the log are counted. Raises NeedsAttention where others could read the metrics.
    """
    metrics, section = denizen.generation_deps.telemetry.metrics, denizen.settings.config.telemetry.metrics
    if metrics is None:
        yield None
        return
    from denizen.app.http_server import HttpServer, choose_limits, raise_descriptor_limit

    key = denizen.settings.secrets.resolve(section.key)
    check_metrics_exposure(section, key)
    app = build_metrics_app(metrics, FiguresReader(denizen, accounts, readiness).read, key)
    with listening(_RecordCounter(metrics)):
        yield HttpServer(app, choose_limits(raise_descriptor_limit()), lambda: None)
