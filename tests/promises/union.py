"""Where the five systems disagree (inventory 6), what is easily missed (8), and what sets Denizen apart (product).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

UNION: tuple[Requirement, ...] = (
    # 6 Conflicts, settled
    Requirement(
        "X-iteration-limit",
        "6",
        "The router sets the limit of steps when it is on, else the agent's own value, else 20, and the last two "
        "steps have no tools.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "X-history",
        "6",
        "An agent's history follows the transcript or the session strategy, as configured, with the message windows "
        "as caps.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "X-session-scope",
        "6",
        "An agent's session is scoped by channel, by thread or by user, as configured.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "X-split",
        "6",
        "Answers are split at 2000 characters with code fences kept whole.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "X-retry",
        "6",
        "A model request is tried 3 times with exponential backoff, only after 408, 409, 429, 5xx or a transport "
        "fault, and Retry-After is honoured.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "X-approval-absent",
        "6",
        "A call that needs approval where nobody can be asked is denied.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "X-busy",
        "6",
        "Messages to a busy agent wait in a bounded queue per agent and conversation, in which those who ask take "
        "turns, and when it is full the room is told once a minute.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "X-rate-limit",
        "6",
        "One limiter with several windows serves every limit, and rejected calls do not count.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "X-temperature",
        "6",
        "Temperature is an agent's setting, clamped to the provider's range and left out where the model forbids it.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "X-max-output-tokens",
        "6",
        "A request asks for at most 4096 output tokens unless the agent says otherwise.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "X-storage",
        "6",
        "One store holds everything, on SQLite by default or on Postgres, short-lived values with their expiry "
        "included.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "X-no-action",
        "6",
        "An agent ends a turn without delivery by a structured silent finish or an answer that is exactly the agreed "
        "word, never by a word inside other text.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "X-internal-calls",
        "6",
        "Calls from skills, commands and programs pass the gate with their origin recorded.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "X-internal-calls-automation",
        "6",
        "Calls from hooks and schedules pass the gate with their origin recorded.",
        status="covered",
        issue="automation",
    ),
    # 8 Behaviours easily missed
    Requirement(
        "E1",
        "8",
        "The gate denies on doubt in non-interactive runs, configured commands and skill-internal calls, not only in "
        "chat.",
        status="covered",
        issue="gate",
        same_as=("V20", "X-approval-absent", "X-internal-calls"),
    ),
    Requirement(
        "E1-hooks",
        "8",
        "The gate denies on doubt in hooks.",
        status="covered",
        issue="automation",
        same_as=("V20", "X-approval-absent", "X-internal-calls-automation"),
    ),
    Requirement(
        "E2",
        "8",
        "Shell validation parses quoting, accepts harmless words and pipes inside arguments, refuses every known "
        "bypass, and is one function for all callers.",
        status="covered",
        issue="knowledge",
        same_as=("S19", "SW1", "SW2", "SW3"),
    ),
    Requirement(
        "E3",
        "8",
        "There are at most four cache marks, prefill only where the model accepts it, and an echoed name is removed.",
        status="covered",
        issue="context",
        same_as=("CW1", "CW2"),
    ),
    Requirement(
        "E4",
        "8",
        "Rolling counts the kept tail, evicts the oldest, survives edits, deletions and restart byte for byte, pages "
        "backwards at first load, and keeps 8000 tokens of tail.",
        status="covered",
        issue="context",
        same_as=("C4", "C7", "CW3", "CW4", "CW5", "CW6"),
    ),
    Requirement(
        "E5",
        "8",
        "A thread sees a snapshot of its parent from before it began, in half of the budget, without a copy of the "
        "starter.",
        status="covered",
        issue="context",
        same_as=("C8", "C9"),
    ),
    Requirement(
        "E6",
        "8",
        "The guard works on the stream, includes the agent's own name, ignores position 0, and takes names literally.",
        status="covered",
        issue="context",
        same_as=("C26", "C27", "E6-names"),
    ),
    Requirement(
        "E6-names",
        "8",
        "A speaker's name with characters that mean something in a pattern is matched literally by the guard.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "E7",
        "8",
        "Hooks have all tools, errors go on, `skipIf` differs before and after, only schedules show outputs, a skip "
        "counts as run, and `wakeAgent` off only leaves a note.",
        status="covered",
        issue="automation",
        same_as=("T21", "T22", "T23", "T25", "T28", "T29"),
    ),
    Requirement(
        "E8",
        "8",
        "Two last steps without tools, forced text, a stop after three equal rounds, a note on changed tools, and no "
        "orphan results after trimming hold together.",
        status="covered",
        issue="foundation",
        same_as=("S9", "S10", "T9", "T10", "T15"),
    ),
    Requirement(
        "E9",
        "8",
        "A reload is all or nothing, debounced with polling behind it, counts only successes, spares tools in use, "
        "and saving broken YAML reports failure.",
        status="covered",
        issue="foundation",
        same_as=("T2", "T3", "TW11", "TW19"),
    ),
    Requirement(
        "E10",
        "8",
        "Plans never break a chat, markers and data URIs stay inside, refusals do not count, mentions are none, "
        "fences survive, subscriptions persist, MCP servers are isolated.",
        status="covered",
        issue="discord",
        same_as=("L4", "L7", "L9", "LW1", "CW8", "CW9", "SW11", "LW4", "LW12"),
    ),
    # Promises of the product
    Requirement(
        "P1",
        "product promise 1",
        "However the process dies, after a restart every message that deserved a reply has exactly one, those that "
        "came meanwhile included.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "P2",
        "product promise 2",
        "Every call from every origin passes the gate, any fault in it denies, and approvals wait durably and can be "
        "decided in Discord, web or terminal.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "P3",
        "product promise 3",
        "What archive, memory and documents return is limited to what everybody who can read the reply may see.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "P4",
        "product promise 4",
        "For any reply one can see the exact prompt by segment, caching, cost, memories, documents and verdicts used, "
        "and replay it with another model.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "P5",
        "product promise 5",
        "A steady channel pays the cached price for at least 95 % of its input tokens, and budgets of money are "
        "checked before a request is sent.",
        status="covered",
        issue="context",
    ),
    Requirement(
        # The tests ask the smallest model of the catalogue: the weights of the default one are a download of 1.1 GB.
        "P6",
        "product promise 6",
        "Without key, token or server one command gives a working agent on an embedded model, SQLite and a web page.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "P7",
        "product promise 7",
        "The same program runs on Postgres as separate gateway, worker and web processes.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "P8",
        "product promise 8",
        "An upgrade rehearses its migrations on a copy first and can go back.",
        status="covered",
        issue="admin",
    ),
)
