"""What ClaudeBot does (inventory 3.2 to 3.6) and what it does badly (3.7).

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

CLAUDEBOT: tuple[Requirement, ...] = (
    # 3.2 Start-up
    Requirement(
        "C1",
        "3.2",
        "At start every agent with a token gets its own client and model, all log in at once, and an agent without a "
        "token is left out.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C2",
        "3.2",
        "When an account is ready, history comes from the archive, what was missed is backfilled (through another "
        "account where this one has no access), and a rebuild can be forced.",
        status="covered",
        issue="discord",
    ),
    # 3.3 Context
    Requirement(
        "C3",
        "3.3",
        "A transcript is cached blocks of stable text and a tail of fresh messages in the form `Author: content`, "
        "estimated at characters divided by 4 plus 4 tokens a message.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C4",
        "3.3",
        "Of a block only ids and token counts have to be kept; its text is built again from the archive on first use, "
        "byte for byte the same.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C5",
        "3.3",
        "When the waiting messages reach the block size, a block closes and is saved, counting starts again, and what "
        "is left stays in the tail.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C6",
        "3.3",
        "History after the last processed message is fetched 100 at a time until the budget (at least 8000 tokens) is "
        "met or nothing is left.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C7",
        "3.3",
        "The tail may use what the cached blocks leave of the budget but never less than 8000 tokens, even past the "
        "soft budget, and drops its oldest messages first.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C8",
        "3.3",
        "In a thread half of the budget is for the parent channel and the rest for the thread.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C9",
        "3.3",
        "A thread sees its parent as it was before the thread began, without later talk, without the copy of the "
        "starter message, and without system messages.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C10",
        "3.3",
        "The block size is a third of the budget less 10 000, within 1000 and 30 000; shared blocks are evicted by "
        "the largest budget, and a smaller agent trims only its own view.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C11",
        "3.3",
        "Messages, block boundaries and thread resets (of one agent or of all) are kept in the store under migrations.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C12",
        "3.3",
        "In a transcript attachments appear with name, type, size and URL, text files up to 256 KB inline with their "
        "first 16 000 characters, mentions as @name, and an empty message as a placeholder.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C13",
        "3.3",
        "Where enabled, a line with the time stands between messages that are 10 or more minutes apart, and the zone "
        "is named once.",
        status="covered",
        issue="discord",
    ),
    # 3.4 Message handling
    Requirement(
        "C14",
        "3.4",
        "A mention in scope is counted as an exchange, takes its place in the queue, shows typing, is answered, and "
        "becomes a reply followed by plain messages, with @Name turned into pings.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C15",
        "3.4",
        "After 3 messages of agents in a row in a channel agents fall silent there until a human writes.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C16",
        "3.4",
        "A slot for an exchange is taken when a reply starts and given back when it fails, and agents answer each "
        "other only on an explicit mention, not on a mere reply.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C17",
        "3.4",
        "One agent never answers twice at a time in a conversation; a second mention waits its turn, in order of "
        "arrival among those of one person.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C18",
        "3.4",
        "Typing is renewed before it fades, at least every 9 seconds, for as long as the turn runs and does not wait "
        "for people.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C19",
        "3.4",
        "`/reset` in a thread makes all agents, or only those named, forget older messages for good, also after a "
        "restart, and is confirmed with a check or a warning reaction.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C20",
        "3.4",
        "A failed turn can be shown by a warning reaction on the message instead of an error text.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C21",
        "3.4",
        "Splitting cuts at line ends before it cuts hard, and runs of blank lines collapse unless the agent keeps "
        "them.",
        status="covered",
        issue="discord",
    ),
    # 3.5 Providers
    Requirement(
        "C22",
        "3.5",
        "For Anthropic the system prompt and the last blocks carry cache marks (up to 1 hour), pictures of the "
        "question follow uncached, and the reply is prefilled with `Name:` where accepted.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C23",
        "3.5",
        "Each agent may use its own OpenAI-compatible server, and images are sent as image parts where its model "
        "takes them and as text where not.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "C24",
        "3.5",
        "On OpenAI-compatible servers each block can be a user message of its own, the limit goes as "
        "`max_completion_tokens` where they know that, and an echoed leading name is removed.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C25",
        "3.5",
        "A model with image output sees the last 4 pictures of the history, and its own picture comes with the last "
        "part of the answer.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C25-reasoning",
        "3.5",
        "A model's reasoning is shown only where the agent is configured to show it.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C26",
        "3.5",
        "While an answer streams, a line that starts with a known speaker's name and a colon, with or without angle "
        "brackets, ends the stream, and the text is cut before it.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C27",
        "3.5",
        "The guard knows the agent's own name too, and a hit at position 0 is an echoed name that is removed and does "
        "not cut.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C28",
        "3.5",
        "A participant has no system prompt by default and sees the whole channel as one transcript.",
        status="covered",
        issue="context",
    ),
    # 3.6 Inspection
    Requirement(
        "C-inspect-server",
        "3.6",
        "On loopback one can inspect health, statistics, channels, messages, block boundaries, agents and transcripts.",
        status="covered",
        issue="admin",
    ),
    Requirement(
        "C-inspect-payload",
        "3.6",
        "One can see what would be sent to the model for a conversation without sending it.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C-inspect-commands",
        "3.6",
        "Commands verify the accounts, reset cached blocks and check the store.",
        status="covered",
        issue="admin",
    ),
    # 3.7 Weaknesses
    Requirement(
        "CW1",
        "3.7",
        "Denizen does not have: requests with more cache marks than the provider allows; at most four are set: on the "
        "system prompt (or tools), the last two blocks, and where the growing tail ends.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW2",
        "3.7",
        "Denizen does not have: prefill sent to models that refuse it; they get an ending user turn, and an echoed "
        "name is removed.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW3",
        "3.7",
        "Denizen does not have: a first load that stops at 100 messages; it pages backwards until the budget is full.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW4",
        "3.7",
        "Denizen does not have: blocks that never close in busy channels; tokens that already wait in the tail count, "
        "and no tail text is lost.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW5",
        "3.7",
        "Denizen does not have: blocks that pile up past the budget; the oldest are evicted first, and a thread takes "
        "its parent's newest part.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW6",
        "3.7",
        "Denizen does not have: block text that changes or vanishes after an edit or deletion; it is verified by hash "
        "and a mismatch is handled and told.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW7",
        "3.7",
        "Denizen does not have: names that cannot be pinged because of a dot, a hyphen or a space.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "CW8",
        "3.7",
        "Denizen does not have: answers that ping @everyone; allowed mentions are none by default.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "CW9", "3.7", "Denizen does not have: code fences broken by splitting.", status="covered", issue="discord"
    ),
    Requirement(
        "CW10",
        "3.7",
        "Denizen does not have: one bad token that stops the other accounts.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "CW11",
        "3.7",
        "Denizen does not have: duplicate block boundaries of a channel; they are unique also where there is no "
        "thread.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "CW12",
        "3.7",
        "Denizen does not have: documents that contradict the code; its reference is generated and checked.",
        status="covered",
        issue="foundation",
    ),
)
