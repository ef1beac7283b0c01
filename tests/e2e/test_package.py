"""The wheel, installed where nothing of this checkout is: commands on the path, pages, migrations and advice work."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

import denizen
from denizen.testing.model_server import ModelAnswer
from tests.e2e.provider import Provider
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, **variables: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", **variables}
    done = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel. What it needs comes from the tests' environment,
    without Denizen, which is installed there by a link that only that environment follows.
    """
    folder = tmp_path_factory.mktemp("package")
    run(ROOT / "scripts" / "build", folder / "dist", HOME=os.environ.get("HOME", str(folder)))
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    run(
        ROOT / "scripts" / "uv", "pip", "install", "--offline", "--no-deps", "--python", python, wheel, HOME=str(folder)
    )
    own = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    (own / "needed.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return python.parent


def test_the_version_stands_in_one_place_and_a_copy_that_agrees(programs: Path) -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert run(programs / "denizen", "--version") == f"denizen {written}\n"
    assert denizen.__version__ == written


def test_the_installed_wheel_is_set_up_and_answers(programs: Path, provider: Provider, tmp_path: Path) -> None:
    provider.script(ModelAnswer(text="OK"), ModelAnswer(text="It is installed."))
    home, url = tmp_path / "home", provider.server.openai_url
    of_home = (programs / "denizen", "--home", home)
    own = run(programs / "python", "-c", "import denizen; print(denizen.__file__)").strip()
    assert Path(own).is_relative_to(programs.parent)
    options = ("--provider", "openai-compatible", "--base-url", url, "--model", "scripted", "--api-key-env", "KEY")
    run(*of_home, "setup", "--non-interactive", *options, KEY="sk-test-key")
    assert run(*of_home, "ask", "Are you installed?", KEY="sk-test-key") == "It is installed.\n"
    assert "first-agent" in " ".join(each.name for each in (Path(own).parent / "web" / "manual").rglob("*.md"))


@pytest.mark.parametrize("extra", ["otel", "images"])
def test_advice_about_an_extra_is_a_command_for_this_installation(programs: Path, extra: str) -> None:
    code = f"from denizen.domain.installation import build_install_command as b; print(b({extra!r}))"
    advice = run(programs / "python", "-c", code)
    assert str(programs / "python") in advice
    assert "denizen[" not in advice
    assert sys.executable not in advice
