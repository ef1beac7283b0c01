"""What VexAI does (inventory 1.1 to 1.5, 1.7 to 1.9) and what it does badly (1.10).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

VEXAI: tuple[Requirement, ...] = (
    # 1.1 Boot, setup, files
    Requirement(
        "V1",
        "1.1",
        "`denizen setup` is a wizard that writes config and identity files; `denizen run` makes the store and goes "
        "straight to serving, in a home that is set up and in an empty one (promise 6), and never asks.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V2",
        "1.1",
        "Start-up has one fixed order (store, migrations, built-in skills, user skills, models, gate, integrations, "
        "then accounts), and Denizen is ready once each is connected or failed; commands and backfill follow.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V2-events",
        "1.1",
        "The event system starts after the integrations and before Denizen reports ready.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V3",
        "1.1",
        "All run-time data (config, SQLite file, identity, users' data) lives in the home folder, and user skills "
        "live in its `skills/` folder.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V4",
        "1.1",
        "Pending migrations run at every start, from one linear history for SQLite and Postgres, and running them a "
        "second time changes nothing.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V5",
        "1.1",
        "The store is SQLite in WAL mode by default, or Postgres with a pool of connections (at most 10 by default), "
        "chosen by configuration or environment.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V5-search",
        "1.1",
        "Full-text search and vector search work on SQLite and on Postgres (tsvector, pgvector) behind one interface.",
        status="covered",
        issue="knowledge",
    ),
    # 1.2 Message pipeline
    Requirement(
        "V6",
        "1.2",
        "Every message is written to the store as it arrives, and an agent's history is read from there, so that a "
        "restart changes none of it.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V6-hot",
        "1.2",
        "Recent history is served from memory, which is filled again from the store after a restart.",
        status="dropped",
        issue="context",
        reason="ADR 0032: reading 400 messages takes 3.6 ms, and a copy in memory would have to follow every edit, "
        "deletion and process.",
    ),
    Requirement(
        "V7",
        "1.2",
        "An assistant's prompt is assembled from IDENTITY.md, SOUL.md, RULES.md, CORE_MEMORY.md and the selected "
        "tools, and behind what is cached (ADR 0023) the speaking user's MEMORY.md.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V8",
        "1.2",
        "Summaries of the conversation and memories that match the message by meaning are put into the prompt without "
        "being asked for.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V9",
        "1.2",
        "A turn loops at most 20 iterations by default; each tool call passes turn cache and gate (approval included) "
        "before it runs, and its result goes back to the model.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V10",
        "1.2",
        "Within one turn a repeated call of a read-only tool with equal arguments returns the cached result until a "
        "tool that writes has run, and the next turn starts with an empty cache.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V11",
        "1.2",
        "An answer longer than 2000 characters is split, and all of its parts are delivered in order.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V12",
        "1.2",
        "While a turn works, the conversation shows a live status message that says what the agent is doing and gives "
        "way to the answer.",
        status="covered",
        issue="discord",
    ),
    # 1.3 LLM layer
    Requirement(
        "V13",
        "1.3",
        "OpenAI, Anthropic, OpenRouter and any OpenAI-compatible server stand behind one model port, which makes 3 "
        "attempts with exponential backoff.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V14",
        "1.3",
        "Tools and messages convert to each provider's native form and back without loss.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "V15",
        "1.3",
        "A user's model override applies to that user's turns and never changes anybody else's.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V16",
        "1.3",
        "`/model` sets, removes and lists users' models, and an override that names no key or base URL inherits the "
        "agent's own credentials.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V17",
        "1.3",
        "`/mode` can set, clear, show and list the presets fast, cheap, balanced and quality, each of which chooses "
        "the model alias of its name.",
        status="covered",
        issue="discord",
    ),
    # 1.4 Security observer and approvals
    Requirement(
        "V18",
        "1.4",
        "Every tool has one risk tier: 0 approves without overhead, 1 checks rules and rate limits, 2 asks the "
        "observer through a verdict cache, 3 asks the observer every time.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V19",
        "1.4",
        "An approving verdict runs the tool, a denial returns its text to the model as the tool's result, and an "
        "escalation alerts the owners' channel and does not run the tool.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V20",
        "1.4",
        "Any fault inside the gate (timeout, model error, malformed verdict) denies the call.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V21",
        "1.4",
        "A destructive tool needs a human's approval even when the observer has said yes.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V22",
        "1.4",
        "`/observer enable|disable|reset|status` lets owners, and nobody else, switch the observer at run time and "
        "clear its state.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "V23",
        "1.4",
        "Calls that a skill makes from inside itself nest at most 5 deep, and a deeper one fails with a skill error.",
        status="covered",
        issue="gate",
    ),
    # 1.5 Access, slash commands
    Requirement(
        "V24",
        "1.5",
        "`/allow add|remove|list` keeps the list of users who may talk to an agent, others are refused, and "
        "commands that concern others are for admins and owners only, `/observer` for owners.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V25",
        "1.5",
        "An owner can move the whole store from SQLite to Postgres with progress shown in place, and can see the "
        "backend in use and the row count of every table.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "V26",
        "1.5",
        "More slash commands exist than the other rows name.",
        status="dropped",
        issue="discord",
        reason="The row names no command and no behaviour, so there is nothing to build or to check.",
    ),
    # 1.7 Storage services
    Requirement(
        "V27",
        "1.7",
        "Denizen stores conversations (recent and old), memory (core and per user), an archive of platform messages, "
        "and embeddings.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "V28",
        "1.7",
        "The archive mirrors messages as they arrive, backfills older ones in the background at start, has full-text "
        "search, and keeps every edit and deletion where a tool can read them.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "V29",
        "1.7",
        "A search asks the archive first and the platform's API only for a room of which the archive has nothing.",
        status="covered",
        issue="discord",
    ),
    # 1.8 Events, workflows, integrations, agents
    Requirement(
        "V30",
        "1.8",
        "An event from any source passes a listener's filter and its own cool-down before it causes an action, from "
        "posting a fixed text to letting an agent answer.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V30-discord",
        "1.8",
        "Messages, reactions, and changes of members, roles, channels and threads on Discord are each a source of "
        "events.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V30-webhooks",
        "1.8",
        "GitHub and GitLab webhooks are sources of events told apart by type, and any other JSON is one told apart by "
        "conditions on its fields.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V30-feeds",
        "1.8",
        "WebSocket connections, polled REST sources and events emitted inside Denizen are sources of events.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V31",
        "1.8",
        "A workflow is an acyclic graph of typed nodes and edges with `{{variable}}` templates, and the history of "
        "its runs is kept.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V31-nodes",
        "1.8",
        "Workflows offer over 30 node types in five groups: triggers (event, command, reaction role, webhook, "
        "schedule, by hand), conditions, actions, transforms and control flow.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V32",
        "1.8",
        "A custom API can be registered, called with every HTTP method at most 10 times a minute, listed and deleted, "
        "and is never called at a private or link-local address.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V32-openapi",
        "1.8 integrations",
        "A custom API can be imported from an OpenAPI document, and its operations found, described and called by "
        "their ids with arguments that are checked before anything is sent.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V33",
        "1.8",
        "A feed can be subscribed to, listed and dropped; its items appear as embed, compact or full text of at most "
        "2000 characters, and it is polled no faster than every 5 minutes.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V34",
        "1.8",
        "An inbound webhook is accepted only with a valid HMAC signature, unless the configuration of its route names "
        "a scheme whose senders cannot sign, which is warned of.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V35",
        "1.8",
        "An agent of one's own (name, identity, instructions, allowed tools) can be created in an interview.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V35-sub-agent",
        "1.8",
        "An agent called by name with a task runs it as a sub-agent and returns the result to the caller.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "V35-handover",
        "1.8",
        "An agent that was handed a conversation owns it until a timeout, a message limit, or a user's `!exit`.",
        status="covered",
        issue="automation",
    ),
    # 1.9 Errors
    Requirement(
        "V-errors",
        "1.9",
        "Errors of config, model, security and skill share one root and carry structured context that is logged as "
        "data.",
        status="covered",
        issue="foundation",
    ),
    # 1.10 Weaknesses
    Requirement(
        "VW1",
        "1.10",
        "Denizen does not have: skill-internal calls that skip the gate; each passes it with the strictest tier of "
        "its chain.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "VW2",
        "1.10",
        "Denizen does not have: escalations that end in a denial for good; an escalated call waits as an approval "
        "with an expiry and runs once a human allows it.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "VW3",
        "1.10",
        "Denizen does not have: a model as its only judge; deterministic rules come first, and cached verdicts hold "
        "for tier 2 only, are keyed by principal and conversation, expire, and never hold an escalation.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "VW4",
        "1.10",
        "Denizen does not have: a cache that swallows a wanted repeat of a side effect; only calls of tools declared "
        "read-only are cached.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "VW5",
        "1.10",
        "Denizen does not have: outbound requests that reach private addresses over IPv6, DNS rebinding or redirects; "
        "every resolved address is checked at every hop.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "VW6",
        "1.10",
        "Denizen does not have: user skills that run because they lie in the folder; only files that the owner "
        "enabled load, with a valid manifest, at the highest tier unless it says otherwise.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "VW7",
        "1.10",
        "Denizen does not have: API keys typed as slash-command options; a command refers to a named credential or "
        "asks in a modal and answers only to its user.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "VW8",
        "1.10",
        "Denizen does not have: prompts that carry every tool; a stated rule selects at most a configured number of "
        "them.",
        status="covered",
        issue="gate",
    ),
)
