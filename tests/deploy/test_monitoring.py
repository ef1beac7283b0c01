"""The dashboard and the rules for alarms name metrics and labels that a server has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from denizen.adapters.telemetry.prometheus import PrometheusTelemetry, ServerFigures
from denizen.domain.clock import SystemClock
from denizen.ports.telemetry import CallSpan, RequestSpan, StoreSpan, TurnSpan

DEPLOY = Path(__file__).parents[2] / "deploy"
BY_PROMETHEUS = frozenset({"up"})
LABELS_BY_PROMETHEUS = frozenset({"job", "instance"})
_METRIC = re.compile(r"(?<![\w$\"])((?:denizen|process)_\w+|up)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"by \(([^)]*)\)")


def list_expressions() -> Iterator[tuple[str, str]]:
    dashboard = json.loads((DEPLOY / "grafana" / "denizen.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    rules = YAML(typ="safe").load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.fixture(scope="module")
def metrics() -> dict[str, frozenset[str]]:
    """The names of all samples of a server in which everything happened once, with their labels."""
    telemetry = PrometheusTelemetry(SystemClock(), "1.0")
    for span in (
        TurnSpan(turn_id="t1", agent="denizen", outcome="failed", failure="model_overloaded"),
        RequestSpan(model="p/m", outcome="ok"),
        CallSpan(tool="web_search", tier="0", verdict="approve", outcome="done"),
        StoreSpan(is_writing=True, outcome="store_busy"),
    ):
        with telemetry.measure(span):
            pass
    counted = dict.fromkeys(("approvals", "deliveries", "events_waiting", "events_failed", "backup_age_s"), 0)
    text = telemetry.render(ServerFigures(parts=("store",), accounts={("discord", True): 1}, **counted)).decode()
    return {
        sample.name: frozenset(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(("title", "expression"), list(list_expressions()))
def test_each_expression_names_metrics_and_labels_that_exist(
    title: str, expression: str, metrics: dict[str, frozenset[str]]
) -> None:
    named = _METRIC.findall(expression)
    assert named, title
    labels = set(LABELS_BY_PROMETHEUS)
    for name, matchers in named:
        assert name in metrics or name in BY_PROMETHEUS
        own = metrics.get(name, frozenset()) | LABELS_BY_PROMETHEUS
        assert set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)\s*\"", matchers)) <= own
        labels |= own
    for group in _GROUPED.findall(expression):
        assert set(group.split(", ")) <= labels


def test_only_the_first_hundred_models_are_told_apart() -> None:
    telemetry = PrometheusTelemetry(SystemClock(), "1.0")
    for number in range(150):
        with telemetry.measure(RequestSpan(model=f"p/m{number}", outcome="ok")):
            pass
    text = telemetry.render(ServerFigures()).decode()
    assert len(set(re.findall(r'denizen_model_requests_total\{model="([^"]*)"', text))) == 101
    assert 'denizen_model_requests_total{model="others",outcome="ok"} 50.0' in text
