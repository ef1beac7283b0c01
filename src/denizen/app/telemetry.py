"""Opens the telemetry of a server, as the configuration says: metrics, traces and reports of faults.

It is opened with the server and closed with it; a change counts from the next start on. `metrics` serves the metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from denizen import __version__
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention
from denizen.domain.installation import build_install_command
from denizen.domain.record import record
from denizen.ports.model import Models
from denizen.ports.store import Store
from denizen.ports.telemetry import NO_TELEMETRY, Telemetry

if TYPE_CHECKING:
    from denizen.adapters.telemetry.prometheus import PrometheusTelemetry
    from denizen.app.settings import Settings


@record
class OpenTelemetry:
    """The telemetry of a process: where spans go, and the metrics that are served, if they are."""

    telemetry: Telemetry = NO_TELEMETRY
    metrics: PrometheusTelemetry | None = None


@contextmanager
def open_telemetry(settings: Settings, clock: Clock) -> Generator[OpenTelemetry]:
    """Opens what is configured. Raises NeedsAttention for an extra that is missing, or a DSN that is none."""
    section = settings.config.telemetry
    members: list[Telemetry] = []
    metrics: PrometheusTelemetry | None = None
    with ExitStack() as stack:
        if section.metrics.enabled:
            from denizen.adapters.telemetry.prometheus import PrometheusTelemetry

            metrics = PrometheusTelemetry(clock, __version__)
            members.append(metrics)
        if section.otlp.endpoint:
            members.append(_open_otlp(settings, clock, stack))
        if dsn := settings.secrets.resolve(section.faults.dsn):
            _report_faults(settings, dsn, stack)
        if not members:
            yield OpenTelemetry()
            return
        from denizen.adapters.telemetry.measured import TelemetryGroup

        yield OpenTelemetry(members[0] if len(members) == 1 else TelemetryGroup(members), metrics)


def _open_otlp(settings: Settings, clock: Clock, stack: ExitStack) -> Telemetry:
    section = settings.config.telemetry.otlp
    try:
        from denizen.adapters.telemetry.otlp import Collector, OtlpTelemetry
    except ImportError as error:
        raise _missing("Telemetry for a collector", "otel", "telemetry.otlp.endpoint") from error
    token = settings.secrets.resolve(section.key)
    telemetry = OtlpTelemetry(
        Collector(endpoint=section.endpoint, token=token, sample=section.sample), clock, __version__
    )
    stack.callback(telemetry.close)
    return telemetry


def _report_faults(settings: Settings, dsn: str, stack: ExitStack) -> None:
    try:
        from denizen.adapters.fault_reports import FaultReporter
    except ImportError as error:
        raise _missing("Reporting faults", "sentry", "telemetry.faults.dsn") from error
    environment = settings.config.telemetry.faults.environment
    reporter = FaultReporter(dsn, settings.secrets.mask, release=__version__, environment=environment)
    stack.callback(reporter.close)
    stack.enter_context(listening(reporter))


def measure_store(store: Store, telemetry: Telemetry) -> Store:
    """Returns the store as it is where nothing is measured."""
    if telemetry is NO_TELEMETRY:
        return store
    from denizen.adapters.telemetry.measured import MeasuredStore

    return MeasuredStore(store, telemetry)


def measure_models(models: Models, telemetry: Telemetry) -> Models:
    """Returns the models as they are where nothing is measured."""
    if telemetry is NO_TELEMETRY:
        return models
    from denizen.adapters.telemetry.measured import MeasuredModels

    return MeasuredModels(models, telemetry)


def _missing(what: str, extra: str, key: str) -> NeedsAttention:
    return NeedsAttention(
        f"{what} needs packages that are not installed.",
        code="extra_missing",
        fix=f"Run `{build_install_command(extra)}`, or remove {key}.",
    )


@contextmanager
def listening(handler: logging.Handler) -> Generator[None]:
    """Until the block ends, the handler gets what is logged."""
    logger = logging.getLogger("denizen")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
