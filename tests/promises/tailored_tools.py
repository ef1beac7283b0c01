"""Delegation, built-in tools and approvals of Tailored AI (inventory 4.7 to 4.9).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

TAILORED_TOOLS: tuple[Requirement, ...] = (
    # 4.7 Delegate and background tasks
    Requirement(
        "T-delegate",
        "4.7",
        "`delegate` runs a task by a named agent in a session of its own (`delegate:<parent>:<uuid>`) with that "
        "agent's tools and hooks, and a failure becomes an error result.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-delegate-depth",
        "4.7",
        "A delegated agent cannot delegate or administrate, so that delegation is one deep.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-delegate-gate",
        "4.7",
        "The approvals and permissions of the delegating turn hold for the delegated one.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-delegate-async",
        "4.7",
        "Delegation in the background answers at once with `task_<8>`.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-task-status",
        "4.7",
        "`task_status` lists background tasks or shows one with up to 500 characters of its result.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-background-tasks",
        "4.7",
        "A background task is running, completed or failed, and finished ones leave the list after an hour or beyond "
        "100.",
        status="covered",
        issue="automation",
    ),
    # 4.8 Built-in tools
    Requirement(
        "T-tool-exec",
        "4.8",
        "`exec` runs only programs of its allow list, refuses `;|&$(){}<>!#\\`, backticks and line ends in the "
        "command, and stops at 30 s and 1 MB.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-tool-read", "4.8", "`read` returns a file inside the allowed paths only.", status="covered", issue="gate"
    ),
    Requirement(
        "T-tool-write", "4.8", "`write` writes a file inside the allowed paths only.", status="covered", issue="gate"
    ),
    Requirement(
        "T-tool-web-fetch",
        "4.8",
        "`fetch_url` returns up to 8000 characters of a page as text or of JSON indented, within 15 s and 2 retries.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-tool-web-search", "4.8", "`web_search` through Brave returns 5 results.", status="covered", issue="knowledge"
    ),
    Requirement(
        "T-tool-memory",
        "4.8",
        "An agent lists, reads, writes, appends and searches Markdown notes by safe names, those of the room or person "
        "it is asked in, with 5 hits a note and 3000 characters, and reads its own and the shared knowledge.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-tool-browser",
        "4.8",
        "`browser` navigates, clicks, types, waits, goes back, takes screenshots and returns up to 4000 characters of "
        "text.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-tasks",
        "4.8",
        "`tasks` creates, reads, changes, deletes and comments on tasks of projects.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-task-query",
        "4.8",
        "`task_query` finds tasks by status, author, any of several tags, time, text and project, 20 by default.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-projects",
        "4.8",
        "`projects` creates, reads, changes, deletes and lists projects.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-documents",
        "4.8",
        "`documents` creates, reads, changes, deletes and lists Markdown documents of a project.",
        status="covered",
        issue="automation",
    ),
    Requirement("T-tool-gmail", "4.8", "`gmail` searches, reads and sends mail.", status="covered", issue="automation"),
    Requirement(
        "T-tool-google-calendar",
        "4.8",
        "`google_calendar` lists, finds and creates events.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-google-drive",
        "4.8",
        "`google_drive` uploads, lists and finds files.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-md-to-pdf",
        "4.8",
        "`md_to_pdf` turns a Markdown file into a PDF and returns its path.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-ask-user",
        "4.8",
        "`ask_user` leaves a question in the inbox and sends it to the owner without waiting.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-coding-agent",
        "4.8 claude_code",
        "An external coding agent can be given a prompt, a session and a folder, within 300 s and 8000 characters of "
        "result.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-tool-delegate",
        "4.8",
        "`delegate` is offered as a tool.",
        status="covered",
        issue="automation",
        same_as=("T-delegate",),
    ),
    Requirement(
        "T-tool-task-status",
        "4.8",
        "`task_status` is offered as a tool.",
        status="covered",
        issue="automation",
        same_as=("T-task-status",),
    ),
    Requirement(
        "T-tool-admin",
        "4.8",
        "`admin` reads sections of the configuration, lists and creates agents, and changes only keys on its list.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "T-tool-custom",
        "4.8",
        "A configured command becomes a tool with required parameters, which reach it as arguments and never as shell "
        "text, within 30 s.",
        status="covered",
        issue="gate",
    ),
    # 4.9 Approvals
    Requirement(
        "T-approval-modes",
        "4.9",
        "A tool runs freely, needs approval, or decides by rules, and a default mode holds for the others.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-rules",
        "4.9",
        "The first rule whose patterns match the arguments wins; an empty one matches all, a bad pattern or missing "
        "argument matches nothing, and without a match the default holds.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-timeout",
        "4.9",
        "An approval not decided within its time (5 minutes by default, 0 for ever) is rejected or, where configured "
        "and for no dangerous call, granted.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-discord",
        "4.9",
        "On Discord an approval is a card with buttons to approve, once or for an hour, and to deny, which only the "
        "configured people may press, by default the requester or, for calls of high risk, an owner.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-http",
        "4.9",
        "Over HTTP an approval is an `approval_request` event decided by `POST /api/approvals/:id` with a reason.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-stream-closed",
        "4.9",
        "A pending approval is rejected when the stream of its asker closes.",
        status="dropped",
        issue="gate",
        reason=(
            "Approvals wait durably and survive restarts (product promise 2), so a closed stream must not decide one."
        ),
    ),
    Requirement(
        "T-approval-terminal",
        "4.9",
        "In the terminal an approval is answered with y, N or a reason.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "T-approval-rejected",
        "4.9",
        "A rejection and its reason are returned to the model as the tool's result.",
        status="covered",
        issue="gate",
    ),
)
