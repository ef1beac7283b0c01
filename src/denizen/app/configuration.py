"""Changes of the configuration over the web (`denizen.ports.configuration`).

A change is checked, written, and loaded at once. Where it cannot be loaded, the old text is written back, so that a
restart finds what is in force. Accepted texts are kept in the home folder, to be brought back; they hold no secrets,
since the configuration has references to those only.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import cast

import anyio
from anyio import to_thread

from denizen.app.build import Denizen
from denizen.app.home.environment import read_environment
from denizen.app.home.files import SECRET_MODE, edit_lock, restore_on_failure, write_whole
from denizen.app.home.secrets import SECRETS_FILE, load_secrets, put_secret
from denizen.app.reload import Reloader
from denizen.app.settings import (
    CONFIG_FILE,
    ConfigProblem,
    Settings,
    SetupAnswers,
    parse_path,
    plan_setup_files,
    render_settings,
)
from denizen.app.settings.edit import no_such, parse_config, read_block, splice_block, splice_out, splice_value
from denizen.app.settings.key_schema import config_schema, find_schema, resolve
from denizen.app.settings.load import ConfigResult, examine, read_config
from denizen.app.settings.persona import AGENTS_FOLDER
from denizen.app.settings.problem import KeyPath, config_error, format_path
from denizen.app.settings.yaml_document import find_value, parse_values
from denizen.builtin_skills import BUILTIN
from denizen.domain.audit import AuditEvent, AuditKind, digest_text
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, NotFound
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal
from denizen.domain.proposal import diff_lines
from denizen.domain.record import record
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.ports.configuration import (
    ChangePlanned,
    ConfigurationChange,
    ConfigurationEdit,
    ConfigurationFault,
    ConfigurationKey,
    ConfigurationPart,
    ConfigurationText,
    KeptGeneration,
    NewAgent,
    PersonaText,
    PlannedChange,
    is_planning_changes,
)

HISTORY_FOLDER = "config-history"
KEPT_TEXTS = 30
NO_SECRETS: Mapping[str, str] = MappingProxyType({})
_PERSONA_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}\.md")

_log = logging.getLogger("denizen.app")


@record
class _FileText:
    """A file as it is to be; None for one that is not to be there. `mode` None keeps the file's."""

    file: Path
    text: str | None = field(repr=False)
    mode: int | None = None

    @property
    def is_secret(self) -> bool:
        return self.mode == SECRET_MODE

    def read_old(self) -> str | None:
        """Returns the text that is there now; None where there is no file."""
        return self.file.read_text(encoding="utf-8-sig") if self.file.exists() else None


