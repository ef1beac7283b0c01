"""The pages: what they are made of, and that they keep to the strict policy."""

import dataclasses
import re
from base64 import b64encode
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
from jinja2 import Environment
from jinja2.nodes import Getattr, Include, Name

import denizen.web
from denizen.domain.approval import Approval, ApprovalRequest, ApprovalRule
from denizen.domain.audit import AuditEvent, AuditHead, AuditKind, append_to_chain
from denizen.domain.budget import SERVER, BudgetLimit, BudgetPeriod, BudgetStatus
from denizen.domain.conversation import Place
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.ids import AgentName, CallId, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.log import LogEntry, sum_up_log
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.question import QuestionStatus
from denizen.domain.statistics import DayRange, UsageRanking, UsageSummary, UsageTotals
from denizen.domain.store_move import MoveProgress, MoveStage, StoreStatus, TableRows
from denizen.domain.tool import IdleTools, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import CallRecord, Turn, TurnFailure, TurnResult, TurnStatus
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome, Decision, Verdict
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.engine.audit.audit_log import Verification
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy, ToolOutlook, ToolRule
from denizen.engine.inspection.overview import BudgetUse, SystemOverview
from denizen.engine.inspection.past_calls import PastCall, PolicyTrial, TrialDecision, TrialOutcome, TriedCall
from denizen.engine.inspection.queries import ToolInfo, TurnTrace
from denizen.engine.schedules.catalog import ScheduleListing
from denizen.ports.configuration import PlannedChange
from denizen.ports.store import TurnListing
from denizen.web.api.statistics import overview_to_wire
from denizen.web.pages.approvals import ApprovalCard, ApprovalsPage
from denizen.web.pages.audit import AuditPage, AuditRow
from denizen.web.pages.chat import ChatPage, SharedChatPage
from denizen.web.pages.forms import ListPart
from denizen.web.pages.gate import GatePage, RuleRow, RulesTrial, TierGroup
from denizen.web.pages.logs import LogRow, LogsPage, PurgePreview
from denizen.web.pages.navigation import find_link, list_navigation
from denizen.web.pages.overview import Finding, KnowledgeState, OverviewPage
from denizen.web.pages.page import STYLES, Frame, ProblemPage, render_text
from denizen.web.pages.questions import QuestionsPage
from denizen.web.pages.settings import SettingsPage
from denizen.web.pages.sign_in import LoginPage, ProviderLink
from denizen.web.pages.sign_up import SignUpPage
from denizen.web.pages.static_files import digest_files, load_static_files
from denizen.web.pages.store import StorePage
from denizen.web.pages.tools import ToolField, ToolPage, ToolRow, ToolsPage
from denizen.web.pages.turns import TimelineStep, TurnPage, TurnsPage
from denizen.web.pages.usage import AgentUse, UsagePage
from denizen.web.pages.users import KeysPage, UsersPage
from denizen.web.pages.work import AgentWork, WorkPage
from denizen_sdk.errors import ProblemDetails
from denizen_sdk.usage import FeedbackDay
from denizen_sdk.users import AccountInfo, ApiKeyInfo, IdentityInfo, InvitationInfo, UserInfo
from tests.clock import NOON
from tests.web.community_page_samples import list_community_pages
from tests.web.component_page_samples import SCHEDULE, list_component_pages
from tests.web.knowledge_page_samples import list_knowledge_pages
from tests.web.project_page_samples import TASK, list_project_pages
from tests.web.question_fixture import QUESTION
from tests.web.setup_page_samples import STEPS, list_setup_pages
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio

