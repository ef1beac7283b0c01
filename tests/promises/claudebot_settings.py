"""The settings of ClaudeBot (inventory 3.1), grouped.

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

CLAUDEBOT_SETTINGS: tuple[Requirement, ...] = (
    Requirement(
        "C-config-agent",
        "3.1",
        "A platform agent needs a name, a token, a provider and a model, and an agent without a token is skipped with "
        "a notice.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C-config-endpoint",
        "3.1",
        "An agent may set its own base URL, its own key and whether its model takes images.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "C-config-agent-limits",
        "3.1",
        "An agent without its own context budget, output limit or temperature uses the global value.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "C-config-context-tokens",
        "3.1",
        "The context budget of a participant is 100 000 tokens by default and soft.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C-config-max-tokens",
        "3.1",
        "The output limit is 4096 tokens by default.",
        status="covered",
        issue="foundation",
        same_as=("X-max-output-tokens",),
    ),
    Requirement(
        "C-config-temperature",
        "3.1",
        "A participant for which neither a temperature nor `top_p` is configured samples at 1.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "C-config-chars-per-token",
        "3.1",
        "How many characters are taken for a token in an estimate can be set, 4 by default.",
        status="dropped",
        issue="context",
        reason="It is 4 everywhere. An estimate plans what fits: sizes are in tokens, and costs settled by what the "
        "provider counted. Another number would be a second way to set every size.",
    ),
    Requirement(
        "C-config-channels",
        "3.1",
        "An empty channel list admits every channel, and a thread counts through its parent.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C-config-blocks",
        "3.1",
        "By default a block closes at 30 000 tokens, the tail is guaranteed 8000, and a thread's parent gets half of "
        "the budget.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "C-config-exchanges",
        "3.1",
        "The number of exchanges between agents is a setting, by default 3 on Discord and 0 on GitHub.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C-config-message-limit",
        "3.1",
        "The length at which answers are split is 2000 by default and can be lowered.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C-config-timestamps",
        "3.1",
        "Time markers have a configured zone and gap, 10 minutes by default.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "C-config-secret-names",
        "3.1",
        "Configuration names the environment variable of a secret and never needs its value.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "C-config-toggles",
        "3.1",
        "System prompt, vertical form, time markers, kept blank lines, separate blocks, prefill as user and assistant "
        "turns, and reasoning are switches of an agent, off by default.",
        status="covered",
        issue="context",
    ),
)
