"""Faults are reported to a server that speaks the protocol of Sentry, without secrets and without words of people."""

from __future__ import annotations

import gzip
import json
import logging

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
                raise ValueError(said)
            except ValueError:
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
    assert event["exception"]["values"][0]["type"] == "ValueError"
    assert event["exception"]["values"][0]["stacktrace"]["frames"][-1]["function"].startswith("test_a_fault")
    assert event["logentry"]["message"] == "turn fault %s"
    assert event["tags"] == {"turn": "t-***", "reference": "err_1"}
    assert event["release"] == "denizen@1.0"
    text = body.decode()
    shown = text.replace("Zaphod said something", "", text.count('said = \\"Zaphod said something\\"'))
    assert SECRET not in text
    assert "Zaphod" not in shown  # but in the line of this file that says it
