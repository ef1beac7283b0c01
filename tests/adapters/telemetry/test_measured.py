"""The measured store and models count failures by their code or class, and change none of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from denizen.adapters.telemetry.measured import MeasuredStore
from denizen.adapters.telemetry.prometheus import PrometheusTelemetry, ServerFigures
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from denizen.testing.temporary_store import TemporaryStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def telemetry() -> PrometheusTelemetry:
    return PrometheusTelemetry(SystemClock(), "1.0")


@pytest.fixture
async def store(telemetry: PrometheusTelemetry) -> AsyncGenerator[MeasuredStore]:
    store = MeasuredStore(TemporaryStore(), telemetry)
    yield store
    await store.aclose()


def count_errors(telemetry: PrometheusTelemetry) -> dict[str, float]:
    text = telemetry.render(ServerFigures()).decode()
    return {
        sample.labels["code"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "denizen_store_errors_total"
    }


@pytest.mark.parametrize(
    ("error", "counted"),
    [(Unavailable("Away.", code="store_busy"), "store_busy"), (ValueError("What Zaphod said."), "ValueError")],
)
async def test_an_error_is_counted_and_passes_on_as_it_is(
    store: MeasuredStore, telemetry: PrometheusTelemetry, error: Exception, counted: str
) -> None:
    with pytest.raises(type(error)) as raised:
        async with store.work():
            raise error
    assert raised.value is error
    assert count_errors(telemetry) == {counted: 1}


async def test_work_that_was_broken_off_is_no_error(store: MeasuredStore, telemetry: PrometheusTelemetry) -> None:
    broken_off = anyio.get_cancelled_exc_class()
    with pytest.raises(broken_off):
        async with store.work(write=False):
            raise broken_off
    assert count_errors(telemetry) == {}
