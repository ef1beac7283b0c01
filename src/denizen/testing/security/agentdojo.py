"""AgentDojo's suites: tools, environments, tasks, injections and ground truth, and what its tools declare to the gate.

The package (PyPI `agentdojo`) also has clients of model vendors, and importing its suites imports all of them. The
bench needs none, so it loads the package without that part; `locks/bench.txt` lists what the rest needs. The protocols
here declare what the bench uses of the package.

AgentDojo says nothing about the risk of its tools, so `DECLARATIONS` declares them as an owner of Denizen would. The
rule was fixed before any result was looked at and is the same for all suites: reading one's own data is tier 0; reading
what others can write is 0 or 1, with the label of its source; changing one's own things is 1 or 2; sending, paying,
booking, inviting, sharing and deleting are 3. A tool that sends names the arguments that say to whom.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType
from typing import Any, Protocol, cast

from denizen.adapters.mcp.tools import McpToolPolicy, build_tool_list
from denizen.domain.errors import NeedsAttention
from denizen.domain.json import Json
from denizen.domain.tool import DataFlow, Effect, Taint, Tier, ToolSpec

VERSION = "v1.2.2"
"""The version of the tasks: the newest that the package has."""

_PACKAGE = "agentdojo"
_PIPELINE = "agentdojo.agent_pipeline"
_VENDOR = "agentdojo.agent_pipeline.llms.google_llm"


class AgentDojoCall(Protocol):
    """A tool call of the ground truth."""

    @property
    def function(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any]: ...


class AgentDojoParameters(Protocol):
    def model_json_schema(self) -> dict[str, Any]: ...


class AgentDojoFunction(Protocol):
    """A tool of a suite."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> AgentDojoParameters: ...


class AgentDojoEnvironment(Protocol):
    """The state that tools work on: mailboxes, accounts, channels."""

    def model_copy(self, *, deep: bool = False) -> AgentDojoEnvironment: ...


class AgentDojoTask(Protocol):
    """A task of the user. `utility` says whether it was done."""

    ID: str
    PROMPT: str
    GROUND_TRUTH_OUTPUT: str

    def init_environment(self, environment: AgentDojoEnvironment) -> AgentDojoEnvironment: ...
    def ground_truth(self, pre_environment: AgentDojoEnvironment) -> Sequence[AgentDojoCall]: ...
    def utility(
        self, model_output: str, pre_environment: AgentDojoEnvironment, post_environment: AgentDojoEnvironment
    ) -> bool: ...
    def utility_from_traces(
        self,
        model_output: str,
        pre_environment: AgentDojoEnvironment,
        post_environment: AgentDojoEnvironment,
        traces: Sequence[AgentDojoCall],
    ) -> bool | None: ...


class AgentDojoInjection(Protocol):
    """A goal of the attacker. `security` is true when the attack succeeded, not when it was stopped."""

    ID: str
    GOAL: str
    GROUND_TRUTH_OUTPUT: str

    def ground_truth(self, pre_environment: AgentDojoEnvironment) -> Sequence[AgentDojoCall]: ...
    def security(
        self, model_output: str, pre_environment: AgentDojoEnvironment, post_environment: AgentDojoEnvironment
    ) -> bool: ...
    def security_from_traces(
        self,
        model_output: str,
        pre_environment: AgentDojoEnvironment,
        post_environment: AgentDojoEnvironment,
        traces: Sequence[AgentDojoCall],
    ) -> bool | None: ...


class AgentDojoSuite(Protocol):
    """The tools and tasks of one field, such as banking."""

    @property
    def name(self) -> str: ...
    @property
    def tools(self) -> Sequence[AgentDojoFunction]: ...
    @property
    def user_tasks(self) -> Mapping[str, AgentDojoTask]: ...
    @property
    def injection_tasks(self) -> Mapping[str, AgentDojoInjection]: ...

    def get_injection_vector_defaults(self) -> Mapping[str, str]: ...
    def load_and_inject_default_environment(self, injections: dict[str, str]) -> AgentDojoEnvironment: ...


class AgentDojoRuntime(Protocol):
    """Runs tools on an environment."""

    def run_function(
        self, env: AgentDojoEnvironment, function: str, kwargs: Mapping[str, Any]
    ) -> tuple[object, str | None]: ...


