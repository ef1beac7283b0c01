"""Answers of schedules are sent by webhook and mail when their turns have ended, and the history tells how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.schedule import DeliveryRoute, ScheduleConduct, ScheduleDelivery
from denizen.domain.speaker_choice import SILENCE
from denizen.engine.schedules.catalog import RunListing
from denizen.ports.schedules import RunReport
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.schedules.test_schedules import HOURLY, Process, open_process
from tests.timing import poll

pytestmark = pytest.mark.anyio

HOOK = ScheduleDelivery(DeliveryRoute.WEBHOOK, target="https://example.org/hook", secret="s" * 16)
SENT = replace(HOURLY, conduct=ScheduleConduct(delivery=HOOK))


class MemoryRunSender:
    """Keeps what is sent, after it has raised the given errors."""

    def __init__(self, *errors: DenizenError) -> None:
        self.errors = [*errors]
        self.sent: list[tuple[ScheduleDelivery, RunReport]] = []

    async def send(self, delivery: ScheduleDelivery, report: RunReport) -> str:
        self.sent.append((delivery, report))
        if self.errors:
            raise self.errors.pop(0)
        return "It was taken."


async def run_once(server: Process, sender: MemoryRunSender) -> RunListing:
    """Lets one time come, and returns its run when it has come to its end."""
    current = server.engine.runtime.current
    await server.engine.runtime.swap(replace(current, number=current.number + 1, run_sender=sender))
    await server.pass_time(hours=1)

    async def ended() -> RunListing | None:
        await server.runner.look()
        [run] = await server.catalog.list_runs()
        return None if run.outcome in ("running", "delivering") else run

    found = await poll(ended)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("errors", "outcome", "tries", "told"),
    [
        ([], "done", 1, "It was taken."),
        ([Unavailable("Away."), Unavailable("Away.")], "done", 3, "It was taken."),
        ([Unavailable("Away.")] * 4, "undelivered", 3, "Away."),
        ([InvalidInput("The webhook answered 401.", fix="Check it.")], "undelivered", 1, "answered 401"),
    ],
)
async def test_an_answer_is_sent_again_where_that_may_help_and_the_run_tells_how_it_went(
    errors: Sequence[DenizenError], outcome: str, tries: int, told: str
) -> None:
    sender = MemoryRunSender(*errors)
    async with open_process(SENT, model=ScriptedModel(otherwise=ScriptedReply("All is well."))) as server:
        run = await run_once(server, sender)
        assert (run.outcome, len(sender.sent)) == (outcome, tries)
        assert told in run.reason
        assert {report.text for _, report in sender.sent} == {"All is well."}
        assert {report.run for _, report in sender.sent} == {run.run.id}
        assert sender.sent[0][0] == HOOK
        assert run.turn is not None and run.cost_usd == run.turn.result.usage.cost_usd
        await server.runner.look()
        assert len(sender.sent) == tries


@pytest.mark.parametrize(
    ("reply", "outcome"), [(ScriptedReply(SILENCE), "silent"), (ScriptedReply(error=Unavailable("no model")), "failed")]
)
async def test_nothing_is_sent_where_the_agent_has_nothing_to_say_or_fails(reply: ScriptedReply, outcome: str) -> None:
    sender = MemoryRunSender()
    async with open_process(SENT, model=ScriptedModel(otherwise=reply)) as server:
        run = await run_once(server, sender)
        assert (run.outcome, sender.sent) == (outcome, [])


async def test_the_next_time_is_skipped_while_the_turn_before_runs_and_not_while_its_answer_is_sent() -> None:
    sender = MemoryRunSender()
    async with open_process(SENT) as server:
        await run_once(server, sender)
        await server.pass_time(hours=1)
        assert (await server.runs())[-1].outcome != "skipped"
