"""What a running server tells those who watch it: metrics for Prometheus, traces for a collector, reports of faults."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Mapping
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home, Server, get_completion_text
from tests.e2e.provider import Provider
from tests.local_server import Exchange, serve
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

METRICS = "telemetry:\n  metrics: {enabled: true, port: 0}\n"
SECRET = "sk-planted-secret-7f3a9c21d4"
PATHS = ("/v1/traces", "/v1/metrics")
Figures = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: Server, key: str = "") -> tuple[int, str]:
    url = urlsplit(server.running.err.await_text(r"metrics are served\s+url=(http://\S+)$")[1])
    with closing(http.client.HTTPConnection(str(url.hostname), url.port, timeout=HANG_LIMIT_S)) as connection:
        connection.request("GET", url.path, headers={"Authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        return response.status, response.read().decode()


def read_figures(text: str) -> Figures:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figure(figures: Figures, name: str, **labels: str) -> float:
    return figures[name, frozenset(labels.items())]


def test_prometheus_reads_turns_tokens_calls_queues_and_what_is_ready(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest=METRICS)
    provider.script(ModelAnswer(calls=[ModelCall("current_time", {})]), ModelAnswer(text="At noon, Zaphod."))
    with home.serve() as server:
        assert get_completion_text(server.ask("When is lunch, says Zaphod?", key="m1")) == "At noon, Zaphod."
        status, text = scrape(server)
    figures = read_figures(text)
    assert status == 200
    assert figure(figures, "denizen_turns_total", agent="denizen", outcome="done") == 1
    assert figure(figures, "denizen_turn_duration_seconds_count", agent="denizen") == 1
    assert figure(figures, "denizen_model_requests_total", model="local/scripted", outcome="ok") == 2
    assert figure(figures, "denizen_model_tokens_total", model="local/scripted", kind="output") > 0
    assert figure(figures, "denizen_model_cost_usd_total", model="local/scripted") >= 0
    calls = {
        dict(labels)["verdict"]: value
        for (name, labels), value in figures.items()
        if name == "denizen_tool_calls_total"
    }
    assert calls == {"approve": 1}
    for name in ("turns_running", "turns_queued", "approvals_waiting", "outbox_waiting", "events_waiting"):
        assert figure(figures, f"denizen_{name}") == 0
    assert {part: figure(figures, "denizen_ready", part=part) for part in ("store", "durable_log", "disk")} == {
        "store": 1,
        "durable_log": 1,
        "disk": 1,
    }
    assert figure(figures, "denizen_store_work_duration_seconds_count", mode="write") > 0
    assert "zaphod" not in text.lower() and "operator" not in text


def test_metrics_are_off_by_default_and_for_others_only_with_a_key(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    with home.serve() as server:
        assert server.get("/metrics").status == 404
    beyond = "telemetry:\n  metrics: {enabled: true, port: 0, host: 0.0.0.0%s}\n"
    home.configure(provider.server.openai_url, rest=beyond % "")
    refused = home.do("run", "--port", "0")
    assert refused.code != 0
    assert "The metrics will not be served on '0.0.0.0' without a key." in refused.err
    home.variables["METRICS_KEY"] = SECRET
    home.configure(provider.server.openai_url, rest=beyond % ', key: "${METRICS_KEY}"')
    with home.serve() as server:
        assert [scrape(server, key)[0] for key in ("", "wrong", SECRET)] == [401, 401, 200]


def take_any(exchange: Exchange) -> None:
    exchange.say(b"", kind="application/x-protobuf")


def test_a_collector_gets_each_turn_as_a_trace_in_the_terms_of_generative_ai(home: Home, provider: Provider) -> None:
    provider.script(ModelAnswer(calls=[ModelCall("current_time", {})]), ModelAnswer(text="At noon, Zaphod."))
    with serve(dict.fromkeys(PATHS, take_any)) as collector:
        home.variables["OTLP_KEY"] = SECRET
        home.configure(
            provider.server.openai_url,
            rest=f'telemetry:\n  otlp: {{endpoint: "{collector.url("")}", key: "${{OTLP_KEY}}"}}\n',
        )
        with home.serve() as server:
            server.ask("When is lunch, says Zaphod?", key="m1")
            assert server.running.stop(signal.SIGTERM).ending == (0, "")
    got = {
        path: [each.data for each in collector.requests if each.path == path] for path in ("/v1/traces", "/v1/metrics")
    }
    assert {each.headers["authorization"] for each in collector.requests} == {f"Bearer {SECRET}"}
    spans = [
        span
        for body in got["/v1/traces"]
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    turn = next(span for span in spans if span.name == "invoke_agent denizen")
    parts = [span.name for span in spans if span.parent_span_id == turn.span_id and span.trace_id == turn.trace_id]
    assert sorted(parts) == ["chat local/scripted", "chat local/scripted", "execute_tool current_time"]
    chat = next(span for span in spans if span.name.startswith("chat"))
    told = {each.key: each.value for each in chat.attributes}
    assert told["gen_ai.operation.name"].string_value == "chat"
    assert told["gen_ai.request.model"].string_value == "local/scripted"
    assert told["gen_ai.usage.output_tokens"].int_value > 0
    metrics = {
        metric.name
        for body in got["/v1/metrics"]
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} <= metrics
    assert not any(b"Zaphod" in body or b"noon" in body for bodies in got.values() for body in bodies)


def test_a_dead_collector_disturbs_nothing(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url, rest='telemetry:\n  otlp: {endpoint: "http://127.0.0.1:9"}\n')
    provider.script(ModelAnswer(text="Hello."))
    with home.serve() as server:
        assert get_completion_text(server.ask("Hi", key="m1")) == "Hello."
        assert server.running.stop(signal.SIGTERM).ending == (0, "")
