"""Commands in a process that has imported nothing before; elsewhere they start with all of it (`fork_server.py`)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from denizen.cli.exit_codes import BUG
from denizen.testing.model_server import ModelAnswer
from denizen.testing.model_wire import ModelCall
from tests.e2e.home import Home, get_completion_text
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e

ALONE = """
import os, pkgutil
import {package}
for module in pkgutil.iter_modules({package}.__path__, "{package}."):
    if not (pid := os.fork()):
        __import__(module.name)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        print(module.name)
"""
"""Imports each module of a package in a process that has imported nothing else, and prints those that fail."""

LOOKS = ("doctor --offline", "models", "replay none --model x/y", "shell ls", "skill list", "usage")


def run_command(home: Home, *args: str) -> str:
    """What a command prints that has nothing to complain of."""
    done = home.do(*args, anew=True)
    assert (done.code, done.told) == (0, []), (args, done)
    return done.out


def fails_alone(package: str) -> tuple[str, str]:
    """The modules that need another to be imported before them, and why."""
    command = [sys.executable, "-c", ALONE.format(package=package)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout, done.stderr


def test_every_module_of_the_command_line_imports_all_that_it_needs() -> None:
    assert fails_alone("denizen.cli") == ("", "")


def test_a_module_that_imports_too_little_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house/__init__.py").touch()
    (tmp_path / "house/a.py").write_text("import xml.dom")
    (tmp_path / "house/b.py").write_text("import xml\nxml.dom")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names, why = fails_alone("house")
    assert names == "house.b\n"
    assert "AttributeError" in why


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_imports_all_that_it_needs(command: str, home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    done = home.do(*command.split(), anew=True)
    assert done.code != BUG, done.err
    assert "Traceback" not in done.err


def test_commands_that_read_find_and_tell_import_all_that_they_need(
    home: Home, provider: Provider, tmp_path: Path
) -> None:
    home.configure(provider.server.openai_url)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/roses.md").write_text("# Roses\n\nCut them in March.\n")
    provider.script(ModelAnswer(text="In March."))
    assert "Added notes: folder" in run_command(home, "sources", "add", str(tmp_path / "notes"))
    assert run_command(home, "sources", "sync").startswith("notes: read, 1 file\n")
    assert "Cut them in March." in run_command(home, "docs", "search", "roses")
    assert run_command(home, "ask", "When do I cut roses?") == "In March.\n"
    assert "question: When do I cut roses?" in run_command(home, "trace", "--last")


def test_commands_that_set_up_and_serve_import_all_that_they_need_and_end_when_told_to(
    home: Home, provider: Provider
) -> None:
    options = ("--base-url", provider.server.openai_url, "--model", "tiny")
    provider.script(*[ModelAnswer(text="Hello.")] * 2)
    assert home.do("setup", "--non-interactive", *options, anew=True).code == 0
    with home.serve(anew=True) as server:
        assert get_completion_text(server.ask("Hello", key="m1")) == "Hello."
        ended = server.running.stop(signal.SIGTERM)
    told = [line for line in ended.told if not line.startswith("[starting: ")]  # on a busy machine
    assert (ended.ending, told) == ((0, ""), [f"Denizen is ready: {server.url}", "Stopped."])


@pytest.mark.proves("V3", "V1")
def test_whatever_a_run_writes_is_in_its_home_folder(home: Home, provider: Provider, tmp_path: Path) -> None:
    home.variables |= {"TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    provider.script(
        ModelAnswer(text="Hello."),
        ModelAnswer(
            calls=[
                ModelCall("write_note", {"name": "shed", "text": "Paint it."}),
                ModelCall("remember", {"text": "Likes red"}),
            ]
        ),
        ModelAnswer(text="Written down."),
    )
    options = ("--base-url", provider.server.openai_url, "--model", "tiny")
    assert home.do("setup", "--non-interactive", *options).code == 0
    assert home.do("skill", "new", "dice").code == 0
    with home.serve() as server:
        assert (
            get_completion_text(server.ask("Note that I like red and want to paint the shed.", key="m1"))
            == "Written down."
        )
        server.running.stop(signal.SIGTERM)
    home.do("chat", stdin="/exit\n")

    assert {path.name for path in tmp_path.iterdir()} == {"home", "temporary"}
    assert list((tmp_path / "temporary").iterdir()) == []
    files = {str(path.relative_to(home.folder)): path for path in home.folder.rglob("*") if path.is_file()}
    kept = {"denizen.yaml", "denizen.db", "durable.db", "agents/denizen/IDENTITY.md", "skills/dice/skill.py"}
    assert kept <= set(files)
    for told in (b"Paint it.", b"Likes red"):
        assert any(told in path.read_bytes() for path in files.values())