@dataclass(frozen=True, slots=True)
class AgentDojo:
    """The loaded package. `machine` and `invocation` make objects of its types; `to_text` formats a result as a model
    reads it.
    """

    version: str
    suites: Mapping[str, AgentDojoSuite]
    _functions: ModuleType
    _execution: ModuleType

    def machine(self, suite: AgentDojoSuite) -> AgentDojoRuntime:
        return cast("AgentDojoRuntime", self._functions.FunctionsRuntime(suite.tools))

    def invocation(self, function: str, args: Mapping[str, Any]) -> AgentDojoCall:
        return cast("AgentDojoCall", self._functions.FunctionCall(function=function, args=dict(args)))

    def to_text(self, result: object) -> str:
        return str(self._execution.tool_result_to_str(result))


def find_missing() -> str:
    """Returns the name of a package that is missing, empty when all are there."""
    needed = (_PACKAGE, "deepdiff", "email_validator", "docstring_parser", "yaml")
    return next((name for name in needed if importlib.util.find_spec(name) is None), "")


def load_agentdojo() -> AgentDojo:
    """Loads the package. Raises NeedsAttention when it, or a package that it needs, is missing."""
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
    return AgentDojo(
        f"AgentDojo {metadata.version(_PACKAGE)}, tasks {VERSION}",
        cast("Mapping[str, AgentDojoSuite]", suites),
        import_module("agentdojo.functions_runtime"),
        import_module("agentdojo.agent_pipeline.tool_execution"),
    )


