"""The workflows of a home folder: `workflows/NAME.yaml`, each a file of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from denizen.adapters.cron import find_cron_fault
from denizen.app.settings.events import list_event_fields
from denizen.app.settings.fields import as_variable
from denizen.app.settings.problem import ConfigProblem, KeyPath, config_error, suggest
from denizen.app.settings.yaml_document import ConfigDocument, parse_document
from denizen.domain.cloud_event import ATTRIBUTES, COMMUNITY_FIELDS, REACTION, has_field, list_places
from denizen.domain.errors import InvalidInput
from denizen.domain.record import record
from denizen.domain.workflow import Workflow, WorkflowNode
from denizen.domain.workflow_checks import NAME, find_nesting_problems, read_workflow
from denizen.domain.workflow_compute import list_items
from denizen.domain.workflow_values import list_texts
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
    """The workflows that can be used, with the files that they were read from, and by name everything that is wrong
    with others.
    """

    workflows: Mapping[str, Workflow]
    documents: Mapping[str, ConfigDocument]
    broken: Mapping[str, tuple[ConfigProblem, ...]]


def load_workflows(
    home: Path, known: WorkflowSurroundings, texts: Mapping[str, str | None] | None = None
) -> WorkflowFiles:
    """Reads all workflows of a home folder. `texts` has, by name, what is to be read in place of a file; None stands
    for one that is not there.
    """
    documents: dict[str, ConfigDocument] = {}
    workflows: dict[str, Workflow] = {}
    broken: dict[str, tuple[ConfigProblem, ...]] = {}
    for file, text in _list_files(home, texts or {}):
        read = text if isinstance(text, ConfigProblem) else _read_document(text, file)
        if isinstance(read, ConfigProblem):
            broken[file.stem] = (read,)
            continue
        found = read_workflow(file.stem, read.tree)
        problems = [read.problem(each.path, each.message, each.fix) for each in found.problems]
        problems += _find_unknown(read, found.workflow, known) if found.workflow else ()
        if problems:
            broken[file.stem] = tuple(problems)
        elif found.workflow is not None:
            documents[file.stem], workflows[file.stem] = read, found.workflow
    # Each round leaves out those that run one within them that was left out before.
    while nested := list(find_nesting_problems(workflows, broken)):
        for name, each in nested:
            broken[name] = (*broken.get(name, ()), documents[name].problem(each.path, each.message, each.fix))
            workflows.pop(name, None)
    return WorkflowFiles(workflows, {name: documents[name] for name in workflows}, broken)


def workflow_file(home: Path, name: str) -> Path:
    """Returns the file of a workflow. Raises InvalidInput for what cannot be a name, so that none leads elsewhere."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name[:64]}' cannot be the name of a workflow.",
            code="workflow_name",
            fix="Use lower-case letters, digits, and _ - after the first character; 64 at most.",
        )
    return home / WORKFLOWS_FOLDER / f"{name}{SUFFIX}"


def load_workflow_document(home: Path, name: str) -> ConfigDocument:
    """Returns the file of a workflow. Raises InvalidInput for one that cannot be read any more."""
    file = workflow_file(home, name)
    text = _read_text(file)
    read = text if isinstance(text, ConfigProblem) else _read_document(text, file)
    if isinstance(read, ConfigProblem):
        raise config_error([read])
    return read


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


def _find_missing_fields(document: ConfigDocument, workflow: Workflow) -> Iterator[ConfigProblem]:
    """Yields a problem for each field, in a condition of a trigger or a place, that the events never have."""
    triggers = [each for each in workflow.triggers if each.type in ("on_event", "on_webhook", "on_reaction")]
    fields = {each.id: _list_fields(each) for each in triggers}
    for node in triggers:
        conditions = node.settings.get("filter")
        for path in conditions if isinstance(conditions, Mapping) else ():
            if not _has_field(fields[node.id], path):
                yield _missing_field(document, ("nodes", node.id, "filter", path), path, fields[node.id])
    known = [each for each in fields.values() if each is not None]
    fields_of_any = frozenset[str]().union(*known) if triggers and len(known) == len(triggers) else None
    for node in workflow.nodes.values():
        for at, text in list_texts(dict(node.settings)):
            key: KeyPath = ("nodes", node.id, *at)
            for place in list_places(text) if document.has(key) else ():
                first, _, path = place.partition(".")
                is_own = path in ("@key", "@depth")
                if first == "event" and path and not is_own and not _has_field(fields_of_any, path):
                    yield _missing_field(document, key, path, fields_of_any)


def _has_field(fields: frozenset[str] | None, path: str) -> bool:
    return has_field(fields or (), path) or (fields is None and not path.startswith("@"))


def _missing_field(document: ConfigDocument, at: KeyPath, path: str, fields: frozenset[str] | None) -> ConfigProblem:
    fix = suggest(path, [*(fields or ()), *(f"@{each}" for each in ATTRIBUTES)], noun="fields")
    return document.problem(at, f"these events have no field '{path}'.", fix)


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
    yield from _find_missing_fields(document, workflow)
    for node in workflow.nodes.values():
        path = ("nodes", node.id)
        if node.type == "on_schedule" and (fault := find_cron_fault(str(node.settings["cron"]))):
            message = f"this is no cron expression that comes true some day: '{fault.part}' {fault.message}."
            yield document.problem((*path, "cron"), message, fault.fix)
        if wrong := _find_pattern_fault(str(node.settings.get("pattern") or "")):
            fix = "Write a regular expression, such as `order (\\d+)`, in single quotes."
            yield document.problem((*path, "pattern"), f"this is no regular expression: {wrong}.", fix)
        if node.type == "on_webhook" and (route := str(node.settings["route"])) not in known.routes:
            secret = f"${{{as_variable(f'{route}_webhook_secret')}}}"
            written = f'{{{route}: {{scheme: standard, secret: "{secret}", action: log}}}}'
            fix = (
                f"{suggest(route, known.routes, noun='routes')} Write `webhooks: {{enabled: true, routes: {written}}}` "
                "into denizen.yaml, with the scheme of its sender, and the secret into secrets.env."
            )
            yield document.problem((*path, "route"), f"there is no route '{route}'.", fix)
        if node.type == "ask_agent" and (agent := str(node.settings["agent"])) not in known.agents:
            fix = f"{suggest(agent, known.agents, noun='agents')} `denizen agents create {agent}` makes it."
            yield document.problem((*path, "agent"), f"there is no agent '{agent}'.", fix)
