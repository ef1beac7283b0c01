"""The workflows of the open home folder, written to its files (`ports.workflow_configuration`), and the examples that
ship with Denizen.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from denizen.app.configuration import HomeConfiguration
from denizen.app.home.files import edit_lock, write_whole
from denizen.app.home.secrets import load_secrets
from denizen.app.settings import ConfigProblem
from denizen.app.settings.edit import splice_value
from denizen.app.settings.load import examine, read_config
from denizen.app.settings.problem import config_error
from denizen.app.settings.workflows import workflow_file
from denizen.app.settings.yaml_document import parse_document
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import Conflict, NotFound
from denizen.domain.principal import Principal
from denizen.domain.workflow import get_workflow
from denizen.engine.configuration.generation import Runtime
from denizen.ports.configuration import ConfigurationChange, ConfigurationFault
from denizen.ports.workflow_configuration import WorkflowExample, WorkflowText

EXAMPLES = Path(__file__).parent / "example_workflows"
_DESCRIPTION = re.compile(r"^description: (.+)$", re.MULTILINE)


class HomeWorkflows:
    """Implements `denizen.ports.workflow_configuration.WorkflowConfiguration`."""

    def __init__(self, home: Path, runtime: Runtime, configuration: HomeConfiguration) -> None:
        self._home = home
        self._runtime = runtime
        self._configuration = configuration

    async def read(self, name: str) -> WorkflowText:
        self._check_known(name)
        text = await to_thread.run_sync(partial(_read, workflow_file(self._home, name)))
        return WorkflowText(text, digest_text(text))

    async def find_faults(self, name: str, text: str) -> Sequence[ConfigurationFault]:
        return await self._configuration.find_workflow_faults(workflow_file(self._home, name), text)

    async def add(self, by: Principal, name: str, text: str) -> ConfigurationChange:
        def begin(old: str | None) -> str:
            if old is not None:
                raise workflow_exists(name)
            return _end_line(text)

        return await self._edit(by, name, begin)

    async def put(self, by: Principal, name: str, text: str, *, expected: str = "") -> ConfigurationChange:
        def replace(old: str | None) -> str:
            if expected and expected != digest_text(old or ""):
                raise Conflict(
                    "The workflow was changed meanwhile.",
                    code="workflow_changed",
                    fix="Load it again, and make your change there.",
                )
            return _end_line(text)

        self._check_known(name)
        return await self._edit(by, name, replace)

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> ConfigurationChange:
        self._check_known(name)
        return await self._edit(by, name, partial(switch_text, file=workflow_file(self._home, name), is_on=is_on))

    async def remove(self, by: Principal, name: str) -> ConfigurationChange:
        self._check_known(name)
        return await self._edit(by, name, lambda _: None)

    def list_examples(self) -> Sequence[WorkflowExample]:
        return list_examples()

    def _check_known(self, name: str) -> None:
        """Raises NotFound. A broken workflow is there, too."""
        current = self._runtime.current
        if name not in current.broken_workflows:
            get_workflow(current.workflows, name)

    async def _edit(self, by: Principal, name: str, edit: Callable[[str | None], str | None]) -> ConfigurationChange:
        return await self._configuration.edit_workflow(by, workflow_file(self._home, name), edit)


def list_examples() -> Sequence[WorkflowExample]:
    """Returns the workflows that ship with Denizen, by name."""
    found: list[WorkflowExample] = []
    for file in sorted(EXAMPLES.glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        described = _DESCRIPTION.search(text)
        found.append(WorkflowExample(file.stem, described[1] if described else "", text))
    return found


def find_example(name: str) -> WorkflowExample:
    """Raises NotFound, naming them all."""
    examples = {each.name: each for each in list_examples()}
    if name not in examples:
        raise NotFound(
            f"There is no example '{name[:64]}'.", code="example_unknown", fix=f"There are: {', '.join(examples)}."
        )
    return examples[name]


def add_workflow_file(home: Path, environment: Mapping[str, str], name: str, text: str) -> Path:
    """Writes a new workflow into a home folder that no server has to run for. Raises as `HomeWorkflows.add`."""
    file = workflow_file(home, name)
    with edit_lock(home):
        if file.exists():
            raise workflow_exists(name)
        secrets = load_secrets(home, environment)
        found = examine(home, read_config(home), secrets, BUILTIN, needs_models=False, workflow_texts={name: text})
        own = found.settings.broken_workflows.get(name, ()) if found.settings else ()
        if problems := (*found.problems, *own):
            raise config_error(problems)
        write_whole(file, _end_line(text))
    return file


def switch_text(text: str | None, *, file: Path, is_on: bool) -> str:
    """Returns the text of a workflow with its switch set; comments stay."""
    document = parse_document(text or "", file)
    if isinstance(document, ConfigProblem):
        raise config_error([document])
    return splice_value(text or "", document, ("enabled",), is_on)


def workflow_exists(name: str) -> Conflict:
    """For a name that is taken."""
    return Conflict(
        f"There is a workflow '{name}' already.", code="workflow_exists", fix="Choose another name, or change that one."
    )


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig")


def _end_line(text: str) -> str:
    shown = text.replace("\r\n", "\n")
    return shown if shown.endswith("\n") else f"{shown}\n"
