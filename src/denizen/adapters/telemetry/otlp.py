"""Traces and metrics for a collector of OpenTelemetry, by OTLP over HTTP, named by its conventions for generative AI.

A turn is a trace: `invoke_agent`, in it a `chat` for each request to a model and an `execute_tool` for each tool call.
Units of work of the store are only in the metrics. Nothing is global, so no library adds spans with what was said.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import cast

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind, Status, StatusCode, use_span

from denizen.domain.clock import Clock
from denizen.domain.record import record
from denizen.ports.telemetry import CANCELLED, CallSpan, RequestSpan, Span, StoreSpan, TurnSpan

CLOSE_S = 2.0
"""How long the end of the process waits for what is not sent yet."""
EXPORT_S = 5.0
_FAILED = frozenset({"failed", "refused"})

Attributes = Mapping[str, str | int | float]


@record(kw_only=True)
class Collector:
    """A collector's address without `/v1/traces`, the bearer token it wants or an empty text, and the part of turns
    whose traces are sent, from 0 to 1.
    """

    endpoint: str
    token: str = ""
    sample: float = 1.0


class OtlpTelemetry:
    """Implements `denizen.ports.telemetry.Telemetry`. It sends from threads of its own; what the collector does not
    take is dropped.
    """

    def __init__(self, collector: Collector, clock: Clock, version: str) -> None:
        self._clock = clock
        url = collector.endpoint.rstrip("/")
        headers = {"authorization": f"Bearer {collector.token}"} if collector.token else {}
        resource = Resource.create({"service.name": "denizen", "service.version": version})
        self._traces = TracerProvider(
            ParentBased(TraceIdRatioBased(collector.sample)), resource=resource, shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(f"{url}/v1/traces", headers=headers, timeout=EXPORT_S)
        self._traces.add_span_processor(BatchSpanProcessor(exporter))
        self._reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(f"{url}/v1/metrics", headers=headers, timeout=EXPORT_S)
        )
        self._metrics = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("denizen", version)
        meter = self._metrics.get_meter("denizen", version)
        self._turn_s = meter.create_histogram("gen_ai.invoke_agent.duration", "s", "Turns until their end.")
        self._request_s = meter.create_histogram("gen_ai.client.operation.duration", "s", "Requests to models.")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of requests.")
        self._cost = meter.create_counter("denizen.model.cost", "USD", "Known costs of models.")
        self._call_s = meter.create_histogram("gen_ai.execute_tool.duration", "s", "Tool calls.")
        self._store_s = meter.create_histogram("denizen.store.work.duration", "s", "Units of work of the store.")

    @contextmanager
    def measure(self, span: Span) -> Generator[None]:
        began_s, traced = self._clock.monotonic_s(), self._start(span)
        # The events of a request are passed on as they come, by a generator that any task may close: it cannot hold a
        # context. A request has no parts, so it need not.
        is_parent = traced is not None and not isinstance(span, RequestSpan)
        try:
            with (
                use_span(traced, record_exception=False, set_status_on_exception=False)
                if (traced is not None and is_parent)
                else nullcontext()
            ):
                yield
        finally:
            self._measure(span, self._clock.monotonic_s() - began_s)
            if traced is not None:
                _describe(span, traced)
                traced.end()

    def close(self) -> None:
        """Sends what is left, as far as the collector takes it in time: what still waits for it then is given up."""
        last_metrics = cast("Callable[[], None]", self._reader.shutdown)
        closing = [threading.Thread(target=each, daemon=True) for each in (self._traces.shutdown, last_metrics)]
        for each in closing:
            each.start()
        end_s = self._clock.monotonic_s() + CLOSE_S
        for each in closing:
            each.join(max(end_s - self._clock.monotonic_s(), 0))

    def _start(self, span: Span) -> OtelSpan | None:
        match span:
            case TurnSpan():
                about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": span.agent}
                about["denizen.turn.id"] = span.turn_id
                return self._tracer.start_span(f"invoke_agent {span.agent}", attributes=about)
            case RequestSpan():
                about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": span.model}
                return self._tracer.start_span(f"chat {span.model}", kind=SpanKind.CLIENT, attributes=about)
            case CallSpan():
                about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": span.tool}
                return self._tracer.start_span(f"execute_tool {span.tool}", attributes=about)
            case StoreSpan():
                return None

    def _measure(self, span: Span, took_s: float) -> None:
        match span:
            case TurnSpan():
                self._turn_s.record(took_s, {"gen_ai.agent.name": span.agent, "denizen.outcome": span.outcome})
            case RequestSpan():
                about = {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": span.provider,
                    "gen_ai.request.model": span.model,
                    "gen_ai.response.model": span.answered_by,
                }
                error = {} if span.outcome == "ok" else {"error.type": span.outcome}
                self._request_s.record(took_s, about | error)
                self._tokens.record(span.usage.input_tokens, about | {"gen_ai.token.type": "input"})
                self._tokens.record(span.usage.output_tokens, about | {"gen_ai.token.type": "output"})
                self._cost.add(float(span.usage.cost_usd or 0), {"gen_ai.request.model": span.model})
            case CallSpan():
                about = {"gen_ai.tool.name": span.tool, "denizen.tier": span.tier, "denizen.verdict": span.verdict}
                self._call_s.record(span.took_s, about | {"denizen.outcome": span.outcome})
            case StoreSpan():
                about = {"denizen.mode": "write" if span.is_writing else "read", "denizen.outcome": span.outcome}
                self._store_s.record(took_s, about)


def _describe(span: Span, traced: OtelSpan) -> None:
    """Writes the end of a span into its trace."""
    about: dict[str, str | int | float | list[str]] = {"denizen.outcome": span.outcome}
    error = ""
    match span:
        case TurnSpan():
            error = (span.failure or span.outcome) if span.outcome in _FAILED else ""
        case RequestSpan():
            error = span.outcome if span.outcome not in ("ok", CANCELLED) else ""
            if span.answered_by:
                about |= {
                    "gen_ai.provider.name": span.provider,
                    "gen_ai.response.model": span.answered_by,
                    "gen_ai.response.finish_reasons": [span.finish_reason],
                    "gen_ai.usage.input_tokens": span.usage.input_tokens,
                    "gen_ai.usage.output_tokens": span.usage.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": span.usage.cache_read_tokens,
                }
            if span.usage.cost_usd is not None:
                about["denizen.cost_usd"] = float(span.usage.cost_usd)
        case CallSpan():
            about |= {"denizen.tier": span.tier, "denizen.verdict": span.verdict}
            error = span.outcome if span.outcome in ("failed", "denied") else ""
        case StoreSpan():
            pass
    if error:
        about["error.type"] = error
        traced.set_status(Status(StatusCode.ERROR))
    traced.set_attributes(about)
