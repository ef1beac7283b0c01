"""One filled context of each page about people and communities, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.audit import AuditEvent, AuditHead, AuditKind, append_to_chain
from denizen.domain.budget import BudgetStatus
from denizen.domain.gap import GapGroup
from denizen.domain.guild_settings import GuildField, GuildSettings
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.domain.message import Author
from denizen.domain.source import GuildSourceLimits, Source, SourceKind
from denizen.engine.archive.browser import PersonSearch
from denizen.engine.knowledge.guild_sources import GuildSource
from denizen.engine.knowledge.sources import SourceListing
from denizen.engine.users.managed_guilds import GuildCall, GuildReport
from denizen.ports.channel import Membership
from denizen.ports.source import ReadingProgress
from denizen.skill import ArchivedPost
from denizen.web.pages.archive import ArchiveForm, ArchivePage, ForgetPage
from denizen.web.pages.forms import ListPart
from denizen.web.pages.guilds import GuildPage, GuildSourceList, GuildsPage
from denizen.web.pages.memory import MemoryEditPage, MemoryPage, MemoryRow
from denizen.web.pages.page import Frame
from denizen_sdk.errors import ProblemDetails
from tests.clock import NOON
from tests.web.gap_fixture import GAP

PROBLEM = ProblemDetails("x", "No.", 400, why="Because.", fix="Do this.")
MEMORY = Memory(
    "mem_1",
    AgentName("denizen"),
    "platform_user:discord:1",
    "Ana likes tea.",
    MemoryOrigin("discord", "dm", private=True),
    "platform_user:discord:1",
    NOON,
    TurnId("turn_1"),
)
ANA = Author("1", "Ana")
POST = ArchivedPost(
    id="9", room="general", room_id="7", author="Ana", author_id="1", at=NOON, text="Tea?", link="https://d.example/9"
)
HARBOUR = Membership(community="1", name="Harbour", roles=frozenset(), rooms=frozenset({"7"}), manages=True)
CHANGE = AuditEvent(AuditKind.SETTINGS, NOON, "web_user:1", "guild:discord:1", {"fields": ["tools"]})
REPORT = GuildReport(
    membership=HARBOUR,
    settings=GuildSettings(),
    allowed=frozenset(GuildField),
    channels=[("7", "general")],
    spent=BudgetStatus(),
    days=[("2026-11-22", 3, "0.5000")],
    gaps=[GapGroup([GAP])],
    calls=[GuildCall("ban", "denizen", "Ana", NOON, "denied")],
    changes=[append_to_chain(AuditHead(), CHANGE)],
)
OWN_SOURCE = Source(
    id="1-docs",
    kind=SourceKind.GIT,
    location="https://git.example/docs.git",
    guild="1",
    created_at=NOON,
    updated_at=NOON,
)
OLD = replace(MEMORY, id="mem_0", owner="", superseded_by="mem_1", superseded_at=NOON)


def list_community_pages(frame: Frame) -> Mapping[str, object]:
    rows = [MemoryRow(each, "Harbour · #general", "in private talks") for each in (MEMORY, OLD)]
    return {
        "admin/archive.html": ArchivePage(
            frame=frame,
            form=ArchiveForm(person="Ana", words="tea"),
            is_enabled=False,
            retention_days=30,
            may_change=True,
            person=ANA,
            found=PersonSearch([POST], 2, is_complete=False),
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/archive_forget.html": ForgetPage(frame=frame, person=ANA, counts={"posts": 2000}, problem=PROBLEM),
        "guilds.html": GuildsPage(frame=frame, managed=[HARBOUR], is_complete=False, is_linked=True, can_link=True),
        "guild.html": GuildPage(
            frame=frame,
            report=REPORT,
            typed={each.value: "1" for each in GuildField},
            chosen=frozenset({"7"}),
            allowed=frozenset(each.value for each in GuildField),
            sources=GuildSourceList(
                rows=[
                    GuildSource(SourceListing(OWN_SOURCE, None), ReadingProgress("keeping files", 1, 2)),
                    GuildSource(SourceListing(replace(OWN_SOURCE, id="handbook"), None)),
                ],
                limits=GuildSourceLimits(),
                kinds=[("git", "Git repository")],
                typed={"kind": "git", "location": "nowhere", "content_path": "", "label": ""},
            ),
            notice="Done.",
            problem=PROBLEM,
        ),
        "admin/memory.html": MemoryPage(
            frame=frame,
            listed=ListPart(rows, 30, 1, 2, "", "page=2"),
            agents=["denizen"],
            words="tea",
            agent="denizen",
            about="",
            history=True,
            notice="Done.",
        ),
        "admin/memory_edit.html": MemoryEditPage(frame=frame, row=rows[0], text="Tea.", problem=PROBLEM),
    }
