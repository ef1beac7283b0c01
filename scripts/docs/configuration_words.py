"""Explains each key of `denizen.yaml` in a sentence, for `configuration.md`. Data only.

`configuration` fails for a key that has no words here and for words that have no key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HEAD = """# Configuration

`denizen.yaml` in the home folder (`~/.denizen`, or what `--home` or `DENIZEN_HOME` say). No key is needed, and no file
at all is a valid configuration: the built-in model, one agent named `denizen`, all built-in skills.

`${NAME}` takes a value from the environment, or else from `secrets.env` beside the file; `${NAME:-text}` has a default;
`$${` is a plain `${`. Secrets can only be given that way. Unknown keys are refused. `denizen config check` tells every
problem with its line; `denizen config show` prints what is in effect. `NAME` in a key below stands for a name that you
choose."""

SECTIONS: Mapping[str, str] = MappingProxyType({
    "store": "Where conversations, turns and costs are kept.",
    "server": "The web page and the API.",
    "models.providers": "Where models come from. Without any provider, the built-in model is used.",
    "models.aliases": (
        "Names that agents use instead of `provider/model`. Without providers, `fast`, `balanced` and `quality` are "
        "the built-in model. `NAME: provider/model` is the short form."
    ),
    "models.overrides": "Corrections of what is detected about a model, by `provider/model`.",
    "agents": "The agents. Persona files are read from `agents/NAME/` in the home folder.",
    "default_agent": "Who answers when nobody is named.",
    "channels": "Where agents can be talked to.",
    "channels.discord": (
        "Agents on Discord: see [run agents on Discord](../how-to/run-agents-on-discord.md). Ids are the numbers that "
        "`Copy ID` gives in Discord. The keys from `owners` to `commands_guild` may stand at an account too, for that "
        "account alone."
    ),
    "channels.github": (
        "Agents on GitHub: see [answer on GitHub](../how-to/answer-on-github.md). The keys from `repositories` to "
        "`failure_text` may stand at an account too, for that account alone."
    ),
    "archive": "The mirror of Discord's messages: see [archive and privacy](../how-to/archive-and-privacy.md).",
    "commands": "Slash commands of your own, by name: see [custom commands](../how-to/custom-commands.md).",
    "tools": "The skills, by name. Keys other than `enabled` are the skill's own: see [tools](tools.md).",
    "skills": "Skills of your own, by name: see [write a skill](../how-to/write-a-skill.md).",
    "custom_tools": "Programs as tools of agents, by the name of the tool.",
    "mcp.servers": "Servers whose tools agents may use: see [MCP servers](../how-to/use-mcp-servers.md).",
    "folders": "Markdown files that all agents share.",
    "memory": "What comes up unasked: see [memory](../how-to/give-it-a-memory.md).",
    "embeddings": "What finds texts by their meaning.",
    "knowledge": "Where documents come from is kept in the store (`denizen sources add`); here is how they are synced.",
    "sandbox": "The read-only shell in which agents look through documents.",
    "gate": "What tools may do: see [let people decide](../how-to/let-people-decide.md).",
    "budgets": "Limits of money, checked before each request ([how-to](../how-to/limit-what-it-costs.md)).",
    "logging": "The log.",
})  # fmt: skip

WORDS: Mapping[str, str] = MappingProxyType({
    "store.url": "Empty for `denizen.db` in the home folder, or `sqlite:///...`, or `postgresql://...`.",
    "server.host": "Address to listen on.",
    "server.port": "Port to listen on; 0 takes a free one.",
    "server.api_keys[].name": "Names the key in logs and usage.",
    "server.api_keys[].key": "The key that clients send as a bearer token.",
    "server.api_keys[].roles": "What the key may do.",
    "server.cors_origins": "Web sites whose scripts may call the API.",
    "models.providers.NAME.kind": "The protocol and service.",
    "models.providers.NAME.api_key": "Needed by services that want one.",
    "models.providers.NAME.base_url": "Another address than the kind's own; needed for `openai-compatible`.",
    "models.providers.NAME.timeout_s": "How long the provider may be silent, in seconds.",
    "models.providers.NAME.headers": "Sent with every request.",
    "models.providers.NAME.model": "Embedded kind: the name of a model in the catalogue.",
    "models.providers.NAME.weights": "Embedded kind: path of a GGUF file of your own.",
    "models.providers.NAME.threads": "Embedded kind: processors to use; 0 takes all.",
    "models.providers.NAME.context_tokens": "Embedded kind: tokens of context for one conversation.",
    "models.aliases.NAME.model": "The model, as `provider/model`.",
    "models.aliases.NAME.fallbacks": "Models to try when it cannot answer, in order.",
    "models.overrides.NAME.native_tools": "Whether it calls tools by itself.",
    "models.overrides.NAME.parallel_calls": "Whether it may ask for several calls at once.",
    "models.overrides.NAME.images": "Whether it reads pictures.",
    "models.overrides.NAME.prefill": "Whether it continues an answer that was begun for it.",
    "models.overrides.NAME.cache_marks": "Whether the prompt carries cache marks.",
    "models.overrides.NAME.json_schema": "Whether its output can be held to a schema.",
    "models.overrides.NAME.small": "Whether it is small: it then plans, and is offered five tools at most.",
    "models.overrides.NAME.sampling": "The sampling parameters it accepts.",
    "models.overrides.NAME.context_tokens": "Tokens of prompt and answer together.",
    "models.overrides.NAME.max_output_tokens": "Tokens of an answer at most.",
    "agents.NAME.description": "One sentence, shown in lists.",
    "agents.NAME.persona": (
        "Files of the persona, in prompt order; unset: `IDENTITY.md`, `SOUL.md`, `RULES.md`, as far as they exist."
    ),
    "agents.NAME.model": (
        "An alias, or `provider/model`; `auto` chooses among `fast`, `balanced` and `quality` for each question."
    ),
    "agents.NAME.tools": "Names or patterns of the tools it may use, in the order of preference.",
    "agents.NAME.context": "Its history: `session` is its own talk with people, `transcript` the whole channel.",
    "agents.NAME.planning": "How it reaches tools: by native calls, by a plan, or as the model needs it.",
    "agents.NAME.limits.max_steps": "Model requests in one turn.",
    "agents.NAME.limits.max_history_tokens": "Tokens of history in a prompt.",
    "agents.NAME.limits.max_history_messages": "Messages of history in a prompt.",
    "agents.NAME.limits.max_output_tokens": "Tokens of one answer.",
    "agents.NAME.limits.max_tools": "Tools offered to the model.",
    "agents.NAME.limits.turn_timeout_s": "Seconds until a turn is given up.",
    "agents.NAME.limits.nudges": "How often a model that talks instead of using its tools is reminded.",
    "agents.NAME.limits.nudge_text": "The words of the last reminder.",
    "agents.NAME.sampling.temperature": "Unset: the provider decides.",
    "agents.NAME.sampling.top_p": "Unset: the provider decides.",
    "agents.NAME.sampling.seed": "Unset: the provider decides.",
    "agents.NAME.style.response": "How it writes.",
    "agents.NAME.style.language": "Code of the language that it writes in.",
    "agents.NAME.style.citations": "How it names sources.",
    "agents.NAME.style.extra_instructions": "Added to its instructions.",
    "agents.NAME.style.search_instructions": "Added to the rules for using tools.",
    "default_agent": "Name of an agent; unset: `denizen`, or the only one.",
    "channels.terminal.enabled": "`denizen chat` and `denizen ask`.",
    "channels.web.enabled": "The page.",
    "channels.api.enabled": "The OpenAI-compatible API.",
    "channels.mcp.enabled": "The MCP server at `/mcp`.",
    "tools.NAME.enabled": "Whether the skill is loaded.",
    "gate.tiers": "Tier (0 to 3) by pattern of tool names, in place of what the tool declares.",
    "gate.rules[].tool": "Pattern of tool names.",
    "gate.rules[].action": "What the rule decides.",
    "gate.rules[].args": "Regular expressions by argument name; all have to be found.",
    "gate.rules[].reason": "Told to the model and to the person.",
    "gate.rate_limits.per_user_per_hour": "Messages of one person on platforms and the web; 0: no limit.",
    "gate.rate_limits.tool.NAME.calls": "Calls of the tools that match the pattern `NAME`.",
    "gate.rate_limits.tool.NAME.per_s": "Seconds in which they count.",
    "budgets.currency": "Of the budgets.",
    "logging.level": "From which severity on.",
    "logging.format": "For people, or one JSON object a line.",
    "logging.file": "Relative to the home folder; empty: standard error.",
})  # fmt: skip
