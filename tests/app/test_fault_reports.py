"""Faults are reported to a server that speaks the protocol of Sentry, without secrets and without words of people."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

from denizen.adapters.fault_reports import FaultReporter
from denizen.domain.errors import Unavailable
from tests.local_server import Exchange, serve

SECRET = "planted-secret-0123456789"


def answer(exchange: Exchange) -> None:
    exchange.say("{}", kind="application/json")


def test_a_fault_is_reported_with_its_traceback_and_neither_secrets_nor_what_was_said() -> None:
    logger = logging.getLogger("denizen.tests.faults")
    logger.propagate = False
    with serve({"/api/1/envelope/": answer}) as server:
        reporter = FaultReporter(
            f"http://public@{server.address}/1", lambda text: text.replace(SECRET, "***"), release="1.0"
        )
        logger.addHandler(reporter)
        try:
            said = "Zaphod said something"
            try:
                fault = ValueError(said)
                fault.add_note(said)
                raise ExceptionGroup(said, [fault]) from OSError(2, said, said)
            except ExceptionGroup:
                logger.exception(
                    "turn fault %s", said, extra={"turn": f"t-{SECRET}", "reference": "err_1", "who": said}
                )
            try:
                raise Unavailable("The model is away.")
            except Unavailable:
                logger.exception("foreseen")
            logger.error("no traceback")
        finally:
            logger.removeHandler(reporter)
            reporter.close()
    bodies = [
        gzip.decompress(each.data) if each.headers.get("content-encoding") == "gzip" else each.data
        for each in server.requests
    ]
    (body,) = bodies
    event = json.loads(body.splitlines()[2])
    values = event["exception"]["values"]
    assert {"ExceptionGroup", "ValueError"} <= {each["type"] for each in values}
    frames = [frame for each in values for frame in each.get("stacktrace", {}).get("frames", [])]
    assert any(each["function"].startswith("test_a_fault") for each in frames)
    assert not any(each["filename"].startswith("/") for each in frames)
    assert event["logentry"]["message"] == "turn fault %s"
    assert event["tags"] == {"turn": "t-***", "reference": "err_1"}
    assert event["release"] == "denizen@1.0"
    text = body.decode()
    assert SECRET not in text
    assert "Zaphod" not in text
    assert str(Path(__file__).parent) not in text