class HomeConfiguration:
    """The configuration of the open home folder. `reloader` loads what was written."""

    def __init__(self, denizen: Denizen, reloader: Reloader) -> None:
        self._denizen = denizen
        self._home = denizen.home
        self._reloader = reloader
        self._lock = anyio.Lock()

    async def read(self) -> ConfigurationText:
        text = await to_thread.run_sync(read_config, self._home)
        shown = self._denizen.mask(text)
        return ConfigurationText(shown, _digest(text), is_masked=shown != text)

    async def find_faults(self, text: str) -> Sequence[ConfigurationFault]:
        return list(map(_fault, (await to_thread.run_sync(partial(_examine, self._home, text))).problems))

    async def replace(self, by: Principal, text: str, *, expected: str = "") -> ConfigurationChange:
        return await self._change(by, lambda _: text if text.endswith("\n") or not text else f"{text}\n", expected)

    async def find_value(self, path: str) -> Json:
        where = parse_path(path)
        document = parse_config(await to_thread.run_sync(read_config, self._home), self._home)
        if not document.has(where):
            raise no_such(where)
        return _mask_texts(find_value(document.tree, where), self._denizen.mask)

    async def put_value(self, by: Principal, path: str, value: Json, *, expected: str = "") -> ConfigurationChange:
        values = {parse_path(path): value}
        return await self._change(by, partial(_edit_all, home=self._home, values=values), expected)

    async def put_values(
        self,
        by: Principal,
        values: Mapping[KeyPath, Json],
        *,
        secrets: Mapping[str, str] = NO_SECRETS,
        expected: str = "",
    ) -> ConfigurationChange:
        """Sets several values in one step, or removes them with None, and writes `secrets` into `secrets.env` with
        them. Raises as `put_value`, and Conflict for a secret that the environment sets to something else.
        """
        return await self._change(by, partial(_edit_all, home=self._home, values=values), expected, secrets)

    async def plan_values(
        self, values: Mapping[KeyPath, Json], *, secrets: Mapping[str, str] = NO_SECRETS
    ) -> PlannedChange:
        """Returns what `put_values` would change in the configuration. Raises as that does."""
        return await self._plan(partial(_edit_all, home=self._home, values=values), secrets)

    async def preview(self, values: Mapping[KeyPath, Json], *, secrets: Mapping[str, str] = NO_SECRETS) -> Settings:
        """Returns the settings that `put_values` would bring about, and writes nothing. Raises as that does."""
        old = await to_thread.run_sync(read_config, self._home)
        new = await to_thread.run_sync(partial(_edit_all, old, home=self._home, values=values))
        result = await to_thread.run_sync(partial(_examine, self._home, new, secrets))
        if result.settings is None:
            raise config_error(result.problems)
        return result.settings

    def list_effective(self) -> JsonObject:
        settings = self._denizen.settings
        values = parse_values(render_settings(settings), self._home / CONFIG_FILE)
        return cast("JsonObject", _mask_texts(values, settings.secrets.mask))

    async def describe(self, path: str) -> ConfigurationPart:
        where = parse_path(path)
        found = await to_thread.run_sync(find_schema, where)
        text = await to_thread.run_sync(read_config, self._home)
        document = parse_config(text, self._home)
        return ConfigurationPart(
            path=format_path(where),
            schema=found,
            definitions=config_schema()["$defs"],
            value=_mask_texts(find_value(document.tree, where), self._denizen.mask),
            digest=_digest(text),
            line=document.locate(where)[0],
        )

    def list_keys(self, path: str) -> Sequence[ConfigurationKey]:
        known = resolve(find_schema(parse_path(path) if path else ())).get("properties", {})
        return [
            ConfigurationKey(name, str(below.get("description") or resolve(below).get("description", "")))
            for name, below in known.items()
        ]

    async def read_block(self, path: str) -> str:
        text = await to_thread.run_sync(read_config, self._home)
        return self._denizen.mask(read_block(text, parse_config(text, self._home), parse_path(path)))

    async def plan(self, edit: ConfigurationEdit) -> PlannedChange:
        return await self._plan(partial(_apply, home=self._home, edit=edit), NO_SECRETS)

    async def _plan(self, edit: Callable[[str], str], secrets: Mapping[str, str]) -> PlannedChange:
        old = await to_thread.run_sync(read_config, self._home)
        new = await to_thread.run_sync(edit, old)
        problems = (await to_thread.run_sync(partial(_examine, self._home, new, secrets))).problems
        mask = self._denizen.mask
        return PlannedChange(
            digest=_digest(old), diff=diff_lines(mask(old), mask(new), CONFIG_FILE), faults=list(map(_fault, problems))
        )

    async def apply(self, by: Principal, edit: ConfigurationEdit, *, expected: str = "") -> ConfigurationChange:
        return await self._change(by, partial(_apply, home=self._home, edit=edit), expected)

    async def plan_policy(self, edit: ConfigurationEdit) -> GatePolicy:
        """Returns the policy of the gate as it would be after an edit. Raises InvalidInput as `replace`."""
        text = await to_thread.run_sync(read_config, self._home)
        text = await to_thread.run_sync(partial(_apply, text, home=self._home, edit=edit))
        found = await to_thread.run_sync(partial(_examine, self._home, text))
        if found.settings is None:
            raise config_error(found.problems)
        return found.settings.gate.policy(self._denizen.runtime.current.number, self._denizen.mask)

    async def list_generations(self) -> Sequence[KeptGeneration]:
        async with self._denizen.services.store.work(write=False) as work:
            found = await work.generations.list_generations(limit=KEPT_TEXTS)
        return [
            KeptGeneration(each.number, each.source, each.accepted_at, has_text=self._kept_file(each.number).is_file())
            for each in found
        ]

    async def read_kept(self, number: int) -> str:
        try:
            return await anyio.Path(self._kept_file(number)).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFound(
                f"The text of generation {number} is not kept.",
                code="generation_not_kept",
                why=f"The last {KEPT_TEXTS} that were in force while the server ran are.",
                fix="Choose another.",
            ) from None

    async def diff_kept(self, number: int) -> str:
        mask, kept = self._denizen.mask, await self.read_kept(number)
        return diff_lines(mask(await to_thread.run_sync(read_config, self._home)), mask(kept), CONFIG_FILE)

    async def reload_and_tell(self) -> None:
        """Reloads for the watcher, and keeps what is in force then. Nothing is raised."""
        await self._reloader.reload_and_tell()
        await self._keep_text()

    async def plan_agent(self, agent: NewAgent) -> PlannedChange:
        planned = await self._plan(self._plan_agent_edit(agent), NO_SECRETS)
        files = [
            diff_lines(each.read_old() or "", each.text or "", each.file.relative_to(self._home).as_posix())
            for each in await to_thread.run_sync(self._list_agent_files, agent)
        ]
        return replace(planned, diff="\n".join(filter(None, [planned.diff, *files])))

    async def add_agent(self, by: Principal, agent: NewAgent, *, expected: str = "") -> ConfigurationChange:
        files = await to_thread.run_sync(self._list_agent_files, agent)
        return await self._change(by, self._plan_agent_edit(agent), expected, files=files)

    def _plan_agent_edit(self, agent: NewAgent) -> Callable[[str], str]:
        current = self._denizen.runtime.current
        if agent.name in current.agents:
            raise Conflict(
                f"There is an agent '{agent.name}' already.", code="agent_exists", fix="Choose another name."
            )
        added: dict[KeyPath, Json] = {("agents", each): {} for each in current.agents}
        added |= {("default_agent",): current.default_agent, ("agents", agent.name): agent.section}
        return partial(_add_missing, home=self._home, values=added)

    def _list_agent_files(self, agent: NewAgent) -> Sequence[_FileText]:
        folder = self._home / AGENTS_FOLDER / agent.name
        return [_FileText(_find_persona(folder, name), text) for name, text in agent.files.items()]

    async def remove_agent(self, by: Principal, name: str) -> ConfigurationChange:
        current = self._denizen.runtime.current
        if current.agent(name).name == current.default_agent:
            raise Conflict(
                f"{name} is the default agent.", code="agent_default", fix="Make another one `default_agent` first."
            )
        values: dict[KeyPath, Json] = {("agents", name): None}
        return await self._change(by, partial(_edit_all, home=self._home, values=values), "")

    async def list_persona(self, agent: str) -> Sequence[PersonaText]:
        configured = self._denizen.runtime.current.agent(agent)
        used = {name for name, _ in configured.instructions.persona}
        return await to_thread.run_sync(partial(_read_persona, self._home / AGENTS_FOLDER / configured.name, used))

    async def put_persona(self, by: Principal, agent: str, name: str, text: str) -> ConfigurationChange:
        file = _find_persona(self._home / AGENTS_FOLDER / self._denizen.runtime.current.agent(agent).name, name)
        async with self._lock:
            return await self._write_and_load(by, [_FileText(file, text or None)])

    async def edit_workflow(
        self, by: Principal, file: Path, edit: Callable[[str | None], str | None]
    ) -> ConfigurationChange:
        """Writes the file of a workflow, and loads it. `edit` makes the new text of the old one; None stands for a file
        that is not there. What is broken already hinders no other workflow. Raises as `replace`, and what `edit`
        raises.
        """
        async with self._lock:
            new = edit(await to_thread.run_sync(_read_file, file))
            if problems := await self._examine_workflow(file, new):
                raise config_error(problems)
            return await self._write_and_load(by, [_FileText(file, new)])

    async def find_workflow_faults(self, file: Path, text: str) -> Sequence[ConfigurationFault]:
        """Returns what would be wrong with a workflow, were this the text of its file."""
        return [_fault(each) for each in await self._examine_workflow(file, text) if each.file == file]

    async def _examine_workflow(self, file: Path, text: str | None) -> Sequence[ConfigProblem]:
        config = await to_thread.run_sync(read_config, self._home)
        check = partial(_examine, self._home, config, workflow_texts={file.stem: text})
        result = await to_thread.run_sync(check)
        return result.problems + result.find_broken(self._denizen.settings.broken_workflows.keys() - {file.stem})

    async def write_setup(self, by: Principal, answers: SetupAnswers) -> ConfigurationChange:
        """Writes what the answers of set-up mean, and loads it; all of it, or nothing. Raises as `plan_setup_files`,
        and what building a generation raises.
        """
        async with self._lock:
            plan = partial(plan_setup_files, self._home, answers, environment=read_environment(), known_tools=BUILTIN)
            files = await to_thread.run_sync(plan)
            return await self._write_and_load(by, [_FileText(each.file, each.text, each.mode) for each in files])

    async def _change(
        self,
        by: Principal,
        edit: Callable[[str], str],
        expected: str,
        secrets: Mapping[str, str] = NO_SECRETS,
        files: Sequence[_FileText] = (),
    ) -> ConfigurationChange:
        """Writes the edited configuration, and `files` in the same step."""
        async with self._lock:
            old = await to_thread.run_sync(read_config, self._home)
            if expected and expected != _digest(old):
                raise Conflict(
                    "The configuration was changed meanwhile.",
                    code="configuration_changed",
                    why="Somebody else, or another window of yours, has saved another text.",
                    fix="Load it again, and make your change there.",
                )
            new = await to_thread.run_sync(edit, old)
            result = await to_thread.run_sync(partial(_examine, self._home, new, secrets))
            problems = result.problems + result.find_broken(self._denizen.settings.broken_workflows)
            if problems:
                raise config_error(problems)
            written = [*files, _FileText(self._home / CONFIG_FILE, new)]
            if secrets:
                written.insert(0, await to_thread.run_sync(_add_secrets, self._home / SECRETS_FILE, secrets))
            return await self._write_and_load(by, written)

    def _compare(self, files: Sequence[_FileText]) -> PlannedChange:
        """Returns what writing the files would change in those without secrets."""
        mask = self._denizen.mask
        diffs = [
            diff_lines(mask(each.read_old() or ""), mask(each.text or ""), each.file.relative_to(self._home).as_posix())
            for each in files
            if not each.is_secret
        ]
        return PlannedChange(digest="", diff="\n".join(filter(None, diffs)))

    async def _write_and_load(self, by: Principal, files: Sequence[_FileText]) -> ConfigurationChange:
        """Writes the files and loads the configuration. Puts the old files back where that fails, or is cancelled.
        Raises ChangePlanned instead in a block that only plans.
        """
        if is_planning_changes():
            raise ChangePlanned(await to_thread.run_sync(self._compare, files))
        old = await to_thread.run_sync(_swap, self._home, files)
        try:
            done = await self._reloader.reload()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_swap, self._home, old)
            raise
        await self._keep_text()
        services = self._denizen.services
        events = [
            AuditEvent(
                AuditKind.SETTINGS,
                services.clock.now(),
                by.key,
                each.file.relative_to(self._home).as_posix(),
                {"generation": done.generation, **({} if each.is_secret else {"text": digest_text(each.text or "")})},
            )
            for each in files
        ]
        async with services.store.work() as work:
            await work.audit.add(events)
        changed = any((before.text or "") != (after.text or "") for before, after in zip(old, files, strict=True))
        return ConfigurationChange(done.generation, changed, done.needs_restart)

    def _kept_file(self, number: int) -> Path:
        return self._home / HISTORY_FOLDER / f"{number:06}.yaml"

    async def _keep_text(self) -> None:
        """Keeps the text in force under the number of its generation, unless the file says something else by now. What
        goes wrong is logged: the configuration holds all the same.
        """
        tree, file = self._denizen.settings.document.tree, self._kept_file(self._denizen.runtime.current.number)
        try:
            await to_thread.run_sync(_keep_text, self._home, tree, file)
        except (OSError, InvalidInput, NeedsAttention) as error:
            _log.warning("the text of the configuration is not kept: %s", error)


