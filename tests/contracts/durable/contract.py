"""The contract that every implementation of `denizen.ports.durable.DurableExecution` keeps, as one class of tests.

Subclass `DurableContract` in a test module, mark the class for anyio, and give it a fixture `processes` that returns a
`tests.contracts.durable.processes.Processes`. No test sleeps and none reads a clock; a test that hangs fails.
"""

from __future__ import annotations

from tests.contracts.durable.runs import RunContract, StopContract
from tests.contracts.durable.steps import StepContract


class DurableContract(RunContract, StepContract, StopContract):
    """The whole contract."""
