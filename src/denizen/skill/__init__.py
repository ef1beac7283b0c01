"""The public API for skill authors: everything a skill may import from Denizen.

A skill is a module with one `Skill` and some functions that are marked as its tools:

    from typing import Annotated
    from denizen.skill import Param, Skill, Tier, ToolContext, ToolError

    skill = Skill("dice", description="Rolls dice.")

    @skill.tool(tier=Tier.HARMLESS)
    async def roll(context: ToolContext, sides: Annotated[int, Param("2 to 100", ge=2, le=100)] = 6) -> str:
        \"\"\"Rolls one die.\"\"\"

Built-in skills (`denizen.builtin_skills`) are written against this module only, so whatever they can do, yours can. A
skill declares its tools and their tiers; the gate decides who may call them. Importing this module loads no vendor:
pydantic is loaded when the first schema is asked for.
"""

from denizen.domain.calendar import (
    MAX_EVENTS,
    MAX_GUESTS,
    CalendarEvent,
    EventDraft,
    EventQuery,
    describe_event,
    describe_span,
    read_moment,
    read_span,
    to_instant,
)
from denizen.domain.citation import DocumentRef
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.evidence import describe_reading
from denizen.domain.json import Json, JsonObject
from denizen.domain.log import LogEntry, LogFilter, LogStatistics, PathFigures
from denizen.domain.mail import MailSummary, OutgoingMail, ReceivedMail
from denizen.domain.openapi import ApiDocument, ApiKeyPlace, ApiOperation, ApiParameter, fill_operation, select_schemas
from denizen.domain.passage import Passage, split_passages
from denizen.domain.period import parse_period
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.project import (
    Project,
    ProjectDocument,
    ProjectDocumentEntry,
    ProjectDraft,
    ProjectStatus,
    Task,
    TaskDetails,
    TaskDraft,
    TaskQuery,
    TaskStatus,
    read_project_status,
    read_task_status,
)
from denizen.domain.ranking import covers_question, rank_by_words
from denizen.domain.tool import Effect, Taint, Tier, ToolResult
from denizen.domain.web_origin import WebOrigin, parse_origin
from denizen.domain.words import truncate
from denizen.ports.browser import BrowserAction, BrowserActionKind, BrowserRules, BrowserView, PageBrowser
from denizen.ports.calendar import CalDavLogin, CalendarAccount
from denizen.ports.documents import IndexedPassage
from denizen.ports.fetch import DownloadedFile, FetchedPage, WebRequest
from denizen.ports.google import DriveFile, GoogleAccount
from denizen.ports.mail import MailAccount, Mailbox, MailServer
from denizen.ports.sandbox import ShellResult
from denizen.ports.sql import SqlRows
from denizen.skill.archive_services import (
    ArchiveCount,
    ArchivedEdits,
    ArchivedPost,
    ArchivedTalk,
    ArchiveKey,
    ArchiveLookup,
    FoundTalk,
    TalkFilters,
)
from denizen.skill.context import (
    AccountServices,
    ConversationHistory,
    HistoryMessage,
    OwnerServices,
    ScopedServices,
    SkillFolders,
    SkillServices,
    ToolContext,
    quote_untrusted,
    run_in_thread,
)
from denizen.skill.instance_services import (
    AdministrationAccess,
    CacheUsage,
    ErrorGrouping,
    EventAccess,
    InstanceControl,
    SeenDelivery,
    SeenEvent,
    SkillEditor,
    SkillInfo,
    SpendingSummary,
    UserOrder,
    WorkflowAccess,
    WorkflowRunSummary,
    WorkflowStep,
    WorkflowSummary,
)
from denizen.skill.kept_services import (
    FeedAccess,
    FollowedFeed,
    MemoryAccess,
    MemoryItem,
    OwnerQuestions,
    OwnSchedule,
    PastToolCall,
    PlannedReminder,
    ProjectAccess,
    ReminderAccess,
    ScheduleAccess,
    ToolCallLog,
)
from denizen.skill.services import ApiDocumentReader, PlatformActions, ProgramResult
from denizen.skill.signature import Param, ToolError, ToolOutput
from denizen.skill.skill import Skill, Tool
from denizen.skill.toolset import SkillToolset

__all__ = [
    "MAX_EVENTS",
    "MAX_GUESTS",
    "AccountServices",
    "AdministrationAccess",
    "ApiDocument",
    "ApiDocumentReader",
    "ApiKeyPlace",
    "ApiOperation",
    "ApiParameter",
    "ArchiveCount",
    "ArchiveKey",
    "ArchiveLookup",
    "ArchivedEdits",
    "ArchivedPost",
    "ArchivedTalk",
    "BrowserAction",
    "BrowserActionKind",
    "BrowserRules",
    "BrowserView",
    "CacheUsage",
    "CalDavLogin",
    "CalendarAccount",
    "CalendarEvent",
    "ConversationHistory",
    "DocumentRef",
    "DownloadedFile",
    "DriveFile",
    "Effect",
    "ErrorGrouping",
    "EventAccess",
    "EventDraft",
    "EventQuery",
    "FeedAccess",
    "FetchedPage",
    "FollowedFeed",
    "FoundTalk",
    "GoogleAccount",
    "HistoryMessage",
    "IndexedPassage",
    "InstanceControl",
    "InvalidInput",
    "Json",
    "JsonObject",
    "LogEntry",
    "LogFilter",
    "LogStatistics",
    "MailAccount",
    "MailServer",
    "MailSummary",
    "Mailbox",
    "MemoryAccess",
    "MemoryItem",
    "NotAllowed",
    "NotFound",
    "OutgoingMail",
    "OwnSchedule",
    "OwnerQuestions",
    "OwnerServices",
    "PageBrowser",
    "Param",
    "Passage",
    "PastToolCall",
    "PathFigures",
    "PlannedReminder",
    "PlatformActions",
    "Principal",
    "PrincipalKind",
    "ProgramResult",
    "Project",
    "ProjectAccess",
    "ProjectDocument",
    "ProjectDocumentEntry",
    "ProjectDraft",
    "ProjectStatus",
    "ReceivedMail",
    "ReminderAccess",
    "ScheduleAccess",
    "ScopedServices",
    "SeenDelivery",
    "SeenEvent",
    "ShellResult",
    "Skill",
    "SkillEditor",
    "SkillFolders",
    "SkillInfo",
    "SkillServices",
    "SkillToolset",
    "SpendingSummary",
    "SqlRows",
    "Taint",
    "TalkFilters",
    "Task",
    "TaskDetails",
    "TaskDraft",
    "TaskQuery",
    "TaskStatus",
    "Tier",
    "Tool",
    "ToolCallLog",
    "ToolContext",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "Unavailable",
    "UserOrder",
    "WebOrigin",
    "WebRequest",
    "WorkflowAccess",
    "WorkflowRunSummary",
    "WorkflowStep",
    "WorkflowSummary",
    "covers_question",
    "describe_event",
    "describe_reading",
    "describe_span",
    "fill_operation",
    "parse_origin",
    "parse_period",
    "quote_untrusted",
    "rank_by_words",
    "read_moment",
    "read_project_status",
    "read_span",
    "read_task_status",
    "run_in_thread",
    "select_schemas",
    "split_passages",
    "to_instant",
    "truncate",
]
