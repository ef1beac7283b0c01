"""What Tailored AI does badly (inventory 4.12).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

TAILORED_WEAKNESSES: tuple[Requirement, ...] = (
    Requirement(
        "TW1",
        "4.12",
        "Denizen does not have: calls that run because nobody is there to approve them.",
        status="covered",
        issue="gate",
        same_as=("X-approval-absent",),
    ),
    Requirement(
        "TW2",
        "4.12",
        "Denizen does not have: hooks or configured shell commands that go around approval.",
        status="covered",
        issue="gate",
        same_as=("X-internal-calls",),
    ),
    Requirement(
        "TW3",
        "4.12",
        "Denizen does not have: open reads of configuration or secrets; beyond loopback all but health, sign-in and "
        "signed webhooks needs a key, and secrets are masked.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "TW4",
        "4.12",
        "Denizen does not have: webhooks that cannot pass because API key and webhook secret claim the same header.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW5",
        "4.12",
        "Denizen does not have: an agent's provider, model or fallback list ignored.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "TW6",
        "4.12",
        "Denizen does not have: meta tools given to agents that do not list them, or an admin tool that rewrites "
        "permissions.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "TW7",
        "4.12",
        "Denizen does not have: file tools that leave their folders by `..`, a shared prefix or a link.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "TW8",
        "4.12",
        "Denizen does not have: powerful tools in anybody's reach; roles of the principal decide.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "TW9",
        "4.12",
        "Denizen does not have: a magic word inside a normal answer that suppresses its delivery.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW10",
        "4.12",
        "Denizen does not have: schedules that overlap themselves, lack a time zone, forget missed runs, or keep no "
        "history.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW11",
        "4.12",
        "Denizen does not have: success reported for a configuration that could not be loaded.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "TW12",
        "4.12",
        "Denizen does not have: history starved to nothing by a long system prompt, or reduced to a lone tool result.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "TW13",
        "4.12",
        "Denizen does not have: a summary that misses what was dropped after it was made.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "TW14",
        "4.12",
        "Denizen does not have: a task watcher that sees only changes made over HTTP.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW15",
        "4.12",
        "Denizen does not have: background tasks lost at restart, or delegated work that cannot be cancelled.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW16",
        "4.12",
        "Denizen does not have: retries of client errors or without backoff, answers without streaming, or fetches of "
        "private addresses.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "TW17",
        "4.12",
        "Denizen does not have: typing that goes on after a failed turn.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "TW18",
        "4.12",
        "Denizen does not have: moments without slash commands because they are cleared before they are registered "
        "again.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "TW19",
        "4.12",
        "Denizen does not have: tools closed by a reload while a turn still uses them.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "TW19-browser",
        "4.12",
        "Denizen does not have: one browser page shared by several turns.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "TW20",
        "4.12",
        "Denizen does not have: an unrestricted shell by default; without an allow list nothing runs.",
        status="covered",
        issue="gate",
    ),
)
