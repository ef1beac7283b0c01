"""Rules for tests: a busy machine must not fail them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from scripts.python_sources import Module, get_last_name

LEAST_LIMIT_S = 60
_LIMIT_POSITIONS = {"fail_after": 0, "wait_for": 1}
_LIMIT_KEYWORDS = frozenset({"timeout", "wait_s"})
_MAY_HAVE_LIMIT = re.compile(r"\bfail_after\(|\bwait_for\(|\btimeout=|\bwait_s=")
_READS_CLOCK = re.compile(r"\btime\.|\bfrom time\b")
_CLOCKS = frozenset({"monotonic", "perf_counter", "perf_counter_ns", "process_time", "thread_time", "time", "sleep"})


def find_clock_readings(modules: Sequence[Module]) -> Iterator[str]:
    """A test that reads a clock of the machine, or sleeps: what is measured belongs into `benchmarks/`."""
    for module in modules:
        if not _READS_CLOCK.search(module.text):
            continue  # most tests need not be parsed
        for node in module.nodes:
            match node:
                case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in _CLOCKS:
                    yield f"{module.path}::{module.walk.owners[node]} uses time.{name}"
                case ast.ImportFrom(module="time", names=names):
                    yield from (f"{module.path} imports time.{each.name}" for each in names if each.name in _CLOCKS)
                case _:
                    pass


def find_short_limits(modules: Sequence[Module]) -> Iterator[str]:
    """A wait whose limit is a small number: a limit that only guards against hanging is `tests.timing.HANG_LIMIT_S`."""
    for module in modules:
        if not _MAY_HAVE_LIMIT.search(module.text):
            continue
        for node in module.nodes:
            if not isinstance(node, ast.Call):
                continue
            position = _LIMIT_POSITIONS.get(get_last_name(node.func))
            limits = [] if position is None else node.args[position : position + 1]
            for limit in [*limits, *(each.value for each in node.keywords if each.arg in _LIMIT_KEYWORDS)]:
                match limit:
                    case ast.Constant(value=int() | float() as limit_s) if 0 < limit_s < LEAST_LIMIT_S:
                        yield f"{module.path}::{module.walk.owners[node]} waits for {limit_s} s"
                    case _:
                        pass