def _leave_out_vendors() -> None:
    """Puts empty modules in the place of the vendors' clients, so that importing the suites does not import them. One
    module takes a constant from a client: its empty module has that constant.
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


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """The risk of a tool. `to` are the arguments that name the recipients, `why` the reason for its tier."""

    tier: Tier
    why: str
    reads: frozenset[Taint] = frozenset()
    effects: frozenset[Effect] = frozenset()
    to: tuple[str, ...] = ()
    destructive: bool = False


def _own(why: str) -> ToolDeclaration:
    return ToolDeclaration(Tier.HARMLESS, why)


def _reads(label: Taint, why: str, *, tier: Tier = Tier.HARMLESS) -> ToolDeclaration:
    return ToolDeclaration(tier, why, reads=frozenset({label}))


def _sends(*to: str, why: str, tier: Tier = Tier.DANGEROUS, destructive: bool = False) -> ToolDeclaration:
    return ToolDeclaration(tier, why, effects=frozenset({Effect.SEND}), to=to, destructive=destructive)


def _commits(why: str, *effects: Effect) -> ToolDeclaration:
    return ToolDeclaration(Tier.DANGEROUS, why, effects=frozenset(effects))


def _deletes(why: str) -> ToolDeclaration:
    return ToolDeclaration(Tier.DANGEROUS, why, destructive=True)


_MAIL = _reads(Taint.MAIL, "anybody may have written the mail")
_INVITED = _reads(Taint.OTHERS, "others write the invitations")
_SHARED = _reads(Taint.DOCUMENT, "files are shared by others")
_PLACES = _reads(Taint.WEB, "a listing on the web, with reviews by anybody")
_TALK = _reads(Taint.OTHERS, "other people write there")
_BOOKING = _commits("books in the user's name")

DECLARATIONS: Mapping[str, ToolDeclaration] = {
    # mail
    "get_unread_emails": _MAIL,
    "get_sent_emails": _MAIL,  # answers quote what they answer
    "get_received_emails": _MAIL,
    "get_draft_emails": _MAIL,
    "search_emails": _MAIL,
    "search_contacts_by_name": _own("the user's address book"),
    "search_contacts_by_email": _own("the user's address book"),
    "send_email": _sends("recipients", "cc", "bcc", why="writes to anybody in the user's name"),
    "delete_email": _deletes("what is deleted is gone"),
    # calendar
    "get_current_day": _own("the date"),
    "search_calendar_events": _INVITED,
    "get_day_calendar_events": _INVITED,
    "create_calendar_event": _sends(
        "participants", tier=Tier.SENSITIVE, why="changes the user's calendar, and invites when it names others"
    ),
    "reschedule_calendar_event": _sends(tier=Tier.SENSITIVE, why="moves an event, and tells those who take part"),
    "add_calendar_event_participants": _sends("participants", why="invites others"),
    "cancel_calendar_event": _sends(destructive=True, why="deletes an event, and tells those who take part"),
    # files
    "search_files_by_filename": _SHARED,
    "search_files": _SHARED,
    "get_file_by_id": _SHARED,
    "list_files": _SHARED,
    "read_file": _reads(Taint.DOCUMENT, "bills and letters from others"),
    "create_file": ToolDeclaration(Tier.LIMITED, "a new file of the user's own"),
    "append_to_file": ToolDeclaration(Tier.SENSITIVE, "changes a file"),
    "delete_file": _deletes("what is deleted is gone"),
    "share_file": _sends("email", why="gives others access to a file"),
    # bank
    "get_iban": _own("the user's own"),
    "get_balance": _own("the user's own"),
    "get_most_recent_transactions": _reads(Taint.OTHERS, "whoever pays writes the subject"),
    "get_scheduled_transactions": _reads(Taint.OTHERS, "names and subjects that others gave"),
    "get_user_info": _own("the user's own address"),
    "send_money": _commits("pays"),
    "schedule_transaction": _commits("pays later", Effect.SCHEDULE),
    "update_scheduled_transaction": _commits("pays others, or more, later", Effect.SCHEDULE),
    "update_password": _commits("locks the user out"),
    "update_user_info": ToolDeclaration(Tier.SENSITIVE, "changes the user's address"),
    # chat
    "get_channels": _reads(Taint.OTHERS, "others name the channels"),
    "get_users_in_channel": _reads(Taint.OTHERS, "others choose their names"),
    "read_channel_messages": _TALK,
    "read_inbox": _TALK,
    "send_direct_message": _sends("recipient", why="writes to others in the user's name"),
    "send_channel_message": _sends("channel", why="writes to others in the user's name"),
    "add_user_to_channel": _commits("lets somebody read a channel"),
    "invite_user_to_slack": _sends("user_email", why="lets somebody in, and writes to them"),
    "remove_user_from_slack": _deletes("throws somebody out"),
    "get_webpage": _reads(Taint.WEB, "as Denizen's own fetch_url", tier=Tier.LIMITED),
    "post_webpage": _sends("url", why="sends to anywhere"),
    # travel
    "get_user_information": ToolDeclaration(
        Tier.LIMITED, "shows the numbers of passport and cards", effects=frozenset({Effect.REVEAL})
    ),
    "get_all_hotels_in_city": _PLACES,
    "get_hotels_prices": _PLACES,
    "get_rating_reviews_for_hotels": _PLACES,
    "get_hotels_address": _PLACES,
    "get_all_restaurants_in_city": _PLACES,
    "get_cuisine_type_for_restaurants": _PLACES,
    "get_restaurants_address": _PLACES,
    "get_rating_reviews_for_restaurants": _PLACES,
    "get_dietary_restrictions_for_all_restaurants": _PLACES,
    "get_contact_information_for_restaurants": _PLACES,
    "get_price_for_restaurants": _PLACES,
    "check_restaurant_opening_hours": _PLACES,
    "get_all_car_rental_companies_in_city": _PLACES,
    "get_car_types_available": _PLACES,
    "get_rating_reviews_for_car_rental": _PLACES,
    "get_car_fuel_options": _PLACES,
    "get_car_rental_address": _PLACES,
    "get_car_price_per_day": _PLACES,
    "get_flight_information": _PLACES,
    "reserve_hotel": _BOOKING,
    "reserve_restaurant": _BOOKING,
    "reserve_car_rental": _BOOKING,
}


_READING = ("get_", "read_", "search_", "list_", "check_")


def offer_as_mcp(functions: Sequence[AgentDojoFunction]) -> list[ToolSpec]:
    """Returns the tools as a trusted MCP server would offer them: it says which ones only read and which destroy, and
    nobody has declared anything else.
    """
    from mcp_types import Tool

    tools = [
        Tool.model_validate(
            {
                "name": function.name,
                "description": function.description,
                "inputSchema": {"type": "object", **function.parameters.model_json_schema()},
                "annotations": {
                    "readOnlyHint": function.name.startswith(_READING),
                    "destructiveHint": DECLARATIONS[function.name].destructive,
                },
            }
        )
        for function in functions
    ]
    return list(build_tool_list(tools, McpToolPolicy("", trusted=True), "mcp:agentdojo").specs)


def make_tool_spec(function: AgentDojoFunction) -> ToolSpec:
    """Returns the tool with its declaration. Without one its risk is unknown, which the gate treats as the highest."""
    declared = DECLARATIONS.get(function.name)
    parameters: dict[str, Json] = function.parameters.model_json_schema()
    if declared is None:
        return ToolSpec(function.name, function.description, parameters)
    return ToolSpec(
        function.name,
        function.description,
        parameters,
        tier=declared.tier,
        destructive=declared.destructive,
        flow=DataFlow(declared.reads, declared.effects, declared.to),
    )
