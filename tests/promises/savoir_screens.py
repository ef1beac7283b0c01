"""The screens, admin tools and SDK of Savoir (inventory 2.9, 2.10).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

SAVOIR_SCREENS: tuple[Requirement, ...] = (
    # 2.9 Admin screens
    Requirement(
        "S-admin-sources",
        "2.9",
        "The sources page lists and filters sources, 5 a page, and reminds when the last sync is older than 7 days.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-new-source",
        "2.9",
        "A source can be added by hand or imported from a screenshot.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-assistant",
        "2.9",
        "The assistant page sets language, model (auto, fast, balanced, quality), tone, citations, creativity, depth "
        "and instructions.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-sandbox",
        "2.9",
        "The sandbox page shows and sets the snapshot remote, shows the status, and runs a sync.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-statistics",
        "2.9",
        "The statistics page shows usage, cost and feedback over time.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-logs",
        "2.9",
        "The logs page shows the volume, purges after a preview, and can open an admin chat that investigates an "
        "entry.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-api-keys", "2.9", "The API keys page creates, lists and revokes keys.", status="covered", issue="admin"
    ),
    Requirement(
        "S-admin-users",
        "2.9",
        "The users page lists users, changes roles and deletes users.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-docs", "2.9", "The documentation can be read inside the admin pages.", status="covered", issue="admin"
    ),
    # 2.9 User screens
    Requirement(
        "S-user-chat",
        "2.9",
        "The chat page has a model picker, file drop, visible tool calls, like, dislike, copy, stop and regenerate.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "S-user-share",
        "2.9",
        "A dialog shares a chat, gives its link, and ends the sharing.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "S-user-shared-page",
        "2.9",
        "A shared chat can be read on a public page without signing in.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "S-user-settings",
        "2.9",
        "A user changes profile and password, sees the linked GitHub account, ends sign-in sessions, and deletes the "
        "account.",
        status="covered",
        issue="web",
    ),
    Requirement("S-user-api-keys", "2.9", "A user manages own API keys.", status="covered", issue="web"),
    Requirement("S-user-login", "2.9", "A page lets people register and sign in.", status="covered", issue="web"),
    # 2.9 Tools of the admin chat
    Requirement(
        "S-admin-tool-query-stats",
        "2.9",
        "The admin chat can query usage of 1 to 365 days, 30 by default.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-list-users",
        "2.9",
        "The admin chat can list 1 to 50 users (20 by default) by messages, tokens or recent use.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-list-sources", "2.9", "The admin chat can list the sources.", status="covered", issue="admin"
    ),
    Requirement(
        "S-admin-tool-query-chats",
        "2.9",
        "The admin chat can query chats with a limit and by user.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-run-sql",
        "2.9",
        "The admin chat can run a SELECT and nothing else.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-get-agent-config",
        "2.9",
        "The admin chat can read the assistant's settings.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-query-logs",
        "2.9",
        "The admin chat can query logs by level, path, status, method and text over 1 to 168 hours (24) with 1 to 200 "
        "entries (50).",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-log-stats",
        "2.9",
        "The admin chat can get error rate, status classes, the 50th, 95th and 99th percentile, and the top 10 slow, "
        "busy and failing paths.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-query-errors",
        "2.9",
        "The admin chat can get errors grouped by path or by error, the last 20, and their trend.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-admin-tool-chart",
        "2.9",
        "The admin chat can draw a chart over a window (30 days by default) whose gaps are filled with zero.",
        status="covered",
        issue="admin",
    ),
    # 2.10 SDK
    Requirement(
        "S-sdk-create",
        "2.10",
        "The SDK's client takes API URL, key, session id, source, source id and headers, and fails at construction "
        "without a URL.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-tools",
        "2.10",
        "The SDK offers `bash` and `bash_batch` as tools for other agent frameworks.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-client",
        "2.10",
        "The SDK's client has bash, bash batch, list sources, sync, sync one source, create snapshot and read the "
        "assistant's settings.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-session",
        "2.10",
        "The SDK keeps the session id of each reply for the next call, and it can be read and set.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-usage",
        "2.10",
        "The SDK reports the usage of a finished run to the server.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-errors",
        "2.10",
        "The SDK raises one typed error for API faults, which tells authentication, rate limit and server faults "
        "apart, and another for the network.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-sdk-on-tool-call",
        "2.10",
        "The SDK calls `on_tool_call` for every tool call.",
        status="covered",
        issue="knowledge",
    ),
)