def _keep_text(home: Path, tree: Mapping[str, Json], file: Path) -> None:
    text = read_config(home)
    if parse_config(text, home).tree != tree:
        return
    write_whole(file, text, mode=SECRET_MODE)
    for old in sorted(file.parent.glob("[0-9]*.yaml"))[:-KEPT_TEXTS]:
        old.unlink(missing_ok=True)


def _examine(
    home: Path,
    text: str,
    secrets: Mapping[str, str] = NO_SECRETS,
    workflow_texts: Mapping[str, str | None] | None = None,
) -> ConfigResult:
    """Returns how the configuration reads with these secrets besides those that are there, and with these workflows."""
    environment = read_environment()
    for name, value in secrets.items():
        if environment.get(name, value) != value:
            raise Conflict(
                f"{name} is set in the environment of Denizen, which counts more than {SECRETS_FILE}.",
                code="secret_in_environment",
                fix="Change it where Denizen is started, or name another variable.",
            )
        put_secret("", name, value)  # raises for what fits on no line
    loaded = load_secrets(home, {**environment, **secrets})
    return examine(home, text, loaded, BUILTIN, workflow_texts=workflow_texts)


def _fault(problem: ConfigProblem) -> ConfigurationFault:
    return ConfigurationFault(
        file=problem.file.name,
        line=problem.line,
        column=problem.column,
        path=format_path(problem.path) if problem.path else "",
        message=problem.message,
        fix=problem.fix,
    )


