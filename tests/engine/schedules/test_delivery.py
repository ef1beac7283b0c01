"""Answers of schedules are sent by webhook and mail when their turns have ended, and the history tells how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from denizen.domain.errors import DenizenError, InvalidInput, Unavailable
from denizen.domain.ids import derive
from denizen.domain.json import JsonObject
from denizen.domain.schedule import DeliveryRoute, ScheduleConduct, ScheduleDelivery
from denizen.domain.speaker_choice import SILENCE
from denizen.engine.schedules.catalog import RunListing
from denizen.engine.schedules.delivery import WORKFLOW
from denizen.ports.schedules import RunReport
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.listener.failing_store import FailingStore
from tests.engine.schedules.test_schedules import HOURLY, Process, open_process
from tests.timing import poll

pytestmark = pytest.mark.anyio

HOOK = ScheduleDelivery(DeliveryRoute.WEBHOOK, target="https://example.org/hook", secret="s" * 16)
SENT = replace(HOURLY, conduct=ScheduleConduct(delivery=HOOK))


class MemoryRunSender:
    """Keeps what is sent, after it has raised the given errors."""

    def __init__(self, *errors: Exception) -> None:
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
    return await wait_for_end(server)


async def wait_for_end(server: Process) -> RunListing:
    """Returns the only run when it has come to its end."""

    async def ended() -> RunListing | None:
        await server.engine.deliveries.submit_owed()
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


async def test_a_store_that_is_away_when_sending_begins_and_ends_delays_it_alone() -> None:
    gate, store = ReplyGate(), FailingStore()

    class StoreLosingSender(MemoryRunSender):
        async def send(self, delivery: ScheduleDelivery, report: RunReport) -> str:
            store.break_down()
            return await super().send(delivery, report)

    async def failed_again() -> bool:
        return store.failed > 1

    async def lose_and_regain() -> None:
        await poll(failed_again)
        store.failed = 0
        store.recover()

    sender, model = StoreLosingSender(), ScriptedModel(ScriptedReply("All is well.", before=gate))
    async with open_process(SENT, model=model, store=store) as server:
        current = server.engine.runtime.current
        await server.engine.runtime.swap(replace(current, number=current.number + 1, run_sender=sender))
        await server.pass_time(hours=1)
        gate.open.set()
        [run] = await server.runs()
        assert run.outcome == "delivering" and run.turn is not None
        payload: JsonObject = {"run": run.run.id, "schedule": run.run.schedule, "turn": run.turn.id}
        store.break_down()
        await server.engine.durable.submit(WORKFLOW, derive("delivery", run.run.id), payload)
        await lose_and_regain()
        await lose_and_regain()
        assert (await wait_for_end(server)).outcome == "done"
        assert len(sender.sent) == 1


async def test_sending_that_ends_with_a_fault_is_not_delivering_for_ever() -> None:
    sender = MemoryRunSender(RuntimeError("a bug"))
    async with open_process(SENT) as server:
        run = await run_once(server, sender)
        assert (run.outcome, len(sender.sent)) == ("undelivered", 1)
        assert "because of a fault" in run.reason


async def test_an_answer_that_waited_for_more_than_a_day_is_not_sent_any_more() -> None:
    gate, sender = ReplyGate(), MemoryRunSender()
    model = ScriptedModel(ScriptedReply("All is well.", before=gate), otherwise=ScriptedReply("Nothing."))
    async with open_process(SENT, model=model) as server:
        current = server.engine.runtime.current
        await server.engine.runtime.swap(replace(current, number=current.number + 1, run_sender=sender))
        await server.pass_time(hours=1)
        gate.open.set()
        await server.runs()
        server.clock.advance(days=1, minutes=1)
        await server.engine.deliveries.submit_owed()
        run = await wait_for_end(server)
        assert (run.outcome, sender.sent) == ("undelivered", [])
        assert "within a day" in run.reason