WEB = Path(denizen.web.__file__).parent
FRAME = Frame(
    version="1.2.3",
    path="/",
    navigation=list_navigation("/admin", may_administrate=True),
    viewer="ann",
    can_sign_out=True,
    csrf_token="x",
)
TURN = Turn(
    id=TurnId("turn_1"),
    conversation_id=ConversationId("conv_1"),
    session_id=SessionId("sess_1"),
    agent=AgentName("denizen"),
    principal=Principal(PrincipalKind.API_KEY, "ann", "ann"),
    trigger_id=MessageId("msg_1"),
    status=TurnStatus.FAILED,
    opened_at=NOON,
    closed_at=NOON,
    result=TurnResult(failure=TurnFailure("It broke.", fix="Mend it.")),
)
APPROVAL = Approval(
    id="appr_1",
    request=ApprovalRequest(
        turn_id=TURN.id,
        agent=TURN.agent,
        requester="api_key:ann",
        place=Place("web", "x", ""),
        conversation_id=TURN.conversation_id,
        tool="ban",
        args={},
        tier=Tier.DANGEROUS,
        reason="It is dangerous.",
        preview="ban",
    ),
    rule=ApprovalRule(),
    created_at=NOON,
    expires_at=None,
)
ENTRY = append_to_chain(AuditHead(), AuditEvent(AuditKind.CALL, NOON, "api_key:ann", "ban"))
TOOL = ToolInfo(ToolSpec("ban", "Bans.", {}, tier=Tier.DANGEROUS), Tier.DANGEROUS, ToolOutlook("people", "tier 3"))
PAST_CALL = PastCall(
    CallRecord(
        turn_id=TURN.id,
        step=1,
        position=0,
        tool_call=ToolCall(CallId("c"), "ban", {}),
        outcome=CallOutcome(Verdict(Decision.DENY, Tier.DANGEROUS, "no", "observer"), ToolResult("No."), 1),
        cached=False,
        created_at=NOON,
    ),
    TURN,
)
TRACE = TurnTrace(turn=TURN, question="Why?", prompts=[], steps=[], calls=[])
DAY = DayRange(NOON.date(), NOON.date())
USAGE = UsageSummary(DAY, UsageTotals(), UsageTotals(), [], [], [UsageRanking(DAY.days[0], UsageTotals())], [], [])
GITHUB = ProviderLink("GitHub", "/login/github")
PERSON = UserInfo(id="user_1", name="Ann", email="ann@x.org", role="member", is_verified=False, created_at="2026")
PAGES: dict[str, object] = {
    "chat.html": ChatPage(FRAME, shows_sources=True, setup="/admin/setup/model"),
    "admin/users.html": UsersPage(
        frame=FRAME,
        people=ListPart([PERSON], total=1, number=1, parts=2, back="", onward="page=2"),
        query="a",
        viewer_id="user_2",
        invitations=[InvitationInfo(id="inv_1", role="member", email="", created_at="2026", expires_at="2026")],
        link="https://x.org/sign-up?invite=a",
        notice="Done.",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/keys.html": KeysPage(
        frame=FRAME,
        keys=[
            ApiKeyInfo(id="key_1", name="backup", role="member"),
            ApiKeyInfo(id="", name="ci", role="admin", is_configured=True),
        ],
        new_key="dz_x",
        notice="Done.",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/store.html": StorePage(
        frame=FRAME,
        status=StoreStatus(
            backend="sqlite", place="sqlite:////d.db", tables=[TableRows("posts", 3)], move=MoveProgress(), begun="a"
        ),
        move=MoveProgress(stage=MoveStage.COPYING, target="postgresql://db", table="posts", done=1, total=3),
        total=3,
        target="postgresql://db",
        is_owner=True,
        notice="The move has begun.",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/approvals.html": ApprovalsPage(
        frame=FRAME,
        pending=[ApprovalCard(approval=APPROVAL, told="Waits.", may_decide=True)],
        decided=[ApprovalCard(approval=APPROVAL, told="Denied.", may_decide=False)],
        problem=ProblemDetails("bad", "It is bad.", 400, "So it is.", "Mend it."),
    ),
    "admin/questions.html": QuestionsPage(
        frame=FRAME,
        waiting=[QUESTION],
        ended=[replace(QUESTION, status=QuestionStatus.DISMISSED)],
        chosen="qst_1",
        text="blue",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/audit.html": AuditPage(
        frame=FRAME,
        rows=[AuditRow(ENTRY, details="{}", outcome="deny", turn="turn_1")],
        kinds=["call"],
        kind="call",
        words="ban",
        older="/admin/audit?before=1",
        noted="a",
        verification=Verification(AuditHead(), "It was changed."),
    ),
    "admin/turns.html": TurnsPage(
        frame=FRAME,
        rows=[TurnListing(TURN, "web")],
        hidden=1,
        agents=["denizen"],
        statuses=["done"],
        chosen={"agent": "denizen", "status": "done", "platform": "web", "days": "30"},
        here="/admin/turns?skip=0",
        older="/admin/turns?skip=50",
        newer="/admin/turns?skip=0",
    ),
    "admin/turn.html": TurnPage(
        frame=FRAME,
        trace=TRACE,
        route="route: simple",
        timeline=[TimelineStep(step=None, prompt=None, prices=(), calls=(), is_after=True)],
        models=["m1"],
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/usage.html": UsagePage(
        frame=FRAME,
        usage=overview_to_wire(USAGE),
        agents=[AgentUse("denizen", Usage())],
        budgets=[BudgetUse(BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal(2)), Decimal(1))],
        feedback=[FeedbackDay("2026-11-21", 1, 0)],
        sources=["web"],
        models=["m1"],
        chosen={"days": "30", "source": "web", "model": ""},
        query="days=30",
    ),
    "admin/tools.html": ToolsPage(
        frame=FRAME,
        rows=[ToolRow(TOOL, ["denizen"])],
        idle=[IdleTools("moderation", "Switch it on.", ["ban"])],
        agents=["denizen"],
        agent="denizen",
    ),
    "admin/tool.html": ToolPage(
        frame=FRAME,
        tool=TOOL,
        schema="{}",
        fields=[
            ToolField(name=name, kind="string", description="What.", is_required=bool(choices), choices=choices)
            for name, choices in (("city", ()), ("unit", ("C", "F")))
        ],
        agents=["denizen"],
        agent="denizen",
        result=ToolResult("Done."),
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/gate.html": GatePage(
        frame=FRAME,
        policy=GatePolicy(observer=ObserverPolicy("m1")),
        tiers=[TierGroup(Tier.DANGEROUS, "They wait.", [TOOL])],
        rules=[RuleRow(ToolRule("ban", Decision.DENY), [("agent", "ada")], "owners", 3)],
        is_observed=True,
        observed=[PAST_CALL],
        waiting=1,
        agents=["denizen"],
        may_try=True,
        rules_text="- tool: x",
        typed={"tool": "x"},
        trial=RulesTrial(
            result=PolicyTrial(
                calls=2,
                matches=[1],
                changes={(TrialOutcome.ALLOWED, TrialOutcome.DENIED): 1},
                examples=[
                    TriedCall(
                        PAST_CALL,
                        TrialDecision(TrialOutcome.ALLOWED, PAST_CALL.record.outcome.verdict),
                        TrialDecision(TrialOutcome.ASKED, PAST_CALL.record.outcome.verdict, "owners"),
                    )
                ],
                unknown=["gone"],
            ),
            change=PlannedChange(digest="d", diff="+a\n-b\n"),
        ),
        notice="Done.",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "admin/work.html": WorkPage(
        frame=FRAME,
        agents=[
            AgentWork(
                agent="denizen",
                turns=[TurnListing(TURN, "web")],
                hidden=1,
                tasks=[TASK],
                next_run=ScheduleListing(SCHEDULE, NOON),
            )
        ],
        queued=frozenset({TURN.id}),
        waiting=frozenset({TURN.id}),
    ),
    "admin/logs.html": LogsPage(
        frame=FRAME,
        rows=[LogRow(LogEntry(NOON, "error", "fault", {}, "Traceback"), "code=1", "Investigate?")],
        statistics=sum_up_log([LogEntry(NOON, "info", "request", {"path": "/", "status": 500, "duration_ms": 1})]),
        size_bytes=1,
        levels=["error"],
        methods=["GET"],
        chosen={"level": "error", "method": "", "status": "", "path": "", "search": "", "hours": "24", "limit": "50"},
        here="/admin/logs",
        preview=PurgePreview("2026-11-21", "error", 1),
        deleted="1",
        problem=ProblemDetails("bad", "It is bad.", 400),
    ),
    "problem.html": ProblemPage(FRAME, ProblemDetails("bad", "It is bad.", 400, "So it is.", "Mend it.", "err_1")),
    "admin/overview.html": OverviewPage(
        frame=FRAME,
        overview=SystemOverview(
            running=[TURN],
            waiting=[],
            failed=[TURN],
            spent=BudgetStatus(),
            budgets=[BudgetUse(BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal(2)), Decimal(1))],
        ),
        running=[TURN],
        failed=[TURN],
        hidden=1,
        queued=frozenset({TURN.id}),
        mine=1,
        today=USAGE,
        trend=-50.0,
        is_examined=True,
        problems={"disk": "It is full."},
        findings=[Finding(Diagnosis(Severity.WARNING, "It leaks.", "Mend it."), ("Gate", "/admin/config"))],
        working=[Diagnosis(Severity.OK, "It works.")],
        accounts=[AccountState("discord", AgentName("denizen"), is_listening=False, told="It is away.")],
        knowledge=KnowledgeState(sources=1, failing=["docs"], last_sync=None, indexing=None, embedding=None),
        setup=STEPS,
    ),
    "shared.html": SharedChatPage("1.2.3"),
    **list_knowledge_pages(FRAME),
    **list_setup_pages(FRAME),
    **list_community_pages(FRAME),
    **list_project_pages(FRAME),
    **list_component_pages(FRAME),
    "login.html": LoginPage(
        frame=Frame(version="1.2.3", path="/login"),
        problem="No.",
        has_accounts=True,
        may_sign_up=True,
        providers=[GITHUB],
    ),
    "sign_up.html": SignUpPage(frame=Frame(version="1.2.3", path="/sign-up"), problem="No.", providers=[GITHUB]),
    "settings.html": SettingsPage(
        frame=replace(FRAME, path="/settings"),
        account=AccountInfo(
            id="user_1",
            name="Ann",
            email="ann@example.org",
            role="member",
            is_verified=True,
            has_password=True,
            created_at="2026-11-24T12:00:00+00:00",
            identities=(IdentityInfo("discord", "ann", "2026-11-24T12:00:00+00:00"),),
        ),
        unlinked=[GITHUB],
        new_key="dz_text",
        problem="No.",
    ),
}


