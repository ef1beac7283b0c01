"""The records and settings of Savoir (inventory 2.1, 2.2), one row a table, key or setting.

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

SAVOIR_RECORDS: tuple[Requirement, ...] = (
    # 2.1 Tables
    Requirement(
        "S-data-sources",
        "2.1",
        "A source has an id, a kind, a label, where it reads (repository, branch, path or channel) and writes, README "
        "only (off), at most 50 videos, and its times.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-data-chats",
        "2.1",
        "A web chat has a title, an owner and a mode (chat or admin), and is private until it is shared under a "
        "unique token.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "S-data-messages",
        "2.1",
        "A message has a role, typed parts, feedback, model, tokens in and out, a duration and its origin (web or "
        "API), and goes when its chat is deleted.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "S-data-agent-config",
        "2.1",
        "The assistant's settings are kept as named sets of which one is active.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-data-api-usage",
        "2.1",
        "Reported usage is kept with source, source id, model, tokens in and out, duration and metadata.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-data-usage-stats",
        "2.1",
        "Usage is summed once per day, user (or everybody), source and model, with counts of messages, tokens and "
        "time.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-data-accounts",
        "2.1",
        "People, their sign-in sessions, linked accounts and API keys are kept in Denizen's own store.",
        status="covered",
        issue="web",
    ),
    # 2.1 Short-lived values
    Requirement(
        "S-kv-snapshot-current",
        "2.1",
        "The current snapshot is recorded with its id and creation time and survives a restart.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-kv-session",
        "2.1",
        "A live sandbox session is remembered for 30 minutes.",
        status="covered",
        issue="knowledge",
        same_as=("S21",),
    ),
    Requirement(
        "S-kv-status-cache",
        "2.1",
        "The snapshot status is computed at most once in 60 seconds, and anew after a change.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-kv-last-sync",
        "2.1",
        "The time of the last sync is recorded and can be read.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-kv-agent-config",
        "2.1",
        "A change of the active settings is in effect everywhere within 60 seconds.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-kv-active-session",
        "2.1",
        "All web chats share one sandbox session.",
        status="dropped",
        issue="knowledge",
        reason="It is weakness SW10: a sandbox session belongs to one conversation.",
    ),
    Requirement(
        "S-blob",
        "2.1",
        "Uploaded images, PDF and CSV files are kept in Denizen's own file store.",
        status="covered",
        issue="web",
    ),
    # 2.2 Assistant settings
    Requirement(
        "S-config-additional-prompt",
        "2.2",
        "Extra instructions from the settings are appended to the system prompt and are absent by default.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-config-response-style",
        "2.2",
        "The response style is concise (the default), detailed, technical or friendly, and the prompt asks for it.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-config-language",
        "2.2",
        "The prompt has a section on the answer's language only when the configured language is not `en`; a kind of "
        "English, such as `en-GB`, is one.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-config-default-model",
        "2.2",
        "A configured default model overrides the routed one.",
        status="covered",
        issue="knowledge",
        same_as=("S6",),
    ),
    Requirement(
        "S-config-step-multiplier",
        "2.2",
        "The steps of a turn are the routed steps times a multiplier of 0.5 to 3.0 (1.0 by default), rounded.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-config-temperature",
        "2.2",
        "A configured temperature reaches the model's request.",
        status="covered",
        issue="foundation",
        same_as=("X-temperature",),
    ),
    Requirement(
        "S-config-search-instructions",
        "2.2",
        "Configured search instructions appear in the prompt of an agent that has sources.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-config-citation-format",
        "2.2",
        "Citations come inline (the default), as footnotes, or not at all, as configured.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-config-save",
        "2.2",
        "Saving the settings takes effect at once, and a reset brings the defaults back.",
        status="covered",
        issue="knowledge",
    ),
)
