"""The built-in skills as a set: what they cost in a prompt, how dangerous they are, what loads."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import denizen.builtin_skills
from denizen.builtin_skills import BUILTIN, OPT_IN, load_builtin
from denizen.domain.errors import NotFound
from denizen.domain.tool import Effect, ToolSpec
from denizen.skill import Skill, Tier

FOLDER = Path(denizen.builtin_skills.__file__).parent

TIERS: Mapping[str, Mapping[Tier, str]] = {
    "time": {Tier.HARMLESS: "current_time time_between"},
    "calculator": {Tier.HARMLESS: "calculator"},
    "web": {Tier.LIMITED: "fetch_url"},
    "weather": {Tier.LIMITED: "weather"},
    "memory": {Tier.HARMLESS: "recall search_log", Tier.LIMITED: "remember forget"},
    "notes": {Tier.HARMLESS: "list_notes read_note search_notes", Tier.LIMITED: "append_note write_note"},
    "conversation": {Tier.HARMLESS: "search_conversation read_messages"},
    "archive": {Tier.HARMLESS: "search_archive read_history read_context read_edits archive_stats"},
    "knowledge": {Tier.HARMLESS: "list_knowledge read_knowledge search_docs"},
    "shell": {Tier.HARMLESS: "bash bash_batch"},
    "reminders": {Tier.HARMLESS: "list_reminders", Tier.LIMITED: "remind cancel_reminder"},
    "apis": {
        Tier.HARMLESS: "list_apis find_operations",
        Tier.LIMITED: "call_api call_operation",
        Tier.SENSITIVE: "register_api import_api delete_api",
        Tier.DANGEROUS: "send_to_api send_operation",
    },
    "feeds": {Tier.HARMLESS: "list_feeds", Tier.SENSITIVE: "subscribe_feed unsubscribe_feed"},
    "schedules": {
        Tier.HARMLESS: "list_schedules",
        Tier.LIMITED: "remove_schedule run_schedule",
        Tier.SENSITIVE: "add_schedule switch_schedule",
    },
    "event_system": {
        Tier.LIMITED: "emit_event read_events list_event_setup",
        Tier.SENSITIVE: "replay_event",
        Tier.DANGEROUS: "set_listener set_websocket set_poll set_webhook switch_event_entry remove_event_entry",
    },
    "github": {
        Tier.LIMITED: "search_github read_github",
        Tier.SENSITIVE: "close_issue",
        Tier.DANGEROUS: "create_issue comment_on_github",
    },
    "workflows": {
        Tier.LIMITED: "list_workflows read_workflow list_workflow_runs show_workflow_run",
        Tier.SENSITIVE: "run_workflow",
        Tier.DANGEROUS: "create_workflow change_workflow delete_workflow switch_workflow",
    },
    "projects": {Tier.HARMLESS: "task_query", Tier.LIMITED: "tasks projects documents"},
    "web_search": {Tier.LIMITED: "web_search"},
    "questions": {Tier.LIMITED: "ask_user"},
    "browser": {Tier.SENSITIVE: "browser"},
    "mail": {Tier.SENSITIVE: "list_mail read_mail draft_mail", Tier.DANGEROUS: "send_mail"},
    "calendar": {
        Tier.SENSITIVE: "list_calendars list_calendar_events",
        Tier.DANGEROUS: "create_calendar_event change_calendar_event delete_calendar_event",
    },
    "gmail": {Tier.SENSITIVE: "search_gmail read_gmail draft_gmail", Tier.DANGEROUS: "send_gmail"},
    "google_calendar": {
        Tier.SENSITIVE: "list_google_calendars list_google_events",
        Tier.DANGEROUS: "create_google_event change_google_event delete_google_event",
    },
    "google_drive": {Tier.SENSITIVE: "find_drive_files read_drive_file", Tier.DANGEROUS: "upload_drive_file"},
    "coding_agent": {Tier.DANGEROUS: "coding_agent"},
    "files": {Tier.SENSITIVE: "read", Tier.DANGEROUS: "write replace_file md_to_pdf"},
    "system": {
        Tier.LIMITED: "credits cache_statistics",
        Tier.SENSITIVE: "download_file",
        Tier.DANGEROUS: "exec restart_denizen",
    },
    "skill_manager": {Tier.DANGEROUS: "list_skills view_skill create_skill edit_skill delete_skill"},
    "skill_agent": {Tier.DANGEROUS: "write_skill"},
    "tables": {Tier.HARMLESS: "draw_table"},
    "charts": {Tier.LIMITED: "draw_chart"},
    "cards": {Tier.HARMLESS: "make_embed"},
    "discord": {
        Tier.HARMLESS: "read_reactions read_poll",
        Tier.LIMITED: "react",
        Tier.SENSITIVE: (
            "send_message edit_message delete_own_message pin_message create_poll "
            "end_poll create_thread edit_thread add_to_thread create_forum_post"
        ),
        Tier.DANGEROUS: "delete_message crosspost_message",
    },
    "moderation": {
        Tier.LIMITED: "list_warnings list_bans",
        Tier.SENSITIVE: "warn_member remove_warning timeout_member end_timeout unban_member set_slow_mode",
        Tier.DANGEROUS: "kick_member ban_member purge_messages",
    },
    "server": {
        Tier.HARMLESS: "server_info list_channels list_roles list_events",
        Tier.LIMITED: "list_invites list_webhooks",
        Tier.SENSITIVE: (
            "create_channel edit_channel create_role create_emoji create_invite delete_invite create_event cancel_event"
        ),
        Tier.DANGEROUS: (
            "delete_channel set_channel_permission edit_role delete_role delete_emoji create_webhook delete_webhook"
        ),
    },
    "members": {
        Tier.HARMLESS: "member_info list_members",
        Tier.SENSITIVE: "set_nickname remove_role send_direct_message",
        Tier.DANGEROUS: "add_role",
    },
    "voice": {
        Tier.HARMLESS: "voice_channels voice_members voice_status",
        Tier.LIMITED: ("voice_join voice_leave voice_hush voice_transcribe_stop voice_transcript voice_assistant_stop"),
        Tier.SENSITIVE: "voice_speak voice_transcribe_start voice_write_up voice_assistant_start",
    },
    "components": {Tier.SENSITIVE: "post_choices", Tier.DANGEROUS: "post_role_menu"},
    "admin": {
        Tier.LIMITED: (
            "query_stats list_users list_sources query_chats get_agent_config run_sql query_logs log_stats query_errors"
            " chart admin"
        ),
        Tier.DANGEROUS: "admin_change admin_create_agent",
    },
}
"""What was decided for every tool of every built-in skill: skill to tier to names, with spaces between."""

NEVER_WITHOUT_PEOPLE = frozenset(
    [
        "send_to_api",
        "send_operation",
        "create_issue",
        "comment_on_github",
        "send_mail",
        "send_gmail",
        "upload_drive_file",
        "coding_agent",
        "replace_file",
        "create_calendar_event",
        "change_calendar_event",
        "delete_calendar_event",
        "create_google_event",
        "change_google_event",
        "delete_google_event",
        "set_listener",
        "set_websocket",
        "set_poll",
        "set_webhook",
        "switch_event_entry",
        "remove_event_entry",
        "create_workflow",
        "change_workflow",
        "delete_workflow",
        "switch_workflow",
        "delete_skill",
        "admin_change",
        "admin_create_agent",
        "delete_message",
        "purge_messages",
        "kick_member",
        "ban_member",
        "delete_channel",
        "delete_role",
        "delete_emoji",
        "delete_webhook",
        "delete_invite",
        "cancel_event",
    ]
)
"""The tools about which people are asked whatever an observer thinks: what they do reaches others and cannot be taken
back, or goes on by itself.
"""

ALWAYS_TOKENS = 1200
"""What all skills together may cost that are in every prompt of a plain installation."""

TOKENS: Mapping[str, int] = {
    # only where there is a use for them
    "archive": 450,
    "knowledge": 270,
    "shell": 190,
    "reminders": 175,
    "schedules": 400,
    "event_system": 1150,
    "github": 490,
    "workflows": 760,
    "projects": 650,
    "web_search": 75,
    # only in chats about the administration, in place of all others
    "admin": 1500,
    # only where the owner enables them
    "files": 330,
    "system": 290,
    "skill_manager": 370,
    "skill_agent": 105,
    "tables": 130,
    "charts": 300,
    "cards": 140,
    "discord": 1500,
    "moderation": 820,
    "server": 1600,
    "members": 450,
    "voice": 700,
    "components": 300,
    "feeds": 250,
    "apis": 760,
    "questions": 75,
    "browser": 135,
    "mail": 450,
    "calendar": 700,
    "gmail": 400,
    "google_calendar": 700,
    "google_drive": 320,
    "coding_agent": 165,
}
"""What each of the others may cost."""

TOOL_TOKENS = 120
LARGE_TOOLS: Mapping[str, int] = {
    "add_schedule": 140,
    "browser": 135,
    "chart": 300,
    "tasks": 210,
    "task_query": 170,
    "projects": 145,
    "documents": 130,
    "query_logs": 190,
    "admin_create_agent": 125,
    "search_archive": 140,
    "search_docs": 135,
    "draw_table": 130,
    "draw_chart": 300,
    "make_embed": 140,
    "send_message": 145,
    "edit_message": 145,
    "create_poll": 140,
    "post_choices": 170,
    "post_role_menu": 135,
    "coding_agent": 140,
    "list_calendar_events": 130,
    "create_calendar_event": 175,
    "change_calendar_event": 225,
    "set_listener": 195,
    "read_github": 125,
    "set_websocket": 155,
    "set_poll": 180,
    "list_google_events": 130,
    "create_google_event": 175,
    "change_google_event": 225,
    "upload_drive_file": 130,
}
"""Tools that may cost more than `TOOL_TOKENS`; none of them is in every prompt."""

DRAWING = {
    *((name, "PIL") for name in ("text_rendering.py", "tables.py")),
    *((name, "matplotlib") for name in ("text_rendering.py", "charts.py")),
    *(("pdf_rendering.py", name) for name in ("PIL", "fpdf", "markdown_it")),
}
"""Libraries that draw, loaded with the first picture."""


def all_specs() -> list[ToolSpec]:
    return [spec for name in BUILTIN for spec in load_builtin(name).specs()]


def tokens(spec: ToolSpec) -> float:
    """What the tool adds to each prompt, at four characters a token."""
    row = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return len(json.dumps(row, separators=(",", ":"), ensure_ascii=False)) / 4


def cost(name: str) -> float:
    """What the tools of a skill add to each prompt, in tokens."""
    return sum(map(tokens, load_builtin(name).specs()))


@pytest.mark.parametrize("name", BUILTIN)
def test_each_built_in_skill_loads_and_has_the_name_of_its_module(name: str) -> None:
    skill = load_builtin(name)
    assert isinstance(skill, Skill)
    assert skill.name == name
    assert skill.tools


def test_an_unknown_skill_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound) as caught:
        load_builtin("os")
    assert "calculator" in caught.value.fix


@pytest.mark.proves("TW8")
@pytest.mark.parametrize("name", BUILTIN)
def test_every_tool_has_the_tier_that_was_decided_for_it(name: str) -> None:
    decided = {tool: tier for tier, tools in TIERS[name].items() for tool in tools.split()}
    assert {spec.name: spec.tier for spec in load_builtin(name).specs()} == decided


def test_people_are_asked_about_every_tool_for_which_that_was_decided_and_no_other() -> None:
    assert {spec.name for spec in all_specs() if spec.destructive} == NEVER_WITHOUT_PEOPLE


def test_the_skills_of_a_plain_installation_cost_less_than_1200_tokens_in_a_prompt() -> None:
    always = [name for name in BUILTIN if name not in TOKENS]
    assert not OPT_IN & set(always)
    assert sum(map(cost, always)) < ALWAYS_TOKENS


@pytest.mark.parametrize("name", TOKENS)
def test_each_of_the_other_skills_costs_no_more_than_its_bound(name: str) -> None:
    assert cost(name) <= TOKENS[name]


def test_no_tool_is_large_unless_it_was_decided_so() -> None:
    large = {spec.name: tokens(spec) for spec in all_specs() if tokens(spec) > TOOL_TOKENS}
    assert {name: size for name, size in large.items() if size > LARGE_TOOLS.get(name, 0)} == {}
    assert not set(LARGE_TOOLS) - set(large), "those are small by now"


def test_settings_have_defaults_for_everything() -> None:
    for name in BUILTIN:
        load_builtin(name).read_settings({})


def test_skills_use_only_the_public_surface_and_the_standard_library() -> None:
    foreign: list[str] = []
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            foreign += [
                f"{path.name}: {name}"
                for name in names
                if name != "denizen.skill"
                and not name.startswith("denizen.builtin_skills.")
                and name.partition(".")[0] not in sys.stdlib_module_names
                and (path.name, name.partition(".")[0]) not in DRAWING
            ]
    assert foreign == []


def test_naming_the_skills_loads_none_of_them() -> None:
    code = (
        "import sys; from denizen.builtin_skills import BUILTIN; assert BUILTIN;"
        "assert [name for name in sys.modules if name.startswith(('denizen.skill', 'denizen.builtin'))]"
        " == ['denizen.builtin_skills']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_the_skills_brings_in_no_vendor() -> None:
    code = (
        "import sys; from denizen.builtin_skills import BUILTIN, load_builtin;"
        "[load_builtin(name) for name in BUILTIN]; assert not {'pydantic', 'httpx2', 'jsonschema'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_tool_that_only_reads_says_so() -> None:
    """Such a tool answers from the turn's cache, and is tried again by workflows."""
    verbs = {"list", "read", "search", "view", "find", "query", "recall", "credits"}
    reading = {"task_query", "cache_statistics", "archive_stats", "log_stats", "chart", "show_workflow_run"}
    specs = [spec for name in BUILTIN for spec in load_builtin(name).specs()]
    undeclared = [
        spec.name
        for spec in specs
        if (spec.name in reading or spec.name.split("_")[0] in verbs) and not (spec.read_only and spec.idempotent)
    ]
    assert undeclared == []
    acting = [
        spec.name for spec in specs if spec.read_only and (spec.destructive or spec.flow.effects - {Effect.REVEAL})
    ]
    assert acting == []
