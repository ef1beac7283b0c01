"""The settings and agents of Tailored AI (inventory 4.2, 4.4), grouped.

Rows are read by `tests.requirements`; `python -m tests.requirements --sync` sets their status.
"""

from tests.promises.requirement import Requirement

TAILORED_SETTINGS: tuple[Requirement, ...] = (
    # 4.2 Configuration
    Requirement(
        "T-config-env",
        "4.2",
        "`${VAR}` and `${VAR:-default}` are filled from the environment, and an unset variable that is needed is an "
        "error that names it.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-merge",
        "4.2",
        "The configuration is merged deeply over the defaults, and a list replaces the default list.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-validation",
        "4.2",
        "An unknown tool, provider, agent, key or permission mode is one clear error that names file, line, key and "
        "the nearest known one.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-server",
        "4.2",
        "The server's host, port and API keys are settings, and by default it listens on loopback only.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-database",
        "4.2",
        "The place of the SQLite file is a setting with a default inside the home folder.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-providers",
        "4.2",
        "Providers have base URL, key and default model, and Ollama is preset to its usual local address.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-agent-defaults",
        "4.2",
        "A default model, a list of models by priority and extra instructions hold for every agent that sets none.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-history",
        "4.2",
        "The preset for small models keeps 2000 tokens of history and samples at 0.3.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T-config-limits",
        "4.2",
        "The size of a model's context (32 768 by default on servers of one's own) and the number of tool rounds are "
        "settings.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T-config-context-folders",
        "4.2",
        "The folders of context files and of the knowledge base are settings with defaults inside the home folder.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T-config-discord",
        "4.2",
        "Discord has enabled, token, owner, allowed guilds, and switches for direct messages and mentions that are on "
        "by default.",
        status="covered",
        issue="discord",
    ),
    Requirement(
        "T-config-cron",
        "4.2",
        "Schedules are off by default and are listed in the configuration.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-config-task-watcher",
        "4.2",
        "The task watcher is off by default and has agent, prompt, debounce (5000 ms), triggers (created and "
        "updated), delivery and hooks.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-config-webhooks",
        "4.2",
        "Inbound webhooks are off by default and have a secret and routes.",
        status="covered",
        issue="automation",
    ),
    Requirement(
        "T-config-tools",
        "4.2",
        "Each skill can be switched and given options, and tools that can do harm are off by default.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-config-custom",
        "4.2",
        "Custom tools, commands and permissions are empty by default.",
        status="covered",
        issue="gate",
    ),
    # 4.4 Agents
    Requirement(
        "T-agent-fields",
        "4.4",
        "An agent sets description, model, provider, list of models, instructions, tools, temperature, rounds, "
        "context folder, nudging, summarising and hooks.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-agent-instructions",
        "4.4",
        "An agent's instructions replace the global extra instructions.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-agent-tools",
        "4.4",
        "An agent's tools are an allow list, and an unknown name in it is an error.",
        status="covered",
        issue="foundation",
    ),
    Requirement(
        "T-agent-context",
        "4.4",
        "Sorted Markdown files of the global folder and then of the agent's own go into the prompt under headings of "
        "their names, or only the own with `skip_global_context`.",
        status="covered",
        issue="context",
    ),
    Requirement(
        "T-agent-knowledge",
        "4.4",
        "Agents share a global knowledge folder and have one of their own.",
        status="covered",
        issue="context",
    ),
)
