"""What every implementation of `denizen.ports.durable.DurableExecution` does, as tests.

Subclass `DurableContract` in a test module, mark the class for anyio, and give it a fixture `processes`, a
`durable_processes.Processes`. No test sleeps and none reads a clock; one that hangs has failed.
"""

from __future__ import annotations

from denizen.testing.durable_contract_runs import RunContract
from denizen.testing.durable_contract_steps import StepContract
from denizen.testing.durable_contract_stops import StopContract


class DurableContract(RunContract, StepContract, StopContract):
    """All of it."""
