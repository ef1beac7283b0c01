"""The workflows of a home folder: `workflows/NAME.yaml`, each a file of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from denizen.adapters.cron import find_cron_fault
from denizen.app.settings.events import list_event_fields
from denizen.app.settings.problem import ConfigProblem, suggest
from denizen.app.settings.yaml_document import ConfigDocument, parse_document
from denizen.domain.cloud_event import ATTRIBUTES, COMMUNITY_FIELDS, REACTION, has_field
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record
from denizen.domain.workflow import Workflow, WorkflowNode
from denizen.domain.workflow_checks import NAME, find_nesting_problems, read_workflow
from denizen.domain.workflow_compute import list_items
from denizen.engine.hooks.skip_rule import check_pattern

WORKFLOWS_FOLDER = "workflows"
SUFFIX = ".yaml"
MAX_BYTES = 256_000
MAX_FILES = 500


@record(kw_only=True)
class WorkflowSurroundings:
    """The names in the configuration that workflows may use."""

    agents: Collection[str]
    routes: Collection[str]


@record
class WorkflowFiles:
    """The workflows that can be used, and everything that is wrong with others."""

    workflows: Mapping[str, Workflow]
    problems: tuple[ConfigProblem, ...]


def load_workflows(
    home: Path, known: WorkflowSurroundings, texts: Mapping[str, str | None] | None = None
) -> WorkflowFiles:
    """Reads all workflows of a home folder. `texts` has, by name, what is to be read in place of a file; None stands
    for one that is not there.
    """
    documents: dict[str, ConfigDocument] = {}
    workflows: dict[str, Workflow] = {}
    problems: list[ConfigProblem] = []
    for file, text in _list_files(home, texts or {}):
        read = text if isinstance(text, ConfigProblem) else _read_document(text, file)
        if isinstance(read, ConfigProblem):
            problems.append(read)
            continue
        found = read_workflow(file.stem, read.tree)
        problems += (read.problem(each.path, each.message, each.fix) for each in found.problems)
        if found.workflow is not None:
            documents[file.stem], workflows[file.stem] = read, found.workflow
            problems += _find_unknown(read, found.workflow, known)
    for name, each in find_nesting_problems(workflows):
        problems.append(documents[name].problem(each.path, each.message, each.fix))
    return WorkflowFiles(workflows, tuple(problems))


def workflow_file(home: Path, name: str) -> Path:
    """Returns the file of a workflow. Raises InvalidInput for what cannot be a name, so that none leads elsewhere."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name[:64]}' cannot be the name of a workflow.",
            code="workflow_name",
            fix="Use lower-case letters, digits, and _ - after the first character; 64 at most.",
        )
    return home / WORKFLOWS_FOLDER / f"{name}{SUFFIX}"


def list_workflow_files(home: Path) -> list[Path]:
    folder = home / WORKFLOWS_FOLDER
    return sorted(each for each in folder.iterdir() if each.suffix in (SUFFIX, ".yml")) if folder.is_dir() else []


def _list_files(home: Path, texts: Mapping[str, str | None]) -> Iterator[tuple[Path, str | ConfigProblem]]:
    files = {each.stem: each for each in list_workflow_files(home)[:MAX_FILES]}
    for name in sorted({*files, *texts}):
        file = files.get(name) or home / WORKFLOWS_FOLDER / f"{name}{SUFFIX}"
        text = texts[name] if name in texts else _read_text(file)
        if text is not None:
            yield file, text


def _read_text(file: Path) -> str | ConfigProblem:
    if file.suffix != SUFFIX:
        return _file_problem(file, "this name is not read.", f"Rename it to {file.stem}{SUFFIX}.")
    try:
        if file.stat().st_size > MAX_BYTES:
            return _file_problem(file, f"this file has more than {MAX_BYTES} bytes.", "Cut it into several workflows.")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return _file_problem(file, "cannot be read.", "Make it a UTF-8 text file that Denizen's user may read.")


def _read_document(text: str, file: Path) -> ConfigDocument | ConfigProblem:
    if len(text) > MAX_BYTES:
        return _file_problem(file, f"this text has more than {MAX_BYTES} characters.", "Cut it into several workflows.")
    return parse_document(text, file)


def _file_problem(file: Path, message: str, fix: str) -> ConfigProblem:
    return ConfigProblem(file=file, line=0, column=0, path=(), message=message, fix=fix)


def _find_pattern_fault(pattern: str) -> str:
    if not pattern:
        return ""
    try:
        check_pattern(pattern)
    except ValueError as error:
        return str(error)
    return ""


def _find_missing_fields(document: ConfigDocument, node: WorkflowNode) -> Iterator[ConfigProblem]:
    """Yields a problem for each condition of a trigger on a field that its events never have."""
    conditions, fields = node.settings.get("filter"), _list_fields(node)
    for path in conditions if isinstance(conditions, Mapping) else ():
        if (fields is not None or path.startswith("@")) and not has_field(fields or (), path):
            fix = suggest(path, [*(fields or ()), *(f"@{each}" for each in ATTRIBUTES)], noun="fields")
            yield document.problem(("nodes", node.id, "filter", path), f"these events have no field '{path}'.", fix)


def _list_fields(trigger: WorkflowNode) -> frozenset[str] | None:
    """Returns the fields of the events of a trigger; None where they are open."""
    if trigger.type == "on_reaction":
        return COMMUNITY_FIELDS[REACTION]
    return list_event_fields(list(map(str, list_items(trigger.settings["on"])))) if trigger.type == "on_event" else None


def _find_unknown(document: ConfigDocument, workflow: Workflow, known: WorkflowSurroundings) -> Iterator[ConfigProblem]:
    """Yields a problem for each name that the configuration does not have, and each time that never comes."""
    if workflow.agent and workflow.agent not in known.agents:
        fix = suggest(workflow.agent, known.agents, noun="agents")
        yield document.problem(("agent",), f"there is no agent '{workflow.agent}'.", fix)
    for node in workflow.nodes.values():
        path = ("nodes", node.id)
        yield from _find_missing_fields(document, node)
        if node.type == "on_schedule" and (fault := find_cron_fault(str(node.settings["cron"]))):
            message = f"this is no cron expression that comes true some day: '{fault.part}' {fault.message}."
            yield document.problem((*path, "cron"), message, fault.fix)
        if wrong := _find_pattern_fault(str(node.settings.get("pattern") or "")):
            fix = "Write a regular expression, such as `order (\\d+)`, in single quotes."
            yield document.problem((*path, "pattern"), f"this is no regular expression: {wrong}.", fix)
        if node.type == "on_webhook" and (route := str(node.settings["route"])) not in known.routes:
            fix = f"{suggest(route, known.routes, noun='routes')} They stand under webhooks.routes in denizen.yaml."
            yield document.problem((*path, "route"), f"there is no route '{route}'.", fix)
        if node.type == "ask_agent" and (agent := str(node.settings["agent"])) not in known.agents:
            yield document.problem(
                (*path, "agent"), f"there is no agent '{agent}'.", suggest(agent, known.agents, noun="agents")
            )