def _edit_all(text: str, *, home: Path, values: Mapping[KeyPath, Json]) -> str:
    for path, value in values.items():
        document = parse_config(text, home)
        text = splice_out(text, document, path) if value is None else splice_value(text, document, path, value)
    return text


def _apply(text: str, *, home: Path, edit: ConfigurationEdit) -> str:
    """Returns the text after an edit. A value that is to be removed and is not there changes nothing."""
    for name, value in edit.values.items():
        path = parse_path(name)
        if value is not None or parse_config(text, home).has(path):
            text = _edit_all(text, home=home, values={path: value})
    for name, block in edit.blocks.items():
        text = splice_block(text, parse_config(text, home), parse_path(name), block)
    return text


def _add_missing(text: str, *, home: Path, values: Mapping[KeyPath, Json]) -> str:
    """Returns the text with those values that it does not have yet."""
    for path, value in values.items():
        document = parse_config(text, home)
        text = text if document.has(path) else splice_value(text, document, path, value)
    return text


def _swap(home: Path, files: Sequence[_FileText]) -> Sequence[_FileText]:
    """Writes the files, or removes them; all, or none where one cannot be written. Returns what was there."""
    with edit_lock(home):
        old = [replace(each, text=each.read_old()) for each in files]
        with restore_on_failure(*(each.file for each in files)):
            for each in files:
                if each.text is None:
                    each.file.unlink(missing_ok=True)
                else:
                    write_whole(each.file, each.text, mode=each.mode)
        return old


