"""One filled page of each kind about models, skills, MCP servers and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from denizen.domain.agent import Agent
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.event_listener import ActionKind, EventAction, EventDelivery, EventDeliveryStatus, EventListener
from denizen.domain.event_source import EventSourceState, EventSourceStatus, PollSource, SourceReport
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.schedule import RunStatus, Schedule, ScheduleRun
from denizen.domain.tool import Tier
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import TokenPrice, Usage
from denizen.domain.workflow import BrokenWorkflow, Edge, Workflow, WorkflowNode
from denizen.domain.workflow_run import NodeRun, NodeStatus, WorkflowRun, WorkflowRunListing
from denizen.engine.event_bus.log import EventEntry
from denizen.engine.schedules.catalog import RunListing, ScheduleListing
from denizen.ports.configuration import ConfigurationFault, PlannedChange
from denizen.ports.mcp_configuration import McpOutputLine, McpServerInfo, McpToolInfo
from denizen.ports.model import Capabilities, ModelInfo
from denizen.ports.model_configuration import (
    ConfiguredAlias,
    ConfiguredProvider,
    ModelTrial,
    PricedModel,
    ProviderKindInfo,
)
from denizen.ports.skill_configuration import SkillEvent, SkillEventKind, SkillReview, SkillState, SkillToolInfo
from denizen.ports.workflow_configuration import WorkflowExample
from denizen.web.pages.events import EventRow, EventsPage
from denizen.web.pages.mcp_servers import McpServerEditPage, McpServerFormPage, McpServerPage, McpServersPage
from denizen.web.pages.models import ModelsPage, ProviderPage
from denizen.web.pages.page import Frame
from denizen.web.pages.schedules import (
    CATCH_UPS,
    KINDS,
    ROUTES,
    NewSchedulePage,
    ScheduleForm,
    SchedulePage,
    SchedulesPage,
)
from denizen.web.pages.skills import ShownDiff, SkillPage, SkillsPage
from denizen.web.pages.workflows import (
    NewWorkflowPage,
    ShownNode,
    WorkflowPage,
    WorkflowRow,
    WorkflowRunPage,
    WorkflowsPage,
)
from denizen_sdk.errors import ProblemDetails
from tests.clock import NOON

PROBLEM = ProblemDetails("bad", "It is bad.", 400, "So it is.", "Mend it.")
PRICE = TokenPrice(input_usd=Decimal(3), output_usd=Decimal(15), cached_input_usd=Decimal("0.3"))
PROVIDER = ConfiguredProvider(
    name="lab", kind="openai-compatible", base_url="", model="", key="", key_name="LAB_KEY", key_origin=""
)
SKILL = SkillState(
    name="dice",
    origin="the folder skills/dice",
    state="failed",
    tools=[SkillToolInfo("dice_roll", Tier.HARMLESS)],
    why="It broke.",
    fix="Mend it.",
    trace="skill.py:1 in x: y",
)
SERVER = McpServerInfo(
    name="time",
    address="mcp-server-time",
    variables={"TZ": "***"},
    is_trusted=True,
    phase="up",
    since=NOON,
    failure="It fell.",
    failed_at=NOON,
    tools=[McpToolInfo("time_now", Tier.LIMITED, "Tells the time.")],
    left_out={"x": "y"},
    output=[McpOutputLine(NOON, "begun")],
)
MODEL = PricedModel(ModelInfo("lab/one", "lab", ("balanced",), (), Capabilities()), PRICE, PRICE)

SCHEDULE = Schedule(name="news", cron="@daily", zone="UTC", prompt="News?", agent=AgentName("ada"), owner="discord:7")
RUN = RunListing(
    ScheduleRun(
        id="run_1",
        schedule="news",
        planned_at=NOON,
        seen_at=NOON,
        status=RunStatus.MISSED,
        asked_by="local:ana",
        note="It was off.",
    )
)
FORM = ScheduleForm(
    values=dict.fromkeys(
        (
            "name",
            "kind",
            "tool",
            "workflow",
            "args",
            "when",
            "zone",
            "prompt",
            "agent",
            "to",
            "target",
            "catch_up",
            "session",
            "secret",
            "subject",
        ),
        "x",
    )
    | {"model": "x", "new_session": "yes", "wake_agent": "yes"},
    agents=[("ada", "ada")],
    kinds=KINDS,
    routes=ROUTES,
    catch_ups=CATCH_UPS,
)

WORKFLOW = Workflow(
    name="greet",
    description="Greets <people>.",
    agent=AgentName("ada"),
    nodes={
        "go": WorkflowNode(id="go", type="manual", settings={}, edges=(Edge("go", "then", "say"),)),
        "say": WorkflowNode(id="say", type="log", settings={"text": "Hello"}),
    },
    digest="d1",
)
WORKFLOW_FAULT = ConfigurationFault(
    file="greet.yaml", line=2, column=1, path="nodes.go", message="It is wrong.", fix="Mend it."
)
NODE_RUN = NodeRun(
    id="node_1",
    run=TurnId("turn_1"),
    path="say",
    type="log",
    status=NodeStatus.FAILED,
    port="",
    inputs={"text": "Hello"},
    outputs={"text": "Hello"},
    error="It broke.",
    started_at=NOON,
    ended_at=NOON,
)
WORKFLOW_RUN = WorkflowRunListing(
    run=WorkflowRun(
        id=TurnId("turn_1"),
        workflow="greet",
        digest="d1",
        trigger="go",
        scope={"input": {"name": "Ana"}},
        agent=AgentName("ada"),
        started_by="local:ana",
        rerun_of="turn_0",
        from_node="say",
        started_at=NOON,
    ),
    status=TurnStatus.FAILED,
    reply="Hello.",
    failure="It broke.",
    ended_at=NOON,
    nodes=(NODE_RUN,),
)

EVENT = CloudEvent(
    id="1",
    source="/discord/1574892566195732480",
    type="discord.member.join",
    time=NOON,
    subject="1574892566195732481",
    actor="platform_user:discord:1574892566195732482",
    cause="evt_0",
)
EVENT_LISTENER = EventListener(
    name="welcome",
    on=("discord.member.join",),
    action=EventAction(kind=ActionKind.AGENT, agent=AgentName("ada"), platform="discord", channel="9"),
    source="/discord/1",
)
EVENT_DELIVERY = EventDelivery(
    id="evd_1",
    event=EVENT.key,
    listener="listener:welcome",
    status=EventDeliveryStatus.FAILED,
    due_at=NOON,
    created_at=NOON,
    note="The account is away.",
    turn_id=TurnId("turn_1"),
)
EVENT_SOURCE = SourceReport(
    PollSource(name="tickets", url="https://api.example.org/tickets?key=1"),
    EventSourceState(key="poll:tickets", url="", looked_at=NOON, failures=1, failure="The server answered 500."),
    EventSourceStatus.FAILING,
)


def list_component_pages(frame: Frame) -> Mapping[str, object]:
    return {
        "admin/workflows.html": WorkflowsPage(
            frame=frame,
            rows=[WorkflowRow(workflow=WORKFLOW, triggers=["manual"], last=WORKFLOW_RUN)],
            broken=[BrokenWorkflow("part", "line 3: there is no node 'x'.", "Name another one.")],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/workflow_new.html": NewWorkflowPage(
            frame=frame,
            examples=[WorkflowExample("greet", "Greets.", "nodes: {}")],
            name="greet",
            text="nodes: {}",
            faults=[WORKFLOW_FAULT],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/workflow.html": WorkflowPage(
            frame=frame,
            name="greet",
            workflow=WORKFLOW,
            text="nodes: {}",
            digest="d",
            runs=[WORKFLOW_RUN],
            given="{}",
            faults=[WORKFLOW_FAULT],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/workflow_run.html": WorkflowRunPage(
            frame=frame,
            listing=WORKFLOW_RUN,
            scope="{}",
            nodes=[ShownNode(node=NODE_RUN, inputs="{}", outputs="{}")],
            starts=[("", "from the beginning")],
            has_picture=True,
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/schedules.html": SchedulesPage(
            frame=frame,
            may_edit=True,
            schedules=[ScheduleListing(SCHEDULE, NOON, RUN)],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/schedule.html": SchedulePage(
            frame=frame,
            may_edit=True,
            listing=ScheduleListing(SCHEDULE, NOON, RUN),
            runs=[RUN],
            form=FORM,
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/schedule_new.html": NewSchedulePage(frame=frame, form=FORM, problem=PROBLEM),
        "admin/events.html": EventsPage(
            frame=frame,
            rows=[EventRow(EventEntry(position=1, event=EVENT, deliveries=[EVENT_DELIVERY]), '{"state": "up"}')],
            failed=[EVENT_DELIVERY],
            listeners=[EVENT_LISTENER],
            sources=[EVENT_SOURCE],
            type="github.*",
            words="up",
            here="/admin/events",
            older="/admin/events?before=1",
            problem=PROBLEM,
        ),
        "admin/models.html": ModelsPage(
            frame=frame,
            may_edit=True,
            providers=[PROVIDER],
            aliases=[ConfiguredAlias(name="balanced", model="lab/one", fallbacks=["lab/two"], is_implied=True)],
            models=[MODEL],
            names=["balanced"],
            default_model="balanced",
            agents=[Agent(AgentName("denizen"))],
            alias=dict.fromkeys(("name", "model", "fallbacks"), "x"),
            price=dict.fromkeys(("model", "input", "output", "cached"), "1"),
            forms={"lab/one": "/x"},
            trial=ModelTrial("lab/one", 0.5, Usage(input_tokens=9, output_tokens=2)),
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/provider.html": ProviderPage(
            frame=frame,
            may_edit=True,
            provider=PROVIDER,
            kinds=[ProviderKindInfo(name="openai", label="GPT", base_url="", key_variable="OPENAI_API_KEY")],
            values=dict.fromkeys(("name", "kind", "base_url", "model", "key_name"), "x"),
            form="/x",
            is_key_lost=True,
            is_listed=True,
            served=["one"],
            list_problem=PROBLEM,
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/skills.html": SkillsPage(
            frame=frame, may_edit=True, waiting=[SKILL], own=[SKILL], built_in=[SKILL], notice="Done.", problem=PROBLEM
        ),
        "admin/skill.html": SkillPage(
            frame=frame,
            may_edit=True,
            review=SkillReview(
                state=SKILL,
                sha256="a1",
                changes=[],
                permissions=["network"],
                problems=["skill.py:1: it is wrong"],
                events=[SkillEvent(NOON, SkillEventKind.WRITTEN, "a1", "ada for olga")],
                is_compared=True,
                refusal="Delete it",
            ),
            diffs=[ShownDiff(name="skill.py", lines=["-a", "+b", " c"])],
            is_cut=True,
            problem=PROBLEM,
        ),
        "admin/mcp_servers.html": McpServersPage(
            frame=frame, may_edit=True, servers=[SERVER], notice="Done.", problem=PROBLEM
        ),
        "admin/mcp_server.html": McpServerPage(frame=frame, may_edit=True, server=SERVER, notice="Done."),
        "admin/mcp_server_new.html": McpServerFormPage(
            frame=frame,
            values=dict.fromkeys(("name", "command", "url", "variables", "trusted"), "x"),
            is_secret_lost=True,
            problem=PROBLEM,
        ),
        "admin/mcp_server_edit.html": McpServerEditPage(
            frame=frame,
            name="time",
            fields=[],
            digest="a1",
            is_off=False,
            is_secret_lost=True,
            change=PlannedChange(digest="a1", diff="-a"),
            problem=PROBLEM,
        ),
    }
