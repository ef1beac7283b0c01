"""`denizen skill`: the owner's own skills, from the first file to being enabled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.exit_codes import DONE, INVALID
from denizen.cli.home import load_home_settings, with_denizen
from denizen.cli.log import leave_to_command
from denizen.cli.terminal import echo
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.app.settings.problem import KeyPath
    from denizen.app.skill_loading.check import SkillCheckReport
    from denizen.app.skill_loading.folder import SkillFolder
    from denizen.skill.manifest import SkillManifest


OPERATOR = "the command line"


@click.group(cls=CommandGroup)
def command() -> None:
    """Manage your own skills, in the folder `skills/`.

    A skill is loaded only after you enabled it, and only with exactly the content that you enabled. A Python skill
    runs inside Denizen and can do what Denizen can, so read it before.
    """
    leave_to_command("denizen.skills")


@command.command()
@click.argument("name")
@click.option("--markdown", is_flag=True, help="A text that tells agents how something is done, instead of code.")
@click.pass_obj
def new(home: Path, name: str, *, markdown: bool) -> None:
    """Write a working example as the skill NAME, with a test."""
    from denizen.app.skill_loading.editor import SkillFolderEditor, markdown_example, python_example
    from denizen.app.skill_loading.folder import SKILLS_FOLDER

    if not markdown and "-" in name:
        raise InvalidInput(f"'{name}' cannot be a Python skill's name.", fix="Write _ in place of -.")
    files = markdown_example(name) if markdown else python_example(name)
    anyio.run(partial(SkillFolderEditor(home, {}).create, name, files, by=OPERATOR))
    echo(f"Wrote {', '.join(files)} into {home / SKILLS_FOLDER / name}.")
    look = "check" if markdown else "test"
    echo(f"Next: change it, then denizen skill {look} {name}, then denizen skill enable {name}")


@command.command()
@click.argument("name")
@click.pass_obj
def check(home: Path, name: str) -> int:
    """Check whether NAME can work: its texts, then its import, in a child process without secrets."""
    return _told(_check(home, name, with_examples=False), name, "")


@command.command()
@click.argument("name")
@click.pass_obj
def test(home: Path, name: str) -> int:
    """Run the examples of NAME's skill.yaml, in a child process without secrets: each result must hold its text."""
    report = _check(home, name, with_examples=True)
    return _told(report, name, f", {report.passed} examples came out as expected" if report.tools else "")


@command.command("list")
@with_denizen
async def list_(denizen: Denizen) -> None:
    """List skills with state, tier, kind and what is wrong, if anything."""
    from denizen.app.skill_loading.folder import SKILLS_FOLDER

    entries = denizen.generation_deps.own_skills.entries
    if not entries:
        echo(f"There are no skills in {denizen.home / SKILLS_FOLDER}. Begin one: denizen skill new NAME")
    for entry in entries:
        tier = f"tier {int(entry.manifest.tier)}" if entry.manifest else "tier ?"
        about = entry.manifest.description if entry.manifest else ""
        echo(f"{entry.name:<24} {entry.state:<9} {tier}  {entry.kind:<9} {about}".rstrip())
        if entry.tools:
            echo(f"    tools: {', '.join(entry.tools)}")
        if entry.why:
            echo(f"    why: {entry.why}")
        if entry.fix:
            echo(f"    fix: {entry.fix}")


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def enable(home: Path, name: str, *, yes: bool) -> int:
    """Show what NAME is and may do, and load exactly this content from now on.

    It is checked first. A running Denizen loads it at once. Any change of its files switches it off again.
    """
    from denizen.app.skill_loading.folder import load_folder, read_folder_manifest
    from denizen.app.skill_loading.history import SkillHistory
    from denizen.app.skill_loading.review import plan_enabling
    from denizen.app.toolsets import find_taken
    from denizen.ports.skill_configuration import SkillEventKind

    folder = load_folder(home, name)
    manifest = read_folder_manifest(folder)
    _show(folder, manifest)
    if not yes and not click.confirm("Enable it?", err=True):
        click.echo("Nothing was changed.", err=True)
        return DONE
    settings = load_home_settings(home)
    plan = anyio.run(plan_enabling, settings, name, folder.sha256, find_taken(settings, name))
    if plan.report.problems:
        return _told(plan.report, name, "")
    _write(home, plan.values)
    SkillHistory(home).note(folder, SkillEventKind.ENABLED, OPERATOR)
    echo(f"Enabled {name} (sha256 {folder.sha256[:12]}).")
    return DONE


@command.command()
@click.argument("name")
@click.pass_obj
def disable(home: Path, name: str) -> None:
    """Stop loading NAME; its files and settings stay."""
    if name not in load_home_settings(home).skills:
        echo(f"{name} is not enabled.")
        return
    _write(home, {("skills", name, "enabled"): False})
    echo(f"Disabled {name}.")


def _check(home: Path, name: str, *, with_examples: bool) -> SkillCheckReport:
    from denizen.app.skill_loading.check import check_skill
    from denizen.app.skill_loading.folder import load_folder
    from denizen.app.toolsets import find_taken

    folder, taken = load_folder(home, name), find_taken(load_home_settings(home), name)
    return anyio.run(partial(check_skill, folder, taken, with_examples=with_examples))


def _told(report: SkillCheckReport, name: str, more: str) -> int:
    for problem in report.problems:
        echo(f"FAIL  {problem}", err=True)
    if report.problems:
        return INVALID
    tools = ", ".join(f"{tool} (tier {tier})" for tool, tier in report.tools)
    echo(f"ok    {name}{f': {tools}' if tools else ''}{more}")
    return DONE


def _show(folder: SkillFolder, manifest: SkillManifest) -> None:
    from denizen.skill.manifest import PERMISSION_DESCRIPTIONS

    kind = "a Markdown skill" if folder.is_markdown else "a Python skill; it runs inside Denizen"
    echo(f"{manifest.name} {manifest.version}".rstrip() + f": {manifest.description}")
    echo(f"  kind: {kind}")
    if not folder.is_markdown:
        echo(f"  tier: no tool of it is below {int(manifest.tier)}")
        granted = [f"{each} ({PERMISSION_DESCRIPTIONS[each]})" for each in sorted(manifest.permissions)]
        echo(f"  permissions: {', '.join(granted) or 'none'}")
    for file, data in sorted(folder.files.items()):
        echo(f"  {len(data):>9,} bytes  {folder.path / file}")
    echo(f"  sha256: {folder.sha256}")


def _write(home: Path, values: Mapping[KeyPath, Json]) -> None:
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import set_values
    from denizen.builtin_skills import BUILTIN

    set_values(home, read_environment(), values, known_tools=BUILTIN)
