"""The skills of VexAI (inventory 1.6), one row a skill.

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

VEXAI_SKILLS: tuple[Requirement, ...] = (
    Requirement(
        "V-skill-interface",
        "1.6",
        "A skill has a name, a description and tools, and each call gets the conversation, the principal, the guild "
        "and a way to call other tools.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-loading",
        "1.6",
        "Built-in skills load first, and skills in the home's `skills/` folder are loaded and reloaded while Denizen "
        "runs.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-discord",
        "1.6",
        "An agent can send, edit, delete, pin and crosspost messages and use embeds, reactions, polls, threads and "
        "forum posts.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-moderation",
        "1.6",
        "An agent can warn, time out, kick, ban and unban members, purge messages and set slow mode.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-server-management",
        "1.6",
        "An agent can manage channels, roles, emojis, invites, scheduled events, webhooks and permissions of a guild.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-user-management",
        "1.6",
        "An agent can look up and list members, change nicknames, add and remove roles, and send direct messages.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-components",
        "1.6",
        "An agent can post buttons, select menus and menus in which members pick their roles, as with reaction roles, "
        "and act on what people choose.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-memory",
        "1.6",
        "An agent can search the structured log of what it did.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V-skill-semantic-memory",
        "1.6",
        "An agent can remember, recall, forget, list and update memories, and recall finds them by full text and by "
        "meaning.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V-skill-discord-search",
        "1.6",
        "An agent can search the archive by words and by meaning, narrowed by person, room and time, with the talk "
        "around each hit, and read a channel's history and statistics, the talk around a message, and its edits.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V-skill-integrations",
        "1.6",
        "An agent has tools for custom REST APIs, RSS feeds, webhooks and GitHub.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-email", "1.6", "An agent can list, read and answer mail.", status="covered", issue="automation"
    ),
    Requirement(
        "V-skill-voice",
        "1.6",
        "An agent can join and leave voice channels, speak, transcribe speech, write up a meeting, and hold a spoken "
        "conversation.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-agent-system",
        "1.6",
        "Agents can be created, invoked, handed a conversation, listed, described, deleted and switched on or off "
        "through tools.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-sub-agents",
        "1.6",
        "An agent can start background work by another agent, see its status, cancel it, and read the task board.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-workflows",
        "1.6",
        "Workflows can be created, listed, read, changed, deleted, switched, triggered and their runs reviewed "
        "through tools.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-event-system",
        "1.6",
        "Listeners, WebSocket sources and polled REST sources can be managed, events emitted and the event log read "
        "through tools.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-graph-renderer",
        "1.6",
        "An agent can draw a chart as an image in 20 chart types.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-cron",
        "1.6",
        "An agent can add, list, remove and switch scheduled jobs.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V-skill-utility",
        "1.6",
        "An agent can make embeds and polls, set reminders, search the web and fetch a URL.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-system",
        "1.6",
        "An agent can, for those allowed, run an allowed program (without a shell), download a file, restart Denizen, "
        "and read credits and cache statistics.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-table-renderer",
        "1.6",
        "An agent can draw a table as an image that shows emoji.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-skill-manager",
        "1.6",
        "User skills can be created, read, edited, deleted and listed through tools.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V-skill-skill-agent",
        "1.6",
        "A model can write a new skill from a description, and the result is validated and lands disabled for review.",
        status="covered",
        issue="gate",
    ),
)
