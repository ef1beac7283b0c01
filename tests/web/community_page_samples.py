"""One filled context of each page about people and communities, for the tests of what templates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.ids import AgentName, TurnId
from denizen.domain.memory import Memory, MemoryOrigin
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
OLD = replace(MEMORY, id="mem_0", owner="", superseded_by="mem_1", superseded_at=NOON)


def list_community_pages(frame: Frame) -> Mapping[str, object]:
    rows = [MemoryRow(each, "Harbour · #general", "in private talks") for each in (MEMORY, OLD)]
    return {
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
