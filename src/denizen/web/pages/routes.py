"""All pages, and the files that they load."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import PublicMount
from denizen.web.pages.agents import AgentPages
from denizen.web.pages.approvals import ApprovalPages
from denizen.web.pages.archive import ArchivePages
from denizen.web.pages.assistant import AssistantPages
from denizen.web.pages.audit import AuditPages
from denizen.web.pages.chat import ChatPages
from denizen.web.pages.config_sections import ConfigSectionPages
from denizen.web.pages.configuration import ConfigPages
from denizen.web.pages.documents import SearchPages, ShellPages
from denizen.web.pages.events import EventPages
from denizen.web.pages.gaps import GapPages
from denizen.web.pages.gate import GatePages
from denizen.web.pages.guilds import GuildPages
from denizen.web.pages.help import HelpPages
from denizen.web.pages.logs import LogPages
from denizen.web.pages.mcp_servers import McpServerPages
from denizen.web.pages.memory import MemoryPages
from denizen.web.pages.models import ModelPages
from denizen.web.pages.oauth import OAuthPages
from denizen.web.pages.overview import OverviewPages
from denizen.web.pages.projects import ProjectPages
from denizen.web.pages.questions import QuestionPages
from denizen.web.pages.schedules import SchedulePages
from denizen.web.pages.settings import SettingsPages
from denizen.web.pages.setup import SetupPages
from denizen.web.pages.sign_in import SignInPages
from denizen.web.pages.sign_up import SignUpPages
from denizen.web.pages.skills import SkillPages
from denizen.web.pages.snapshots import SnapshotPages
from denizen.web.pages.source_import import SourceImportPages
from denizen.web.pages.sources import SourcePages
from denizen.web.pages.static_files import StaticPageFiles
from denizen.web.pages.store import StorePages
from denizen.web.pages.tools import ToolPages
from denizen.web.pages.turns import TurnPages
from denizen.web.pages.usage import UsagePages
from denizen.web.pages.users import UserPages
from denizen.web.pages.work import WorkPages
from denizen.web.pages.workflows import WorkflowPages, WorkflowRunPages


def list_pages(deps: WebDependencies) -> Sequence[BaseRoute]:
    knowledge, importer, calls = deps.knowledge, deps.importer, deps.engine.calls
    components = deps.components
    return [
        *ChatPages(deps).routes,
        *SignInPages(deps).routes,
        *HelpPages(deps).routes,
        *(SourcePages(deps, knowledge).routes if knowledge is not None else ()),
        *(SnapshotPages(deps, knowledge).routes if knowledge is not None else ()),
        *(SearchPages(deps, knowledge).routes if knowledge is not None else ()),
        *(SchedulePages(deps, deps.schedules).routes if deps.schedules is not None else ()),
        *(WorkflowPages(deps, deps.workflows).routes if deps.workflows is not None else ()),
        *(WorkflowRunPages(deps, deps.workflows).routes if deps.workflows is not None else ()),
        *(GapPages(deps, deps.gaps).routes if deps.gaps is not None else ()),
        *(ProjectPages(deps, deps.projects).routes if deps.projects is not None else ()),
        *(MemoryPages(deps, deps.community.memories).routes if deps.community is not None else ()),
        *(GuildPages(deps, deps.community).routes if deps.community is not None else ()),
        *(ArchivePages(deps, deps.community).routes if deps.community is not None else ()),
        *(AssistantPages(deps, deps.engine.assistant).routes if deps.engine.assistant is not None else ()),
        *AgentPages(deps, deps.configuration).routes,
        *(ConfigPages(deps, deps.configuration).routes if deps.configuration is not None else ()),
        *(
            SetupPages(deps, deps.setup, deps.configuration, knowledge).routes
            if deps.setup is not None and deps.configuration is not None and knowledge is not None
            else ()
        ),
        *(ConfigSectionPages(deps, deps.configuration).routes if deps.configuration is not None else ()),
        *(ModelPages(deps, components.models).routes if components is not None else ()),
        *(SkillPages(deps, components.skills).routes if components is not None else ()),
        *(McpServerPages(deps, components.mcp).routes if components is not None else ()),
        *(ShellPages(deps, calls).routes if calls is not None else ()),
        *(
            SourceImportPages(deps, knowledge, importer).routes
            if knowledge is not None and importer is not None
            else ()
        ),
        *OverviewPages(deps).routes,
        *ApprovalPages(deps).routes,
        *QuestionPages(deps).routes,
        *TurnPages(deps).routes,
        *WorkPages(deps).routes,
        *AuditPages(deps).routes,
        *(EventPages(deps, deps.events.log).routes if deps.events is not None else ()),
        *ToolPages(deps).routes,
        *GatePages(deps).routes,
        *UsagePages(deps).routes,
        *(LogPages(deps, deps.instance.logs).routes if deps.instance.logs is not None else ()),
        *(StorePages(deps, deps.instance.store).routes if deps.instance.store is not None else ()),
        *SignUpPages(deps).routes,
        *OAuthPages(deps).routes,
        *SettingsPages(deps).routes,
        *UserPages(deps).routes,
        PublicMount("/static", StaticPageFiles()),
    ]
