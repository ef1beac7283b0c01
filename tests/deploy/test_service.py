"""`denizen service` writes a unit that systemd takes, shows it, and changes nothing the second time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from denizen.app.service_unit import ServicePlan, find_outside_folders, render_unit
from denizen.domain.errors import InvalidInput
from tests.timing import HANG_LIMIT_S

DEPLOY = Path(__file__).parents[2] / "deploy"
EXAMPLE = ServicePlan(program=Path("/opt/denizen/bin/denizen"), home=Path("/var/lib/denizen"), user="denizen")
LOGGED = "systemctl-calls"


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """A machine whose `systemctl` is a program that writes down how it was called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("systemctl", "journalctl"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path / LOGGED}"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


def call(environment: Mapping[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "denizen", "service", *args]
    return subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )


@pytest.mark.e2e
def test_install_shows_what_it_writes_is_idempotent_and_uninstall_leaves_the_home(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    unit = Path(environment["HOME"], ".config", "systemd", "user", "denizen.service")
    refused = call(environment, "install")
    assert refused.returncode != 0
    assert "Run `denizen setup` first." in refused.stderr
    config = Path(environment["HOME"], ".denizen", "denizen.yaml")
    config.parent.mkdir()
    config.write_text("agents: {denizen: {}}\n", encoding="utf-8")
    shown = call(environment, "install", "--dry-run")
    assert f"+ExecStart={Path(sys.executable).parent}/denizen --home {config.parent} run" in shown.stdout
    assert not unit.exists()
    first = call(environment, "install")
    assert (first.returncode, unit.exists()) == (0, True), first.stderr
    again = call(environment, "install")
    assert f"{unit} is as it should be." in again.stdout
    assert call(environment, "logs", "-n", "5").returncode == 0
    assert call(environment, "uninstall").returncode == 0
    assert (unit.exists(), config.exists()) == (False, True)
    assert "There is no" in call(environment, "uninstall").stdout
    assert (tmp_path / LOGGED).read_text(encoding="utf-8").splitlines() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable denizen.service",
        "systemctl --user restart denizen.service",
        "systemctl --user daemon-reload",
        "systemctl --user enable denizen.service",
        "systemctl --user start denizen.service",
        "journalctl --user-unit denizen.service --no-pager --lines 5",
        "systemctl --user disable --now denizen.service",
        "systemctl --user daemon-reload",
    ]


def test_the_unit_that_ships_is_the_one_that_the_command_writes() -> None:
    shipped = (DEPLOY / "systemd" / "denizen.service").read_text(encoding="utf-8")
    assert "".join(line for line in shipped.splitlines(keepends=True) if line[0] != "#") == render_unit(EXAMPLE)


@pytest.mark.parametrize("path", ["/srv/my home", "/srv/50%", "/srv/$HOME"])
def test_a_path_that_systemd_would_read_otherwise_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        render_unit(ServicePlan(program=Path("/usr/bin/denizen"), home=Path(path)))


@pytest.mark.e2e
def test_a_unit_of_the_system_may_write_where_database_and_log_are(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    home, data = Path(environment["HOME"], ".denizen"), tmp_path / "data"
    home.mkdir()
    (home / "secrets.env").write_text(f"DATA={data}\n", encoding="utf-8")
    (home / "denizen.yaml").write_text(
        "store: {url: 'sqlite:///${DATA}/denizen.db'}\nlogging: {file: /var/log/denizen/denizen.log}\n",
        encoding="utf-8",
    )
    shown = call(environment, "install", "--system", "--user", "daemon", "--dry-run")
    assert f"+ReadWritePaths={home} /var/log/denizen {data}" in shown.stdout, shown.stderr
    assert "+User=daemon" in shown.stdout
    refused = call(environment, "install", "--system", "--user", "daemon")
    assert "is not there, and the configuration has the database or the log in it" in refused.stderr
    assert "for daemon to write into" in refused.stderr


def test_folders_in_the_home_and_postgres_need_no_more_room(tmp_path: Path) -> None:
    for text in ("", "store: {url: postgresql://db/denizen}\nlogging: {file: logs/own.log}\n"):
        (tmp_path / "denizen.yaml").write_text(text, encoding="utf-8")
        assert find_outside_folders(tmp_path, {}) == []


@pytest.mark.parametrize("user", ["", "daemon"])
def test_systemd_takes_the_unit_and_finds_it_hardened(user: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze here")
    unit = tmp_path / "denizen.service"
    plan = ServicePlan(program=Path(sys.executable), home=Path("/var/lib"), user=user, outside=[Path("/var/log")])
    text = render_unit(plan)
    unit.write_text(text.replace("postgresql.service", ""), encoding="utf-8")
    verified = subprocess.run(
        [program, "verify", *([] if user else ["--user"]), "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
        env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    assert "denizen.service" not in verified.stderr, verified.stderr
    if user:
        rated = subprocess.run(
            [program, "security", "--offline=yes", "--threshold=45", str(unit)],
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
            check=False,
        )
        assert rated.returncode == 0, rated.stdout[-400:] + rated.stderr