class PageOutline(HTMLParser):
    """The tags of a page with their attributes, and text in scripts and styles."""

    def __init__(self, name: str, page: object) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self.feed(render_text(name, page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"} and data.strip():
            self.inline.append(data)

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag in names]


def list_used_fields(name: str) -> set[str]:
    """The fields of the page that a template and those that it includes use; the frame is that of all."""
    tree = Environment(autoescape=True).parse((WEB / "templates" / name).read_text())
    used = {node.attr for node in tree.find_all(Getattr) if isinstance(node.node, Name) and node.node.name == "page"}
    included = [str(cast("Any", node.template).value) for node in tree.find_all(Include)]
    return used.union(*(list_used_fields(each) for each in included if not each.startswith("static/")))


def test_every_page_has_a_sample_here() -> None:
    folder = WEB / "templates"
    pages = [path for path in folder.rglob("*.html") if path.read_text().startswith('{% extends "base.html" %}')]
    assert {path.relative_to(folder).as_posix() for path in pages} <= set(PAGES)


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_template_uses_exactly_what_its_context_declares(name: str, page: object) -> None:
    used = list_used_fields(name)
    assert used | {"frame"} == {"frame"} | {field.name for field in dataclasses.fields(cast("Any", page))}


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_page_has_no_inline_script_or_handler_and_no_style_but_our_sheets(name: str, page: object) -> None:
    outline = PageOutline(name, page)
    sheets = {(WEB / "static" / sheet).read_text() for sheet in STYLES}
    assert outline.inline
    assert set(outline.inline) <= sheets
    assert [attrs for _, attrs in outline.tags if any(name.startswith("on") or name == "style" for name in attrs)] == []
    sources = [attrs.get("src") or attrs.get("href") or "" for attrs in outline.all("script", "link")]
    assert sources
    assert all(source.startswith("/static/") for source in sources)
    assert all((attrs["src"] or "").startswith(("/static/", "/admin/")) for attrs in outline.all("img"))


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_no_request_keeps_a_page_from_being_painted(name: str, page: object) -> None:
    outline = PageOutline(name, page)
    assert "stylesheet" not in {attrs.get("rel") for attrs in outline.all("link")}
    assert all("defer" in attrs or attrs.get("type") == "module" for attrs in outline.all("script"))


@pytest.mark.parametrize("path", ["/", "/admin", "/admin/usage", "/projects"])
async def test_the_policy_of_a_page_allows_the_styles_in_it_and_no_others(path: str) -> None:
    async with open_web() as web, web.client() as client:
        page = await client.get(path)
    assert page.status_code == 200
    [policy] = [each for each in page.headers["content-security-policy"].split("; ") if each.startswith("style-src ")]
    styles = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    assert styles
    digests = {f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" for style in styles}
    assert digests <= set(policy.split())
    assert "'unsafe-inline'" not in page.headers["content-security-policy"]


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_what_a_page_refers_to_exists_and_every_field_has_a_label(name: str, page: object) -> None:
    outline = PageOutline(name, page)
    for attrs in outline.all("script", "link"):
        source = attrs.get("src") or attrs.get("href") or ""
        assert source.startswith(f"{load_static_files().address}/"), source
        assert (WEB / "static" / source.removeprefix(f"{load_static_files().address}/")).is_file(), source
    labelled = {attrs.get("for") for attrs in outline.all("label")}
    fields = [attrs for attrs in outline.all("input", "select", "textarea") if attrs.get("type") != "hidden"]
    assert {attrs["id"] for attrs in fields} <= labelled
    ids = {attrs["id"] for _, attrs in outline.tags if "id" in attrs}
    described = [attrs["aria-describedby"] for _, attrs in outline.tags if attrs.get("aria-describedby")]
    assert {name for names in described for name in (names or "").split()} <= ids
    [html] = outline.all("html")
    assert html["lang"]


def test_the_scripts_find_what_they_look_for_in_the_page() -> None:
    ids = {attrs.get("id") for _, attrs in PageOutline("chat.html", PAGES["chat.html"]).tags}
    for name in ("chat.js", "chat_list.js", "command_menu.js", "composer.js", "share.js", "side_panel.js", "frame.js"):
        script = (WEB / "static" / name).read_text()
        wanted = set(re.findall(r'(?:find|getElementById)\("([\w-]+)"\)', script))
        if first := re.search(r"= \[(.*)\]\.map\(find\)", script):
            wanted |= set(re.findall(r'"([\w-]+)"', first.group(1)))
        assert wanted <= ids, name


def test_the_chat_leads_to_the_simulator_when_there_is_one() -> None:
    without = ChatPage(FRAME)
    beside = ChatPage(replace(FRAME, simulator="http://127.0.0.1:1/"))
    links = [[attrs.get("href") for attrs in PageOutline("chat.html", page).all("a")] for page in (without, beside)]
    assert [each for each in links[1] if each not in links[0]] == ["http://127.0.0.1:1/"]


def test_no_script_makes_html_out_of_text() -> None:
    for path in (WEB / "static").glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )


async def test_a_browser_keeps_the_files_of_a_page_and_asks_no_more() -> None:
    async with open_web() as web, web.client() as client:
        page = await client.get("/")
        sources = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
        answers = [await client.get(source) for source in sources]
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert sources
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["cache-control"] for answer in answers} == {"public, max-age=31536000, immutable"}


