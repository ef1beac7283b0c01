"""One filled context of each page about knowledge and set-up, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping

from denizen.domain.agent import Agent
from denizen.domain.agent_settings import FIELDS, SettingsSet
from denizen.domain.gap import GapGroup
from denizen.domain.ids import AgentName
from denizen.domain.passage import Passage
from denizen.domain.snapshot import Snapshot, SnapshotStatus
from denizen.domain.source import Source, SourceKind, SyncRun
from denizen.engine.knowledge.coverage import ProposalReview
from denizen.engine.knowledge.index import ExplainedPassage
from denizen.ports.configuration import ConfigurationFault, KeptGeneration, PersonaText, PlannedChange
from denizen.ports.documents import IndexedPassage
from denizen.ports.sandbox import ShellResult
from denizen.ports.source import ReadingProgress
from denizen.web.pages.agents import (
    AgentForm,
    AgentFormPage,
    AgentLimit,
    AgentPage,
    AgentRow,
    AgentsPage,
    PromptPart,
    PromptPreview,
)
from denizen.web.pages.assistant import AssistantPage, SettingDifference
from denizen.web.pages.config_sections import ConfigSectionPage
from denizen.web.pages.configuration import ConfigPage
from denizen.web.pages.documents import SearchPage, ShellPage
from denizen.web.pages.forms import ListPart
from denizen.web.pages.gaps import GapsPage, ProposalPage
from denizen.web.pages.help import HelpPage, ManualPage, ManualPagePage, ManualPart
from denizen.web.pages.page import Frame
from denizen.web.pages.setting_fields import FieldKind, SettingField
from denizen.web.pages.snapshots import SnapshotsPage
from denizen.web.pages.source_import import ImportPage, ProposalRow
from denizen.web.pages.sources import (
    KIND_LABELS,
    SETTINGS_BY_KIND,
    STATES,
    RunRow,
    SourceForm,
    SourceFormPage,
    SourcePage,
    SourceRow,
    SourcesPage,
    list_defaults,
)
from denizen_sdk.errors import ProblemDetails
from tests.clock import NOON
from tests.web.gap_fixture import GAP, PROPOSAL

AGENT_ROW = AgentRow(agent=Agent(AgentName("denizen")), is_default=True, model_name="lab/one", persona_tokens=3)
REVIEW = ProposalReview(PROPOSAL, "learned/berth.md", "Ten.", "+Ten.\n-Nine.\n Same.")
PROBLEM = ProblemDetails("x", "No.", 400, why="Because.", fix="Do this.")
SOURCE = Source(id="notes", kind=SourceKind.GIT, location="https://a.example/a.git", created_at=NOON, updated_at=NOON)
ROW = SourceRow(
    source=SOURCE,
    kind="Git",
    state="partial",
    files=2,
    documents=1,
    synced_at=NOON,
    error="It broke.",
    left_out="1 left out",
)
KINDS = [(each.value, label) for each, label in KIND_LABELS.items()]
SETTINGS = sorted({name for names in SETTINGS_BY_KIND.values() for name in names})
VALUES = {"location": "", "id": "", **list_defaults()}
FAULT = ConfigurationFault(file="denizen.yaml", line=1, column=1, path="a", message="No.", fix="Take it out.")


def list_knowledge_pages(frame: Frame) -> Mapping[str, object]:
    return {
        "admin/sources.html": SourcesPage(
            frame=frame,
            listed=ListPart([ROW], 11, 2, 3, "page=1", "page=3"),
            known=11,
            runs=[
                RunRow(
                    run=SyncRun(id="s", sources=("notes",), started_at=NOON, failed={"notes": "It broke."}),
                    progress=[("notes", ReadingProgress("reading", 1, 2))],
                )
            ],
            last_sync_at=NOON,
            is_due=True,
            query="n",
            kind="git",
            state="partial",
            kinds=KINDS,
            states=list(STATES.items()),
            address="/admin/sources?",
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/source_new.html": SourceFormPage(
            frame=frame,
            form=SourceForm(kind="git", kinds=KINDS, hint="Write it.", settings=SETTINGS, values=VALUES),
            problem=PROBLEM,
        ),
        "admin/source_import.html": ImportPage(
            frame=frame,
            text="lab/a",
            rows=[
                ProposalRow(
                    id="a",
                    location="lab/a",
                    kind="git",
                    kind_label="Git",
                    label="A",
                    settings={"branch": "main"},
                    problem="No.",
                    ignored="stars",
                )
            ],
            reads_pictures=True,
            problem=PROBLEM,
        ),
        "admin/search.html": SearchPage(
            frame=frame,
            question="berth",
            source="notes",
            sources=[("", "every source")],
            hits=[
                ExplainedPassage(
                    found=IndexedPassage("k", "docs/a.md", "notes", Passage(1, ("A",), 1, 2, "Text")),
                    word_place=1,
                    coverage=0.5,
                    meaning_place=0,
                    similarity=0.0,
                    link="https://a.example/a",
                )
            ],
            embedding="All.",
            problem=PROBLEM,
        ),
        "admin/shell.html": ShellPage(
            frame=frame,
            commands="ls",
            agent="denizen",
            agents=[("denizen", "denizen")],
            session="sess_1",
            results=[ShellResult("ls", "a", "b", 1, refused=True, duration_ms=1)],
            examples=["ls"],
            most=10,
            problem=PROBLEM,
        ),
        "admin/snapshots.html": SnapshotsPage(
            frame=frame,
            status=SnapshotStatus("snap_1", "snap_1", NOON, NOON, "Why."),
            listed=ListPart([Snapshot("snap_1", NOON, ())], 1, 1, 1, "", ""),
            remote={"repository": "", "branch": "main", "allow_existing": False},
            running=None,
            address="/admin/snapshots?",
            embedding="All.",
            faults=["a.md is gone."],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/gaps.html": GapsPage(
            frame=frame,
            days=30,
            periods=[7, 30],
            listed=ListPart([GapGroup([GAP])], 1, 1, 1, "", ""),
            total=2,
            hidden=1,
            is_cut=True,
            proposals=[REVIEW],
            more_proposals=1,
            address="/admin/gaps?",
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/proposal.html": ProposalPage(frame=frame, review=REVIEW, text="Ten.", reason="No.", problem=PROBLEM),
        "admin/assistant.html": AssistantPage(
            frame=frame,
            agent="denizen",
            agents=[("denizen", "denizen"), ("scribe", "scribe")],
            edited="calm",
            sets=[SettingsSet(AgentName("denizen"), "calm", NOON, NOON)],
            values=dict.fromkeys(FIELDS, "x"),
            configured=dict.fromkeys(FIELDS, "y"),
            differences=[SettingDifference("Tone", "", "technical")],
            models=[("auto", "auto")],
            styles=[("concise", "concise")],
            citations=[("none", "none")],
            bounds=[0, 2, 0.5, 3],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/config.html": ConfigPage(
            frame=frame,
            text="a: 1",
            digest="d",
            may_edit=True,
            is_masked=False,
            faults=[FAULT],
            outline=[("a", 1)],
            line=1,
            sections=[("/admin/config/section/a", "A")],
            current=2,
            generations=[KeptGeneration(1, "start", NOON, has_text=True)],
            generation=1,
            diff="+a\n-b\n c",
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/config_section.html": ConfigSectionPage(
            frame=frame,
            title="A",
            path="a",
            parents=[("b", "/admin/config/section/b")],
            hint="What `a` is.",
            fields=[
                SettingField(
                    path=f"a.{kind}",
                    key=kind,
                    kind=kind,
                    hint="What.",
                    schema={},
                    faults=[FAULT],
                    choices=["x"],
                    text="y",
                )
                for kind in FieldKind
            ],
            digest="d",
            may_edit=True,
            is_there=True,
            entries_of="b",
            change=PlannedChange(digest="d", diff="+a\n-b\n"),
            hidden={"a.text": "x"},
            faults=[FAULT],
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/agents.html": AgentsPage(frame=frame, rows=[AGENT_ROW], may_edit=True, notice="Done."),
        "admin/agent_new.html": AgentFormPage(
            frame=frame,
            form=AgentForm(dict.fromkeys(("name", "description", "model", "tools", "persona"), "x"), ["auto"]),
            problem=PROBLEM,
        ),
        "admin/agent.html": AgentPage(
            frame=frame,
            row=AGENT_ROW,
            tools=[],
            limits=[AgentLimit("limits.max_steps", "Steps", "20")],
            styles=["concise"],
            values=dict.fromkeys(
                (
                    "description",
                    "model",
                    "tools",
                    "style.response",
                    "style.language",
                    "style.extra_instructions",
                    "limits.max_steps",
                ),
                "x",
            ),
            models=["auto"],
            files=[PersonaText("RULES.md", "Be kind.", is_used=True)],
            edited=PersonaText("RULES.md", "Be kind.", is_used=True),
            may_edit=True,
            question="Why?",
            previews=[
                PromptPreview(
                    model="lab/one",
                    parts=[PromptPart(name="persona", stability="fixed", tokens=3, text="You are.")],
                    tools=["weather"],
                    tool_tokens=9,
                )
            ],
            form="/admin/config/section/agents.a",
            preview_problem=PROBLEM,
            notice="Done.",
            problem=PROBLEM,
        ),
        "help.html": HelpPage(frame=frame, parts=[ManualPart("Begin", [ManualPage("a", "A", "Text")])], query="a"),
        "manual.html": ManualPagePage(frame=frame, title="A", text="Text"),
        "admin/source.html": SourcePage(
            frame=frame,
            row=ROW,
            revision="abc",
            left_out=["a.bin: no text"],
            more_left_out=1,
            webhook="/api/sync/webhook/notes",
            hint="Write it.",
            settings=SETTINGS,
            values=VALUES,
            notice="Done.",
            problem=PROBLEM,
        ),
    }
