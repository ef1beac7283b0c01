"""One filled context of each page about people and communities, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.domain.message import Author
from denizen.engine.archive.browser import PersonSearch
from denizen.skill import ArchivedPost
from denizen.web.pages.archive import ArchiveForm, ArchivePage, ForgetPage
from denizen.web.pages.forms import ListPart
from denizen.web.pages.memory import MemoryEditPage, MemoryPage, MemoryRow
from denizen.web.pages.page import Frame
from denizen_sdk.errors import ProblemDetails
from tests.clock import NOON

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
        "admin/memory.html": MemoryPage(
            frame=frame,
            listed=ListPart(rows, 30, 1, 2, "", "page=2"),
            agents=["denizen"],
            words="tea",
            agent="denizen",
            about="",
            history=True,
            shows_private=False,
            notice="Done.",
        ),
        "admin/memory_edit.html": MemoryEditPage(frame=frame, row=rows[0], text="Tea.", problem=PROBLEM),
    }