def test_the_digest_in_the_address_of_a_file_is_another_when_a_file_is() -> None:
    known = load_static_files()
    name, file = next(iter(known.files.items()))
    assert digest_files(known.files) == known.digest
    assert digest_files({**known.files, name: replace(file, tag='"another"')}) != known.digest


async def test_the_files_of_another_version_are_served_and_checked_again_each_time() -> None:
    async with open_web() as web, web.client() as client:
        plain = await client.get("/static/chat.js")
        old = await client.get(f"/static/{'0' * 16}/chat.js")
        kept = await client.get(f"{load_static_files().address}/chat.js")
    assert plain.content == old.content == kept.content
    assert plain.headers["cache-control"] == old.headers["cache-control"] == "no-cache"


async def test_a_file_is_checked_by_its_tag() -> None:
    async with open_web() as web, web.client() as client:
        script = await client.get("/static/chat.js")
        again = await client.get("/static/chat.js", headers={"if-none-match": script.headers["etag"]})
    assert "javascript" in script.headers["content-type"]
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/nothing", f"/static/{'0' * 16}"],
)
async def test_nothing_but_the_pages_own_files_is_served(path: str) -> None:
    async with open_web() as web, web.client() as client:
        assert (await client.get(path)).status_code == 404


async def test_signing_out_is_offered_to_whom_is_signed_in() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        await client.post("/login", data={"key": "key-of-ann"})
        assert "Sign out" in (await client.get("/")).text
    async with open_web() as web, web.client() as client:
        assert "Sign out" not in (await client.get("/")).text


async def test_an_open_server_has_nothing_to_sign_in_to() -> None:
    async with open_web() as web, web.client() as client:
        response = await client.get("/login")
    assert (response.status_code, response.headers["location"]) == (303, "/")


async def test_a_form_that_is_too_large_is_refused() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        assert (await client.post("/login", data={"key": "x" * 10_000})).status_code == 413


def test_a_page_belongs_to_the_nearest_link_above_it() -> None:
    links = list_navigation("/admin", may_administrate=True, is_owner=True)
    found = {
        "/admin/agents": "/admin/agents",
        "/admin/config/section/gate": "/admin/config",
        "/admin/mcp/servers/time": "/admin/mcp",
        "/projects/tasks/task_1": "/projects",
        "/admin": "/admin",
        "/c/chat_1": "/c/chat_1",
        "/admin/nothing": "/admin/nothing",
    }
    assert {address: find_link(links, address) for address in found} == found
