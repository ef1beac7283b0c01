"""Checks of the configuration against the tools that exist: the tools that agents list, names that are taken, options
of skills, and the patterns of the gate.

`generation` refuses a configuration with problems before anything runs, `denizen config check` tells them from the
files alone. A name in the gate that no tool has is most likely misspelt, and then it protects nothing: it is refused
too, and a pattern is logged, and shown by `denizen doctor`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from denizen.app.settings import Settings
from denizen.app.settings.problem import ConfigProblem, KeyPath, format_path, suggest
from denizen.app.settings.workflows import load_workflow_document
from denizen.app.skill_loading.check import list_tool_names
from denizen.app.skill_loading.markdown import READ_SKILL
from denizen.app.skill_loading.registry import SkillStatus, misses_some, survey_skills
from denizen.app.toolsets import SEARCH_FIX, explain_idle, list_built_in_names, read_servers
from denizen.builtin_skills import BUILTIN, load_builtin
from denizen.domain.agent import Agent, AnswersFrom
from denizen.domain.delegation import TOOL_NAMES as DELEGATION_TOOLS
from denizen.domain.errors import InvalidInput
from denizen.domain.handover import HAND_OVER
from denizen.domain.hook import Hooks
from denizen.domain.record import record
from denizen.domain.workflow_nodes import NodeEffect
from denizen.engine.agents.tools import TOOL_NAMES as AGENT_TOOLS
from denizen.engine.prompt.system_prompt import TOOLS as SOURCE_TOOLS
from denizen.engine.tools.toolbox import FIND_TOOLS, list_all
from denizen.engine.workflows.tools import list_own_specs, plan_call
from denizen.ports.toolset import Toolset

GATE_LOG = "denizen.app.gate"
"""The logger of remarks about the gate; `denizen doctor` shows them itself."""
FIX = "Correct the name; `denizen tools` lists them."

_WILD = re.compile(r"[*?\[]")
_log = logging.getLogger("denizen.app")


@record
class KnownTools:
    """The names of the tools that exist. Those in `listed_only` are had only by an agent that names them in full.
    `may_miss`: a skill of the owner is left out, and may be the one that has a missing tool.
    """

    names: frozenset[str]
    listed_only: frozenset[str]
    may_miss: bool

    def matches(self, pattern: str) -> bool:
        """Returns whether the pattern gives an agent a tool."""
        return pattern in self.names or _matches(pattern, self.names - self.listed_only)

    def gives(self, agent: Agent, name: str) -> bool:
        """Returns whether the agent may use this tool, and it exists."""
        patterns = agent.tool_access.tools
        is_matched = name in patterns or (name not in self.listed_only and any(fnmatchcase(name, p) for p in patterns))
        return name in self.names and is_matched


@record
class ToolFindings:
    """Faults in the tools of agents: with `problems` the configuration is refused, `notices` are told."""

    problems: tuple[ConfigProblem, ...] = ()
    notices: tuple[ConfigProblem, ...] = ()


async def read_known_tools(toolsets: Iterable[Toolset], *, may_miss: bool) -> KnownTools:
    """Returns the tools of these toolsets."""
    tools = await list_all(toolsets)
    listed_only = frozenset(name for name, tool in tools.items() if tool.spec.listed_only)
    return KnownTools(frozenset(tools), listed_only, may_miss)


def survey_tools(settings: Settings) -> KnownTools:
    """Returns the tools that there will be, without running anything of the owner's: the names in their skills are read
    from the text.
    """
    specs = [spec for name in BUILTIN if not explain_idle(name, settings) for spec in load_builtin(name).specs()]
    names = {*(spec.name for spec in specs), *(tool.name for tool in settings.custom_tools)}
    if any(agent.tool_access.delegates_to for agent in settings.agents.values()):
        names |= {*DELEGATION_TOOLS, HAND_OVER}
    access = [agent.tool_access for agent in settings.agents.values()]
    if any(name in AGENT_TOOLS for each in access for name in (*each.tools, *each.pinned_tools)):
        names |= set(AGENT_TOOLS)
    entries = survey_skills(settings.home, settings.skills)
    may_miss = misses_some(entries, settings.skills)
    for entry in entries:
        if entry.state is not SkillStatus.ENABLED or entry.folder is None or entry.manifest is None:
            continue
        own = [READ_SKILL] if entry.folder.is_markdown else list_tool_names(entry.folder, entry.manifest)
        names |= set(own)
        may_miss = may_miss or not own
    return KnownTools(frozenset(names), frozenset(spec.name for spec in specs if spec.listed_only), may_miss)


def find_skill_problems(settings: Settings) -> list[ConfigProblem]:
    """Returns options that their skill refuses or lacks, and custom tools with the name of a built-in one."""
    problems: list[ConfigProblem] = []
    for name, section in settings.tools.items():
        if name not in BUILTIN or section.enabled is False:  # the options of skills that are off do not matter
            continue
        try:
            load_builtin(name).read_settings(section.options)
        except InvalidInput as error:
            key = str(error.context.get("key", ""))
            path = ("tools", name, key) if key else ("tools", name)
            problems.append(settings.document.problem(path, f"{error.message}.", error.fix))
    search = settings.tools.get("web_search")
    if search is not None and search.enabled and not search.options.get("provider"):
        path = ("tools", "web_search", "enabled")
        problems.append(settings.document.problem(path, "a search needs a provider.", SEARCH_FIX))
    taken = list_built_in_names() if settings.custom_tools else {}
    for tool in settings.custom_tools:
        if tool.name in taken:
            message = f"this is the name of a tool of {taken[tool.name]}."
            problems.append(settings.document.problem(("custom_tools", tool.name), message, "Give yours another name."))
    return problems


def check_agent_tools(settings: Settings, known: KnownTools) -> ToolFindings:
    """Returns the tools and patterns of agents that give them nothing, and the tools of hooks and listeners that are
    not there. Refused is what no tool has; told is a pattern that fits tools which are off, and everything while a
    skill of the owner is left out.

    Names that a configured MCP server may have are passed over: its tools are not known before it has answered.
    """
    prefixes = [f"{offer.prefix}_" if offer.prefix else "" for offer in read_servers(settings).values()]
    problems: list[ConfigProblem] = []
    notices: list[ConfigProblem] = []
    for agent in settings.agents.values():
        lists = {"tools": agent.tool_access.tools, "pinned_tools": agent.tool_access.pinned_tools}
        for path, pattern in [
            ((*_find_key(settings, agent.name, key), index), pattern)
            for key, patterns in lists.items()
            for index, pattern in enumerate(patterns)
        ]:
            if known.matches(pattern) or any(_may_match(pattern, prefix) for prefix in prefixes):
                continue
            idle = _find_idle(settings, pattern)
            message, fix = idle or _explain_unknown(pattern, known)
            is_notice = known.may_miss or (idle is not None and _WILD.search(pattern))
            (notices if is_notice else problems).append(settings.document.problem(path, message, fix))
    for path, name in (*_list_hook_tools(settings), *_list_listener_tools(settings)):
        if name in known.names or any(_may_match(name, prefix) for prefix in prefixes):
            continue
        message, fix = _find_idle(settings, name) or (
            f"there is no tool '{name}'.",
            suggest(name, known.names, noun="tools"),
        )
        (notices if known.may_miss else problems).append(settings.document.problem(path, message, fix))
    return ToolFindings(tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(notices)))


def find_missing_workflow_tools(settings: Settings, known: KnownTools) -> list[ConfigProblem]:
    """Returns the nodes of workflows that are on whose agent has not the tool that they stand for. These are warned of:
    only their runs fail, and the tool may come. Names that a configured MCP server may have are passed over.
    """
    prefixes = [f"{offer.prefix}_" if offer.prefix else "" for offer in read_servers(settings).values()]
    found: list[ConfigProblem] = []
    for name, workflow in settings.workflows.items():
        agent = settings.agents[workflow.agent or settings.default_agent]
        acting = [each for each in workflow.nodes.values() if each.kind.effect is NodeEffect.ACTS]
        tools = {each.id: plan_call(each, each.settings, {}).tool for each in acting if workflow.enabled}
        missing = {
            node: tool
            for node, tool in tools.items()
            if tool not in list_own_specs()
            and not known.gives(agent, tool)
            and not any(_may_match(tool, prefix) for prefix in prefixes)
        }
        document = load_workflow_document(settings.home, name) if missing else settings.document
        for node, tool in missing.items():
            path: KeyPath = (
                ("nodes", node, "tool") if document.has(("nodes", node, "tool")) else ("nodes", node, "type")
            )
            why, fix = _find_idle(settings, tool) or (
                f"the agent '{agent.name}' has no tool '{tool}'.",
                f"Name it under agents.{agent.name}.tools. {suggest(tool, known.names, noun='tools')}",
            )
            found.append(document.problem(path, why, fix))
    return found


def _list_hook_tools(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Yields the tool of each hook of agents and schedules, with where it is written."""
    owners: list[tuple[KeyPath, Hooks]] = [(("agents", name), each.hooks) for name, each in settings.agents.items()]
    owners += [(("schedules", name), each.conduct.hooks) for name, each in settings.schedules.items()]
    owners += [(("task_watcher",), settings.task_watcher.hooks)] if settings.task_watcher is not None else []
    for owner, found in owners:
        for side, hooks in (("before_run", found.before), ("after_run", found.after)):
            own, common = (*owner, "hooks", side), ("agent_defaults", "hooks", side)
            is_common = owner[0] == "agents" and settings.document.has(common) and not settings.document.has(own)
            path = common if is_common else own
            for index, hook in enumerate(hooks):
                at: KeyPath = (*path, index, "tool")
                yield at if settings.document.has(at) else (*path, "tool"), hook.tool


