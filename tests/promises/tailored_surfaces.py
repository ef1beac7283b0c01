"""HTTP, store, command line, pages and task watcher of Tailored AI (inventory 4.11).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

TAILORED_SURFACES: tuple[Requirement, ...] = (
    # HTTP
    Requirement(
        "T-http-health",
        "4.11",
        "`GET /health` tells status and, where keys are needed only to who has one, uptime, provider, model, number of "
        "tools and generation.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-http-chat",
        "4.11",
        "A chat request with message, session and agent streams tool calls, results of at most 1000 characters, "
        "activity, approval requests, the response or an error as events.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-http-sessions",
        "4.11",
        "Sessions and their messages can be listed, and a new session started, over HTTP.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "T-http-listings",
        "4.11",
        "Tools, agents, schedules, approvals, background tasks, activity, commands and context files can be read over "
        "HTTP.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "T-http-config-read",
        "4.11",
        "The configuration can be read whole, by section or by provider with secrets masked, and the models of a "
        "provider listed.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "T-http-config-write",
        "4.11",
        "The configuration can be replaced, a section or provider changed and, with null, a section deleted over HTTP.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "T-http-cron",
        "4.11",
        "A schedule can be run and switched over HTTP.",
        status="covered",
        issue="automation",
        same_as=("T33",),
    ),
    Requirement(
        "T-http-approvals",
        "4.11",
        "An approval can be decided over HTTP.",
        status="covered",
        issue="gate",
        same_as=("T-approval-http",),
    ),
    Requirement(
        "T-http-command",
        "4.11",
        "A text command can be sent over HTTP and streams like a chat, its shell output included.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "T-http-projects",
        "4.11",
        "Tasks (with filters), comments, projects and documents can be created, read, changed and deleted over HTTP.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-http-webhooks",
        "4.11",
        "A webhook route fills its template (`{{a.b}}`, an empty body allowed), and starts an agent in session "
        "`webhook:<route>` or only logs.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-http-webhooks-off",
        "4.11",
        "A webhook is answered 503 while webhooks are off and 404 for an unknown route.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-http-auth",
        "4.11",
        "A request that changes something needs a bearer key once one is set.",
        status="covered",
        issue="foundation",
    ),
    # Store
    Requirement(
        "T-store-sessions",
        "4.11",
        "A session has a unique key and its times, its turns name model and provider, and its messages have role, "
        "content, tool calls and the call they answer.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-store-reset",
        "4.11",
        "A reset gives the key to a fresh session, and the old one keeps its messages.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-store-resume",
        "4.11",
        "A resumed session uses the model that is configured now.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-store-schedules",
        "4.11",
        "A schedule's definition and last run are kept in the store.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-store-projects",
        "4.11",
        "Tasks have a status from backlog to archived, author, tags, project and comments, and projects a status and "
        "a due date.",
        status="covered",
        issue="automation",
    ),
    # Command line
    Requirement(
        "T-cli-options",
        "4.11",
        "The command line chooses the home with its configuration, message, session, agent, JSON output and port, "
        "starts a home, and lists agents and sessions.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-cli-home",
        "4.11",
        "The home folder is `~/.denizen` unless `DENIZEN_HOME` or `--home` names another.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-cli-wizard",
        "4.11",
        "The wizard tests the connection to the model before it finishes.",
        status="covered",
        issue="foundation",
    ),
    # Pages
    Requirement(
        "T-ui-dashboard", "4.11", "A dashboard page shows the state of Denizen.", status="covered", issue="web"
    ),
    Requirement(
        "T-ui-projects",
        "4.11",
        "A board page shows projects and tasks, moves tasks by dragging, and keeps itself up to date.",
        status="covered",
        issue="automation",
    ),
    Requirement("T-ui-tools", "4.11", "A page lists the tools.", status="covered", issue="web"),
    Requirement(
        "T-ui-chat", "4.11", "A chat page talks to any agent and shows its tool calls.", status="covered", issue="web"
    ),
    Requirement(
        "T-ui-config",
        "4.11",
        "Configuration pages edit providers, Discord, agents, tools and permissions, custom tools, schedules, "
        "watcher, webhooks, commands and the raw YAML.",
        status="covered",
        issue="admin",
    ),
    Requirement("T-ui-help", "4.11", "A help page explains the use.", status="covered", issue="web"),
    # Task watcher
    Requirement(
        "T-task-watcher",
        "4.11",
        "A changed task starts, after a debounce of its own and one after another, a turn of the configured agent "
        "that always has the task tools.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-task-watcher-session",
        "4.11",
        "The task watcher's agent has a session of its own that starts fresh with every event.",
        status="covered",
        issue="automation",
    ),
)