def _add_secrets(file: Path, secrets: Mapping[str, str]) -> _FileText:
    """Returns the file of secrets with these in it, too."""
    text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    for name, value in secrets.items():
        text = put_secret(text, name, value)
    return _FileText(file, text, SECRET_MODE)


def _read_file(file: Path) -> str | None:
    return file.read_text(encoding="utf-8-sig") if file.exists() else None


def _find_persona(folder: Path, name: str) -> Path:
    """Returns the persona file of that name. Raises InvalidInput for a name that leads elsewhere."""
    if not _PERSONA_NAME.fullmatch(name):
        raise InvalidInput("This cannot be a persona file.", code="persona_invalid", fix="Name it like RULES.md.")
    file = folder / name
    if folder.resolve() not in file.resolve().parents:
        raise InvalidInput("This file is a link to another folder.", code="persona_invalid", fix="Edit it there.")
    return file


def _read_persona(folder: Path, used: set[str]) -> Sequence[PersonaText]:
    files = sorted(folder.glob("*.md")) if folder.is_dir() else []
    return [
        PersonaText(file.name, file.read_text(encoding="utf-8-sig", errors="replace"), is_used=file.name in used)
        for file in files
        if file.is_file() and _PERSONA_NAME.fullmatch(file.name) and folder.resolve() in file.resolve().parents
    ]


def _mask_texts(value: Json, mask: Callable[[str], str]) -> Json:
    """Masks each text by itself: masked as a whole, `key: ***` would be no YAML."""
    match value:
        case str():
            return mask(value)
        case Mapping():
            return {mask(name): _mask_texts(each, mask) for name, each in value.items()}
        case list():
            return [_mask_texts(each, mask) for each in value]
        case _:
            return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
