"""A measured figure beside its aim and its baseline, and how it is printed.

The machine may be slow or shared, so that seconds of one run say little about another. Two things help: a baseline
that is measured in the same run, and the calibration loop, a fixed piece of work whose processor time stands at the
top of the output. A figure of processor time divided by the loop's can be compared across machines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

LOOP_ROUNDS = 300_000


@dataclass(frozen=True, slots=True)
class Figure:
    """`baseline` is the same thing without Denizen; None where there is no such thing. `aim` is None for figures that
    only explain others; it is a least value where `more_is_better`, else a most one.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    baseline: float | None = None
    more_is_better: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool:
        if self.aim is None:
            return True
        return self.value >= self.aim if self.more_is_better else self.value <= self.aim


def calibrate(times: int = 9) -> float:
    """Processor time of the loop, ms; the least of several."""
    return min(_loop_ms() for _ in range(times))


def _loop_ms() -> float:
    started = time.process_time()
    total = 0
    for number in range(LOOP_ROUNDS):
        total += number * number % 7
    return (time.process_time() - started) * 1e3


def show_head(loop_ms: float) -> None:
    print(f"calibration loop: {loop_ms:.1f} ms of processor time; quote figures in loops across machines\n")
    print(f"{'':48} {'figure':>14} {'aim':>12} {'':4} {'baseline':>12}")


def show(figures: Iterable[Figure], loop_ms: float) -> None:
    for figure in figures:
        verdict = "" if figure.aim is None else "ok" if figure.is_met else "MISS"
        sign = ">=" if figure.more_is_better else "<="
        aim = "" if figure.aim is None else f"{sign} {_number(figure.aim)}"
        baseline = "" if figure.baseline is None else _number(figure.baseline)
        loops = f"{figure.value / loop_ms:.2f} loops" if figure.unit == "ms CPU" else ""
        rest = "  ".join(text for text in (loops, figure.note) if text)
        value = f"{_number(figure.value)} {figure.unit}"
        print(f"{figure.name:48} {value:>14} {aim:>12} {verdict:4} {baseline:>12}  {rest}".rstrip(), flush=True)


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 20 else f"{value:.2f}"


def least(measure: Callable[[], float], times: int) -> float:
    """The least of several measurements: what disturbs them only ever adds."""
    return min(measure() for _ in range(times))


def middle(values: Iterable[float]) -> float:
    return statistics.median(values)
