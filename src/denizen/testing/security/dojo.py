"""AgentDojo's suites: its tools, environments, tasks, injections and ground truth, as the bench needs them.

The package (PyPI `agentdojo`) also holds clients of model vendors, and importing its suites imports all of them. No
model of a vendor takes part here, so the package's modules are loaded without that one part, and what it needs besides
can be installed without the vendors: `locks/bench.txt`. The types here say what of it is used.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType
from typing import Any, Protocol, cast

from denizen.domain.errors import NeedsAttention

VERSION = "v1.2.2"
"""Of the tasks; the newest that the package holds."""

_PACKAGE = "agentdojo"
_PIPELINE = "agentdojo.agent_pipeline"
_VENDOR = "agentdojo.agent_pipeline.llms.google_llm"


class Invocation(Protocol):
    """A call of the ground truth."""

    @property
    def function(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any]: ...


class Parameters(Protocol):
    def model_json_schema(self) -> dict[str, Any]: ...


class Function(Protocol):
    """A tool."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Parameters: ...


class World(Protocol):
    """The state of mailboxes, accounts, channels that the tools work on."""

    def model_copy(self, *, deep: bool = False) -> World: ...


class UserTask(Protocol):
    """What the user asks for. `utility` says whether it was done."""

    ID: str
    PROMPT: str
    GROUND_TRUTH_OUTPUT: str

    def init_environment(self, environment: World) -> World: ...
    def ground_truth(self, pre_environment: World) -> Sequence[Invocation]: ...
    def utility(self, model_output: str, pre_environment: World, post_environment: World) -> bool: ...
    def utility_from_traces(
        self, model_output: str, pre_environment: World, post_environment: World, traces: Sequence[Invocation]
    ) -> bool | None: ...


class InjectionTask(Protocol):
    """What the attacker wants. `security` is true when it was done: the attack succeeded."""

    ID: str
    GOAL: str
    GROUND_TRUTH_OUTPUT: str

    def ground_truth(self, pre_environment: World) -> Sequence[Invocation]: ...
    def security(self, model_output: str, pre_environment: World, post_environment: World) -> bool: ...
    def security_from_traces(
        self, model_output: str, pre_environment: World, post_environment: World, traces: Sequence[Invocation]
    ) -> bool | None: ...


class Suite(Protocol):
    """`tools` and tasks of one field."""

    @property
    def name(self) -> str: ...
    @property
    def tools(self) -> Sequence[Function]: ...
    @property
    def user_tasks(self) -> Mapping[str, UserTask]: ...
    @property
    def injection_tasks(self) -> Mapping[str, InjectionTask]: ...

    def get_injection_vector_defaults(self) -> Mapping[str, str]: ...
    def load_and_inject_default_environment(self, injections: dict[str, str]) -> World: ...


class Machine(Protocol):
    """Runs functions on a world."""

    def run_function(self, env: World, function: str, kwargs: Mapping[str, Any]) -> tuple[object, str | None]: ...


@dataclass(frozen=True, slots=True)
class Dojo:
    """The package, loaded. `machine` and `invocation` build the two things of it that the bench makes itself; `to_text`
    is a result as a model reads it.
    """

    version: str
    suites: Mapping[str, Suite]
    _functions: ModuleType
    _execution: ModuleType

    def machine(self, suite: Suite) -> Machine:
        return cast("Machine", self._functions.FunctionsRuntime(suite.tools))

    def invocation(self, function: str, args: Mapping[str, Any]) -> Invocation:
        return cast("Invocation", self._functions.FunctionCall(function=function, args=dict(args)))

    def to_text(self, result: object) -> str:
        return str(self._execution.tool_result_to_str(result))


def find_missing() -> str:
    """Which package is missing; empty when all are there."""
    needed = (_PACKAGE, "deepdiff", "email_validator", "docstring_parser", "yaml")
    return next((name for name in needed if importlib.util.find_spec(name) is None), "")


def load_dojo() -> Dojo:
    """Raises NeedsAttention when something is missing."""
    missing = find_missing()
    if missing:
        raise NeedsAttention(
            f"AgentDojo is not installed: the Python package '{missing}' is missing.",
            code="bench_missing",
            why="The suites of AgentDojo are no part of Denizen.",
            fix="In a checkout run `scripts/install bench`; or run the bench with --corpus own.",
        )
    _leave_out_vendors()
    suites = import_module("agentdojo.task_suite.load_suites").get_suites(VERSION)
    return Dojo(
        f"AgentDojo {metadata.version(_PACKAGE)}, tasks {VERSION}",
        cast("Mapping[str, Suite]", suites),
        import_module("agentdojo.functions_runtime"),
        import_module("agentdojo.agent_pipeline.tool_execution"),
    )


def _leave_out_vendors() -> None:
    """The part with the clients becomes a package whose modules are imported one by one; the one client that another
    module asks for a constant is replaced by that constant.
    """
    if _PIPELINE in sys.modules:
        return
    [folder] = import_module(_PACKAGE).__path__
    pipeline = ModuleType(_PIPELINE)
    pipeline.__path__ = [f"{folder}/agent_pipeline"]
    llms = ModuleType(f"{_PIPELINE}.llms")
    llms.__path__ = []
    vendor = ModuleType(_VENDOR)
    vendor.__dict__["EMPTY_FUNCTION_NAME"] = "<empty-function-name>"
    sys.modules |= {_PIPELINE: pipeline, llms.__name__: llms, _VENDOR: vendor}
