"""How Savoir routes and answers (inventory 2.3, 2.4), and what it does badly (2.11).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

SAVOIR: tuple[Requirement, ...] = (
    # 2.3 Router
    Requirement(
        "S1",
        "2.3",
        "A cheap model sorts the last question into trivial, simple, moderate or complex with a reason, which sets 4, "
        "8, 15 or 25 steps and the model alias fast, fast, balanced or quality.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S2",
        "2.3",
        "A routing answer counts only with 1 to 30 steps, a model from the closed list and a reason of at most 200 "
        "characters.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S3",
        "2.3",
        "Without a question, without a usable routing answer, or after any routing error a turn is routed as "
        "moderate, 15 steps, balanced, with a stock reason.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S4",
        "2.3",
        "The router is told that greetings are trivial, one lookup simple, comparisons, 2 to 5 files and current "
        "events at least moderate, and debugging, architecture and many files complex.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S5",
        "2.3",
        "Every model alias has its own chain of fallback models, tried in order when a model is unavailable.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S6",
        "2.3",
        "The owner's settings may replace the routed model and multiply the routed number of steps.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S7",
        "2.3",
        "For a GitHub thread the router also sees the origin, number and title, up to 500 characters of the body, and "
        "the labels.",
        status="covered",
        issue="knowledge",
    ),
    # 2.4 Agent loop
    Requirement(
        "S8",
        "2.4",
        "The prompt states date, style, language, citations, search tips, extra instructions, a hint for the "
        "complexity, and a budget of two tool calls fewer than the turn has steps.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S9",
        "2.4",
        "The last two steps of a turn run without tools, so that it always ends in text.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S10",
        "2.4",
        "From 60 % of the steps on, but not before step 3, four tool-only steps in a row force a text-only step.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S11",
        "2.4",
        "When the last request used over 40 000 input tokens, tool calls and results before the third-last user "
        "message are dropped, if that saves about 20 000 tokens or more.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "S12",
        "2.4",
        "Tool arguments that arrive as a JSON string are parsed to an object before the next request, or become an "
        "empty object.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S13",
        "2.4",
        "A turn that would end without text makes one more request without tools, and if that gives no text either, "
        "a fixed apology is delivered.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S14",
        "2.4",
        "`web_search` returns text and its sources and stands beside the sandbox, which the prompt says to search "
        "first.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S15",
        "2.4",
        "When the client of a streamed answer goes away, its turn is cancelled, unless it belongs to a session or has "
        "an idempotency key: then the answer can be read later.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "S-prompt-chat",
        "2.4",
        "A knowledge agent is told to answer only from its sources, search and read (in a chat in one batch), cite "
        "paths, never repeat a failing command, and never end on a tool call or a placeholder.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-prompt-bot",
        "2.4",
        "In a public thread the knowledge rules on sources, citations, failing commands and endings hold in a shorter "
        "form, and the agent must read files and not only list them.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-prompt-router",
        "2.4",
        "The router is told to classify and to do nothing else.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "S-prompt-admin",
        "2.4",
        "In admin mode the agent must query real data before it answers, and draw a chart when there is a time axis.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "S-prompt-title",
        "2.4",
        "A chat gets a generated title of at most 30 characters without punctuation.",
        status="covered",
        issue="web",
    ),
    # 2.11 Weaknesses
    Requirement(
        "SW1",
        "2.11",
        "Denizen does not have: false refusals in the sandbox; quoted pipes, words such as node or env in arguments, "
        "`2>/dev/null` and `=>` in a pattern are all accepted.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW2",
        "2.11",
        "Denizen does not have: ways around the sandbox by newline, `&`, find or xargs actions, awk, sed, sort or tee "
        "options, variable prefixes, disguised outside paths or process substitution.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW3",
        "2.11",
        "Denizen does not have: a second, weaker sandbox policy; agents, HTTP, SDK, MCP and CLI use the same one.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW4",
        "2.11",
        "Denizen does not have: a route that forgets its check; every route states who may call it, and none "
        "documented for admins answers anybody else.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "SW5",
        "2.11",
        "Denizen does not have: settings that are stored and never used, a routed model that is ignored, or prompts "
        "that name tools that do not exist.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW6",
        "2.11",
        "Denizen does not have: a daily limit that counts a new chat's first message twice or loses counts under "
        "load, or history taken unchecked from the client.",
        status="covered",
        issue="web",
    ),
    Requirement(
        "SW7",
        "2.11",
        "Denizen does not have: a sync that stamps its time before it is done, leaves removed files behind, counts a "
        "missing README as success, or misses an expired snapshot.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW7-quoting",
        "2.11",
        "Denizen does not have: fields of a source that reach a shell; git and every other program get them as "
        "separate arguments.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW8",
        "2.11",
        "Denizen does not have: admin queries that can read sessions, accounts or keys.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "SW8-errors",
        "2.11",
        "Denizen does not have: internal error texts in public threads; people see a safe message with a reference.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW9",
        "2.11",
        "Denizen does not have: duplicate global rows in its daily usage; repeating the computation of a day leaves "
        "one row a key.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW10",
        "2.11",
        "Denizen does not have: one sandbox session shared by all users; sessions belong to a conversation.",
        status="covered",
        issue="knowledge",
    ),
    Requirement(
        "SW11",
        "2.11",
        "Denizen does not have: long answers cut silently, role mentions ignored, thread subscriptions lost at "
        "restart, or a new thread for every mention.",
        status="covered",
        issue="discord",
    ),
)
