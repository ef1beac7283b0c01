"""`denizen service`: runs Denizen by systemd, for this user or for the whole system."""

from __future__ import annotations

import difflib
import getpass
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.terminal import echo
from denizen.domain.errors import NeedsAttention, NotFound

if TYPE_CHECKING:
    from denizen.app.service_unit import ServicePlan

_SYSTEM = click.option("--system", "is_system", is_flag=True, help="For the whole system; needs root.")


@click.group(cls=CommandGroup)
def command() -> None:
    """Run Denizen in the background, by systemd."""


@command.command()
@_SYSTEM
@click.option("--user", default="", help="With --system: the user that it runs as.  [default: the owner of the home]")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.pass_obj
def install(home: Path, *, is_system: bool, user: str, dry_run: bool) -> None:
    """Write the unit, start Denizen, and have it started with the machine. May be repeated: it shows what changes.

    A unit of a user runs while that user is signed in; `loginctl enable-linger` has it run always.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.service_unit import UNIT, ServicePlan, find_outside_folders, render_unit

    if is_system and not user:
        user = home.owner() if home.exists() else getpass.getuser()
    outside = find_outside_folders(home, read_environment())
    plan = ServicePlan(program=_find_program(), home=home, user=user if is_system else "", outside=outside)
    path, text = _find_folder(is_system=is_system) / UNIT, render_unit(plan)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    change = difflib.unified_diff(old.splitlines(), text.splitlines(), str(path), str(path), lineterm="", n=2)
    echo("\n".join(change) if old != text else f"{path} is as it should be.")
    if dry_run:
        return
    _check_home(plan)
    if old != text:
        _write(path, text)
    _systemctl("daemon-reload", is_system=is_system)
    _systemctl("enable", UNIT, is_system=is_system)
    _systemctl("restart" if old != text else "start", UNIT, is_system=is_system)
    echo("Denizen runs by systemd. Its log: denizen service logs")


@command.command()
@_SYSTEM
def status(*, is_system: bool) -> int:
    """Show whether it runs. The exit code is that of systemctl: 0 while it does."""
    from denizen.app.service_unit import UNIT

    return _systemctl("status", "--no-pager", UNIT, is_system=is_system, may_fail=True)


@command.command()
@_SYSTEM
@click.option("-f", "--follow", is_flag=True, help="Go on as more comes.")
@click.option("-n", "--lines", type=click.IntRange(1, 10_000), default=100, show_default=True)
def logs(*, is_system: bool, follow: bool, lines: int) -> int:
    """Show what it has logged."""
    from denizen.app.service_unit import UNIT

    unit = ["--unit", UNIT] if is_system else ["--user-unit", UNIT]
    return _run(["journalctl", *unit, "--no-pager", "--lines", str(lines), *(["--follow"] if follow else [])])


@command.command()
@_SYSTEM
def uninstall(*, is_system: bool) -> None:
    """Stop it and remove the unit. The home folder stays."""
    from denizen.app.service_unit import UNIT

    path = _find_folder(is_system=is_system) / UNIT
    if not path.exists():
        echo(f"There is no {path}.")
        return
    _systemctl("disable", "--now", UNIT, is_system=is_system)
    path.unlink()
    _systemctl("daemon-reload", is_system=is_system)
    echo(f"Removed {path}. The home folder stays as it is.")


def _find_program() -> Path:
    """The command beside this Python, as it was installed; else the one on the PATH."""
    beside = Path(sys.executable).parent / "denizen"
    found = str(beside) if beside.exists() else shutil.which("denizen")
    if found is None:
        raise NotFound("There is no command `denizen` beside this Python.", fix="Install Denizen, and use its command.")
    return Path(found)


def _find_folder(*, is_system: bool) -> Path:
    from denizen.app.home.environment import read_environment
    from denizen.app.service_unit import find_unit_folder

    configured = read_environment().get("XDG_CONFIG_HOME", "")
    return find_unit_folder(Path.home(), configured, is_system=is_system)


def _check_home(plan: ServicePlan) -> None:
    from denizen.app.settings import CONFIG_FILE

    if not (plan.home / CONFIG_FILE).exists():
        raise NeedsAttention(
            f"There is no configuration in {plan.home}.", code="config_missing", fix="Run `denizen setup` first."
        )
    for each in plan.outside:
        if not each.is_dir():
            raise NeedsAttention(
                f"The folder {each} is not there, and the configuration has the database or the log in it.",
                code="folder_missing",
                fix=f"Make it, for {plan.user or 'your user'} to write into.",
            )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NeedsAttention(
            f"{path} cannot be written.",
            code="unit_not_writable",
            why=error.strerror or type(error).__name__,
            fix="Run it as root for --system, or leave --system out.",
        ) from error


def _systemctl(*args: str, is_system: bool, may_fail: bool = False) -> int:
    code = _run(["systemctl", *([] if is_system else ["--user"]), *args])
    if code and not may_fail:
        raise NeedsAttention(
            f"`systemctl {' '.join(args)}` failed.", code="systemd_failed", fix="Look at what it said, above."
        )
    return code


def _run(command: Sequence[str]) -> int:
    if shutil.which(command[0]) is None:
        raise NeedsAttention(
            f"There is no `{command[0]}` here.",
            code="systemd_missing",
            why="services are run by systemd, which this machine does not have",
            fix="Let what starts programs here run `denizen run`, and stop it with SIGTERM.",
        )
    from denizen.app.home.environment import read_environment

    sys.stdout.flush()
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=read_environment()).returncode  # noqa: S603 - fixed programs
