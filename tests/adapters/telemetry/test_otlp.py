"""A collector that does not answer holds up neither the work that is measured nor the end of the process."""

from __future__ import annotations

import threading

import pytest

from denizen.adapters.telemetry import otlp
from denizen.adapters.telemetry.otlp import Collector, OtlpTelemetry
from denizen.domain.clock import SystemClock
from denizen.ports.telemetry import StoreSpan, TurnSpan
from tests.local_server import Exchange, serve
from tests.timing import HANG_LIMIT_S


def test_closing_gives_up_what_a_silent_collector_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "EXPORT_S", 2 * HANG_LIMIT_S)
    has_asked, may_answer, waited_in_vain = threading.Event(), threading.Event(), threading.Event()

    def be_silent(exchange: Exchange) -> None:
        has_asked.set()
        if not may_answer.wait(HANG_LIMIT_S):
            waited_in_vain.set()
        exchange.say(b"", kind="application/x-protobuf")

    with serve(dict.fromkeys(("/v1/traces", "/v1/metrics"), be_silent)) as server:
        telemetry = OtlpTelemetry(Collector(endpoint=server.url("")), SystemClock(), "1.0")
        for number in range(5000):
            turn = TurnSpan(turn_id=f"t{number}", agent="denizen", outcome="done")
            with telemetry.measure(turn), telemetry.measure(StoreSpan(is_writing=True, outcome="ok")):
                pass
        assert has_asked.wait(HANG_LIMIT_S)
        telemetry.close()
        assert not waited_in_vain.is_set()
        may_answer.set()
