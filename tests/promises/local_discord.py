"""What Local Discord Agent does (inventory 5.1 to 5.4) and what it does badly (5.5).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

LOCAL_DISCORD: tuple[Requirement, ...] = (
    # 5.1 Configuration
    Requirement(
        "L-config-required",
        "5.1",
        "Where a needed token, key or address is missing, the start of that part fails and names what is missing.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-config-guild",
        "5.1",
        "Slash commands can be registered in one guild only, for testing.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "L-config-name", "5.1", "An agent has a name, denizen by default.", status="covered", issue="foundation"
    ),
    Requirement(
        "L-config-model",
        "5.1",
        "An xAI model is configured by name, base URL, temperature (the provider's own by default) and output limit.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-config-cache-ttl",
        "5.1",
        "The life of a cached tool result is a setting, 30 minutes by default.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-config-rate-limit",
        "5.1",
        "The number of requests a user may make in an hour is a setting, 20 by default.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "L-config-error-message",
        "5.1",
        "The text that users see after a failure is a setting.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "L-config-greynoise",
        "5.1",
        "Without a GreyNoise key the community API is used.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-config-prompts",
        "5.1",
        "The planner's, the response's and the general prompt can be replaced by a file with placeholders for name "
        "and tools, and built-in texts serve without it.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-config-masked",
        "5.1",
        "A key is never logged in full, at most its first and last four characters.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-config-mcp",
        "5.1",
        "An MCP server is configured as command, arguments and environment.",
        status="covered",
        issue="gate",
    ),
    # 5.2 Flow
    Requirement(
        "L1",
        "5.2",
        "A mention is removed from the text, which is stored with its author and read by the model as `Name: text`, "
        "and an empty mention gets a greeting.",
        status="covered",
        issue="discord",
    ),
    Requirement("L2", "5.2", "A user has 20 requests in a sliding hour.", status="covered", issue="discord"),
    Requirement(
        "L3",
        "5.2",
        "Before planning an agent shows typing, stores the user's message, and has the last 10 messages as plain text "
        "and the tools of all servers.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "L4",
        "5.2",
        "The planner's answer is JSON with useTool, tool, args and reason, freed of code fences and validated; a "
        "parse error is tried again cleaned, and any failure means no tool.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L5",
        "5.2",
        "Planned arguments are validated against the tool's schema, and a failure names the tool and the fault, asks "
        "to rephrase, and is kept in the history.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L6",
        "5.2",
        "A call goes to the server that owns the tool, has 6 minutes, and after 30 s shows an interim message that is "
        "deleted later.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L7",
        "5.2",
        "Data URIs are taken out before anything goes to a model or into the store.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L8",
        "5.2",
        "After a planned tool the answer is written from history, message and result, without URLs of the pictures "
        "shown beside it, and without a tool it is written directly.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L9",
        "5.2",
        "Images of a tool's result become embeds with attachments and links, one reply for each further image, and no "
        "marker reaches the user.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "L10",
        "5.2",
        "A planned tool's error or timeout is answered with an apology and the reason, and a planner that fails gives "
        "an answer without a tool or the fallback text.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L11",
        "5.2",
        "Denizen closes its MCP servers, store and clients on an interrupt, and a crashed MCP server is connected "
        "again for its next call.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-llm-settings",
        "5.2",
        "How long a model may be silent, the temperature of plans, that of answers, and the output limit are settings "
        "of their own.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-prompt-planner",
        "5.2",
        "The planner is told to choose one tool, answer in JSON only and take parameters from the message; a sprite is "
        "32x32 by default.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-prompt-response",
        "5.2",
        "After a planned tool the agent is told to answer from the result shortly, in persona and without URLs of the "
        "pictures shown beside it.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-prompt-general",
        "5.2",
        "Without a tool the agent is told to answer shortly and in persona.",
        status="covered",
        issue="foundation",
    ),
    # 5.3 Storage
    Requirement(
        "L-store-engine",
        "5.3",
        "Conversations are MongoDB documents, one a channel.",
        status="dropped",
        issue="foundation",
        reason=(
            "Denizen has one store on SQLite or Postgres (X-storage); the history keeps its content and limits in "
            "L-store-messages and L-store-limits."
        ),
    ),
    Requirement(
        "L-store-messages",
        "5.3",
        "A stored message has role, content and time, and a tool's has its name, success, content, error, image and "
        "metadata.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "L-store-limits",
        "5.3",
        "The preset for small models keeps 100 messages a channel and gives the model the last 5 to 10.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "L-store-cuts",
        "5.3",
        "In that preset a message is cut at 1000 characters (user, tool) or 2000 (agent), and an earlier result at 200 "
        "where a model calls tools itself; one that plans, which is usual there, reads none.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "L-store-operations",
        "5.3",
        "History can be read, added to, formatted for a model and cleared.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "L-result-cache",
        "5.3",
        "Results of idempotent tools that only read are kept 30 minutes under tool and arguments and cleaned up "
        "every 5.",
        status="covered",
        issue="gate",
    ),
    # 5.4 Tools
    Requirement(
        "L-tool-generate-sprite",
        "5.4",
        "`generate_sprite` takes a prompt of 1 to 500 characters, one of four sizes, style and seed, and returns an "
        "id, an image and four directions.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-generate-image-pixflux",
        "5.4",
        "`generate_image_pixflux` takes a description, sides of 32 to 400, detail, direction, outline, background and "
        "start-image options within their ranges and returns one image.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-rotate-sprite",
        "5.4",
        "`rotate_sprite` takes a sprite and 1 to 16 angles and returns a sprite sheet.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-animate-sprite",
        "5.4",
        "`animate_sprite` takes a sprite, 1 to 60 frames a second and a loop switch, and returns a GIF.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-get-weather",
        "5.4",
        "`weather` returns the real weather of a place.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "L-tool-get-current-time", "5.4", "`current_time` returns the time.", status="covered", issue="foundation"
    ),
    Requirement(
        "L-tool-get-coolest-cities",
        "5.4",
        "`get_coolest_cities` returns a fixed list.",
        status="dropped",
        issue="gate",
        reason="A made-up list is a canned result of a demonstration, and Denizen ships none.",
    ),
    Requirement(
        "L-tool-greynoise",
        "5.4",
        "`greynoise_ip_address` takes a dotted IPv4 address and returns whether it was seen, its classification, "
        "first and last time, tags and metadata (first time and tags only with a key).",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-generate-image",
        "5.4",
        "`generate_image` takes a prompt of 1 to 4000 characters, 1 to 10 pictures and a format, and returns images.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "L-tool-pixellab-client",
        "5.4",
        "The PixelLab client polls every 5 s up to 60 times, tries 5xx again after 2, 4 and 8 s, gives a request 120 "
        "s, and has its own text for each status.",
        status="covered",
        issue="gate",
    ),
    # 5.5 Weaknesses
    Requirement(
        "LW1",
        "5.5",
        "Denizen does not have: a lock-out that never ends because refused requests count.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "LW2",
        "5.5",
        "Denizen does not have: a configured limit that is ignored or a result cache that is never read.",
        status="covered",
        issue="gate",
    ),
    Requirement("LW3", "5.5", "Denizen does not have: MCP servers started twice.", status="covered", issue="gate"),
    Requirement(
        "LW4",
        "5.5",
        "Denizen does not have: MCP servers that inherit its whole environment; each gets only its own.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW5",
        "5.5",
        "Denizen does not have: a start that fails because one MCP server does.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW6",
        "5.5",
        "Denizen does not have: an MCP error taken as success, or a server lost for good after a crash.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW7",
        "5.5",
        "Denizen does not have: unsplit long answers, or mentions left in the text because of their form or their "
        "number.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "LW8",
        "5.5",
        "Denizen does not have: an interim message that appears after the tool has already failed.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW9",
        "5.5",
        "Denizen does not have: plans thrown away because they give no reason.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "LW10",
        "5.5",
        "Denizen does not have: one tool a message as its limit, or tools that only pretend.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW11",
        "5.5",
        "Denizen does not have: copied schemas of MCP tools; each is used as its server lists it.",
        status="covered",
        issue="gate",
    ),
    Requirement(
        "LW12",
        "5.5",
        "Denizen does not have: MCP clients opened and closed in different tasks; one owner task a server takes "
        "requests from a queue.",
        status="covered",
        issue="gate",
    ),
)