def _list_listener_tools(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Yields the tool of each listener and schedule that calls one, with where it is written."""
    for name, section in settings.config.listeners.items():
        if section.enabled and section.tool:
            yield ("listeners", name, "tool"), section.tool
    for name, schedule in settings.config.schedules.items():
        if schedule.tool:
            yield ("schedules", name, "tool"), schedule.tool


def _find_key(settings: Settings, agent: str, key: str) -> KeyPath:
    """Returns where a key of an agent is written: at the agent, or for all of them."""
    own, common = ("agents", agent, key), ("agent_defaults", key)
    return common if settings.document.has(common) and not settings.document.has(own) else own


def _find_idle(settings: Settings, pattern: str) -> tuple[str, str] | None:
    """Returns which built-in skill has the tool and is off, and how to switch it on; None when there is none."""
    for skill in BUILTIN:
        fix = explain_idle(skill, settings)
        names = [tool.name for tool in load_builtin(skill).tools] if fix else []
        if _matches(pattern, names):
            return f"'{pattern}' belongs to the skill {skill}, which is off.", fix
    return None


def _explain_unknown(pattern: str, known: KnownTools) -> tuple[str, str]:
    if in_full := sorted(name for name in known.listed_only if fnmatchcase(name, pattern)):
        return f"'{pattern}' gives no tool: these have to be named in full.", f"Write {', '.join(in_full)}."
    if _WILD.search(pattern):
        return f"no tool can match '{pattern}'.", FIX
    return f"there is no tool '{pattern}'.", suggest(pattern, known.names, noun="tools")


def find_gate_problems(settings: Settings, known: KnownTools) -> list[ConfigProblem]:
    """Returns the names in the gate that no tool has; none while a skill of the owner is left out."""
    names = [each for each in find_unmatched(settings, known.names) if not _WILD.search(each.pattern)]
    if known.may_miss:
        return []
    return [settings.document.problem(each.path, *_explain_unknown(each.pattern, known)) for each in names]


def find_source_problems(settings: Settings, known: KnownTools) -> list[ConfigProblem]:
    """Returns the agents that may answer from sources only and have no tool that reads them. These are warned of: the
    documents may come later.
    """
    fix = "Add knowledge files or sources, and let the agent use search_docs or bash."
    return [
        settings.document.problem(
            _find_key(settings, agent.name, "answers_from"), f"'{agent.name}' has no tool that reads sources.", fix
        )
        for agent in settings.agents.values()
        if agent.instructions.answers_from is AnswersFrom.SOURCES
        and not any(known.gives(agent, name) for name in SOURCE_TOOLS)
    ]


async def check_gate_patterns(settings: Settings, toolsets: Iterable[Toolset]) -> None:
    """Logs the patterns of the gate that fit no tool."""
    log = logging.getLogger(GATE_LOG)
    for each in find_unmatched(settings, await list_all(toolsets)):
        log.warning("no tool matches", extra={"key": format_path(each.path), "pattern": each.pattern, "fix": FIX})


@record
class UnmatchedPattern:
    """A pattern of the gate that fits no tool."""

    path: KeyPath
    pattern: str


def find_unmatched(settings: Settings, names: Collection[str]) -> list[UnmatchedPattern]:
    """Returns the patterns of the gate that fit no tool; `names` are the tools that exist.

    Built-in tools that are off count as known, since a rule may be written before its tool is switched on. So does
    whatever could be a tool of a configured MCP server, since nobody waits for its answer here.
    """
    prefixes = [f"{offer.prefix}_" if offer.prefix else "" for offer in read_servers(settings).values()]
    known = {*names, FIND_TOOLS, READ_SKILL, *list_own_specs(), *(each.tool for each in settings.commands)}
    left = [
        each
        for each in _patterns(settings)
        if not _matches(each.pattern, known) and not any(_may_match(each.pattern, prefix) for prefix in prefixes)
    ]
    if not left:
        return []
    built_in = [tool.name for name in BUILTIN for tool in load_builtin(name).tools]
    return [each for each in left if not _matches(each.pattern, built_in)]


def _patterns(settings: Settings) -> Iterator[UnmatchedPattern]:
    gate = settings.gate
    for number, rule in enumerate(gate.rules):
        yield UnmatchedPattern(("gate", "rules", number, "tool"), rule.tool)
    tables: dict[KeyPath, Iterable[str]] = {
        ("tiers",): gate.tiers,
        ("modes",): gate.modes,
        ("roles",): gate.roles,
        ("rate_limits", "tool"): gate.rate_limits.tool,
    }
    for path, table in tables.items():
        for pattern in table:
            yield UnmatchedPattern(("gate", *path, pattern), pattern)


def _matches(pattern: str, names: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _may_match(pattern: str, prefix: str) -> bool:
    """Returns whether a name with this prefix could fit the pattern."""
    head = _WILD.split(pattern, maxsplit=1)[0]
    return head.startswith(prefix) or (head != pattern and prefix.startswith(head))
